"""Write queries with a language model, try them on the graph, and have it repair them if none returns rows.

The prompt contains the schema context: the entities and their relations.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, Field, model_validator

from showhow.llm.client import ChatClient
from showhow.llm.errors import ChatError
from showhow.llm.prompts import PromptTemplates
from showhow.llm.structured_output import ReplyParseError, ReplyText, parse_reply, request_json_reply, split_reasoning
from showhow.llm.types import Message
from showhow.tools.text_to_sparql.lexicon import entity_term
from showhow.tools.text_to_sparql.vocabulary import fetch_relations, load_vocabulary
from showhow.tools.tool import EncodeFunction
from showhow.worlds import terms
from showhow.worlds.live.sparql.rewrite import apply_row_limit
from showhow.worlds.source import (
    Cell,
    Entity,
    GraphSource,
    QueryRefused,
    Relation,
    Relations,
    RelationSearch,
    SourceTimeout,
)
from showhow.worlds.sparql_syntax import SparqlToken, TokenizedQuery, check_query, tokenize_query

TRIAL_ROWS = 10
"""Row limit of a trial; one row shows that the query has results."""
_WIKIDATA_PREFIXES = ("wd", "wdt", "p", "ps", "psv", "pq")
"""Prefixes of Wikidata's ids."""
_XSD_NAMESPACE = terms.PREFIXES["xsd"]
_MAX_LOOKUPS = 20


@dataclass(frozen=True, slots=True)
class QueryTrial:
    """The result of trying a query; `trouble` is one sentence on why it failed, or None."""

    sparql: str
    reading: str
    trouble: str | None
    runnable: bool = True
    """Whether the query runs, with or without results."""


def try_query(graph: GraphSource, sparql: str, reading: str) -> QueryTrial:
    """Parse the query, look up its terms in the graph, and run it with a limit of TRIAL_ROWS.

    SourceUnavailable is raised, not returned, since it says nothing about the query.
    """
    try:
        check_query(sparql)
        query = tokenize_query(sparql)
        unknown = _find_unknown_terms(graph, query)
        if unknown:
            return QueryTrial(sparql, reading, f"The graph does not have {', '.join(unknown)}.", runnable=False)
        table = graph.query(apply_row_limit(query, TRIAL_ROWS)[0])
    except (QueryRefused, SourceTimeout) as error:
        return QueryTrial(sparql, reading, str(error), runnable=False)
    empty = table.boolean is None and not any(any(row) for row in table.rows)
    return QueryTrial(sparql, reading, f"It matches nothing in the graph. {table.note}".strip() if empty else None)


def _find_unknown_terms(graph: GraphSource, query: TokenizedQuery) -> list[str]:
    """The terms of the query that the graph does not have, as written in the query."""
    ids_by_text = dict(list(_iterate_graph_terms(query))[:_MAX_LOOKUPS])
    short_ids = [id_ for id_ in ids_by_text.values() if terms.expand_id(id_) != id_]
    existing = {entity.id for entity in graph.entities(list(dict.fromkeys(short_ids)))} if short_ids else set()
    return [text for text, id_ in ids_by_text.items() if id_ not in existing and not _occurs_in_graph(graph, id_)]


def _occurs_in_graph(graph: GraphSource, id_: str) -> bool:
    """Whether the term occurs in any triple, also without a label."""
    iris = dict.fromkeys((terms.expand_id(id_), terms.expand_predicate(id_)))
    patterns = (f"{{ <{iri}> ?p ?o }} UNION {{ ?s <{iri}> ?o }} UNION {{ ?s ?p <{iri}> }}" for iri in iris if iri)
    return bool(graph.query(f"ASK {{ {' UNION '.join(patterns)} }}").boolean)


def _iterate_graph_terms(query: TokenizedQuery) -> Iterator[tuple[str, str]]:
    """The items, properties and other IRIs in the query: the text of each, and its id."""
    first = next(n for n, token in enumerate(query.tokens) if token.is_keyword(query.form.casefold()))
    for token in query.tokens[first:]:
        iri = _token_iri(token, query)
        if iri is not None and not iri.startswith(_XSD_NAMESPACE):
            yield token.text, terms.shorten_iri(iri)


def _token_iri(token: SparqlToken, query: TokenizedQuery) -> str | None:
    """The id or IRI of the token; None for keywords, variables and terms of common vocabularies such as rdfs:."""
    if token.kind == "iri":
        return token.text[1:-1]
    prefix, _, local = token.text.partition(":")
    if token.kind != "name" or not local:
        return None
    if prefix in query.declared_prefixes and query.declared_prefixes[prefix] not in terms.PREFIXES.values():
        return query.declared_prefixes[prefix] + local
    return local if prefix in _WIKIDATA_PREFIXES and terms.expand_id(local) != local else None


MAX_RELATIONS = 40
"""Maximum relations in a prompt, those most similar to the question."""
MAX_COMPARED_RELATIONS = 600
MAX_FULL_VOCABULARY = 400
"""Without entities the prompt lists all relations of the graph, unless it has more than these."""
_MAX_LABEL_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class SchemaContext:
    """The entities with their most similar relations, and the relations of the graph if there are no entities."""

    entities: tuple[dict[str, Any], ...]
    other_relations: tuple[dict[str, Any], ...]


