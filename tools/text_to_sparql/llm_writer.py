"""A language model writes queries, which are tried on the graph and repaired if none returns rows.

Its prompt has the schema context: the entities and their relations.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from llm.client import ChatClient
from llm.errors import ChatError
from llm.prompts import PromptTemplates
from llm.structured_output import ReplyParseError, ReplyText, parse_reply
from llm.types import Message
from tools.text_to_sparql.rules.paths import entity_term
from tools.text_to_sparql.trial import QueryTrial, try_query
from tools.tool import EncodeFunction
from worlds.source import Entity, GraphSource, NotFound, Relation, Relations

MAX_RELATIONS = 40
"""Of all entities together, those most like the question."""
MAX_COMPARED_RELATIONS = 600
MAX_FULL_VOCABULARY = 400
"""Without entities all relations of the graph are told of, unless it has more than so many."""
_MAX_LABEL_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class SchemaContext:
    """The entities with their likeliest relations, and the vocabulary of the graph if there are no entities."""

    entities: tuple[dict[str, Any], ...]
    other_relations: tuple[dict[str, Any], ...]


def select_schema_context(
    graph: GraphSource, question: str, entities: Sequence[Entity], encode: EncodeFunction
) -> SchemaContext:
    """Select the schema context; the vocabulary is loaded only if there are no entities."""
    if not entities:
        vocabulary = graph.vocabulary()
        full_vocabulary = list(vocabulary) if len(vocabulary) <= MAX_FULL_VOCABULARY else []
        return SchemaContext((), tuple(map(_describe_relation, _rank_relations(question, full_vocabulary, encode))))
    relations_by_entity = [(entity, _fetch_relations(graph, entity)) for entity in entities]
    all_of_them = (relation for _, has in relations_by_entity for relation in (*has.outgoing, *has.incoming))
    selected = _rank_relations(question, all_of_them, encode)
    return SchemaContext(tuple(_describe_entity(entity, has, selected) for entity, has in relations_by_entity), ())


def _fetch_relations(graph: GraphSource, entity: Entity) -> Relations:
    try:
        return graph.relations(entity.id)
    except NotFound:
        # It has a label and nothing else.
        return Relations()


def _rank_relations(question: str, relations: Iterable[Relation], encode: EncodeFunction) -> list[Relation]:
    """The relations whose names are most like the question, best first."""
    unique = list(dict.fromkeys(relations))[:MAX_COMPARED_RELATIONS]
    if len(unique) <= 1:
        return unique
    rows = encode([question, *(relation.label for relation in unique)])
    likeness = rows[1:] @ rows[0]
    order = sorted(range(len(unique)), key=lambda place: (-float(likeness[place]), place))
    return [unique[place] for place in order[:MAX_RELATIONS]]


def _describe_entity(entity: Entity, has: Relations, selected: Sequence[Relation]) -> dict[str, Any]:
    directions = [[_describe_relation(one) for one in selected if one in way] for way in (has.outgoing, has.incoming)]
    return {
        "term": entity_term(entity.id),
        "label": _to_single_line(entity.label),
        "description": _to_single_line(entity.description or ""),
        "outgoing": directions[0],
        "incoming": directions[1],
        "left": len(has.outgoing) + len(has.incoming) - len(directions[0]) - len(directions[1]),
    }


def _describe_relation(relation: Relation) -> dict[str, Any]:
    term = entity_term(relation.id)
    term = f"wdt:{term[3:]}" if term.startswith("wd:") else term
    return {"term": term, "label": _to_single_line(relation.label), "value": relation.value}


def _to_single_line(text: str) -> str:
    """In one bounded line, so that no label can pass for a line of the prompt."""
    return " ".join(text.split())[:_MAX_LABEL_CHARACTERS]


MAX_REPAIRS = 2
MAX_CANDIDATES = 3
_MAX_READING_CHARACTERS = 400
_FENCED_QUERY = re.compile(r"```(?:sparql)?\s*\n(.+?)```", re.DOTALL | re.IGNORECASE)

render_prompt = PromptTemplates("tools")


class _ReplyCandidate(BaseModel):
    sparql: ReplyText
    reading: ReplyText | None = None


class _QueryReply(BaseModel):
    candidates: list[_ReplyCandidate]


@dataclass(frozen=True, slots=True)
class QueryWritingResult:
    """What the model wrote: the queries that answer, and before them those that did not."""

    successful_trials: tuple[QueryTrial, ...] = ()
    failed_trials: tuple[QueryTrial, ...] = ()
    failure: str = ""
    """Why the model wrote no more, where it failed."""

    @property
    def empty_trials(self) -> tuple[QueryTrial, ...]:
        """Those that run and match nothing, the last first."""
        return tuple(trial for trial in reversed(self.failed_trials) if trial.runnable)

    @property
    def trouble(self) -> str:
        """Why no query is offered, in a sentence."""
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
    """The model's queries for the question, repaired at most twice; `failure` has the model's error."""
    facts = select_schema_context(graph, question, entities, encode)
    prompt = render_prompt(
        "query_question", question=" ".join(question.split()), entities=facts.entities, others=facts.other_relations
    )
    messages = [Message("system", render_prompt("query")), Message("user", prompt)]
    tried: list[QueryTrial] = []
    for repair in range(MAX_REPAIRS + 1):
        reply = ""
        try:
            reply = chat.ask(messages).text
            candidates = _parse_candidates(reply, chat.name)
        except ReplyParseError as unreadable:
            if repair == MAX_REPAIRS:
                return QueryWritingResult((), tuple(tried), str(unreadable))
            messages += [Message("assistant", reply), Message("user", f"{unreadable} Write the JSON object only.")]
            continue
        except ChatError as failed:
            return QueryWritingResult((), tuple(tried), str(failed))
        trials = [try_query(graph, one.sparql, _candidate_reading(one) or question) for one in candidates]
        tried += [trial for trial in trials if trial.trouble]
        answering = [trial for trial in trials if not trial.trouble]
        if answering:
            return QueryWritingResult(tuple(answering), tuple(tried))
        messages += [Message("assistant", reply), Message("user", render_prompt("query_repair", trials=trials))]
    return QueryWritingResult((), tuple(tried))


def _candidate_reading(candidate: _ReplyCandidate) -> str:
    """In one bounded line."""
    return " ".join((candidate.reading or "").split())[:_MAX_READING_CHARACTERS]


def _parse_candidates(reply: str, model: str) -> list[_ReplyCandidate]:
    """The queries in the reply, each once; a fenced query without JSON around it is taken as it is."""
    try:
        candidates = parse_reply(reply, _QueryReply, model).candidates
    except ReplyParseError:
        candidates = [_ReplyCandidate(sparql=fenced) for fenced in _FENCED_QUERY.findall(reply)]
        if not candidates:
            raise
    unique = {" ".join(one.sparql.split()): one for one in reversed(candidates) if one.sparql.strip()}
    if not unique:
        raise ReplyParseError(f"{model} wrote no query.")
    return [_ReplyCandidate(sparql=one.sparql.strip(), reading=one.reading) for one in reversed(unique.values())][
        :MAX_CANDIDATES
    ]
