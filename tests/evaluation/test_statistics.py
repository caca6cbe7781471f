"""Statistics, against statsmodels, scikit-learn, published numbers and counting."""

from itertools import combinations, permutations
from math import sqrt
from statistics import fmean

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from showhow.evaluation.statistics import (
    Interval,
    adjust_holm,
    cluster_bootstrap,
    cluster_mean,
    cohen_kappa,
    compare_paired,
    correct_share,
    detectable_difference,
    mcnemar_exact,
    mean_with_error,
    measure_judge,
    pareto_front,
    pass_at_k,
    pass_hat_k,
    risk_coverage,
    wilson_interval,
)

SCORES = st.floats(0, 1)
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8)
LABELS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30)


def ends(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


def test_wilsons_interval_has_the_published_ends():
    assert ends(wilson_interval(192, 200)) == pytest.approx((0.923, 0.980), abs=5e-4)
    assert ends(wilson_interval(133, 150)) == pytest.approx((0.826, 0.928), abs=5e-4)


@given(st.integers(1, 300), st.data())
def test_wilsons_interval_equals_that_of_statsmodels(count, data):
    right = data.draw(st.integers(0, count))
    assert ends(wilson_interval(right, count)) == pytest.approx(
        proportion_confint(right, count, method="wilson"), abs=1e-9
    )


@given(st.lists(st.tuples(SCORES, st.integers(0, 4)), min_size=2, max_size=40))
def test_the_error_of_clusters_equals_that_of_statsmodels(pairs):
    values, clusters = map(np.array, zip(*pairs, strict=True))
    assume(len(set(clusters)) > 1)
    estimate = cluster_mean(list(values), list(clusters))
    fit = OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True)
    assert estimate.value == pytest.approx(fit.params[0])
    assert estimate.standard_error == pytest.approx(fit.bse[0], abs=1e-7)
    if fit.bse[0] > 1e-6:
        assert ends(estimate.interval) == pytest.approx(tuple(fit.conf_int()[0]), abs=1e-6)


def test_the_error_of_independent_values_is_that_of_the_mean():
    values = [0.1, 0.4, 0.4, 0.9]
    estimate = mean_with_error(values)
    assert estimate.standard_error == pytest.approx(stats.sem(values))
    assert estimate.degrees_of_freedom == 3
    # Each value three times in its own cluster tells nothing more.
    assert cluster_mean(values * 3, [0, 1, 2, 3] * 3).standard_error == pytest.approx(stats.sem(values))
    with pytest.raises(ValueError, match="at least 2 independent values"):
        cluster_mean([0.1, 0.2], ["a", "a"])


def test_the_bootstrap_resamples_whole_clusters_and_repeats_with_its_seed():
    generator = np.random.default_rng(3)
    values = list(generator.random(40))
    own = cluster_bootstrap(values, range(40), draws=4_000, seed=5)
    estimate = mean_with_error(values)
    assert ends(own) == pytest.approx(ends(estimate.interval), abs=0.02)
    assert cluster_bootstrap(values, range(40), draws=4_000, seed=5) == own
    assert cluster_bootstrap(values, range(40), draws=4_000, seed=6) != own
    # Three equal values in a cluster are one value.
    tripled = cluster_bootstrap(values * 3, [*range(40)] * 3, draws=4_000, seed=5)
    assert ends(tripled) == pytest.approx(ends(own))
    with pytest.raises(ValueError, match="at least 2"):
        cluster_bootstrap([0.5, 0.6], ["a", "a"])


