"""Questions over the universe, each with every right answer and the hops that lead to it."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from worlds.generator.graph import PROPERTIES, Items
from worlds.generator.people import Person, Universe

Answer = dict[str, str | None]
PER_KIND = 10
RELATIVES: dict[str, Callable[[Person], list[Person]]] = {
    "P22": lambda p: [p.father] if p.father else [],
    "P25": lambda p: [p.mother] if p.mother else [],
    "P26": lambda p: [p.spouse] if p.spouse else [],
    "P40": lambda p: p.children,
    "P3373": lambda p: p.siblings,
    "P3342": lambda p: p.friends,
}
FACTS: dict[str, tuple[str, Callable[[Person], str]]] = {
    "P106": ("job", lambda p: p.job),
    "P2650": ("hobby", lambda p: p.hobby),
    "P19": ("town", lambda p: p.birthplace),
    "P551": ("town", lambda p: p.residence),
}
LEADS_BACK = {
    ("P22", "P40"),
    ("P25", "P40"),
    ("P40", "P22"),
    ("P40", "P25"),
    ("P26", "P26"),
    ("P22", "P26"),
    ("P25", "P26"),
}
"""Steps after one another that nobody would ask for: the child of one's father, the husband of one's mother."""


@dataclass(frozen=True, slots=True)
class GeneratedQuestion:
    """A question as the store takes it; `details.needs` is "either": each source holds every fact."""

    text: str
    kind: str
    gold_answers: list[Answer]
    decomposition: list[dict[str, Any]]
    source_id: str
    details: dict[str, Any]
    dataset: str = "generated"
    split: str = "train"


@dataclass(slots=True)
class Maker:
    """Makes questions of every kind about people that it draws."""

    universe: Universe
    items: Items
    chance: random.Random
    hops: list[dict[str, Any]] = field(default_factory=list)

    def one_hop(self) -> tuple[str, list[Answer]] | None:
        """Who is the R of E?"""
        person, pid = self._draw(), self.chance.choice(list(RELATIVES))
        found = self._step(person, pid)
        return (f"Who is the {_label(pid)} of {person.name}?", self._people(found)) if found else None

    def fact(self) -> tuple[str, list[Answer]] | None:
        """What is the A of E?"""
        person, pid = self._draw(), self.chance.choice(list(FACTS))
        return f"What is the {_label(pid)} of {person.name}?", self._facts([person], pid)

    def day(self) -> tuple[str, list[Answer]] | None:
        """When was E born?"""
        person = self._draw()
        self._hop(person, "P569", person.born.isoformat(), None)
        return f"When was {person.name} born?", [{"text": person.born.isoformat(), "entity": None}]

    def two_hops(self) -> tuple[str, list[Answer]] | None:
        """What is the A of the R of E?"""
        person, pid, fact = self._draw(), self.chance.choice(list(RELATIVES)), self.chance.choice(list(FACTS))
        found = self._step(person, pid)
        if len(found) != 1:
            return None
        return f"What is the {_label(fact)} of the {_label(pid)} of {person.name}?", self._facts(found, fact)

    def three_hops(self) -> tuple[str, list[Answer]] | None:
        """Who is the R of the R of the R of E?"""
        person, asked = self._draw(), [self.chance.choice(("P22", "P25", "P26", "P40")) for _ in range(3)]
        if any(pair in LEADS_BACK for pair in pairwise(asked)):
            return None
        found = [person]
        for pid in asked:
            found = list(dict.fromkeys(other for one in found for other in self._step(one, pid)))
        if not found or person in found:
            return None
        chain = " of the ".join(_label(pid) for pid in reversed(asked))
        return f"Who is the {chain} of {person.name}?", self._people(found)

    def count(self) -> tuple[str, list[Answer]] | None:
        """How many R does E have?"""
        person, (pid, plural) = self._draw(), self.chance.choice([("P40", "children"), ("P3373", "siblings")])
        found = self._step(person, pid)
        if not found:
            return None
        return f"How many {plural} does {person.name} have?", [{"text": str(len(found)), "entity": None}]

    def compare(self) -> tuple[str, list[Answer]] | None:
        """Who was born earlier, A or B?"""
        one, other = self._draw(), self._draw()
        if one.born == other.born:
            return None
        for person in (one, other):
            self._hop(person, "P569", person.born.isoformat(), None)
        first = min(one, other, key=lambda person: person.born)
        return f"Who was born earlier, {one.name} or {other.name}?", self._people([first])

    def same(self) -> tuple[str, list[Answer]] | None:
        """Do A and B have the same F?"""
        one, pid = self._draw(), self.chance.choice(["P19", "P551", "P106"])
        read = FACTS[pid][1]
        alike = [person for person in self.universe.people if person is not one and read(person) == read(one)]
        other = self.chance.choice(alike) if alike and self.chance.random() < 0.5 else self._draw()
        if other is one:
            return None
        self._facts([one, other], pid)
        answer = "yes" if read(one) == read(other) else "no"
        return f"Do {one.name} and {other.name} have the same {_label(pid)}?", [{"text": answer, "entity": None}]

    def whose(self) -> tuple[str, list[Answer]] | None:
        """Who is the person whose F is V?"""
        pid = self.chance.choice(["P106", "P2650"])
        kind, read = FACTS[pid]
        value = read(self._draw())
        found = [person for person in self.universe.people if read(person) == value]
        if len(found) > 4:
            return None
        for person in found:
            self._hop(person, pid, value, self.items.id(kind, value))
        return f"Who is the person whose {_label(pid)} is {value}?", self._people(found)

    def _draw(self) -> Person:
        return self.chance.choice(self.universe.people)

    def _step(self, person: Person, pid: str) -> list[Person]:
        found = RELATIVES[pid](person)
        for other in found:
            self._hop(person, pid, other.name, self.items.id("person", other.name))
        return found

    def _facts(self, people: list[Person], pid: str) -> list[Answer]:
        kind, read = FACTS[pid]
        for person in people:
            self._hop(person, pid, read(person), self.items.id(kind, read(person)))
        values = dict.fromkeys(read(person) for person in people)
        return [{"text": value, "entity": self.items.id(kind, value)} for value in values]

    def _people(self, people: list[Person]) -> list[Answer]:
        return [{"text": person.name, "entity": self.items.id("person", person.name)} for person in people]

    def _hop(self, person: Person, pid: str, value: str, entity: str | None) -> None:
        subject = {"subject": person.name, "subject_qid": self.items.id("person", person.name)}
        self.hops.append({**subject, "relation": _label(pid), "pid": pid, "object": value, "object_qid": entity})


KINDS = ("fact", "one_hop", "day", "two_hops", "compare", "count", "same", "whose", "three_hops")
"""From easy to hard."""


def questions(universe: Universe, items: Items, seed: int) -> Iterator[GeneratedQuestion]:
    """Ten questions of each kind, no text twice: the kinds in turn, the easy ones first."""
    chance = random.Random(seed)  # noqa: S311 - the same questions for the same seed
    seen: set[str] = set()
    for number in range(PER_KIND):
        for kind in KINDS:
            found = _ask(Maker(universe, items, chance), kind, seen)
            if found is not None:
                text, answers, hops = found
                seen.add(text)
                details = {"needs": "either", "template": kind, "seed": seed}
                yield GeneratedQuestion(text, kind, answers, hops, f"generated-{seed}-{kind}-{number}", details)


def _ask(maker: Maker, kind: str, seen: set[str]) -> tuple[str, list[Answer], list[dict[str, Any]]] | None:
    """A question of that kind that was not asked before; None when two hundred draws give none."""
    for _ in range(200):
        maker.hops = []
        made = getattr(maker, kind)()
        if made is not None and made[0] not in seen:
            return made[0], made[1], maker.hops
    return None


def _label(pid: str) -> str:
    return PROPERTIES[pid][0]
