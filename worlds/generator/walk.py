"""Walking through the universe while every hop is written down."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from worlds.generator.graph import PROPERTIES, Items
from worlds.generator.people import COUNTRIES, Person, Universe

Answer = dict[str, str | None]
Hop = dict[str, Any]

RELATIVES: dict[str, Callable[[Person], list[Person]]] = {
    "P22": lambda person: [person.father] if person.father else [],
    "P25": lambda person: [person.mother] if person.mother else [],
    "P26": lambda person: [person.spouse] if person.spouse else [],
    "P40": lambda person: person.children,
    "P3373": lambda person: person.siblings,
    "P3342": lambda person: person.friends,
}
PLURALS = {"P40": "children", "P3373": "siblings", "P3342": "friends"}
FACTS: dict[str, tuple[str, Callable[[Person], str]]] = {
    "P106": ("job", lambda person: person.job),
    "P2650": ("hobby", lambda person: person.hobby),
    "P19": ("town", lambda person: person.birthplace),
    "P551": ("town", lambda person: person.residence),
}
"""The kind of item that a property leads to, and how it is read."""
COUNTRY_OF = {town: country for country, regions in COUNTRIES.items() for towns in regions.values() for town in towns}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with every right answer and the hops that were walked."""

    text: str
    answers: list[Answer]
    hops: list[Hop]


def label(pid: str) -> str:
    """What the graph calls the property."""
    return PROPERTIES[pid][0]


class Walk:
    """Draws people and reads what is known of them."""

    def __init__(self, universe: Universe, items: Items, chance: random.Random) -> None:
        self.people = universe.people
        self.chance = chance
        self._items = items
        self._hops: list[Hop] = []

    def start(self) -> Person:
        """Somebody to ask about; what was walked before is forgotten."""
        self._hops = []
        return self.another()

    def another(self) -> Person:
        """Somebody else to ask about in the same question, or the same person by chance."""
        return self.chance.choice(self.people)

    def relatives(self, people: Iterable[Person], pid: str) -> list[Person]:
        """Everybody whom the property leads to from any of the people, each once."""
        found: dict[Person, None] = {}
        for person in people:
            for other in RELATIVES[pid](person):
                self._hop(("person", person.name), pid, other.name, self._items.id("person", other.name))
                found[other] = None
        return list(found)

    def facts(self, people: Iterable[Person], pid: str) -> list[str]:
        """The values of the property for any of the people, each once."""
        kind, read = FACTS[pid]
        for person in people:
            self._hop(("person", person.name), pid, read(person), self._items.id(kind, read(person)))
        return list(dict.fromkeys(read(person) for person in people))

    def countries(self, towns: Iterable[str]) -> list[str]:
        """The countries of the towns, each once."""
        for town in towns:
            self._hop(("town", town), "P17", COUNTRY_OF[town], self._items.id("country", COUNTRY_OF[town]))
        return list(dict.fromkeys(COUNTRY_OF[town] for town in towns))

    def birth(self, person: Person) -> str:
        """The day on which the person was born."""
        return self._day(person, "P569", person.born.isoformat())

    def death(self, person: Person) -> str | None:
        """The day on which the person died; None for the living."""
        return self._day(person, "P570", person.died.isoformat()) if person.died else None

    def named(self, text: str, people: Iterable[Person]) -> Asked:
        """The question whose answers are these people."""
        return self.valued(text, "person", [person.name for person in people])

    def valued(self, text: str, kind: str, values: Iterable[str]) -> Asked:
        """The question whose answers are items of that kind."""
        return Asked(text, [{"text": value, "entity": self._items.id(kind, value)} for value in values], self._hops)

    def literal(self, text: str, value: str) -> Asked:
        """The question whose answer is a date, a number, yes or no."""
        return Asked(text, [{"text": value, "entity": None}], self._hops)

    def _day(self, person: Person, pid: str, day: str) -> str:
        self._hop(("person", person.name), pid, day, None)
        return day

    def _hop(self, subject: tuple[str, str], pid: str, value: str, entity: str | None) -> None:
        start = {"subject": subject[1], "subject_id": self._items.id(*subject)}
        self._hops.append({**start, "relation": label(pid), "pid": pid, "object": value, "object_id": entity})
