"""Greedy selection against brute force over every subset, and on kernels that are degenerate."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from showhow.fewshot_library.dpp import (
    NUGGET,
    Groups,
    Kernel,
    explain_picks,
    fill_by_quality,
    improve_by_exchange,
    log_det,
    select_greedily,
)
from tests.examples import examples

ALPHABET = "abcdef"


def kernel_of(qualities, words, gamma=1.0, nugget=NUGGET):
    """A kernel of items with these words as action sequences."""
    different = list(dict.fromkeys(words))
    table = np.exp(-gamma * np.array([[Levenshtein.distance(a, b) for b in different] for a in different], float))
    groups = Groups([different.index(word) for word in words])
    return Kernel(np.array(qualities, float), groups, lambda group: table[group], nugget)


def full(kernel):
    """The full matrix L, computed independently of the module."""
    similar = np.array([kernel.rows(int(group))[kernel.groups.labels] for group in kernel.groups.labels])
    similar = np.where(np.eye(len(kernel), dtype=bool), 1.0, (1 - kernel.nugget) * similar)
    quality = np.exp(kernel.log_quality)
    return quality[:, None] * similar * quality


def optimum(matrix, k):
    """The greatest determinant of k items, over all subsets."""
    return max(np.linalg.det(matrix[np.ix_(s, s)]) for s in itertools.combinations(range(len(matrix)), k))


def plain_greedy(matrix, k):
    """Greedy search by computing determinants."""
    chosen = []
    while len(chosen) < k:
        dets = {
            item: np.linalg.det(matrix[np.ix_([*chosen, item], [*chosen, item])])
            for item in range(len(matrix))
            if item not in chosen
        }
        chosen.append(max(dets, key=lambda item: dets[item]))
    return chosen


def random_kernel(seed, size, alpha=4.0, gamma=0.25):
    chance = np.random.default_rng(seed)
    templates = ["".join(chance.choice(list(ALPHABET), chance.integers(2, 8))) for _ in range(6)]
    words = []
    for _ in range(size):
        word = list(templates[chance.integers(6)])
        for _ in range(chance.integers(0, 3)):
            word[chance.integers(len(word))] = ALPHABET[chance.integers(6)]
        words.append("".join(word))
    return kernel_of(alpha / 2 * chance.random(size), words, gamma)


@pytest.mark.parametrize("k", [1, 3, 5, 8])
def test_the_picks_are_those_of_a_greedy_search_on_the_whole_kernel(k):
    for seed in range(40):
        kernel = random_kernel(seed, 16)
        assert select_greedily(kernel, k) == plain_greedy(full(kernel), k)


def test_the_share_of_the_optimum_is_high_and_an_exchange_closes_the_gap():
    shares, after = [], []
    for seed in range(60):
        kernel = random_kernel(seed, 14)
        best = math.log(optimum(full(kernel), 3))
        chosen = select_greedily(kernel, 3)
        shares.append(math.exp(log_det(kernel, chosen) - best))
        after.append(math.exp(log_det(kernel, improve_by_exchange(kernel, chosen)) - best))
    assert np.mean(shares) > 0.98
    assert np.mean(np.array(after) > 1 - 1e-9) >= 0.98
    assert all(better >= share - 1e-12 for better, share in zip(after, shares, strict=True))


def test_greedy_is_never_below_its_guarantee():
    """det of k greedy picks is at least (1 / k!)^2 of the greatest (Civril and Magdon-Ismail, 2009)."""
    for seed in range(60):
        kernel = random_kernel(seed, 10, alpha=0.5)
        for k in (2, 3, 4):
            share = math.exp(log_det(kernel, select_greedily(kernel, k))) / optimum(full(kernel), k)
            assert share >= 1 / math.factorial(k) ** 2


def test_the_determinant_equals_numpys():
    for seed in range(30):
        kernel = random_kernel(seed, 12)
        items = np.random.default_rng(seed).permutation(12)[:5]
        expected = np.linalg.slogdet(full(kernel)[np.ix_(items, items)])
        assert expected.sign == 1
        assert log_det(kernel, items.tolist()) == pytest.approx(expected.logabsdet, abs=1e-8)


def test_gains_add_up_to_the_determinant_and_leads_compare_with_the_runner_up():
    for seed in range(20):
        kernel = random_kernel(seed, 12)
        chosen = select_greedily(kernel, 4)
        picks = explain_picks(kernel, chosen)
        assert [pick.item for pick in picks] == chosen
        assert sum(pick.gain for pick in picks) == pytest.approx(log_det(kernel, chosen))
        for turn, pick in enumerate(picks):
            before = chosen[:turn]
            others = {i: log_det(kernel, [*before, i]) for i in range(12) if i not in chosen}
            best = max(others, key=lambda i: others[i])
            assert others[pick.runner_up] == pytest.approx(others[best])
            assert pick.lead == pytest.approx(log_det(kernel, [*before, pick.item]) - others[best], abs=1e-8)
            matrix = full(Kernel(np.zeros(12), kernel.groups, kernel.rows))
            here = [*before, pick.item]
            left = np.linalg.det(matrix[np.ix_(here, here)]) / (
                np.linalg.det(matrix[np.ix_(before, before)]) if before else 1
            )
            assert pick.novelty == pytest.approx(left, abs=1e-9)


def test_the_order_of_the_items_does_not_matter():
    for seed in range(30):
        kernel = random_kernel(seed, 15)
        order = np.random.default_rng(seed).permutation(15)
        of = kernel.groups.labels[order]
        seen = list(dict.fromkeys(of.tolist()))
        shuffled = Kernel(
            kernel.log_quality[order],
            Groups([seen.index(group) for group in of.tolist()]),
            lambda group, seen=seen, kernel=kernel: kernel.rows(seen[group])[seen],
        )
        assert [int(order[item]) for item in select_greedily(shuffled, 4)] == select_greedily(kernel, 4)


def test_ties_go_to_the_lowest_item():
    assert select_greedily(kernel_of([0, 1, 1, 1], ["a", "b", "c", "d"]), 2) == [1, 2]
    assert select_greedily(kernel_of([0, 0, 0], ["a", "a", "a"]), 2) == [0, 1]
    assert select_greedily(kernel_of([0, 0, 0, 0], ["b", "a", "b", "a"]), 4) == [0, 1, 2, 3]


def test_duplicates_are_chosen_after_all_distinct_items():
    kernel = kernel_of([0.1, 0.1, 0.1, 0, 0], ["ab", "ab", "ab", "cdef", "fedcba"])
    assert set(select_greedily(kernel, 3)) == {0, 3, 4}
    assert set(select_greedily(kernel, 5)) == set(range(5))


def test_without_a_nugget_no_duplicate_is_chosen():
    kernel = kernel_of([0.3, 0.2, 0.1], ["ab", "ab", "c"], nugget=0.0)
    assert select_greedily(kernel, 3) == [0, 2]
    assert fill_by_quality(kernel, select_greedily(kernel, 3), 3) == [0, 2, 1]
    last = explain_picks(kernel, [0, 2, 1])[-1]
    assert (last.item, last.is_filler, last.novelty, last.gain) == (1, True, 0.0, -math.inf)


@pytest.mark.parametrize("k", [0, 1, 3, 4, 9])
def test_there_are_never_more_picks_than_items(k):
    kernel = kernel_of([3, 2, 1], ["a", "b", "c"])
    assert select_greedily(kernel, k) == [0, 1, 2][:k]
    assert fill_by_quality(kernel, select_greedily(kernel, k), k) == [0, 1, 2][:k]
    nothing = kernel_of([], [])
    assert select_greedily(nothing, k) == fill_by_quality(nothing, [], k) == explain_picks(nothing, []) == []


def test_chosen_items_are_positive_definite_even_if_the_similarities_are_not():
    """Levenshtein over the longer length has a negative minor on these four; the greedy choice never has."""
    words = ["ab", "ba", "aba", "bab"]
    table = 1 - np.array([[Levenshtein.normalized_distance(a, b) for b in words] for a in words])
    assert np.linalg.eigvalsh(table).min() < 0
    kernel = Kernel(np.zeros(4), Groups(range(4)), lambda group: table[group], 0.0)
    chosen = select_greedily(kernel, 4)
    assert len(chosen) < 4
    assert np.linalg.eigvalsh(table[np.ix_(chosen, chosen)]).min() > 0
    assert len(fill_by_quality(kernel, chosen, 4)) == 4


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.tuples(st.floats(-4, 4), st.text(ALPHABET[:3], max_size=6)), max_size=12),
    st.integers(0, 13),
    st.sampled_from([0.25, 1.0, 2.0]),
)
def test_the_choice_is_sound_for_any_items(items, k, gamma):
    kernel = kernel_of([quality for quality, _ in items], [word for _, word in items], gamma)
    chosen = select_greedily(kernel, k)
    assert len(set(chosen)) == len(chosen) <= min(k, len(items))
    better = improve_by_exchange(kernel, chosen)
    assert len(set(better)) == len(chosen)
    assert log_det(kernel, better) >= log_det(kernel, chosen) - 1e-9
    complete = fill_by_quality(kernel, better, k)
    assert len(set(complete)) == len(complete) == min(k, len(items))
    if chosen:
        assert np.linalg.slogdet(full(kernel)[np.ix_(chosen, chosen)]).sign == 1
