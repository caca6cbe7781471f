"""The single facts that an operation of the gold reasoning rests on."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from worlds.questions.evaluate import KIND_OF_FACT
from worlds.universe.universe import Ids, Universe

Thing = tuple[str, int]
"""A kind (person, town, region, country, job, hobby, day, gender) and a number of it."""
GENDERED = {
    "daughter": ("child", True),
    "son": ("child", False),
    "sister": ("sibling", True),
    "brother": ("sibling", False),
    "wife": ("spouse", True),
    "husband": ("spouse", False),
}
"""What a graph and a text tell in two facts: who it is, and whether a woman or a man."""


class Triple(NamedTuple):
    """A fact; `relation` is a key of worlds.generator.items.PROPERTY."""

    subject: Thing
    relation: str
    object: Thing


def related_by(universe: Universe, relation: str, people: Ids) -> Iterator[Triple]:
    """Who is a relation of one step of each of them, with the gender where the relation tells it."""
    base, women = GENDERED.get(relation, (relation, None))
    for person in people.tolist():
        for told, found in _STEPS[base](universe, person):
            if women is None or bool(universe.female[found]) == women:
                yield Triple(("person", person), told, ("person", found))
                if women is not None:
                    yield Triple(("person", found), "gender", ("gender", int(women)))


def values_of(universe: Universe, fact: str, people: Ids) -> Iterator[Triple]:
    """The fact of each of them who has it."""
    for person, value in zip(people.tolist(), getattr(universe, fact)[people].tolist(), strict=True):
        if value >= 0:
            yield Triple(("person", person), fact, (KIND_OF_FACT[fact], value))


def places_of(universe: Universe, kind: str, towns: Ids) -> Iterator[Triple]:
    """The region or country of each town."""
    places = universe.places
    for town in towns.tolist():
        region = int(places.region[town])
        yield Triple(("town", town), kind, (kind, region if kind == "region" else int(places.country[region])))


def _parents(universe: Universe, person: int) -> Iterator[tuple[str, int]]:
    for told in ("father", "mother"):
        yield from _one(universe, told, person)


def _one(universe: Universe, told: str, person: int) -> Iterator[tuple[str, int]]:
    found = int(getattr(universe, told)[person])
    if found >= 0:
        yield told, found


def _children(universe: Universe, person: int) -> Iterator[tuple[str, int]]:
    for child in universe.children.of_one(person).tolist():
        yield "child", child


def _siblings(universe: Universe, person: int) -> Iterator[tuple[str, int]]:
    every = {child for _, parent in _parents(universe, person) for _, child in _children(universe, parent)}
    for child in sorted(every - {person}):
        yield "sibling", child


def _friends(universe: Universe, person: int) -> Iterator[tuple[str, int]]:
    for friend in universe.friends_of.of_one(person).tolist():
        yield "friend", friend


_STEPS: dict[str, Callable[[Universe, int], Iterator[tuple[str, int]]]] = {
    "parent": _parents,
    "father": lambda universe, person: _one(universe, "father", person),
    "mother": lambda universe, person: _one(universe, "mother", person),
    "child": _children,
    "sibling": _siblings,
    "spouse": lambda universe, person: _one(universe, "spouse", person),
    "friend": _friends,
}
