"""Write a query from a question, by a language model or by a grammar."""

from collections.abc import Sequence
from typing import Annotated, Any

from tools.arguments import AS_IDS, bare_id, graph_of
from tools.chat import Chat
from tools.grammar.candidates import find_candidates
from tools.grammar.meaning import Meaning
from tools.query_trial import Trial
from tools.query_writer import write_queries
from tools.tool import Context, Observation
from tools.tool_error import ToolError
from worlds.source import Entity, GraphSource, Relation

WHOLE_VOCABULARY = 400
"""Up to so many relations a guess looks at all of them, beyond it only at those that the entities have."""
NO_RELATION = "No word of the question is a relation of this graph."
"""How the sentence begins that tells that a graph is silent about what is asked."""
_LISTED = 12
_LONGEST_WHY = 200
"""Characters of what a graph says of a query, where more is said beside it."""
_LONGEST = 2000
"""Characters of a question that the grammar looks at; whole texts would keep it busy for long, and are none."""


def generate_query(
    context: Context,
    question: Annotated[str, "a question that the graph can answer"],
    entity_ids: Annotated[list[str], "ids of the entities it speaks of, from getWikiDataID", AS_IDS],
) -> Observation:
    """Write a SPARQL query for a question about entities whose ids are known; runQuery runs it."""
    graph = graph_of(context.world, "generateQuery")
    ids = list(dict.fromkeys(map(bare_id, entity_ids)))
    entities = graph.entities(ids)
    unknown = [one for one in ids if one not in {entity.id for entity in entities}]
    if unknown:
        raise ToolError(f"This world does not know {', '.join(unknown)}; find ids with getWikiDataID.")
    if context.chat is None:
        return _by_grammar(context, graph, question, entities)
    return _by_model(context, context.chat, graph, question, entities)


def _by_grammar(context: Context, graph: GraphSource, question: str, entities: list[Entity]) -> Observation:
    guess = Meaning(_near(graph, entities), context.encode)
    found = find_candidates(graph, question[:_LONGEST], entities, guess)
    if not found:
        raise ToolError(_nothing(graph, entities))
    listed = [{"sparql": one.sparql, "reading": one.reading, "score": one.score} for one in found]
    return Observation(found[0].sparql, {"route": "grammar", "candidates": listed})


def _by_model(context: Context, chat: Chat, graph: GraphSource, question: str, entities: list[Entity]) -> Observation:
    """The model's queries that answer; else the grammar's, and why; else the model's that match nothing."""
    written = write_queries(graph, question, entities, chat, context.encode)
    why = written.trouble
    tried = [{"sparql": one.sparql, "reading": one.reading, "trouble": one.trouble} for one in written.tried]
    if written.answering:
        return _offered(written.answering, {"tried": tried})
    try:
        found = _by_grammar(context, graph, question, entities)
    except ToolError as nothing:
        if not written.empty:
            raise ToolError(f"{nothing} The language model did not help either: {why[:_LONGEST_WHY]}") from nothing
        return _offered(written.empty, {"tried": tried, "why": why})
    return Observation(found.text, {**found.data, "why": why, "tried": tried})


def _offered(trials: Sequence[Trial], told: dict[str, Any]) -> Observation:
    listed = [
        {"sparql": one.sparql, "reading": one.reading, "score": round((0.0 if one.trouble else 0.5) + 0.5 / (2 + n), 3)}
        for n, one in enumerate(trials)
    ]
    return Observation(trials[0].sparql, {"route": "model", "candidates": listed, **told})


def _near(graph: GraphSource, entities: list[Entity]) -> list[Relation]:
    vocabulary = graph.vocabulary()
    return list(vocabulary) if len(vocabulary) <= WHOLE_VOCABULARY else _relations(graph, entities)


def _relations(graph: GraphSource, entities: list[Entity]) -> list[Relation]:
    each = [graph.relations(entity.id) for entity in entities]
    return [relation for relations in each for relation in (*relations.outgoing, *relations.incoming)]


def _nothing(graph: GraphSource, entities: list[Entity]) -> str:
    if not entities:
        return "The question names no relation of this graph with a value; give the ids of the entities it speaks of."
    labels = list(dict.fromkeys(relation.label for relation in _relations(graph, entities[:1])))
    return (
        f"{NO_RELATION} {entities[0].label} has: {', '.join(labels[:_LISTED])}"
        f"{', ...' if len(labels) > _LISTED else ''}; ask for one of these, or write the query yourself."
    )
