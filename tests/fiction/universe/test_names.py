from collections import Counter
from hashlib import sha256

import numpy as np
import pytest

from fiction.universe.build import make_universe
from fiction.universe.families import FamilyTrees, grow_families
from fiction.universe.names import (
    NamePools,
    Namesakes,
    draw_full_names,
    draw_namesakes,
    find_paternal_lines,
    load_name_pools,
)
from fiction.universe.options import GenerationOptions
from fiction.universe.random_streams import RandomStream, create_generator
from worlds.folder import WorldError

OPTIONS = GenerationOptions(people=2_000, seed=1)
PINNED = "7da7cc2692cc08d0206dd47df0016c51364b63d5096ad79cea0c91c32eb73e79"
"""Of the names of Faker 40.54.0: with others every seed gives another world."""


def grown(options: GenerationOptions) -> FamilyTrees:
    return grow_families(options, create_generator(options.seed, RandomStream.FAMILIES))


def alone(people: FamilyTrees) -> Namesakes:
    return draw_namesakes(people, 0, create_generator(0, RandomStream.NAMESAKES))


def test_there_are_enough_names_and_they_are_those_of_the_pinned_library():
    found = load_name_pools()
    assert (len(found.women), len(found.men), len(found.surnames)) == (5502, 5255, 11429)
    assert (len(found.women) + len(found.men)) * len(found.surnames) > 15_000_000
    assert sha256("\n".join((*found.women, "", *found.men, "", *found.surnames)).encode()).hexdigest() == PINNED


def test_no_given_name_tells_nothing_of_the_gender():
    found = load_name_pools()
    assert not set(found.women) & set(found.men)
    for pool in (found.women, found.men, found.surnames):
        assert list(pool) == sorted(set(pool))
        assert all(name.isascii() and name.isalpha() and name.istitle() for name in pool)


def test_names_fit_gender_and_family():
    people, found = grown(OPTIONS), make_universe(OPTIONS).names
    for row, name in enumerate(found):
        given, surname = name.split(" ")
        assert given in (load_name_pools().women if people.female[row] else load_name_pools().men)
        if people.father[row] >= 0:
            assert surname == found[people.father[row]].split(" ")[1]


def test_a_small_pool_is_used_up_to_its_last_name_before_it_is_refused():
    small = NamePools(("Ada", "Bea", "Cleo", "Dora"), ("Abel", "Bram", "Carl", "Dirk", "Emil", "Finn"), ("Oak",))
    rows = np.full(10, -1, np.int32)
    people = FamilyTrees(10, np.arange(10) < 4, rows, rows, rows, rows, rows)
    line = np.zeros(10, np.int32)
    found = draw_full_names(people, Namesakes(line, rows), 3, small)
    assert sorted(found) == sorted(f"{given} Oak" for given in (*small.women, *small.men))
    with pytest.raises(WorldError, match="More people share a surname than there are given names"):
        draw_full_names(people, Namesakes(line, rows), 3, NamePools(small.women[:3], small.men, small.surnames))


def test_surnames_and_given_names_are_drawn_widely():
    found = make_universe(GenerationOptions(people=50_000, seed=2)).names
    given, surnames = (Counter(name.split(" ")[part] for name in found) for part in (0, 1))
    assert len(set(found)) == 50_000
    assert max(given.values()) < 30
    assert max(surnames.values()) < 100
    assert len(given) > 0.95 * (len(load_name_pools().women) + len(load_name_pools().men))


def test_a_line_goes_back_to_the_first_known_father():
    people = grown(OPTIONS)
    for row, first in enumerate(find_paternal_lines(people).tolist()):
        back = row
        while people.father[back] >= 0:
            back = int(people.father[back])
        assert first == back


def test_nobody_has_a_namesake_unless_asked_for():
    assert np.all(alone(grown(OPTIONS)).first == -1)


@pytest.mark.parametrize("share", [0.001, 0.02, 0.1, 0.29, 0.5])
@pytest.mark.parametrize("size", [5, 25, 100])
def test_namesakes_are_exactly_as_many_and_of_two_families(share, size):
    people = grown(GenerationOptions(people=1_000, seed=5, family_size=size))
    found = draw_namesakes(people, share, create_generator(5, RandomStream.NAMESAKES))
    second = np.flatnonzero(found.first >= 0)
    first = found.first[second]
    assert len(second) == round(share * 1_000) // 2
    assert len({*first.tolist(), *second.tolist()}) == 2 * len(second)
    assert np.all(people.tree_numbers[first] != people.tree_numbers[second])
    assert np.array_equal(people.female[first], people.female[second])
    assert np.array_equal(found.line[first], found.line[second])
    before = find_paternal_lines(people)
    for line in np.unique(found.line):
        # At most two lines are now one, and each of them is of a family of its own.
        of = found.line == line
        assert len(set(before[of].tolist())) == len(set(people.tree_numbers[of].tolist())) <= 2


def test_too_many_namesakes_are_refused_with_the_number_there_can_be():
    with pytest.raises(WorldError, match="Only 0 of these 25 people can share a name"):
        make_universe(GenerationOptions(people=25, seed=1, collisions=0.5))


def test_titles_of_namesakes_show_their_jobs():
    universe = make_universe(GenerationOptions(people=1_000, seed=6, collisions=0.3))
    often = Counter(universe.names)
    assert len(set(universe.titles)) == 1_000
    for name, title, job in zip(universe.names, universe.titles, universe.job.tolist(), strict=True):
        assert title == (f"{name} ({universe.jobs[job]})" if often[name] > 1 else name)
