"""What leads to what by one relation of the gold reasoning, as a universe tells it."""

from collections.abc import Iterable

import numpy as np

from worlds.questions.evaluate import KIND_OF_FACT
from worlds.universe.relations import related, relation
from worlds.universe.universe import Universe

Pairs = set[tuple[int, int]]
"""(head, value) as rows or numbers of the universe."""
PLACES = ("region", "country")


def pairs(universe: Universe, name: str, heads: Iterable[int]) -> Pairs:
    """Every head with every value that a relation, a fact of a person or a place of a town leads to."""
    return {(head, value) for head in heads for value in _values(universe, name, head)}


def _values(universe: Universe, name: str, head: int) -> list[int]:
    if name in KIND_OF_FACT:
        value = int(getattr(universe, name)[head])
        return [value] if value >= 0 else []
    if name in PLACES:
        region = int(universe.places.region[head])
        return [region if name == "region" else int(universe.places.country[region])]
    found: list[int] = related(universe, relation(name), np.array([head], np.int32)).tolist()
    return found


def having(universe: Universe, fact: str, value: int) -> set[int]:
    """Everybody whose fact is the value, as the universe tells it."""
    return set(universe.people_with(fact, value).tolist())
