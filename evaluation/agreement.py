"""Agreement of people: Krippendorff's alpha with a stated distance and a bootstrap interval, and Gwet's AC1.

A unit is what several people did or judged: a question, a step, an answer. Its values are by person; who gave none is
absent. Alpha is 1 minus observed over expected distance. Distances are from 0 to 1: those of Krippendorff (2011), as
shares of the largest one, or any function of two values, which is used as it is, so that 0 and 1 give nominal alpha.
Cohen's kappa, for two people, is in statistics.py.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations
from statistics import fmean
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from showhow.evaluation.statistics import FloatArray, Interval, jaccard_index

RELIABLE, TENTATIVE = 0.8, 0.667
"""Alphas from which on data are reliable, and conclusions from them tentative (Krippendorff)."""
DRAWS = 1_000
"""Bootstrap samples of units."""
DRAWN_AT_ONCE = 200_000
"""Units of the samples that are measured together."""
MAX_COMPARED_VALUES = 300
"""Different values that are all compared with each other; of more, the expected distance is that of random pairs."""
SAMPLED_PAIRS = 50_000
"""Those pairs; the standard error of an expected distance is at most 0.5 / sqrt(50,000), that is 0.0022."""
Distance = Callable[[Any, Any], float]
Scale = Callable[[Mapping[Any, int]], Distance]
"""The distance between values, of which each occurs so often."""


@dataclass(frozen=True, slots=True)
class MeasuredAgreement:
    """How far people agree about the units that two or more of them gave a value."""

    units: int
    pairs: int
    """Pairs of values of the same unit."""
    people: int
    same: float
    """The share of the pairs with distance 0: alpha is low where nearly all values are the same."""
    alpha: float | None
    """None if it is not defined, since all values are the same."""
    interval: Interval | None
    """Of 95 %, by drawing units; None for a single unit, or if alpha is not defined."""
    by_person: Mapping[str, float]
    """The mean distance of a person's values to those of the others."""


def read_alpha(alpha: float) -> str:
    """How an alpha is usually read: reliable, tentative or unreliable."""
    return "reliable" if alpha >= RELIABLE else "tentative" if alpha >= TENTATIVE else "unreliable"


def nominal(_counts: Mapping[Any, int]) -> Distance:
    """0 for equal values, 1 for others."""
    return lambda one, other: float(one != other)


def interval_scale(counts: Mapping[Any, int]) -> Distance:
    """The squared difference of numbers, over that of the largest and the smallest one."""
    largest = (max(counts) - min(counts)) ** 2 or 1
    return lambda one, other: float((one - other) ** 2 / largest)


def ratio_scale(_counts: Mapping[Any, int]) -> Distance:
    """The squared ratio of difference and sum of numbers that are not negative."""
    return lambda one, other: float(((one - other) / (one + other)) ** 2) if one != other else 0.0


def ordinal(counts: Mapping[Any, int]) -> Distance:
    """The squared number of values from one rank to another, each end counted half, over that of first and last."""
    ranks = sorted(counts)
    ends = accumulate(counts[value] for value in ranks)
    middles = {value: end - counts[value] / 2 for value, end in zip(ranks, ends, strict=True)}
    largest = (middles[ranks[-1]] - middles[ranks[0]]) ** 2 or 1
    return lambda one, other: float((middles[one] - middles[other]) ** 2 / largest)


def by_pair(distance: Distance) -> Scale:
    """The scale of a symmetric distance that is 0 for equal values, however often they occur."""
    return lambda _counts: distance


def jaccard_distance(first: frozenset[Hashable], second: frozenset[Hashable]) -> float:
    """1 minus the share of the values of both sets that they have in common; 0 for two empty ones."""
    return 1 - jaccard_index(first, second)


def masi_distance(first: frozenset[Hashable], second: frozenset[Hashable]) -> float:
    """1 minus Jaccard's index times 1, 2/3, 1/3 or 0: equal, one in the other, overlapping, apart (Passonneau 2006)."""
    if first == second:
        return 0.0
    weight = 2 / 3 if first <= second or second <= first else 1 / 3
    return 1 - weight * jaccard_index(first, second)


def sequence_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Levenshtein's distance over the longer length, as demonstrations are compared by their tools."""
    return Levenshtein.normalized_distance(first, second)


def step_distance(first: Sequence[tuple[str, Hashable]], second: Sequence[tuple[str, Hashable]]) -> float:
    """The cheapest alignment of steps (tool, arguments) over the longer length.

    Other arguments of the same tool cost 1/2; another tool, a missing and an additional step cost 1.
    """
    if first == second:
        return 0.0
    costs = [float(place) for place in range(len(second) + 1)]
    for number, (tool, arguments) in enumerate(first, start=1):
        diagonal, costs[0] = costs[0], float(number)
        for place, (other_tool, other_arguments) in enumerate(second, start=1):
            replaced = 1.0 if tool != other_tool else 0.0 if arguments == other_arguments else 0.5
            diagonal, costs[place] = costs[place], min(diagonal + replaced, costs[place] + 1, costs[place - 1] + 1)
    return costs[-1] / max(len(first), len(second))