def test_the_bootstrap_of_many_equal_clusters_draws_their_counts():
    generator = np.random.default_rng(4)
    # Clusters of one and of two values, so that the mean is a ratio; 400 clusters of six kinds.
    groups = [[float(generator.integers(3))] * int(generator.integers(1, 3)) for _ in range(400)]
    values = [value for group in groups for value in group]
    clusters = [number for number, group in enumerate(groups) for _ in group]
    own = cluster_bootstrap(values, clusters, draws=4_000, seed=5)
    samples = generator.integers(len(groups), size=(4_000, len(groups)))
    totals, sizes = np.array([sum(group) for group in groups]), np.array([len(group) for group in groups])
    plain = np.quantile(totals[samples].sum(axis=1) / sizes[samples].sum(axis=1), [0.025, 0.975])
    assert ends(own) == pytest.approx(tuple(plain), abs=0.01)
    assert cluster_bootstrap(values, clusters, draws=4_000, seed=5) == own


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9))
def test_the_pareto_front_has_the_points_that_no_other_beats(points):
    def is_beaten(cost, score):
        return any(other <= cost and rival >= score and (other, rival) != (cost, score) for other, rival in points)

    front = pareto_front(points)
    assert set(front) == {place for place, point in enumerate(points) if not is_beaten(*point)}
    assert [points[place][0] for place in front] == sorted(points[place][0] for place in front)


def test_two_methods_are_compared_on_the_questions_that_both_have():
    scores = np.array([1.0, 0.5, 0.0, 1.0, 1.0, np.nan])
    baseline = np.array([0.0, 0.5, 0.5, 0.0, np.nan, np.nan])
    alone = np.arange(6)
    result = compare_paired(scores, baseline, alone, draws=500, seed=1)
    assert (result.gains, result.losses, result.ties, result.missing, result.questions) == (2, 1, 1, 1, 4)
    assert result.difference.value == pytest.approx(1.5 / 4)
    assert result.difference.standard_error == pytest.approx(stats.sem([1, 0, -0.5, 1]))
    assert result.with_missing_as_zero == pytest.approx((3.5 - 1) / 5)
    assert result.bootstrap.low <= result.difference.value <= result.bootstrap.high
    assert compare_paired(scores, baseline, alone, draws=500, seed=1) == result
    clustered = compare_paired(scores, baseline, np.array([1, 1, 2, 2, 3, 3]), draws=500)
    assert clustered.difference.degrees_of_freedom == 1


def test_mcnemars_test_has_the_published_p():
    assert mcnemar_exact(5, 2) == pytest.approx(0.4531, abs=5e-5)
    assert mcnemar_exact(0, 0) == 1.0


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemars_test_equals_that_of_statsmodels(gains, losses):
    assume(gains + losses)
    expected = mcnemar([[3, gains], [losses, 5]], exact=True).pvalue
    assert mcnemar_exact(gains, losses) == pytest.approx(expected)


def test_adjusted_p_values_are_the_published_ones():
    p_values = [0.001, 0.01, 0.02, 0.04]
    assert adjust_holm(p_values) == pytest.approx([0.004, 0.03, 0.04, 0.04])
    assert adjust_holm([]) == []


@given(P_VALUES)
def test_adjusted_p_values_equal_those_of_statsmodels(p_values):
    assert adjust_holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1], abs=1e-12)


@pytest.mark.parametrize(
    ("questions", "correlation", "difference"),
    [(2_791, 0.0, 0.03), (1_395, 0.5, 0.03), (502, 0.5, 0.05), (126, 0.5, 0.10)],
)
def test_the_detectable_difference_is_the_published_one(questions, correlation, difference):
    assert detectable_difference(questions, 0.8, correlation) == pytest.approx(difference, rel=0.01)
    # HumanIQ's 200 questions cannot show 4 points.
    assert detectable_difference(200, 0.8, 0.5) > 0.04


@given(st.integers(1, 6), st.data())
def test_pass_at_k_and_pass_hat_k_equal_the_shares_of_all_samples(repeats, data):
    right, k = data.draw(st.integers(0, repeats)), data.draw(st.integers(1, repeats))
    samples = list(combinations([True] * right + [False] * (repeats - right), k))
    assert pass_at_k(repeats, right, k) == pytest.approx(fmean(map(any, samples)))
    assert pass_hat_k(repeats, right, k) == pytest.approx(fmean(map(all, samples)))


