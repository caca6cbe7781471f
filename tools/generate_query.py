"""The tool generateQuery: write a SPARQL query for a question, with a language model or the grammar."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from showhow.llm.client import ChatClient
from showhow.tools.arguments import SPLIT_IDS_VALIDATOR, Accepts, Label, ToolError, normalize_id, require_graph
from showhow.tools.text_to_sparql.candidates import QueryCandidate, SemanticRelationMatcher, find_candidates
from showhow.tools.text_to_sparql.llm_writer import QueryTrial, write_queries
from showhow.tools.text_to_sparql.vocabulary import load_vocabulary
from showhow.tools.tool import Observation, ToolContext
from showhow.worlds.source import Entity, ErrorKind, GraphSource, NotFound, Relation

MAX_FULL_VOCABULARY = 400
"""In a graph with more relations, only those of the entities are matched by meaning."""
NO_RELATION_MESSAGE = "No word of the question is a relation of this graph."
"""The start of the error for a question that names no relation of the graph."""
_MAX_LISTED_RELATIONS = 12
_MAX_REASON_CHARACTERS = 200
"""Characters of the model's error that are quoted in the grammar's."""
_MAX_QUESTION_CHARACTERS = 2000
"""Characters of a question that the grammar parses; a longer text is not a question and would take long."""


def generate_query(
    context: ToolContext,
    question: Annotated[str, "a question that the graph can answer", Accepts()],
    entity_ids: Annotated[
        list[str],
        "ids of the entities it speaks of, from getWikiDataID",
        SPLIT_IDS_VALIDATOR,
        Accepts("entity"),
        Label("Entities"),
    ],
) -> Observation:
    """Write a SPARQL query for a question about entities whose ids are known; runQuery runs it."""
    graph = require_graph(context.world, "generateQuery")
    ids = list(dict.fromkeys(map(normalize_id, entity_ids)))
    entities = graph.entities(ids)
    unknown = [id_ for id_ in ids if id_ not in {entity.id for entity in entities}]
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
    text = question[:_MAX_QUESTION_CHARACTERS]
    vocabulary = load_vocabulary(graph, text, entities)
    compared = vocabulary if len(vocabulary) <= MAX_FULL_VOCABULARY else _entity_relations(graph, entities)
    guess = SemanticRelationMatcher(compared, context.encode)
    candidates = find_candidates(graph, vocabulary, text, entities, guess)
    if not candidates:
        raise ToolError(_no_relation_message(graph, entities), ErrorKind.NOT_FOUND)
    unexplained = candidates[0].unexplained
    readings = [asdict(candidate) | {"unexplained": list(candidate.unexplained)} for candidate in candidates]
    complete = [reading for reading in readings if not reading["unexplained"]]
    incomplete = [reading for reading in readings if reading["unexplained"]]
    data = {"route": "grammar", "candidates": complete, "incomplete": incomplete, "unexplained": list(unexplained)}
    return Observation(candidates[0].sparql if complete else _refusal_text(candidates[0]), data)


def _refusal_text(candidate: QueryCandidate) -> str:
    """The text in place of a query that would leave words of the question out."""
    return (
        f"No query is written: nothing in the graph is known for {', '.join(map(repr, candidate.unexplained))}, and "
        f"without that the question would be another ({candidate.reading}); say it in the graph's words."
    )


def _generate_by_model(
    context: ToolContext, chat: ChatClient, graph: GraphSource, question: str, entities: list[Entity]
) -> Observation:
    """The model's queries with results; else the grammar's with the reason; else the model's without results."""
    result = write_queries(graph, question, entities, chat, context.encode)
    reason = result.trouble
    tried = [
        {"sparql": trial.sparql, "reading": trial.reading, "trouble": trial.trouble} for trial in result.failed_trials
    ]
    if result.successful_trials:
        return _trials_to_observation(result.successful_trials, {"tried": tried})
    try:
        observation = _generate_by_grammar(context, graph, question, entities)
    except ToolError as error:
        if not result.empty_trials:
            raise ToolError(
                f"{error} The language model did not help either: {reason[:_MAX_REASON_CHARACTERS]}",
                error.kind,
            ) from error
        return _trials_to_observation(result.empty_trials, {"tried": tried, "why": reason})
    if observation.data["unexplained"] and result.empty_trials:
        return _trials_to_observation(result.empty_trials, {"tried": tried, "why": reason})
    return Observation(observation.text, {**observation.data, "why": reason, "tried": tried})


def _trials_to_observation(trials: Sequence[QueryTrial], details: dict[str, Any]) -> Observation:
    candidates = [
        {
            "sparql": trial.sparql,
            "reading": trial.reading,
            "score": round((0.0 if trial.trouble else 0.5) + 0.5 / (2 + n), 3),
        }
        for n, trial in enumerate(trials)
    ]
    return Observation(trials[0].sparql, {"route": "model", "candidates": candidates, **details})


def _entity_relations(graph: GraphSource, entities: list[Entity]) -> list[Relation]:
    """The relations of the entities; NotFound if the graph has no triples of any."""
    relations: list[Relation] = []
    missing: NotFound | None = None
    for entity in entities:
        try:
            of_entity = graph.relations(entity.id)
            relations += (*of_entity.outgoing, *of_entity.incoming)
        except NotFound as error:
            missing = error
    if missing and not relations:
        raise missing
    return relations


def _no_relation_message(graph: GraphSource, entities: list[Entity]) -> str:
    if not entities:
        return "The question names no relation of this graph with a value; give the ids of the entities it speaks of."
    labels = list(dict.fromkeys(relation.label for relation in _entity_relations(graph, entities[:1])))
    return (
        f"{NO_RELATION_MESSAGE} {entities[0].label} has: {', '.join(labels[:_MAX_LISTED_RELATIONS])}"
        f"{', ...' if len(labels) > _MAX_LISTED_RELATIONS else ''}; ask for one of these, or write the query yourself."
    )