def measure_agreement(
    units: Sequence[Mapping[str, Hashable]], scale: Scale = nominal, *, seed: int = 0
) -> MeasuredAgreement | None:
    """Krippendorff's alpha of the values of units by person; None if no unit has two values.

    The interval draws units; samples whose values are all the same have no alpha and are left out.
    """
    shared = [values for values in units if len(values) > 1]
    if not shared:
        return None
    counts = Counter(value for values in shared for value in values.values())
    distance = scale(counts)
    to_others: dict[str, list[float]] = defaultdict(list)
    sizes, within = np.array([len(values) for values in shared]), np.zeros(len(shared))
    same = pairs = 0
    for unit, values in enumerate(shared):
        for (one, first), (other, second) in combinations(values.items(), 2):
            apart = distance(first, second)
            to_others[one].append(apart)
            to_others[other].append(apart)
            # In alpha each value counts once, however many others its unit has.
            within[unit] += 2 * apart / (len(values) - 1)
            same += apart == 0
            pairs += 1
    generator = np.random.default_rng(seed)
    expect = _expect_distance(shared, sizes, scale, distance, generator)

    def alphas_of(times: FloatArray) -> FloatArray:
        """Alpha of the units, each taken as often as a row of the samples says; nan without expected distance."""
        expected = expect(times)
        observed = (times @ within) / (times @ sizes)
        alphas: FloatArray = 1 - np.divide(observed, expected, out=np.full(len(times), np.nan), where=expected > 0)
        return alphas

    (alpha,), interval = alphas_of(np.ones((1, len(shared)))), None
    is_defined = not np.isnan(alpha)
    if is_defined and len(shared) > 1:
        drawn = np.concatenate([alphas_of(times) for times in _draw_units(len(shared), generator)])
        ends = np.nanquantile(drawn, [0.025, 0.975]) if not np.isnan(drawn).all() else ()
        interval = Interval(*map(float, ends)) if len(ends) else None
    by_person = {person: fmean(values) for person, values in sorted(to_others.items())}
    measured = float(alpha) if is_defined else None
    return MeasuredAgreement(len(shared), pairs, len(by_person), same / pairs, measured, interval, by_person)


def _draw_units(count: int, generator: np.random.Generator) -> Iterator[FloatArray]:
    """How often each unit is in each of DRAWS samples, some samples at a time: shape (samples, units)."""
    at_once = max(1, DRAWN_AT_ONCE // count)
    for first in range(0, DRAWS, at_once):
        samples = min(at_once, DRAWS - first)
        drawn = generator.integers(count, size=(samples, count)) + np.arange(samples)[:, None] * count
        yield np.bincount(drawn.ravel(), minlength=samples * count).reshape(samples, count).astype(float)


def _expect_distance(
    shared: Sequence[Mapping[str, Hashable]],
    sizes: Any,
    scale: Scale,
    distance: Distance,
    generator: np.random.Generator,
) -> Callable[[FloatArray], FloatArray]:
    """The mean distance of two values of any units, for samples that say how often each unit is taken."""
    # Loads in 0.1 s, and most verbs measure no agreement.
    from scipy.sparse import coo_array  # noqa: PLC0415

    values = [value for unit in shared for value in unit.values()]
    unit_of = np.repeat(np.arange(len(shared)), sizes)
    places = {value: place for place, value in enumerate(dict.fromkeys(values))}
    if scale is not nominal and len(places) > MAX_COMPARED_VALUES:
        firsts = generator.integers(len(values), size=SAMPLED_PAIRS)
        seconds = generator.integers(len(values) - 1, size=SAMPLED_PAIRS)
        seconds += seconds >= firsts
        apart = np.array([distance(values[one], values[other]) for one, other in zip(firsts, seconds, strict=True)])
        ends = unit_of[firsts], unit_of[seconds]
        compared, distances = (
            coo_array((weights, ends), shape=(len(shared), len(shared))).tocsr()
            for weights in (np.ones(SAMPLED_PAIRS), apart)
        )

        def expect_of_sample(times: FloatArray) -> FloatArray:
            drawn = np.ascontiguousarray(times.T)
            weight, weighted = (((matrix @ drawn) * drawn).sum(axis=0) for matrix in (compared, distances))
            expected: FloatArray = weighted / np.maximum(weight, 1.0)
            return expected

        return expect_of_sample
    codes = np.array([places[value] for value in values])
    counts = coo_array((np.ones(len(values)), (codes, unit_of)), shape=(len(places), len(shared))).tocsr()
    matrix = np.zeros((0, 0) if scale is nominal else (len(places), len(places)))
    for (one, row), (other, column) in combinations(places.items(), 2) if scale is not nominal else ():
        matrix[row, column] = matrix[column, row] = distance(one, other)

    def expect(times: FloatArray) -> FloatArray:
        totals: FloatArray = counts @ np.ascontiguousarray(times.T)
        number = totals.sum(axis=0)
        apart = number**2 - (totals**2).sum(axis=0) if scale is nominal else (totals * (matrix @ totals)).sum(axis=0)
        expected: FloatArray = apart / (number * (number - 1))
        return expected

    return expect


def gwet_ac1(units: Sequence[Mapping[str, Hashable]], labels: int) -> float:
    """Gwet's AC1 for any number of people and `labels` possible labels, which skewed labels do not lower (2008).

    Units of one value count in the labels' shares only; ValueError without a unit of two values or with one label.
    """
    shared = [Counter(values.values()) for values in units if len(values) > 1]
    if not shared or labels < 2:
        raise ValueError("AC1 needs two possible labels, and a thing that two people labelled")
    agreed = fmean(
        sum(count * (count - 1) for count in unit.values()) / (unit.total() * (unit.total() - 1)) for unit in shared
    )
    judged = [Counter(values.values()) for values in units if values]
    shares: dict[Hashable, float] = defaultdict(float)
    for unit in judged:
        for label, count in unit.items():
            shares[label] += count / unit.total() / len(judged)
    chance = sum(share * (1 - share) for share in shares.values()) / (labels - 1)
    return (agreed - chance) / (1 - chance)