def test_more_answers_than_there_are_cannot_be_drawn():
    with pytest.raises(ValueError, match="cannot be drawn"):
        pass_hat_k(3, 1, 4)


@given(st.lists(st.tuples(st.sampled_from([0.2, 0.5, 0.9]), st.booleans()), min_size=1, max_size=6))
def test_the_area_of_risk_is_the_mean_over_all_orders_of_equal_confidences(answers):
    orders = [order for order in permutations(answers) if list(order) == sorted(order, key=lambda answer: -answer[0])]
    areas = []
    for order in orders:
        wrong = np.cumsum([not right for _, right in order])
        areas.append(fmean(wrong / np.arange(1, len(order) + 1)))
    curve = risk_coverage(*zip(*answers, strict=True))
    assert curve.area == pytest.approx(fmean(areas))
    assert curve.points[-1] == pytest.approx((1.0, fmean(not right for _, right in answers)))
    assert len(curve.points) == len({confidence for confidence, _ in answers})


def test_a_curve_of_no_answers_is_an_error():
    with pytest.raises(ValueError, match="at least 1 answer"):
        risk_coverage([], [])


@given(LABELS)
def test_kappa_equals_that_of_scikit_learn(pairs):
    first, second = zip(*pairs, strict=True)
    if len({*first, *second}) == 1:
        with pytest.raises(ValueError, match="always give the same label"):
            cohen_kappa(first, second)
    else:
        assert cohen_kappa(first, second) == pytest.approx(cohen_kappa_score(first, second))


def test_a_judge_is_measured_by_human_labels():
    labels = [True] * 10 + [False] * 10
    judged = [True] * 9 + [False] + [False] * 8 + [True] * 2
    judge = measure_judge(judged, labels)
    assert (judge.sensitivity, judge.specificity, judge.kappa) == pytest.approx((0.9, 0.8, 0.7))
    assert judge.sensitivity_interval == wilson_interval(9, 10)
    assert judge.specificity_interval == wilson_interval(8, 10)
    with pytest.raises(ValueError, match="right and of wrong"):
        measure_judge([True, False], [True, True])


@given(st.integers(0, 1_000), st.integers(60, 99), st.integers(60, 99))
def test_the_corrected_share_inverts_the_errors_of_the_judge(right, sensitive, specific):
    judge = measure_judge(
        [True] * sensitive + [False] * (100 - sensitive) + [False] * specific + [True] * (100 - specific),
        [True] * 100 + [False] * 100,
    )
    share = right / 1_000
    judged = round(1_000_000 * (share * judge.sensitivity + (1 - share) * (1 - judge.specificity)))
    estimate = correct_share(judged, 1_000_000, judge)
    assert estimate.value == pytest.approx(share, abs=1e-5)
    assert 0 <= estimate.interval.low <= estimate.value <= estimate.interval.high <= 1


def test_the_corrected_share_has_the_errors_of_all_three_measures():
    judge = measure_judge([True] * 90 + [False] * 10 + [False] * 80 + [True] * 20, [True] * 100 + [False] * 100)
    estimate = correct_share(620, 1_000, judge)
    assert estimate.value == pytest.approx(0.6)
    variance = 0.62 * 0.38 / 1_000 + 0.36 * 0.09 / 100 + 0.16 * 0.16 / 100
    assert estimate.standard_error == pytest.approx(sqrt(variance) / 0.7)
    # The error of repeated experiments: share, sensitivity and specificity drawn anew.
    generator = np.random.default_rng(1)
    size = 20_000
    p, se, sp = (generator.binomial(n, q, size) / n for n, q in ((1_000, 0.62), (100, 0.9), (100, 0.8)))
    assert estimate.standard_error == pytest.approx(np.std((p + sp - 1) / (se + sp - 1)), rel=0.05)
    chance = measure_judge([True, False], [False, True])
    with pytest.raises(ValueError, match="by chance"):
        correct_share(1, 2, chance)
