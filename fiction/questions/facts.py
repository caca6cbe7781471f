"""Fact triples that support a step of the gold reasoning."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from fiction.questions.evaluate import FACT_VALUE_KINDS
from fiction.universe.universe import IdArray, Universe

ThingKey = tuple[str, int]
"""Kind (person, town, region, country, job, hobby, day, gender) and number."""
GENDERED_RELATIONS = {
    "daughter": ("child", True),
    "son": ("child", False),
    "sister": ("sibling", True),
    "brother": ("sibling", False),
    "wife": ("spouse", True),
    "husband": ("spouse", False),
}
"""Relations that sources state as two facts: the relative and the gender."""


class FactTriple(NamedTuple):
    """A fact; `relation` is a key of fiction.universe.items.PROPERTY_IDS."""

    subject: ThingKey
    relation: str
    object: ThingKey


def iter_relation_triples(universe: Universe, relation: str, people: IdArray) -> Iterator[FactTriple]:
    """Facts of a one-step relation of each person, with the gender if the relation implies one."""
    base, women = GENDERED_RELATIONS.get(relation, (relation, None))
    for person in people.tolist():
        for step, relative in _STEP_FUNCTIONS[base](universe, person):
            if women is None or bool(universe.female[relative]) == women:
                yield FactTriple(("person", person), step, ("person", relative))
                if women is not None:
                    yield FactTriple(("person", relative), "gender", ("gender", int(women)))


def iter_fact_triples(universe: Universe, fact: str, people: IdArray) -> Iterator[FactTriple]:
    """The fact of each person who has it."""
    for person, value in zip(people.tolist(), getattr(universe, fact)[people].tolist(), strict=True):
        if value >= 0:
            yield FactTriple(("person", person), fact, (FACT_VALUE_KINDS[fact], value))


def iter_place_triples(universe: Universe, kind: str, towns: IdArray) -> Iterator[FactTriple]:
    """The region or country of each town."""
    places = universe.places
    for town in towns.tolist():
        region = int(places.region[town])
        yield FactTriple(("town", town), kind, (kind, region if kind == "region" else int(places.country[region])))


def _iter_parents(universe: Universe, person: int) -> Iterator[tuple[str, int]]:
    for relation in ("father", "mother"):
        yield from _iter_single_value(universe, relation, person)


def _iter_single_value(universe: Universe, relation: str, person: int) -> Iterator[tuple[str, int]]:
    value = int(getattr(universe, relation)[person])
    if value >= 0:
        yield relation, value


def _iter_children(universe: Universe, person: int) -> Iterator[tuple[str, int]]:
    for child in universe.children.get_one(person).tolist():
        yield "child", child


def _iter_siblings(universe: Universe, person: int) -> Iterator[tuple[str, int]]:
    every = {child for _, parent in _iter_parents(universe, person) for _, child in _iter_children(universe, parent)}
    for child in sorted(every - {person}):
        yield "sibling", child


def _iter_friends(universe: Universe, person: int) -> Iterator[tuple[str, int]]:
    for friend in universe.friends_of.get_one(person).tolist():
        yield "friend", friend


_STEP_FUNCTIONS: dict[str, Callable[[Universe, int], Iterator[tuple[str, int]]]] = {
    "parent": _iter_parents,
    "father": lambda universe, person: _iter_single_value(universe, "father", person),
    "mother": lambda universe, person: _iter_single_value(universe, "mother", person),
    "child": _iter_children,
    "sibling": _iter_siblings,
    "spouse": lambda universe, person: _iter_single_value(universe, "spouse", person),
    "friend": _iter_friends,
}
