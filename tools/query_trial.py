"""A query that somebody wrote, tried on the graph before it is offered."""

from collections.abc import Iterator
from dataclasses import dataclass

from worlds import terms
from worlds.live.sparql_rewrite import limited
from worlds.live.sparql_tokens import QueryText, Token, read_query
from worlds.source import GraphSource, QueryRefused, SourceTimeout
from worlds.sparql_guard import check_query

ROWS = 10
"""So many rows tell that a query answers."""
_STATEMENTS = ("wd", "wdt", "p", "ps", "psv", "pq")
"""Prefixes in which Wikidata's ids stand."""
_DATATYPES = terms.PREFIXES["xsd"]
_MOST_LOOKED_UP = 20


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a query: `trouble` says in a sentence why it is of no use, None where it answers."""

    sparql: str
    reading: str
    trouble: str | None
    runs: bool = True
    """Whether it can be run at all; one that matches nothing can."""


def try_query(graph: GraphSource, sparql: str, reading: str) -> Trial:
    """Parse the query, look its names up in the graph, and run it with a small limit.

    SourceUnavailable passes: nothing is known of the query then.
    """
    try:
        check_query(sparql)
        query = read_query(sparql)
        unknown = _unknown(graph, query)
        if unknown:
            return Trial(sparql, reading, f"The graph does not have {', '.join(unknown)}.", runs=False)
        table = graph.query(limited(query, ROWS)[0])
    except (QueryRefused, SourceTimeout) as failed:
        return Trial(sparql, reading, str(failed), runs=False)
    empty = table.boolean is None and not any(any(row) for row in table.rows)
    return Trial(sparql, reading, "It matches nothing in the graph." if empty else None)


def _unknown(graph: GraphSource, query: QueryText) -> list[str]:
    """What the query names and the graph does not have, as the query writes it."""
    named = dict(list(_named(query))[:_MOST_LOOKED_UP])
    short = [id_ for id_ in named.values() if terms.iri_of(id_) != id_]
    known = {entity.id for entity in graph.entities(list(dict.fromkeys(short)))} if short else set()
    return [written for written, id_ in named.items() if id_ not in known and not _in_use(graph, id_)]


def _in_use(graph: GraphSource, id_: str) -> bool:
    """Whether any triple has it, for what has no label and for what is no item of a wiki."""
    iris = dict.fromkeys((terms.iri_of(id_), terms.predicate_of(id_)))
    places = (f"{{ <{iri}> ?p ?o }} UNION {{ ?s <{iri}> ?o }} UNION {{ ?s ?p <{iri}> }}" for iri in iris if iri)
    return bool(graph.query(f"ASK {{ {' UNION '.join(places)} }}").boolean)


def _named(query: QueryText) -> Iterator[tuple[str, str]]:
    """Items, properties and other things of the graph in the query: as they are written, and their ids."""
    first = next(n for n, token in enumerate(query.tokens) if token.says(query.form.casefold()))
    for token in query.tokens[first:]:
        iri = _iri(token, query)
        if iri is not None and not iri.startswith(_DATATYPES):
            yield token.text, terms.id_of(iri)


def _iri(token: Token, query: QueryText) -> str | None:
    """The id or IRI that the token names; None for words, variables and the vocabulary that every graph may use."""
    if token.kind == "iri":
        return token.text[1:-1]
    prefix, _, local = token.text.partition(":")
    if token.kind != "name" or not local:
        return None
    if prefix in query.declared and query.declared[prefix] not in terms.PREFIXES.values():
        return query.declared[prefix] + local
    return local if prefix in _STATEMENTS and terms.iri_of(local) != local else None
