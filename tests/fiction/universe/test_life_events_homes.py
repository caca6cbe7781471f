import numpy as np
from hypothesis import given, settings

from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.constraints import find_family_trees
from showhow.fiction.universe.options import GenerationOptions
from tests.examples import examples
from tests.fiction.universe.random_options import options

UNIVERSE = make_universe(GenerationOptions(people=5_000, seed=4))


@settings(max_examples=examples(50))
@given(options())
def test_siblings_are_born_in_one_town_and_couples_live_together(options):
    universe = make_universe(options)
    # Worlds with pairs of questions lack the residence of some.
    residence, known = universe.residence, universe.residence >= 0
    couples = np.flatnonzero((universe.spouse >= 0) & known & known[universe.spouse])
    assert np.array_equal(residence[couples], residence[universe.spouse[couples]])
    town_of: dict[int, int] = {}
    for row in np.flatnonzero(universe.mother >= 0).tolist():
        assert town_of.setdefault(int(universe.mother[row]), universe.birthplace[row]) == universe.birthplace[row]
    for towns in (universe.birthplace, residence[known]):
        assert 0 <= towns.min(initial=0) <= towns.max(initial=0) < len(universe.places.towns)


def test_some_people_stay_in_their_birthplace_and_some_move():
    assert 0.4 < np.mean(UNIVERSE.birthplace == UNIVERSE.residence) < 0.8


def test_families_stay_in_their_region_and_sometimes_cross_borders():
    region = UNIVERSE.places.region[UNIVERSE.residence]
    tree, _ = find_family_trees(UNIVERSE)
    shares = [
        np.bincount(region[tree == number]).max() / np.count_nonzero(tree == number) for number in np.unique(tree)
    ]
    assert 0.6 < np.mean(shares) < 0.95
    country = UNIVERSE.places.country[region]
    abroad = [len(set(country[tree == number].tolist())) > 1 for number in np.unique(tree)]
    assert 0.3 < np.mean(abroad) < 1


def test_town_sizes_vary():
    sizes = np.sort(np.bincount(UNIVERSE.residence, minlength=len(UNIVERSE.places.towns)))
    assert sizes[-1] > 3 * np.median(sizes)
    assert sizes[-1] < 0.1 * len(UNIVERSE)
