"""Family trees, from grandparents to grandchildren, read from a Wikidata-shaped graph or from a universe."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain
from typing import Protocol

from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.universe import NONE, Universe
from showhow.worlds import terms
from showhow.worlds.source import Cell, GraphSource

Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Relative:
    """One person of a family tree; dates are ISO texts, "" where unknown."""

    id: str
    label: str
    born: str = ""
    died: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """A family tree around `centre`: people by id, and the parents and partners of each person within the tree."""

    centre: str
    people: dict[str, Relative]
    parents: dict[str, tuple[str, ...]]
    partners: dict[str, tuple[str, ...]]
    siblings: tuple[str, ...]
    """Siblings of the centre, oldest first."""

    def children(self, person: str) -> list[str]:
        """The person's children, oldest first."""
        return self.sort_by_age(child for child, parents in self.parents.items() if person in parents)

    def sort_by_age(self, ids: Iterable[str]) -> list[str]:
        """Sort oldest first; people without a date of birth come last."""
        return sorted(ids, key=lambda person: (not self.people[person].born, self.people[person].born, person))


class KinshipSource(Protocol):
    """A source of kinship; every pair is (a person of the request, the relative)."""

    def parents(self, ids: Sequence[str]) -> Pairs: ...
    def children(self, ids: Sequence[str]) -> Pairs: ...
    def partners(self, ids: Sequence[str]) -> Pairs: ...
    def siblings(self, person: str) -> list[str]: ...
    def relatives(self, ids: Sequence[str]) -> list[Relative]: ...


def build_family(kin: KinshipSource, centre: str) -> Family | None:
    """Build the tree of a person: grandparents, parents, siblings, partners, children with partners, grandchildren.

    None if no relative is known.
    """
    parents = kin.parents([centre])
    grandparents = kin.parents(_second_members(parents))
    siblings = [person for person in kin.siblings(centre) if person != centre]
    children = kin.children([centre])
    grandchildren = kin.children(_second_members(children))
    partners = kin.partners([centre, *_second_members(children)])
    other_parents = [
        (parent, child)
        for parent, child in kin.children(_second_members(kin.partners([centre])))
        if child in _second_members(children)
    ]
    ids = dict.fromkeys(
        [centre, *siblings, *chain.from_iterable((*parents, *grandparents, *children, *grandchildren, *partners))]
    )
    people = {person.id: person for person in kin.relatives(list(ids))}
    if len(people) < 2 or centre not in people:
        return None
    born_to = [
        *parents,
        *grandparents,
        *((child, parent) for parent, child in (*children, *grandchildren, *other_parents)),
    ]
    family = Family(centre, people, _group_pairs(born_to, people), _group_pairs(partners, people), ())
    return replace(family, siblings=tuple(family.sort_by_age(person for person in siblings if person in people)))


def _second_members(pairs: Pairs) -> list[str]:
    return list(dict.fromkeys(end for _, end in pairs))


def _group_pairs(pairs: Pairs, people: dict[str, Relative]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, dict[str, None]] = {}
    for person, relative in pairs:
        if person in people and relative in people:
            groups.setdefault(person, {})[relative] = None
    return {person: tuple(others) for person, others in groups.items()}


