import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.fiction.universe.families import RandomStream, create_generator
from showhow.fiction.universe.life_events import count_contemporary_pairs, draw_friendships
from showhow.fiction.universe.universe import IdArray


def draw(people: int, mean: float, seed: int = 0) -> IdArray:
    """Friendships of people who all live at the same time."""
    lives = np.zeros(people, np.int64), np.ones(people, np.int64)
    return draw_friendships(lives, mean, create_generator(seed, RandomStream.FRIENDSHIPS)).pairs


@pytest.mark.parametrize("people", range(1, 40))
def test_a_complete_friendship_graph_has_every_pair_once(people):
    every = [[one, other] for one in range(people) for other in range(one + 1, people)]
    assert draw(people, people).tolist() == every
    assert len(draw(people, 0)) == 0


@given(st.integers(1, 5000), st.floats(0, 100), st.integers(0, 2**63 - 1))
def test_friendships_are_pairs_of_two_people_each_once_and_sorted(people, mean, seed):
    pairs = draw(people, mean, seed)
    assert pairs.shape == (len(pairs), 2)
    assert pairs.dtype == np.int32
    assert np.all(pairs[:, 0] < pairs[:, 1])
    assert np.all((pairs >= 0) & (pairs < people))
    keys = pairs[:, 0].astype(np.int64) * people + pairs[:, 1]
    assert np.all(keys[1:] > keys[:-1])


@pytest.mark.parametrize("people", [200, 4000])
def test_friends_live_at_the_same_time_and_are_as_many_as_among_people_of_one_time(people):
    generator = np.random.default_rng(people)
    first = generator.integers(0, 60_000, people)
    lives = first, first + generator.integers(0, 30_000, people)
    pairs = draw_friendships(lives, 6.0, create_generator(3, RandomStream.FRIENDSHIPS)).pairs
    one, other = pairs.T
    assert np.all(np.maximum(first[one], first[other]) <= np.minimum(lives[1][one], lives[1][other]))
    # Five standard deviations of the number of pairs.
    assert abs(len(pairs) - 3 * people) < 5 * (3 * people) ** 0.5


def test_all_pairs_who_live_at_the_same_time_are_counted_and_can_be_friends():
    generator = np.random.default_rng(1)
    first = generator.integers(0, 60_000, 90)
    lives = first, first + generator.integers(0, 30_000, 90)
    spans = list(zip(*(days.tolist() for days in lives), strict=True))
    together = [
        [one, other]
        for one, (born, died) in enumerate(spans)
        for other, (other_born, other_died) in enumerate(spans)
        if one < other and born <= other_died and other_born <= died
    ]
    assert 0 < len(together) < 90 * 89 / 2
    assert count_contemporary_pairs(lives) == len(together)
    assert draw_friendships(lives, 1e6, create_generator(3, RandomStream.FRIENDSHIPS)).pairs.tolist() == together


@pytest.mark.parametrize("mean", [0.0, 1e-300, 1e-9])
def test_a_sparse_friendship_graph_needs_little_memory(mean):
    assert len(draw(5_000_000, mean)) == 0


@pytest.mark.parametrize(("people", "draws"), [(1500, 20), (30_000, 1)])
def test_numbers_of_friends_follow_the_binomial_distribution(people, draws):
    # Both algorithms, by pairs and by blocks, are compared with the same distribution.
    counts = np.concatenate([np.bincount(draw(people, 3.0, seed).ravel(), minlength=people) for seed in range(draws)])
    expected, probability = [], float(np.exp(-3.0))
    for count in range(1, 13):
        expected.append(probability)
        probability *= 3.0 / count
    shares = np.bincount(counts, minlength=12)[:12] / len(counts)
    assert np.abs(shares - expected).max() < 0.01
    assert abs(counts.mean() - 3.0) < 0.06
    assert abs(counts.var() - 3.0) < 0.12


def test_all_pairs_are_equally_likely():
    people, draws = 2003, 60
    friendships = np.concatenate([draw(people, 20.0, seed) for seed in range(draws)])
    numbers = np.arange(people) * 10 // people
    counts = np.zeros((10, 10))
    np.add.at(counts, (numbers[friendships[:, 0]], numbers[friendships[:, 1]]), 1)
    sizes = np.bincount(numbers)
    pairs = np.triu(np.outer(sizes, sizes), 1) + np.diag(sizes * (sizes - 1) // 2)
    expected = pairs * 20.0 / people * draws
    above = np.triu_indices(10)
    # Five standard deviations for each of 55 blocks of pairs.
    assert np.all(np.abs(counts[above] - expected[above]) < 5 * np.sqrt(expected[above]))
    # No pair is drawn more often than expected by chance.
    keys = friendships[:, 0].astype(np.int64) * people + friendships[:, 1]
    assert np.unique(keys, return_counts=True)[1].max() <= 8
