"""The tool generateQuery: write a SPARQL query for a question, by a language model or by the grammar."""

from collections.abc import Sequence
from typing import Annotated, Any

from llm.client import ChatClient
from tools.arguments import SPLIT_IDS_VALIDATOR, normalize_id, require_graph
from tools.errors import ToolError
from tools.parameter import Accepts
from tools.text_to_sparql.llm_writer import write_queries
from tools.text_to_sparql.rules.candidates import SemanticRelationMatcher, find_candidates
from tools.text_to_sparql.trial import QueryTrial
from tools.tool import Observation, ToolContext
from worlds.source import Entity, ErrorKind, GraphSource, Relation

MAX_FULL_VOCABULARY = 400
"""In a graph with more relations, only those that the entities have are matched by meaning."""
NO_RELATION_MESSAGE = "No word of the question is a relation of this graph."
"""The start of the error for a question that names no relation of the graph."""
_MAX_LISTED_RELATIONS = 12
_MAX_REASON_CHARACTERS = 200
"""Characters of what a graph says of a query, where more is said beside it."""
_MAX_QUESTION_CHARACTERS = 2000
"""Characters of a question that the grammar looks at; whole texts would keep it busy for long, and are none."""


def generate_query(
    context: ToolContext,
    question: Annotated[str, "a question that the graph can answer", Accepts()],
    entity_ids: Annotated[
        list[str], "ids of the entities it speaks of, from getWikiDataID", SPLIT_IDS_VALIDATOR, Accepts("entity")
    ],
) -> Observation:
    """Write a SPARQL query for a question about entities whose ids are known; runQuery runs it."""
    graph = require_graph(context.world, "generateQuery")
    ids = list(dict.fromkeys(map(normalize_id, entity_ids)))
    entities = graph.entities(ids)
    unknown = [one for one in ids if one not in {entity.id for entity in entities}]
    if unknown:
        raise ToolError(
            f"This world does not know {', '.join(unknown)}; find ids with getWikiDataID.", ErrorKind.NOT_FOUND
        )
    if context.chat is None:
        return _generate_by_grammar(context, graph, question, entities)
    return _generate_by_model(context, context.chat, graph, question, entities)


def _generate_by_grammar(
    context: ToolContext, graph: GraphSource, question: str, entities: list[Entity]
) -> Observation:
    guess = SemanticRelationMatcher(_candidate_relations(graph, entities), context.encode)
    candidates = find_candidates(graph, question[:_MAX_QUESTION_CHARACTERS], entities, guess)
    if not candidates:
        raise ToolError(_no_relation_message(graph, entities), ErrorKind.NOT_FOUND)
    listed = [{"sparql": one.sparql, "reading": one.reading, "score": one.score} for one in candidates]
    return Observation(candidates[0].sparql, {"route": "grammar", "candidates": listed})


def _generate_by_model(
    context: ToolContext, chat: ChatClient, graph: GraphSource, question: str, entities: list[Entity]
) -> Observation:
    """The model's queries with results; else the grammar's with the reason; else the model's without results."""
    written = write_queries(graph, question, entities, chat, context.encode)
    why = written.trouble
    tried = [{"sparql": one.sparql, "reading": one.reading, "trouble": one.trouble} for one in written.failed_trials]
    if written.successful_trials:
        return _trials_to_observation(written.successful_trials, {"tried": tried})
    try:
        observation = _generate_by_grammar(context, graph, question, entities)
    except ToolError as nothing:
        if not written.empty_trials:
            raise ToolError(
                f"{nothing} The language model did not help either: {why[:_MAX_REASON_CHARACTERS]}",
                nothing.kind,
            ) from nothing
        return _trials_to_observation(written.empty_trials, {"tried": tried, "why": why})
    return Observation(observation.text, {**observation.data, "why": why, "tried": tried})


def _trials_to_observation(trials: Sequence[QueryTrial], details: dict[str, Any]) -> Observation:
    listed = [
        {"sparql": one.sparql, "reading": one.reading, "score": round((0.0 if one.trouble else 0.5) + 0.5 / (2 + n), 3)}
        for n, one in enumerate(trials)
    ]
    return Observation(trials[0].sparql, {"route": "model", "candidates": listed, **details})


def _candidate_relations(graph: GraphSource, entities: list[Entity]) -> list[Relation]:
    vocabulary = graph.vocabulary()
    return list(vocabulary) if len(vocabulary) <= MAX_FULL_VOCABULARY else _entity_relations(graph, entities)


def _entity_relations(graph: GraphSource, entities: list[Entity]) -> list[Relation]:
    relations_by_entity = [graph.relations(entity.id) for entity in entities]
    return [relation for relations in relations_by_entity for relation in (*relations.outgoing, *relations.incoming)]


def _no_relation_message(graph: GraphSource, entities: list[Entity]) -> str:
    if not entities:
        return "The question names no relation of this graph with a value; give the ids of the entities it speaks of."
    labels = list(dict.fromkeys(relation.label for relation in _entity_relations(graph, entities[:1])))
    return (
        f"{NO_RELATION_MESSAGE} {entities[0].label} has: {', '.join(labels[:_MAX_LISTED_RELATIONS])}"
        f"{', ...' if len(labels) > _MAX_LISTED_RELATIONS else ''}; ask for one of these, or write the query yourself."
    )
