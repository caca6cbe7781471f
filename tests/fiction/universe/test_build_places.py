from collections import Counter

import numpy as np
import pytest

from showhow.fiction.universe.build import generate_places, list_known_values
from showhow.fiction.universe.families import RandomStream, create_generator
from showhow.fiction.universe.universe import Places

SIZES = (1, 25, 100, 1_000, 10_000, 1_000_000, 5_000_000)


def places_of(people: int, seed: int = 0) -> Places:
    return generate_places(people, create_generator(seed, RandomStream.PLACES))


@pytest.mark.parametrize("people", SIZES)
@pytest.mark.parametrize("seed", range(5))
def test_place_names_are_unique_and_every_region_and_country_has_places(people, seed):
    places = places_of(people, seed)
    names = Counter((*places.towns, *places.regions, *places.countries))
    assert set(names.values()) == {1}
    assert set(places.region.tolist()) == set(range(len(places.regions)))
    assert set(places.country.tolist()) == set(range(len(places.countries)))
    assert len(places.region) == len(places.towns)
    assert len(places.country) == len(places.regions)
    assert all(name.isascii() and name.isalpha() and name.istitle() for name in names)
    assert not {name.lower() for name in names} & {*list_known_values("jobs"), *list_known_values("hobbies")}


def test_more_people_give_more_places():
    counts = [
        [len(part) for part in (places_of(people).towns, places_of(people).regions, places_of(people).countries)]
        for people in SIZES
    ]
    assert counts == sorted(counts)
    assert counts[0] == [6, 3, 2]
    assert counts[SIZES.index(1_000_000)] == [2000, 250, 16]


def test_another_seed_gives_other_places():
    one, other = places_of(1_000, 0), places_of(1_000, 1)
    assert set(one.towns) != set(other.towns)
    assert not np.array_equal(one.region, other.region)
