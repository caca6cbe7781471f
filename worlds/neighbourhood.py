"""One entity's neighbourhood: every outgoing and incoming relation with some of its values."""

from collections.abc import Iterator
from dataclasses import dataclass

from worlds import terms
from worlds.source import Cell, Entity, GraphSource, NotFound, Relation

MAX_VALUES = 6
"""Values shown of one relation; a country has as many residents as it has."""


@dataclass(frozen=True, slots=True)
class BranchValue:
    """One end of a relation; `entity` is its id where it is one."""

    label: str
    entity: str | None = None
    datatype: str | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """The values of one relation, from the entity (`outgoing`) or to it; `more` when not all are here."""

    relation: Relation
    outgoing: bool
    values: tuple[BranchValue, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """An entity and the branches of its relations."""

    centre: Entity
    branches: tuple[Branch, ...]


def load_neighbourhood(graph: GraphSource, entity: str, most: int = MAX_VALUES) -> Neighbourhood:
    """The neighbourhood of the entity of that id; NotFound when the graph does not know it."""
    matches = graph.entities([entity])
    if not matches:
        raise NotFound(f"This world's graph does not know {entity!r}.")
    relations = graph.relations(entity)
    ways = [(relation, True) for relation in relations.outgoing]
    ways += [(relation, False) for relation in relations.incoming]
    if not ways:
        return Neighbourhood(matches[0], ())
    table = graph.query(_build_query(entity, ways, most + 1))
    cells: dict[int, list[Cell]] = {}
    for way, value in table.rows:
        if way is not None and value is not None:
            cells.setdefault(int(way.value), []).append(value)
    labels = _load_labels(graph, [cell for group in cells.values() for cell in group[:most]])
    return Neighbourhood(matches[0], tuple(_build_branches(ways, cells, labels, most)))


def _build_branches(
    ways: list[tuple[Relation, bool]], cells: dict[int, list[Cell]], labels: dict[str, str], most: int
) -> Iterator[Branch]:
    seen: set[tuple[str, str]] = set()
    for place, (relation, outgoing) in enumerate(ways):
        # What stands both ways, as friends do, is drawn once.
        unseen_cells = [cell for cell in cells.get(place, []) if outgoing or (relation.id, cell.value) not in seen]
        seen |= {(relation.id, cell.value) for cell in unseen_cells}
        if unseen_cells:
            values = tuple(
                sorted((_build_value(cell, labels) for cell in unseen_cells[:most]), key=lambda value: value.label)
            )
            yield Branch(relation, outgoing, values, more=len(cells[place]) > most)


def _build_query(entity: str, ways: list[tuple[Relation, bool]], limit: int) -> str:
    node = terms.format_node(entity)
    values = []
    for place, (relation, outgoing) in enumerate(ways):
        predicate = terms.format_predicate(relation.id)
        pattern = f"{node} {predicate} ?value" if outgoing else f"?value {predicate} {node}"
        values.append(f"{{ SELECT ({place} AS ?way) ?value WHERE {{ {pattern} }} LIMIT {limit} }}")
    return f"SELECT ?way ?value WHERE {{ {' UNION '.join(values)} }}"


def _load_labels(graph: GraphSource, cells: list[Cell]) -> dict[str, str]:
    ids = list(dict.fromkeys(cell.value for cell in cells if cell.kind in ("entity", "iri")))
    return {entity.id: entity.label for entity in graph.entities(ids)} if ids else {}


def _build_value(cell: Cell, labels: dict[str, str]) -> BranchValue:
    if cell.value in labels:
        return BranchValue(labels[cell.value], cell.value)
    return BranchValue(cell.value, cell.value if cell.kind == "entity" else None, cell.datatype)