class GraphKinshipSource:
    """Kinship from a graph: P22 father, P25 mother, P40 child, P26 spouse, P3373 sibling, in either direction."""

    def __init__(self, graph: GraphSource) -> None:
        self._graph = graph

    def parents(self, ids: Sequence[str]) -> Pairs:
        """(child, parent)."""
        return self._pairs(ids, "?one wdt:P22|wdt:P25|^wdt:P40 ?other")

    def children(self, ids: Sequence[str]) -> Pairs:
        """(parent, child)."""
        return self._pairs(ids, "?one wdt:P40|^wdt:P22|^wdt:P25 ?other")

    def partners(self, ids: Sequence[str]) -> Pairs:
        """(person, partner)."""
        return self._pairs(ids, "?one wdt:P26|^wdt:P26 ?other")

    def siblings(self, person: str) -> list[str]:
        """People stated as siblings, and people who share a parent."""
        paths = "wdt:P3373|^wdt:P3373|((wdt:P22|wdt:P25|^wdt:P40)/(wdt:P40|^wdt:P22|^wdt:P25))"
        return _second_members(self._pairs([person], f"?one {paths} ?other"))

    def relatives(self, ids: Sequence[str]) -> list[Relative]:
        """Labels, dates of birth and dates of death."""
        dates: dict[str, list[str]] = {}
        query = "OPTIONAL { ?one wdt:P569 ?born } OPTIONAL { ?one wdt:P570 ?died }"
        for row in self._rows(ids, query, "?one ?born ?died"):
            person, born, died = (cell.value if cell else "" for cell in row)
            dates.setdefault(person, [born[:10], died[:10]])
        return [Relative(e.id, e.label, *dates.get(e.id, ("", ""))) for e in self._graph.entities(ids)]

    def _pairs(self, ids: Sequence[str], pattern: str) -> Pairs:
        rows = self._rows(ids, pattern, "?one ?other")
        return list(dict.fromkeys((person.value, relative.value) for person, relative in rows if person and relative))

    def _rows(self, ids: Sequence[str], pattern: str, columns: str) -> tuple[tuple[Cell | None, ...], ...]:
        nodes = " ".join(node for person_id in ids if (node := terms.format_node(person_id)))
        if not nodes:
            return ()
        return self._graph.query(f"SELECT DISTINCT {columns} WHERE {{ VALUES ?one {{ {nodes} }} {pattern} }}").rows


class UniverseKinshipSource:
    """Kinship from a universe: all true relations, including those that a source withholds."""

    def __init__(self, universe: Universe) -> None:
        self._universe = universe
        self._items = ItemCatalog(universe)

    def parents(self, ids: Sequence[str]) -> Pairs:
        """(child, parent)."""
        universe = self._universe
        rows = [
            (person, int(parent_rows[self._row(person)]))
            for person in ids
            for parent_rows in (universe.father, universe.mother)
        ]
        return [(person, self._items.person(row)) for person, row in rows if row > NONE]

    def children(self, ids: Sequence[str]) -> Pairs:
        """(parent, child)."""
        lists = self._universe.children
        return [(person, self._items.person(int(row))) for person in ids for row in lists.get_one(self._row(person))]

    def partners(self, ids: Sequence[str]) -> Pairs:
        """(person, partner)."""
        rows = [(person, int(self._universe.spouse[self._row(person)])) for person in ids]
        return [(person, self._items.person(row)) for person, row in rows if row > NONE]

    def siblings(self, person: str) -> list[str]:
        """The other children of either parent."""
        return [
            child
            for child in _second_members(self.children(_second_members(self.parents([person]))))
            if child != person
        ]

    def relatives(self, ids: Sequence[str]) -> list[Relative]:
        """Titles (unique, unlike names), dates of birth and dates of death."""
        universe = self._universe
        rows = ((person, self._row(person)) for person in ids)
        return [
            Relative(person, universe.titles[row], _format_day(universe.birth[row]), _format_day(universe.death[row]))
            for person, row in rows
        ]

    def _row(self, person: str) -> int:
        kind, row = self._items.locate(person)
        if kind != "person":
            raise KeyError(person)
        return row


def build_universe_family(universe: Universe, entity: str) -> Family | None:
    """The actual family of an entity of a universe; None if it is not a person or has no relative."""
    try:
        kind, _ = ItemCatalog(universe).locate(entity)
    except KeyError:
        return None
    return build_family(UniverseKinshipSource(universe), entity) if kind == "person" else None


def _format_day(ordinal: int) -> str:
    return date.fromordinal(int(ordinal)).isoformat() if ordinal > NONE else ""