def select_schema_context(
    graph: GraphSource, question: str, entities: Sequence[Entity], encode: EncodeFunction
) -> SchemaContext:
    """Select the schema context; the vocabulary is loaded only if there are no entities."""
    if not entities:
        vocabulary = load_vocabulary(graph, question, ())
        full_vocabulary = list(vocabulary) if len(vocabulary) <= MAX_FULL_VOCABULARY else []
        return SchemaContext((), tuple(map(_describe_relation, _rank_relations(question, full_vocabulary, encode))))
    relations_by_entity = [(entity, fetch_relations(graph, entity)) for entity in entities]
    candidates = (
        relation for _, relations in relations_by_entity for relation in (*relations.outgoing, *relations.incoming)
    )
    selected = _rank_relations(question, candidates, encode)
    return SchemaContext(
        tuple(_describe_entity(entity, relations, selected) for entity, relations in relations_by_entity), ()
    )


def _rank_relations(question: str, relations: Iterable[Relation], encode: EncodeFunction) -> list[Relation]:
    """The relations whose labels are most similar to the question, best first."""
    unique = list(dict.fromkeys(relations))[:MAX_COMPARED_RELATIONS]
    if len(unique) <= 1:
        return unique
    rows = encode([question, *(relation.label for relation in unique)])
    similarities = rows[1:] @ rows[0]
    order = sorted(range(len(unique)), key=lambda index: (-float(similarities[index]), index))
    return [unique[index] for index in order[:MAX_RELATIONS]]


def _describe_entity(entity: Entity, relations: Relations, selected: Sequence[Relation]) -> dict[str, Any]:
    outgoing = [_describe_relation(relation) for relation in selected if relation in relations.outgoing]
    incoming = [_describe_relation(relation) for relation in selected if relation in relations.incoming]
    return {
        "term": entity_term(entity.id),
        "label": _to_single_line(entity.label),
        "description": _to_single_line(entity.description or ""),
        "outgoing": outgoing,
        "incoming": incoming,
        "left": len(relations.outgoing) + len(relations.incoming) - len(outgoing) - len(incoming),
    }


def _describe_relation(relation: Relation) -> dict[str, Any]:
    term = entity_term(relation.id)
    term = f"wdt:{term[3:]}" if term.startswith("wd:") else term
    return {"term": term, "label": _to_single_line(relation.label), "value": relation.value, "sample": ""}


def add_sample_values(graph: GraphSource, schema: SchemaContext) -> SchemaContext:
    """Add to the first MAX_RELATIONS relations of the entities one value each as `sample`; "" if the graph is too slow.

    One query returns the values, and one call their labels.
    """
    described = [
        (
            relation,
            f"{entity['term']} {relation['term']} ?value" if leaves else f"?value {relation['term']} {entity['term']}",
        )
        for entity in schema.entities
        for leaves, relations in ((True, entity["outgoing"]), (False, entity["incoming"]))
        for relation in relations
    ][:MAX_RELATIONS]
    try:
        cells = _sample_cells(graph, [pattern for _, pattern in described])
        ids = list(dict.fromkeys(cell.value for cell in cells.values() if cell.kind == "entity"))
        labels = {entity.id: entity.label for entity in graph.entities(ids)} if ids else {}
    except (QueryRefused, SourceTimeout):
        # The relations are known; the model can do without samples of a graph that is slow.
        return schema
    for number, cell in cells.items():
        label = labels.get(cell.value)
        term = entity_term(cell.value) if cell.kind == "entity" else cell.value
        described[number][0]["sample"] = _to_single_line(f"{label} {term}" if label else term)
    return schema


def _sample_cells(graph: GraphSource, patterns: Sequence[str]) -> dict[int, Cell]:
    """One value for each pattern, by the number of the pattern; those that match nothing are left out."""
    if not patterns:
        return {}
    branches = " UNION ".join(
        f"{{ SELECT ({number} AS ?n) ?value WHERE {{ {pattern} }} LIMIT 1 }}" for number, pattern in enumerate(patterns)
    )
    rows = graph.query(f"SELECT ?n ?value WHERE {{ {branches} }}").rows
    return {number.read_number(): value for number, value in rows if number is not None and value is not None}


def _to_single_line(text: str) -> str:
    """The text on one truncated line, so that no label can look like a line of the prompt."""
    return " ".join(text.split())[:_MAX_LABEL_CHARACTERS]


MAX_REPAIRS = 2
MAX_CANDIDATES = 3
_MAX_READING_CHARACTERS = 400
_BARE_QUERY = re.compile(r"\s*(?:PREFIX|BASE|SELECT|ASK)\b.*\}.*", re.DOTALL | re.IGNORECASE)
_FENCED_QUERY = re.compile(r"```(?:sparql)?[^\S\n]*+\n(.+?)```", re.DOTALL | re.IGNORECASE)

