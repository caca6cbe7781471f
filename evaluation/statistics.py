"""Statistics: intervals, paired comparisons, several comparisons, power, repeats, abstention, judges, kappa.

Shares and scores are from 0 to 1. Intervals are two-sided, of 95 % unless `confidence` says otherwise.
Every function raises ValueError for input without a defined result.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import comb, sqrt
from statistics import NormalDist, fmean

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Values = Sequence[float] | FloatArray
Clusters = Sequence[Hashable] | IntArray
"""The cluster of each value."""
DRAWS = 10_000
"""Bootstrap samples."""
CLUSTERS_OF_A_KIND = 20
"""Equal clusters on average from which on a bootstrap draws their counts, which takes a time without regard to them."""
_COUNTS_AT_ONCE = 1_000_000
"""Counts that a bootstrap draws at once."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The ends of a confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its standard error, interval and degrees of freedom."""

    value: float
    standard_error: float
    interval: Interval
    degrees_of_freedom: int | None = None
    """Units minus 1; None for an interval that assumes a normal distribution."""


def mean_with_error(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The mean of independent values, its standard error, and the interval of the t distribution; at least 2 values."""
    return cluster_mean(values, range(len(values)), confidence)


def cluster_mean(values: Values, clusters: Clusters, confidence: float = 0.95) -> Estimate:
    """The mean with the standard error for values that depend on one another within clusters; at least 2 clusters.

    The cluster-robust error of Miller (arXiv 2411.00640), times sqrt(G / (G - 1)) for G clusters, so that clusters of
    one value give the usual error. The interval has G - 1 degrees of freedom.
    """
    mean = fmean(values)
    residuals, _ = _add_up_clusters(np.asarray(values, dtype=float) - mean, clusters)
    count = len(residuals)
    if count < 2:
        raise ValueError("a standard error needs at least 2 independent values")
    error = sqrt(count / (count - 1) * float(residuals @ residuals)) / len(values)
    from scipy.stats import t as student_t  # noqa: PLC0415 - scipy.stats takes 0.7 s, which most verbs can do without

    margin = float(student_t.ppf((1 + confidence) / 2, count - 1)) * error
    return Estimate(mean, error, Interval(mean - margin, mean + margin), count - 1)


def _add_up_clusters(values: FloatArray, clusters: Clusters) -> tuple[FloatArray, IntArray]:
    """The sum and the number of the values of each cluster."""
    if len(clusters) != len(values):
        raise ValueError(f"{len(values):,} values have {len(clusters):,} clusters")
    if isinstance(clusters, np.ndarray):
        codes = np.unique(clusters, return_inverse=True)[1]
    else:
        places: dict[Hashable, int] = {}
        codes = np.array([places.setdefault(cluster, len(places)) for cluster in clusters], dtype=np.intp)
    return np.bincount(codes, weights=values).astype(float), np.bincount(codes)


def cluster_bootstrap(
    values: Values,
    clusters: Clusters,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    confidence: float = 0.95,
) -> Interval:
    """The percentile interval of the mean over samples of whole clusters; the same seed gives the same interval."""
    sums, counts = _add_up_clusters(np.asarray(values, dtype=float), clusters)
    members = len(sums)
    if members < 2:
        raise ValueError("a bootstrap needs at least 2 independent values")
    generator = np.random.default_rng(seed)
    alike = Counter(zip(sums.tolist(), counts.tolist(), strict=True))
    totals, sizes = (np.array(column) for column in zip(*alike, strict=True))
    # A sample of clusters counts how often it draws each kind of equal ones; without equal ones, drawing is faster.
    if len(alike) * CLUSTERS_OF_A_KIND <= members:
        shares = np.array(list(alike.values())) / members
        at_once = max(1, _COUNTS_AT_ONCE // len(alike))
        batches = (range(start, min(start + at_once, draws)) for start in range(0, draws, at_once))
        samples = (generator.multinomial(members, shares, size=len(batch)) for batch in batches)
        means = [mean for drawn in samples for mean in (drawn @ totals / (drawn @ sizes)).tolist()]
    else:
        kinds = np.repeat(np.arange(len(alike)), list(alike.values()))
        totals, sizes = totals[kinds], sizes[kinds]
        # One sample at a time, since all of them together would need memory for draws times clusters.
        places = (generator.integers(len(totals), size=len(totals)) for _ in range(draws))
        means = [totals[sample].sum() / sizes[sample].sum() for sample in places]
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def wilson_interval(right: int, count: int, confidence: float = 0.95) -> Interval:
    """Wilson's interval of a share, which also holds near 0 and 1."""
    from scipy.stats import binomtest  # noqa: PLC0415 - see cluster_mean

    result = binomtest(right, count).proportion_ci(confidence, method="wilson")
    return Interval(float(result.low), float(result.high))


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The scores of one method minus those of another on the same questions."""

    difference: Estimate
    """Over the questions that both have; the standard error is that of the clusters."""
    bootstrap: Interval
    seed: int
    questions: int
    gains: int
    losses: int
    ties: int
    missing: int
    """Questions that only one method has."""
    with_missing_as_zero: float
    """The difference over all questions, where a missing score counts as 0."""


def compare_paired(
    scores: FloatArray, baseline: FloatArray, clusters: IntArray, *, draws: int = DRAWS, seed: int = 0
) -> PairedDifference:
    """Compare two methods by question: the score of each question in both, NaN without one, and its cluster."""
    has_score, has_baseline = ~np.isnan(scores), ~np.isnan(baseline)
    both = has_score & has_baseline
    differences, groups = (scores - baseline)[both], clusters[both]
    every = int((has_score | has_baseline).sum())
    return PairedDifference(
        difference=cluster_mean(differences, groups),
        bootstrap=cluster_bootstrap(differences, groups, draws=draws, seed=seed),
        seed=seed,
        questions=len(differences),
        gains=int((differences > 0).sum()),
        losses=int((differences < 0).sum()),
        ties=int((differences == 0).sum()),
        missing=every - len(differences),
        with_missing_as_zero=float(np.nansum(scores) - np.nansum(baseline)) / every,
    )


def mcnemar_exact(gains: int, losses: int) -> float:
    """The two-sided p of McNemar's exact test: whether gains and losses could be equally likely; 1 without either."""
    from scipy.stats import binomtest  # noqa: PLC0415 - see cluster_mean

    return float(binomtest(gains, gains + losses).pvalue) if gains + losses else 1.0


def adjust_holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given: for "which methods beat the baseline"."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * np.asarray(p_values)[order]), 1)
    return [float(p) for p in adjusted]


def detectable_difference(questions: int, share: float, correlation: float = 0.0) -> float:
    """The smallest difference of the shares of two methods that so many questions show in four of five cases.

    `share` is the expected share of right answers, `correlation` that of the two methods' answers to the same question;
    0 if they answer different questions. A normal approximation, at a confidence of 95%.
    """
    quantiles = _two_sided_quantile(0.95) + NormalDist().inv_cdf(0.8)
    return sqrt(quantiles**2 * 2 * share * (1 - share) * (1 - correlation) / questions)


def _two_sided_quantile(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """The places of the points (cost, score) that no other point beats, by rising cost.

    A point is beaten by one that costs no more and scores no less, and is better in one of them; equal points stay.
    """
    best = {cost: max(score for other, score in points if other <= cost) for cost, _ in points}
    front = [
        place
        for place, (cost, score) in enumerate(points)
        if score == best[cost] and not any(other < cost and score == rival for other, rival in points)
    ]
    return sorted(front, key=lambda place: (points[place][0], place))


def pass_at_k(repeats: int, right: int, k: int) -> float:
    """The probability that at least one of k of the repeated answers is right: 1 - C(n-c, k) / C(n, k)."""
    return 1 - pass_hat_k(repeats, repeats - right, k)


def pass_hat_k(repeats: int, right: int, k: int) -> float:
    """The probability that all of k of the repeated answers are right: C(c, k) / C(n, k)."""
    if not 0 < k <= repeats or not 0 <= right <= repeats:
        raise ValueError(f"{k} of {repeats} answers with {right} right ones cannot be drawn")
    return comb(right, k) / comb(repeats, k)


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """How many answers are wrong if only the most confident ones are given."""

    points: list[tuple[float, float]]
    """Coverage and risk at each confidence, from the highest on."""
    area: float
    """The mean risk over all coverages; 0 is best."""


def risk_coverage(confidences: Sequence[float], is_right: Sequence[bool]) -> RiskCoverage:
    """The risk-coverage curve; answers of the same confidence are given together, and in any order for the area."""
    groups: dict[float, list[bool]] = defaultdict(list)
    for confidence, right in zip(confidences, is_right, strict=True):
        groups[confidence].append(bool(right))
    count = len(confidences)
    if not count:
        raise ValueError("a risk-coverage curve needs at least 1 answer")
    points: list[tuple[float, float]] = []
    given, wrong, area = 0, 0.0, 0.0
    for confidence in sorted(groups, reverse=True):
        group = groups[confidence]
        share = group.count(False) / len(group)
        area += sum((wrong + step * share) / (given + step) for step in range(1, len(group) + 1))
        given, wrong = given + len(group), wrong + group.count(False)
        points.append((given / count, wrong / given))
    return RiskCoverage(points, area / count)


@dataclass(frozen=True, slots=True)
class JudgeQuality:
    """A judge's verdicts against human labels of the same answers."""

    sensitivity: float
    """The share of the right answers that it judges right."""
    specificity: float
    """The share of the wrong answers that it judges wrong."""
    right_labels: int
    wrong_labels: int
    kappa: float

    @property
    def sensitivity_interval(self) -> Interval:
        """Wilson's interval."""
        return wilson_interval(round(self.sensitivity * self.right_labels), self.right_labels)

    @property
    def specificity_interval(self) -> Interval:
        """Wilson's interval."""
        return wilson_interval(round(self.specificity * self.wrong_labels), self.wrong_labels)


def measure_judge(judged: Sequence[bool], labels: Sequence[bool]) -> JudgeQuality:
    """Sensitivity, specificity and kappa of a judge; the labels must contain right and wrong answers."""
    counts = Counter((bool(verdict), bool(label)) for verdict, label in zip(judged, labels, strict=True))
    right = counts[True, True] + counts[False, True]
    wrong = counts[True, False] + counts[False, False]
    if not right or not wrong:
        raise ValueError("a judge is measured by labels of right and of wrong answers")
    kappa = cohen_kappa(list(map(bool, judged)), list(map(bool, labels)))
    return JudgeQuality(counts[True, True] / right, counts[False, False] / wrong, right, wrong, kappa)


def correct_share(judged_right: int, judged: int, judge: JudgeQuality, confidence: float = 0.95) -> Estimate:
    """The share of right answers without the judge's errors: (p + sp - 1) / (se + sp - 1), of Rogan and Gladen.

    Value and interval are cut to 0 to 1; the interval, by the delta method, has the errors of the judge's measures too.
    """
    youden = judge.sensitivity + judge.specificity - 1
    if youden <= 0:
        raise ValueError("a judge that is right no more often than by chance cannot be corrected")
    apparent = judged_right / judged
    share = min(max((apparent + judge.specificity - 1) / youden, 0.0), 1.0)
    variance = (
        apparent * (1 - apparent) / judged
        + share**2 * judge.sensitivity * (1 - judge.sensitivity) / judge.right_labels
        + (1 - share) ** 2 * judge.specificity * (1 - judge.specificity) / judge.wrong_labels
    )
    error = sqrt(variance) / youden
    margin = _two_sided_quantile(confidence) * error
    return Estimate(share, error, Interval(max(share - margin, 0.0), min(share + margin, 1.0)))


def prediction_powered_mean(judged: Sequence[float], errors: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The mean of the judge's values plus the mean of its `errors` (true minus judged) where the truth is known.

    Both need at least 2 values; the interval is normal and cut to 0 to 1.
    """
    mean, correction = mean_with_error(judged), mean_with_error(errors)
    value = mean.value + correction.value
    error = sqrt(mean.standard_error**2 + correction.standard_error**2)
    margin = _two_sided_quantile(confidence) * error
    return Estimate(value, error, Interval(max(value - margin, 0.0), min(value + margin, 1.0)))


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Cohen's kappa of two people's labels of the same things; they must use more than one label between them."""
    pairs = list(zip(first, second, strict=True))
    agreed = sum(one == other for one, other in pairs) / len(pairs)
    counts, other_counts = Counter(first), Counter(second)
    chance = sum(counts[label] * other_counts[label] for label in counts) / len(pairs) ** 2
    if chance == 1:
        raise ValueError("kappa is not defined if both always give the same label")
    return (agreed - chance) / (1 - chance)


def jaccard_index(first: frozenset[Hashable], second: frozenset[Hashable]) -> float:
    """The share of the values of both sets that they have in common; 1 for two empty ones."""
    return len(first & second) / len(first | second) if first or second else 1.0
