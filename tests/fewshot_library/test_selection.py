"""The selection modes on generated pools; samples against the k-DPP distribution."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from showhow.fewshot_library.dpp import Kernel, likelihood_matrix
from showhow.fewshot_library.selection import (
    SELECTION_MODES,
    CandidatePool,
    SelectionConfig,
    SelectionError,
    sample_kdpp,
    select_demonstrations,
)
from showhow.fewshot_library.sequence_similarity import DISTANCES, ActionSimilarities, encode_actions

TOOLS = ("wikisearch", "read", "getWikiDataID", "generateQuery", "runQuery", "getLabel")


def pool_of(size, seed=0, dimensions=16):
    chance = np.random.default_rng(seed)
    rows = chance.normal(size=(size, dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    sequences = [[TOOLS[tool] for tool in chance.integers(0, 6, chance.integers(1, 8))] for _ in range(size)]
    return CandidatePool(rows, encode_actions(sequences))


def items(selection):
    return [pick.item for pick in selection.picks]


@pytest.mark.parametrize("mode", SELECTION_MODES)
@pytest.mark.parametrize("k", [0, 1, 3, 8])
def test_every_mode_selects_exactly_k_distinct_demonstrations(mode, k):
    pool = pool_of(40)
    chosen = items(select_demonstrations(pool, pool.embeddings[7], SelectionConfig(k=k, mode=mode, gamma=6.0)))
    assert len(set(chosen)) == len(chosen) == k
    assert items(select_demonstrations(pool, pool.embeddings[7], SelectionConfig(k=k, mode=mode, gamma=6.0))) == chosen


@pytest.mark.parametrize("mode", [mode for mode in SELECTION_MODES if mode != "sample"])
def test_a_pool_smaller_than_k_is_selected_completely(mode):
    pool = pool_of(4)
    assert sorted(items(select_demonstrations(pool, pool.embeddings[0], SelectionConfig(k=9, mode=mode)))) == [
        0,
        1,
        2,
        3,
    ]
    assert items(select_demonstrations(pool_of(0), pool.embeddings[0], SelectionConfig(mode=mode))) == []


def test_relevance_selects_the_question_itself_first_unless_it_is_left_out():
    pool = pool_of(40)
    assert items(select_demonstrations(pool, pool.embeddings[7], SelectionConfig(mode="relevance")))[0] == 7
    for mode in SELECTION_MODES:
        left_out = SelectionConfig(k=5, mode=mode, gamma=6.0, left_out=frozenset({7, 8, 9}))
        assert not {7, 8, 9} & set(items(select_demonstrations(pool, pool.embeddings[7], left_out)))


def test_relevance_selects_by_cosine():
    pool = pool_of(60)
    selection = select_demonstrations(pool, pool.embeddings[3], SelectionConfig(k=10, mode="relevance"))
    expected = sorted(range(60), key=lambda item: -float(pool.embeddings[item] @ pool.embeddings[3]))
    assert items(selection) == expected[:10]
    assert selection.cosines == pytest.approx(pool.embeddings @ pool.embeddings[3], abs=1e-5)


def test_mode_dpp_has_the_greatest_determinant():
    for seed in range(20):
        pool = pool_of(30, seed)
        question = pool.embeddings[0]
        selections = {
            mode: select_demonstrations(pool, question, SelectionConfig(mode=mode, gamma=6.0)).log_det
            for mode in SELECTION_MODES
        }
        assert selections["dpp"] >= max(selections.values()) - 1e-9


def test_a_high_alpha_selects_by_relevance_and_zero_by_diversity():
    pool = pool_of(30)
    question = pool.embeddings[4]
    assert items(select_demonstrations(pool, question, SelectionConfig(alpha=100))) == items(
        select_demonstrations(pool, question, SelectionConfig(mode="relevance"))
    )
    assert items(select_demonstrations(pool, question, SelectionConfig(alpha=0))) == items(
        select_demonstrations(pool, question, SelectionConfig(mode="diversity"))
    )


def test_mmr_equals_langchains():
    from langchain_core.vectorstores.utils import maximal_marginal_relevance  # noqa: PLC0415 - only this test's oracle

    for seed in range(10):
        pool = pool_of(50, seed)
        question = pool.embeddings[1] * 0.6 + pool.embeddings[2] * 0.4
        question /= np.linalg.norm(question)
        for balance in (0.3, 0.5, 0.9):
            mine = items(select_demonstrations(pool, question, SelectionConfig(k=6, mode="mmr", balance=balance)))
            assert mine == maximal_marginal_relevance(question, list(pool.embeddings), balance, 6)


def test_demonstrations_with_equal_actions_are_only_fillers():
    pool = CandidatePool(pool_of(5).embeddings, encode_actions([["read"]] * 5))
    selection = select_demonstrations(pool, pool.embeddings[2], SelectionConfig(k=5))
    assert items(selection)[0] == 2
    assert selection.filler_count == 0  # The nugget keeps them apart.
    assert all(0 < pick.novelty < 0.01 for pick in selection.picks[1:])


def test_each_action_is_encoded_as_one_character():
    sequences = encode_actions([["getLabel", "read"], ["getWikiDataID", "read"], ["getLabel", "read"], []])
    assert [len(sequence) for sequence in sequences.sequences] == [2, 2, 0]
    assert sequences.groups.labels.tolist() == [0, 1, 0, 2]
    assert DISTANCES["longer"](sequences.sequences[0], sequences.sequences).tolist() == [0, 0.5, 1]


def test_the_metric_distance_obeys_the_triangle_inequality_and_the_other_does_not():
    words = ["".join(word) for size in range(4) for word in itertools.product("ab", repeat=size)]

    def violated(distance):
        table = np.array([DISTANCES[distance](word, words) for word in words])
        return (table[:, None, :] > table[:, :, None] + table[None, :, :] + 1e-12).any()

    assert not violated("metric")
    assert DISTANCES["metric"]("", ["", "a"]).tolist() == [0, 1]
    # With the metric every four are positive definite; over the longer length some four are not.
    for distance, sound in (("metric", True), ("longer", False)):
        table = np.exp(-0.5 * np.array([DISTANCES[distance](word, words) for word in words]))
        least = min(
            np.linalg.eigvalsh(table[np.ix_(four, four)])[0] for four in itertools.combinations(range(len(words)), 4)
        )
        assert (least > 0) == sound


@pytest.mark.parametrize(
    "config",
    [
        SelectionConfig(mode="best"),
        SelectionConfig(k=-1),
        SelectionConfig(alpha=-1),
        SelectionConfig(gamma=0),
        SelectionConfig(gamma=float("nan")),
        SelectionConfig(balance=2),
        SelectionConfig(distance="hamming"),
        SelectionConfig(k=41, mode="sample"),
    ],
)
def test_an_invalid_configuration_is_refused_with_the_reason(config):
    pool = pool_of(40)
    with pytest.raises(SelectionError):
        select_demonstrations(pool, pool.embeddings[0], config)


def small_kernel(gamma=3.0):
    pool = pool_of(6, seed=5)
    similar = ActionSimilarities(pool.actions.sequences, gamma)
    return Kernel(np.linspace(-1, 1, 6), pool.actions.groups, similar)


def test_samples_follow_the_k_dpp_distribution():
    kernel = small_kernel()
    matrix = likelihood_matrix(kernel, range(6))
    weights = {s: np.linalg.det(matrix[np.ix_(s, s)]) for s in itertools.combinations(range(6), 2)}
    drawn = Counter(tuple(sorted(sample_kdpp(kernel, range(6), 2, seed))) for seed in range(2000))
    total = sum(weights.values())
    apart = sum(abs(drawn[s] / 2000 - weight / total) for s, weight in weights.items()) / 2
    assert apart < 0.05


def test_likelihoods_equal_those_of_dppy():
    from dppy.finite_dpps import FiniteDPP  # noqa: PLC0415 - only this test's oracle

    kernel = small_kernel()
    process = FiniteDPP("likelihood", L=likelihood_matrix(kernel, range(6)))
    process.compute_K()
    inclusion = np.array(
        [[process.K[i, i] * process.K[j, j] - process.K[i, j] ** 2 for j in range(6)] for i in range(6)]
    )
    matrix = likelihood_matrix(kernel, range(6))
    every = [s for size in range(7) for s in itertools.combinations(range(6), size)]
    weight = {s: np.linalg.det(matrix[np.ix_(s, s)]) if s else 1.0 for s in every}
    for pair in itertools.combinations(range(6), 2):
        share = sum(weight[s] for s in every if set(pair) <= set(s)) / sum(weight.values())
        assert inclusion[pair] == pytest.approx(share, abs=1e-9)


def test_an_indefinite_kernel_is_refused_only_for_sampling():
    words = [list(word) for size in range(4) for word in itertools.product("ab", repeat=size)]
    pool = replace(pool_of(len(words)), actions=encode_actions(words))
    with pytest.raises(SelectionError, match="negative eigenvalue"):
        select_demonstrations(pool, pool.embeddings[0], SelectionConfig(k=3, mode="sample", gamma=0.2))
    assert len(select_demonstrations(pool, pool.embeddings[0], SelectionConfig(k=3, gamma=0.2)).picks) == 3
