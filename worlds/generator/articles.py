"""The universe as articles: one sentence a fact, in one of a few phrasings."""

import random
from collections.abc import Iterator
from datetime import date

from worlds.generator.graph import Items
from worlds.generator.people import COUNTRIES, Person, Universe
from worlds.source import Article

BORN = ("{name} was born on {day} in {town}.", "Born in {town} on {day}, {name} grew up there.")
WORK = ("{name} worked as {job}.", "The occupation of {name} was {job}.")
HOBBY = ("The hobby of {name} was {hobby}.", "In free hours, {name} was devoted to {hobby}.")
HOME = ("{name} lived in {town}.", "The home of {name} was in {town}.")


def articles(universe: Universe, items: Items, seed: int) -> Iterator[Article]:
    """An article for every person and town."""
    chance = random.Random(seed)  # noqa: S311 - the same words for the same seed
    for person in universe.people:
        yield Article(person.name, tuple(_sentences(person, chance)), items.id("person", person.name))
    for country, regions in COUNTRIES.items():
        for region, towns in regions.items():
            for town in towns:
                told = (f"{town} is a town in {region}.", f"It belongs to {country}.")
                yield Article(town, told, items.id("town", town))


def spoken(day: date) -> str:
    """A date as articles write it: 5 March 1931."""
    return f"{day.day} {day:%B} {day.year}"


def _sentences(person: Person, chance: random.Random) -> Iterator[str]:
    name = person.name
    yield chance.choice(BORN).format(name=name, day=spoken(person.born), town=person.birthplace)
    if person.father and person.mother:
        yield f"{'Her' if person.female else 'His'} father was {person.father.name}."
        yield f"{'Her' if person.female else 'His'} mother was {person.mother.name}."
    if person.siblings:
        yield f"The siblings of {name} were {_listed(person.siblings)}."
    if person.spouse:
        yield f"{name} married {person.spouse.name}."
    if person.children:
        yield f"The children of {name} were {_listed(person.children)}."
    yield chance.choice(WORK).format(name=name, job=_with_article(person.job))
    yield chance.choice(HOBBY).format(name=name, hobby=person.hobby)
    yield chance.choice(HOME).format(name=name, town=person.residence)
    if person.friends:
        yield f"The friends of {name} were {_listed(person.friends)}."
    if person.died:
        yield f"{name} died on {spoken(person.died)}."


def _listed(people: list[Person]) -> str:
    names = [person.name for person in people]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _with_article(job: str) -> str:
    return f"{'an' if job[0] in 'aeiou' else 'a'} {job}"
