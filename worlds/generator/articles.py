"""The universe as articles: one sentence a fact, in one of a few phrasings."""

import random
from collections.abc import Collection, Iterator
from datetime import date

from worlds.generator.graph import Items
from worlds.generator.people import COUNTRIES, Person, Universe
from worlds.source import Article

BORN = ("{name} was born on {day} in {town}.", "Born in {town} on {day}, {name} grew up there.")
DIED = ("{name} died on {day}.", "On {day}, {name} died at the age of {age}.")
# The living work and the dead worked: each phrasing says both.
WORK = (
    ("{name} works as {a_job}.", "{name} worked as {a_job}."),
    ("{name} is {a_job} by occupation.", "{name} was {a_job} by occupation."),
)
HOBBY = (
    ("The hobby of {name} is {hobby}.", "The hobby of {name} was {hobby}."),
    ("In free hours, {name} is devoted to {hobby}.", "In free hours, {name} was devoted to {hobby}."),
)
HOME = (
    ("{name} lives in {town}.", "{name} lived in {town}."),
    ("The home of {name} is in {town}.", "The home of {name} was in {town}."),
)
# Not from the system's calendar, which speaks the language of the machine.
MONTHS = "January February March April May June July August September October November December".split()


def articles(universe: Universe, items: Items, seed: int) -> Iterator[Article]:
    """An article for every person, country, region and town."""
    chance = random.Random(seed)  # noqa: S311 - the same words for the same seed
    for person in universe.people:
        yield Article(person.name, tuple(_sentences(person, chance)), items.id("person", person.name))
    for country, regions in COUNTRIES.items():
        parts = f"Its regions are {_listed(regions)}."
        yield Article(country, (f"{country} is a country.", parts), items.id("country", country))
        for region, towns in regions.items():
            told = (f"{region} is a region of {country}.", f"Its towns are {_listed(towns)}.")
            yield Article(region, told, items.id("region", region))
            for town in towns:
                told = (f"{town} is a town in {region}.", f"It belongs to {country}.")
                yield Article(town, told, items.id("town", town))


def spoken(day: date) -> str:
    """A date as articles write it: 5 March 1931."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def _sentences(person: Person, chance: random.Random) -> Iterator[str]:
    name, dead = person.name, person.died is not None
    whose, were = ("Her" if person.female else "His"), ("were" if dead else "are")
    yield chance.choice(BORN).format(name=name, day=spoken(person.born), town=person.birthplace)
    if person.father and person.mother:
        yield f"{whose} father was {person.father.name}."
        yield f"{whose} mother was {person.mother.name}."
    if person.siblings:
        yield _kin("sibling", "siblings", person.siblings, name, were)
    if person.spouse:
        yield f"{name} married {person.spouse.name}."
    if person.children:
        yield _kin("child", "children", person.children, name, were)
    yield chance.choice(WORK)[dead].format(name=name, a_job=_with_article(person.job))
    yield chance.choice(HOBBY)[dead].format(name=name, hobby=person.hobby)
    yield chance.choice(HOME)[dead].format(name=name, town=person.residence)
    if person.friends:
        yield _kin("friend", "friends", person.friends, name, were)
    if person.died:
        age = years_between(person.born, person.died)
        yield chance.choice(DIED).format(name=name, day=spoken(person.died), age=age)


def years_between(born: date, day: date) -> int:
    """How many birthdays there were."""
    return day.year - born.year - ((day.month, day.day) < (born.month, born.day))


def _kin(one: str, several: str, people: list[Person], name: str, were: str) -> str:
    if len(people) == 1:
        return f"The {one} of {name} {'was' if were == 'were' else 'is'} {people[0].name}."
    return f"The {several} of {name} {were} {_listed([person.name for person in people])}."


def _listed(names: Collection[str]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def _with_article(job: str) -> str:
    return f"{'an' if job[0] in 'aeiou' else 'a'} {job}"
