"""Split universes, and the facts of each source derived one by one from the masks."""

from collections.abc import Iterator
from datetime import date
from functools import cache

from showhow.fiction.generator.source_split import assign_sources, parse_split
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import FACTS, SOURCES, FactSources, Universe

SPLITS = [
    ("everywhere", "both"),
    ("text=100", "both"),
    ("graph=100", "both"),
    ("text=34,graph=33,web=33", "both"),
    ("text=50,graph=20,web=30", "entity"),
    ("text=50,graph=35,web=15", "relation"),
]
Fact = tuple[str, str, str]
"""Title, fact, and value as text; days as ISO dates."""


@cache
def split_universe(
    seed: int, split: str = "everywhere", by: str = "both", *, people: int = 150
) -> tuple[Universe, FactSources, GenerationOptions]:
    """A universe with namesakes, its fact sources, and its options."""
    options = GenerationOptions(people=people, seed=seed, split=split, split_by=by, collisions=0.05)
    universe = make_universe(options)
    return universe, assign_sources(universe, parse_split(split, by), seed), options


def words(universe: Universe, fact: str, value: int) -> str:
    """A value as text."""
    places = universe.places
    if fact in ("birth", "death", "wedding"):
        return date.fromordinal(value).isoformat()
    if fact in ("birthplace", "residence"):
        return places.towns[value]
    return {"job": universe.jobs, "hobby": universe.hobbies}.get(fact, universe.titles)[value]


def numbers(universe: Universe, fact_sources: FactSources, source: str) -> Iterator[tuple[int, str, int]]:
    """All facts of people assigned to the source, as numbers."""
    for row in range(len(universe)):
        for fact in FACTS:
            value = int(getattr(universe, fact)[row])
            if value >= 0 and int(fact_sources.masks[fact][row]) & SOURCES[source]:
                yield row, fact, value


def friendships(universe: Universe, fact_sources: FactSources, source: str) -> Iterator[tuple[int, int]]:
    """All friendships assigned to the source, each once."""
    for (one, other), mask in zip(universe.friends.pairs.tolist(), fact_sources.friends.tolist(), strict=True):
        if mask & SOURCES[source]:
            yield one, other
