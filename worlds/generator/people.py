"""Fictional families: who was born where and when, who married whom, and what they do."""

import random
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from faker import Faker

TODAY = date(2020, 1, 1)
"""The day on which the world stands still."""
LAST_BIRTH = date(1999, 12, 31)
"""Everybody is grown up: each has a job and a home."""
FIRST_BIRTHS = (date(1895, 1, 1), date(1925, 12, 31))
LIFE_YEARS = (58, 96)
YOUNGEST_PARENT, OLDEST_PARENT = 20, 45
SPACING_DAYS = 400
"""Between siblings."""
FRIENDS_YEARS = 15
"""Friends are no further apart in age, so that they have lived at the same time."""
COUNTRIES: dict[str, dict[str, tuple[str, ...]]] = {
    "Veltria": {"Upper Osk": ("Marnholm", "Tresk", "Oskfurt"), "Lower Osk": ("Brennick", "Saltmere", "Wendlow")},
    "Karsund": {"Northmark": ("Eskby", "Halvorn", "Ristad"), "Fjellmark": ("Tindra", "Lomvik", "Grannes")},
    "Amboria": {"Coral Coast": ("Puerto Lindo", "Sambal"), "High Plains": ("Quenta", "Dos Arroyos")},
}


@dataclass(slots=True, eq=False)
class Person:
    """One of the fictional people; relatives are people of the same universe."""

    name: str
    female: bool
    born: date
    birthplace: str
    residence: str
    job: str
    hobby: str
    died: date | None = None
    father: "Person | None" = None
    mother: "Person | None" = None
    spouse: "Person | None" = None
    children: list["Person"] = field(default_factory=list)
    friends: list["Person"] = field(default_factory=list)

    @property
    def siblings(self) -> list["Person"]:
        """The other children of the parents."""
        return [child for child in self.father.children if child is not self] if self.father else []

    @property
    def family(self) -> list["Person"]:
        """Parents, siblings, spouse and children."""
        near = (self.father, self.mother, self.spouse)
        return [*(person for person in near if person), *self.siblings, *self.children]


def words(name: str) -> tuple[str, ...]:
    """The lines of a list in this folder: jobs or hobbies."""
    return tuple(Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8").split("\n")[:-1])


class Universe:
    """Families over three generations, the same for the same number and seed."""

    def __init__(self, people: int, seed: int) -> None:
        self.people: list[Person] = []
        self._wanted = people
        self._chance = random.Random(seed)  # noqa: S311 - the same world for the same seed is the point
        self._faker = Faker("en_US")
        self._faker.seed_instance(seed)
        self._names: set[str] = set()
        self._towns = [town for regions in COUNTRIES.values() for towns in regions.values() for town in towns]
        self._jobs, self._hobbies = words("jobs"), words("hobbies")
        while len(self.people) < people:
            self._family()
        self._befriend()

    def _family(self) -> None:
        surname = self._faker.last_name()
        husband = self._person(surname, female=False, born=self._between(*FIRST_BIRTHS))
        generation = [husband] if husband else []
        for _ in range(2):
            generation = [child for parent in generation for child in self._marry(parent)]

    def _marry(self, person: Person) -> list[Person]:
        """Give the person a partner of about the same age, and both their children."""
        if self._chance.random() < 0.15 or len(self.people) >= self._wanted:
            return []
        born = person.born + timedelta(days=self._chance.randint(-1500, 1500))
        partner = self._person(self._faker.last_name(), female=not person.female, born=born)
        if partner is None:
            return []
        person.spouse, partner.spouse = partner, person
        partner.residence = person.residence
        mother, father = (person, partner) if person.female else (partner, person)
        return self._children(father, mother)

    def _children(self, father: Person, mother: Person) -> list[Person]:
        first = max(father.born, mother.born) + timedelta(days=YOUNGEST_PARENT * 366)
        last = min(mother.born + timedelta(days=OLDEST_PARENT * 365), LAST_BIRTH)
        last = min([last, *(parent.died for parent in (father, mother) if parent.died)])
        born = first + timedelta(days=self._chance.randint(0, 2500))
        children: list[Person] = []
        for _ in range(self._chance.choice((1, 2, 2, 3, 3, 4))):
            if born >= last:
                break
            child = self._person(father.name.split()[-1], female=self._chance.random() < 0.5, born=born)
            if child is None:
                break
            child.father, child.mother, child.birthplace = father, mother, mother.residence
            children.append(child)
            born += timedelta(days=SPACING_DAYS + self._chance.randint(0, 1500))
        father.children, mother.children = children, list(children)
        return children

    def _person(self, surname: str, *, female: bool, born: date) -> Person | None:
        if len(self.people) >= self._wanted:
            return None
        name = self._name(surname, female=female)
        place, home = self._chance.choice(self._towns), self._chance.choice(self._towns)
        job, hobby = self._chance.choice(self._jobs), self._chance.choice(self._hobbies)
        died = born + timedelta(days=int(self._chance.uniform(*LIFE_YEARS) * 365.25))
        person = Person(name, female, born, place, home, job, hobby, died if died < TODAY else None)
        self.people.append(person)
        return person

    def _name(self, surname: str, *, female: bool) -> str:
        while True:
            first = self._faker.first_name_female() if female else self._faker.first_name_male()
            name = f"{first} {surname}"
            if name not in self._names:
                self._names.add(name)
                return name
            surname = f"{surname.split('-', maxsplit=1)[0]}-{self._faker.last_name()}"

    def _between(self, start: date, end: date) -> date:
        return start + timedelta(days=self._chance.randint(0, (end - start).days))

    def _befriend(self) -> None:
        """Give everybody up to two friends of about the same age outside the family; friendship is mutual."""
        ordered = sorted(self.people, key=lambda person: person.born)
        births = [person.born for person in ordered]
        apart = timedelta(days=FRIENDS_YEARS * 365)
        for person in self.people:
            first, last = bisect_left(births, person.born - apart), bisect_right(births, person.born + apart)
            for _ in range(self._chance.choice((0, 1, 1, 2))):
                other = ordered[self._chance.randrange(first, last)]
                if other is not person and other not in person.friends and other not in person.family:
                    person.friends.append(other)
                    other.friends.append(person)
