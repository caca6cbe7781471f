from collections import Counter
from hashlib import sha256

import numpy as np
import pytest

from showhow.fiction.universe.build import (
    NamePools,
    Namesakes,
    draw_full_names,
    draw_namesakes,
    find_paternal_lines,
    load_name_pools,
    make_universe,
)
from showhow.fiction.universe.families import FamilyTrees, RandomStream, create_generator, grow_families
from showhow.fiction.universe.options import GenerationOptions
from showhow.worlds.folder import WorldError

OPTIONS = GenerationOptions(people=2_000, seed=1)
PINNED = "7da7cc2692cc08d0206dd47df0016c51364b63d5096ad79cea0c91c32eb73e79"
"""Hash of the names of Faker 40.54.0; other names give other worlds."""


def family_trees(options: GenerationOptions) -> FamilyTrees:
    return grow_families(options, create_generator(options.seed, RandomStream.FAMILIES))


def without_namesakes(people: FamilyTrees) -> Namesakes:
    return draw_namesakes(people, 0, create_generator(0, RandomStream.NAMESAKES))


def test_name_pools_are_those_of_the_pinned_faker_version():
    pools = load_name_pools()
    assert (len(pools.women), len(pools.men), len(pools.surnames)) == (5502, 5255, 11429)
    assert (len(pools.women) + len(pools.men)) * len(pools.surnames) > 15_000_000
    assert sha256("\n".join((*pools.women, "", *pools.men, "", *pools.surnames)).encode()).hexdigest() == PINNED


def test_given_names_of_women_and_men_are_disjoint():
    pools = load_name_pools()
    assert not set(pools.women) & set(pools.men)
    for pool in (pools.women, pools.men, pools.surnames):
        assert list(pool) == sorted(set(pool))
        assert all(name.isascii() and name.isalpha() and name.istitle() for name in pool)


def test_names_match_gender_and_family():
    people, names = family_trees(OPTIONS), make_universe(OPTIONS).names
    for row, name in enumerate(names):
        given_name, surname = name.split(" ")
        assert given_name in (load_name_pools().women if people.female[row] else load_name_pools().men)
        if people.father[row] >= 0:
            assert surname == names[people.father[row]].split(" ")[1]


def test_every_given_name_is_used_before_the_pool_is_exhausted():
    small = NamePools(("Ada", "Bea", "Cleo", "Dora"), ("Abel", "Bram", "Carl", "Dirk", "Emil", "Finn"), ("Oak",))
    rows = np.full(10, -1, np.int32)
    people = FamilyTrees(10, np.arange(10) < 4, rows, rows, rows, rows, rows)
    line = np.zeros(10, np.int32)
    names = draw_full_names(people, Namesakes(line, rows), 3, small)
    assert sorted(names) == sorted(f"{given_name} Oak" for given_name in (*small.women, *small.men))
    with pytest.raises(WorldError, match="More people share a surname than there are given names"):
        draw_full_names(people, Namesakes(line, rows), 3, NamePools(small.women[:3], small.men, small.surnames))


def test_surnames_and_given_names_are_spread_evenly():
    names = make_universe(GenerationOptions(people=50_000, seed=2)).names
    given_name, surnames = (Counter(name.split(" ")[part] for name in names) for part in (0, 1))
    assert len(set(names)) == 50_000
    assert max(given_name.values()) < 30
    assert max(surnames.values()) < 100
    assert len(given_name) > 0.95 * (len(load_name_pools().women) + len(load_name_pools().men))


def test_a_paternal_line_ends_at_the_first_known_father():
    people = family_trees(OPTIONS)
    for row, first in enumerate(find_paternal_lines(people).tolist()):
        back = row
        while people.father[back] >= 0:
            back = int(people.father[back])
        assert first == back


def test_without_collisions_there_are_no_namesakes():
    assert np.all(without_namesakes(family_trees(OPTIONS)).first == -1)


@pytest.mark.parametrize("share", [0.001, 0.02, 0.1, 0.29, 0.5])
@pytest.mark.parametrize("size", [5, 25, 100])
def test_namesakes_have_the_requested_number_and_differ_in_family(share, size):
    people = family_trees(GenerationOptions(people=1_000, seed=5, family_size=size))
    namesakes = draw_namesakes(people, share, create_generator(5, RandomStream.NAMESAKES))
    second = np.flatnonzero(namesakes.first >= 0)
    first = namesakes.first[second]
    assert len(second) == round(share * 1_000) // 2
    assert len({*first.tolist(), *second.tolist()}) == 2 * len(second)
    assert np.all(people.tree_numbers[first] != people.tree_numbers[second])
    assert np.array_equal(people.female[first], people.female[second])
    assert np.array_equal(namesakes.line[first], namesakes.line[second])
    before = find_paternal_lines(people)
    for line in np.unique(namesakes.line):
        # At most two lines are merged, and they belong to different families.
        of = namesakes.line == line
        assert len(set(before[of].tolist())) == len(set(people.tree_numbers[of].tolist())) <= 2


def test_too_many_namesakes_raise_an_error_with_the_maximum():
    with pytest.raises(WorldError, match="Only 0 of these 25 people can share a name"):
        make_universe(GenerationOptions(people=25, seed=1, collisions=0.5))


def test_titles_of_namesakes_show_their_jobs():
    universe = make_universe(GenerationOptions(people=1_000, seed=6, collisions=0.3))
    often = Counter(universe.names)
    assert len(set(universe.titles)) == 1_000
    for name, title, job in zip(universe.names, universe.titles, universe.job.tolist(), strict=True):
        assert title == (f"{name} ({universe.jobs[job]})" if often[name] > 1 else name)
