from collections import Counter

import numpy as np
import pytest

from fiction.universe.build import generate_places, list_known_values
from fiction.universe.random_streams import RandomStream, create_generator
from fiction.universe.universe import Places

SIZES = (1, 25, 100, 1_000, 10_000, 1_000_000, 5_000_000)


def made(people: int, seed: int = 0) -> Places:
    return generate_places(people, create_generator(seed, RandomStream.PLACES))


@pytest.mark.parametrize("people", SIZES)
@pytest.mark.parametrize("seed", range(5))
def test_place_names_are_unique_and_every_region_and_country_has_places(people, seed):
    land = made(people, seed)
    names = Counter((*land.towns, *land.regions, *land.countries))
    assert set(names.values()) == {1}
    assert set(land.region.tolist()) == set(range(len(land.regions)))
    assert set(land.country.tolist()) == set(range(len(land.countries)))
    assert len(land.region) == len(land.towns)
    assert len(land.country) == len(land.regions)
    assert all(name.isascii() and name.isalpha() and name.istitle() for name in names)
    assert not {name.lower() for name in names} & {*list_known_values("jobs"), *list_known_values("hobbies")}


def test_more_people_give_more_places():
    counts = [
        [len(part) for part in (made(people).towns, made(people).regions, made(people).countries)] for people in SIZES
    ]
    assert counts == sorted(counts)
    assert counts[0] == [6, 3, 2]
    assert counts[SIZES.index(1_000_000)] == [2000, 250, 16]


def test_another_seed_gives_other_places():
    one, other = made(1_000, 0), made(1_000, 1)
    assert set(one.towns) != set(other.towns)
    assert not np.array_equal(one.region, other.region)
