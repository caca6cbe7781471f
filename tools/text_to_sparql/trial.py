"""Try a query on the graph before it is offered."""

from collections.abc import Iterator
from dataclasses import dataclass

from worlds import terms
from worlds.embedded.sparql_guard import check_query
from worlds.live.sparql.rewrite import apply_row_limit
from worlds.live.sparql.tokens import SparqlToken, TokenizedQuery, tokenize_query
from worlds.source import GraphSource, QueryRefused, SourceTimeout

TRIAL_ROWS = 10
"""So many rows tell that a query answers."""
_WIKIDATA_PREFIXES = ("wd", "wdt", "p", "ps", "psv", "pq")
"""Prefixes in which Wikidata's ids stand."""
_XSD_NAMESPACE = terms.PREFIXES["xsd"]
_MAX_LOOKUPS = 20


@dataclass(frozen=True, slots=True)
class QueryTrial:
    """Result of trying a query: `trouble` is one sentence on why it failed, or None."""

    sparql: str
    reading: str
    trouble: str | None
    runnable: bool = True
    """Whether it can be run at all; one that matches nothing can."""


def try_query(graph: GraphSource, sparql: str, reading: str) -> QueryTrial:
    """Parse the query, look its names up in the graph, and run it with a small limit.

    SourceUnavailable is raised, since the query could not be tried.
    """
    try:
        check_query(sparql)
        query = tokenize_query(sparql)
        unknown = _find_unknown_terms(graph, query)
        if unknown:
            return QueryTrial(sparql, reading, f"The graph does not have {', '.join(unknown)}.", runnable=False)
        table = graph.query(apply_row_limit(query, TRIAL_ROWS)[0])
    except (QueryRefused, SourceTimeout) as failed:
        return QueryTrial(sparql, reading, str(failed), runnable=False)
    empty = table.boolean is None and not any(any(row) for row in table.rows)
    return QueryTrial(sparql, reading, "It matches nothing in the graph." if empty else None)


def _find_unknown_terms(graph: GraphSource, query: TokenizedQuery) -> list[str]:
    """What the query names and the graph does not have, as the query writes it."""
    named = dict(list(_iterate_graph_terms(query))[:_MAX_LOOKUPS])
    short = [id_ for id_ in named.values() if terms.expand_id(id_) != id_]
    existing = {entity.id for entity in graph.entities(list(dict.fromkeys(short)))} if short else set()
    return [written for written, id_ in named.items() if id_ not in existing and not _occurs_in_graph(graph, id_)]


def _occurs_in_graph(graph: GraphSource, id_: str) -> bool:
    """Whether any triple has the term, for terms without a label or outside the wiki."""
    iris = dict.fromkeys((terms.expand_id(id_), terms.expand_predicate(id_)))
    places = (f"{{ <{iri}> ?p ?o }} UNION {{ ?s <{iri}> ?o }} UNION {{ ?s ?p <{iri}> }}" for iri in iris if iri)
    return bool(graph.query(f"ASK {{ {' UNION '.join(places)} }}").boolean)


def _iterate_graph_terms(query: TokenizedQuery) -> Iterator[tuple[str, str]]:
    """Items, properties and other things of the graph in the query: as they are written, and their ids."""
    first = next(n for n, token in enumerate(query.tokens) if token.is_keyword(query.form.casefold()))
    for token in query.tokens[first:]:
        iri = _token_iri(token, query)
        if iri is not None and not iri.startswith(_XSD_NAMESPACE):
            yield token.text, terms.shorten_iri(iri)


def _token_iri(token: SparqlToken, query: TokenizedQuery) -> str | None:
    """The id or IRI that the token names; None for words, variables and the vocabulary that every graph may use."""
    if token.kind == "iri":
        return token.text[1:-1]
    prefix, _, local = token.text.partition(":")
    if token.kind != "name" or not local:
        return None
    if prefix in query.declared_prefixes and query.declared_prefixes[prefix] not in terms.PREFIXES.values():
        return query.declared_prefixes[prefix] + local
    return local if prefix in _WIKIDATA_PREFIXES and terms.expand_id(local) != local else None