render_prompt = PromptTemplates("showhow.tools")


class _ReplyCandidate(BaseModel):
    sparql: ReplyText
    reading: ReplyText | None = None


def _collect_candidates(value: Any) -> Any:
    """Bring a reply into the requested form: models also write one query alone, or a list of queries as texts."""
    if isinstance(value, str):
        return [{"sparql": value}] if _BARE_QUERY.fullmatch(value) else []
    if isinstance(value, list):
        return [candidate for element in value for candidate in _collect_candidates(element)]
    if not isinstance(value, dict):
        return []
    query = value.get("sparql", value.get("query"))
    if isinstance(query, str) and ("sparql" in value or _BARE_QUERY.fullmatch(query)):
        reading = value.get("reading")
        return [{"sparql": query, "reading": reading if isinstance(reading, str) else None}]
    return [
        candidate
        for nested in value.values()
        if isinstance(nested, (dict, list))
        for candidate in _collect_candidates(nested)
    ]


class _QueryReply(BaseModel):
    candidates: list[_ReplyCandidate] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _in_requested_form(cls, value: Any) -> dict[str, Any]:
        return {"candidates": _collect_candidates(value)}


@dataclass(frozen=True, slots=True)
class QueryWritingResult:
    """The model's queries: those with results, and those that failed or matched nothing."""

    successful_trials: tuple[QueryTrial, ...] = ()
    failed_trials: tuple[QueryTrial, ...] = ()
    failure: str = ""
    """The error of the model, if it failed."""

    @property
    def empty_trials(self) -> tuple[QueryTrial, ...]:
        """The queries that run but match nothing, the last first."""
        return tuple(trial for trial in reversed(self.failed_trials) if trial.runnable)

    @property
    def trouble(self) -> str:
        """One sentence on why no query has results; "" if none was tried."""
        if self.failure:
            return self.failure
        return (
            f"No query of the language model answers; the last one: {self.failed_trials[-1].trouble}"
            if self.failed_trials
            else ""
        )


def write_queries(
    graph: GraphSource, question: str, entities: Sequence[Entity], chat: ChatClient, encode: EncodeFunction
) -> QueryWritingResult:
    """Ask the model for queries, with at most MAX_REPAIRS repairs; an error of the model becomes `failure`."""
    schema = add_sample_values(graph, select_schema_context(graph, question, entities, encode))
    prompt = render_prompt(
        "query_question",
        question=" ".join(question.split()),
        entities=schema.entities,
        others=schema.other_relations,
        wikidata_date=f"{datetime.now(UTC):%Y-%m-%d}"
        if isinstance(graph, RelationSearch) and graph.is_wikidata
        else "",
    )
    messages = [Message("system", render_prompt("query")), Message("user", prompt)]
    failed_trials: list[QueryTrial] = []
    for repair in range(MAX_REPAIRS + 1):
        reply = ""
        try:
            reply = request_json_reply(chat, messages, _QueryReply).text
            candidates = _parse_candidates(reply, chat.name)
        except ReplyParseError as error:
            if repair == MAX_REPAIRS:
                return QueryWritingResult((), tuple(failed_trials), str(error))
            messages += [Message("assistant", reply), Message("user", f"{error} Write the JSON object only.")]
            continue
        except ChatError as error:
            return QueryWritingResult((), tuple(failed_trials), str(error))
        trials = [
            try_query(graph, candidate.sparql, _candidate_reading(candidate) or question) for candidate in candidates
        ]
        failed_trials += [trial for trial in trials if trial.trouble]
        successful_trials = [trial for trial in trials if not trial.trouble]
        if successful_trials:
            return QueryWritingResult(tuple(successful_trials), tuple(failed_trials))
        messages += [Message("assistant", reply), Message("user", render_prompt("query_repair", trials=trials))]
    return QueryWritingResult((), tuple(failed_trials))


def _candidate_reading(candidate: _ReplyCandidate) -> str:
    """The candidate's reading of the question on one truncated line."""
    return " ".join((candidate.reading or "").split())[:_MAX_READING_CHARACTERS]


def _parse_candidates(reply: str, model: str) -> list[_ReplyCandidate]:
    """The distinct queries in the reply: those of its JSON object, else of its fenced code blocks, else the reply."""
    try:
        candidates = parse_reply(reply, _QueryReply, model).candidates
    except ReplyParseError:
        visible = split_reasoning(reply)[1]
        queries = _FENCED_QUERY.findall(visible) or ([visible] if _BARE_QUERY.fullmatch(visible) else [])
        if not queries:
            raise
        candidates = [_ReplyCandidate(sparql=sparql) for sparql in queries]
    unique = {" ".join(c.sparql.split()): c for c in reversed(candidates) if c.sparql.strip()}
    if not unique:
        raise ReplyParseError(f"{model} wrote no query.")
    return [_ReplyCandidate(sparql=c.sparql.strip(), reading=c.reading) for c in reversed(unique.values())][
        :MAX_CANDIDATES
    ]
