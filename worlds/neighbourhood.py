"""One entity's neighbourhood: every outgoing and incoming relation with some of its values."""

from collections.abc import Iterator
from dataclasses import dataclass

from showhow.worlds import terms
from showhow.worlds.source import Cell, Entity, GraphSource, NotFound, Relation

MAX_VALUES = 6
"""Maximum values of one relation; a country has millions of residents."""


@dataclass(frozen=True, slots=True)
class BranchValue:
    """One value of a relation; `entity` is its id if it is an entity."""

    label: str
    entity: str | None = None
    datatype: str | None = None


@dataclass(frozen=True, slots=True)
class RelationBranch:
    """The values of one relation, outgoing or incoming; `more` if there are further values."""

    relation: Relation
    outgoing: bool
    values: tuple[BranchValue, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """An entity and the branches of its relations."""

    centre: Entity
    branches: tuple[RelationBranch, ...]


def load_neighbourhood(graph: GraphSource, entity: str, max_values: int = MAX_VALUES) -> Neighbourhood:
    """The neighbourhood of the entity with this id; NotFound if the graph does not know it."""
    matches = graph.entities([entity])
    if not matches:
        raise NotFound(f"This world's graph does not know {entity!r}.")
    relations = graph.relations(entity)
    directed = [(relation, True) for relation in relations.outgoing]
    directed += [(relation, False) for relation in relations.incoming]
    if not directed:
        return Neighbourhood(matches[0], ())
    table = graph.query(_build_query(entity, directed, max_values + 1))
    cells: dict[int, list[Cell]] = {}
    for number, value in table.rows:
        if number is not None and value is not None:
            cells.setdefault(number.read_number(len(directed)), []).append(value)
    labels = _load_labels(graph, [cell for group in cells.values() for cell in group[:max_values]])
    return Neighbourhood(matches[0], tuple(_build_branches(directed, cells, labels, max_values)))


def _build_branches(
    directed: list[tuple[Relation, bool]], cells: dict[int, list[Cell]], labels: dict[str, str], max_values: int
) -> Iterator[RelationBranch]:
    seen: set[tuple[str, str]] = set()
    for number, (relation, outgoing) in enumerate(directed):
        # A symmetric relation, such as friend, is drawn once.
        unseen_cells = [cell for cell in cells.get(number, []) if outgoing or (relation.id, cell.value) not in seen]
        seen |= {(relation.id, cell.value) for cell in unseen_cells}
        if unseen_cells:
            values = tuple(
                sorted(
                    (_build_value(cell, labels) for cell in unseen_cells[:max_values]), key=lambda value: value.label
                )
            )
            yield RelationBranch(relation, outgoing, values, more=len(cells[number]) > max_values)


def _build_query(entity: str, directed: list[tuple[Relation, bool]], limit: int) -> str:
    node = terms.format_node(entity)
    branches = []
    for number, (relation, outgoing) in enumerate(directed):
        predicate = terms.format_predicate(relation.id)
        pattern = f"{node} {predicate} ?value" if outgoing else f"?value {predicate} {node}"
        branches.append(f"{{ SELECT ({number} AS ?way) ?value WHERE {{ {pattern} }} LIMIT {limit} }}")
    return f"SELECT ?way ?value WHERE {{ {' UNION '.join(branches)} }}"


def _load_labels(graph: GraphSource, cells: list[Cell]) -> dict[str, str]:
    ids = list(dict.fromkeys(cell.value for cell in cells if cell.kind in ("entity", "iri")))
    return {entity.id: entity.label for entity in graph.entities(ids)} if ids else {}


def _build_value(cell: Cell, labels: dict[str, str]) -> BranchValue:
    if cell.value in labels:
        return BranchValue(labels[cell.value], cell.value)
    return BranchValue(cell.value, cell.value if cell.kind == "entity" else None, cell.datatype)
