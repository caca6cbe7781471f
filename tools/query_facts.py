"""What a language model is told of a graph before it writes a query: the entities and the relations that they have."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tools.grammar.paths import entity_term
from tools.tool import Encode
from worlds.source import Entity, GraphSource, NotFound, Relation, Relations

MOST_RELATIONS = 40
"""Of all entities together, those most like the question."""
MOST_COMPARED = 600
WHOLE_VOCABULARY = 400
"""Without entities all relations of the graph are told of, unless it has more than so many."""
_LONGEST = 160


@dataclass(frozen=True, slots=True)
class Facts:
    """The entities with their likeliest relations, and others of the graph where no entity is known."""

    entities: tuple[dict[str, Any], ...]
    others: tuple[dict[str, Any], ...]


def facts_for(graph: GraphSource, question: str, entities: Sequence[Entity], encode: Encode) -> Facts:
    """What the model is told; the vocabulary is asked for only where no entity is known."""
    if not entities:
        vocabulary = graph.vocabulary()
        known = list(vocabulary) if len(vocabulary) <= WHOLE_VOCABULARY else []
        return Facts((), tuple(map(_told, _likeliest(question, known, encode))))
    each = [(entity, _relations(graph, entity)) for entity in entities]
    all_of_them = (relation for _, has in each for relation in (*has.outgoing, *has.incoming))
    kept = _likeliest(question, all_of_them, encode)
    return Facts(tuple(_described(entity, has, kept) for entity, has in each), ())


def _relations(graph: GraphSource, entity: Entity) -> Relations:
    try:
        return graph.relations(entity.id)
    except NotFound:
        # It has a label and nothing else.
        return Relations()


def _likeliest(question: str, relations: Iterable[Relation], encode: Encode) -> list[Relation]:
    """The relations whose names are most like the question, best first."""
    unique = list(dict.fromkeys(relations))[:MOST_COMPARED]
    if len(unique) <= 1:
        return unique
    rows = encode([question, *(relation.label for relation in unique)])
    likeness = rows[1:] @ rows[0]
    order = sorted(range(len(unique)), key=lambda place: (-float(likeness[place]), place))
    return [unique[place] for place in order[:MOST_RELATIONS]]


def _described(entity: Entity, has: Relations, kept: Sequence[Relation]) -> dict[str, Any]:
    shown = [[_told(one) for one in kept if one in way] for way in (has.outgoing, has.incoming)]
    return {
        "term": entity_term(entity.id),
        "label": _line(entity.label),
        "description": _line(entity.description or ""),
        "outgoing": shown[0],
        "incoming": shown[1],
        "left": len(has.outgoing) + len(has.incoming) - len(shown[0]) - len(shown[1]),
    }


def _told(relation: Relation) -> dict[str, Any]:
    term = entity_term(relation.id)
    term = f"wdt:{term[3:]}" if term.startswith("wd:") else term
    return {"term": term, "label": _line(relation.label), "value": relation.value}


def _line(text: str) -> str:
    """In one bounded line, so that no label can pass for a line of the prompt."""
    return " ".join(text.split())[:_LONGEST]
