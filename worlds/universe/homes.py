"""Where people were born and live: families keep to their parts of the country, large towns have most people."""

import numpy as np

from worlds.universe.chance import below
from worlds.universe.families import Families
from worlds.universe.universe import Ids, Lists, Places

_STAYS = 0.75
"""How often people who marry or are single, and couples when their children are grown, stay where they were."""
_AT_THE_SEAT, _NEAR = 0.45, 0.8
"""Chances (added up) that a home is in the town of the family's seat, and that it is in the same region."""


def homes(people: Families, places: Places, generator: np.random.Generator) -> tuple[Ids, Ids]:
    """The towns of birth and of residence: children are born at their parents' home, couples live together."""
    seats = _towns(len(np.unique(people.tree)), places, generator)[people.tree]
    # A couple has the home of its lower row; whoever is single has one too.
    rows = np.arange(len(seats))
    household = np.where(people.spouse >= 0, np.minimum(rows, people.spouse), rows)
    home = _family_towns(seats, places, generator)[household]
    moved = (generator.random(len(seats)) >= _STAYS)[household]
    later = _family_towns(seats, places, generator)[household]
    stays = generator.random(len(seats)) < _STAYS
    elsewhere = _family_towns(seats, places, generator)
    orphan = people.father < 0
    birthplace = np.where(orphan, np.where(stays, home, elsewhere), home[people.father])
    single = people.spouse < 0
    residence = np.where(single & stays, birthplace, np.where(moved, later, home))
    return birthplace.astype(np.int32), residence.astype(np.int32)


def _towns(count: int, places: Places, generator: np.random.Generator) -> Ids:
    """Any towns: of low numbers many, since those are the large ones."""
    return (generator.random(count) * below(generator, len(places.towns), count)).astype(np.int32)


def _family_towns(seats: Ids, places: Places, generator: np.random.Generator) -> Ids:
    """For each seat a town, which is the seat, near it or anywhere."""
    of_region = Lists.grouped(len(places.regions), places.region, np.arange(len(places.towns), dtype=np.int32))
    regions = places.region[seats]
    near = of_region.values[of_region.starts[regions] + below(generator, of_region.sizes()[regions])]
    where = generator.random(len(seats))
    anywhere = _towns(len(seats), places, generator)
    return np.where(where < _AT_THE_SEAT, seats, np.where(where < _NEAR, near, anywhere))
