"""Agreement: published figures, the definition by brute force, and annotators of known agreement."""

from collections import Counter
from itertools import combinations, permutations
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from showhow.evaluation import agreement
from showhow.evaluation.agreement import (
    by_pair,
    gwet_ac1,
    interval_scale,
    jaccard_distance,
    masi_distance,
    measure_agreement,
    nominal,
    ordinal,
    ratio_scale,
    sequence_distance,
    step_distance,
)
from showhow.evaluation.statistics import cohen_kappa
from showhow.fewshot_library.sequence_similarity import DISTANCES, encode_actions

# Four observers of twelve units (Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011).
OBSERVATIONS = {"A": "123321412***", "B": "1233224125*3", "C": "*3332342251*", "D": "12332441251*"}
UNITS = [{name: int(row[unit]) for name, row in OBSERVATIONS.items() if row[unit] != "*"} for unit in range(12)]
SCALES = {nominal: 0.7434, ordinal: 0.8154, interval_scale: 0.8491, ratio_scale: 0.7974}


@pytest.mark.parametrize("scale", SCALES)
def test_alpha_is_the_published_one_on_every_scale(scale):
    measured = measure_agreement(UNITS, scale)
    assert measured.alpha == pytest.approx(SCALES[scale], abs=0.00005)
    assert (measured.units, measured.pairs, measured.people) == (11, 55, 4)
    assert measured.same == pytest.approx(fmean(a == b for u in UNITS for a, b in combinations(u.values(), 2)))
    assert measured.interval.low < measured.alpha < measured.interval.high


def test_ac1_and_kappa_are_the_published_ones():
    # Gwet's four raters are Krippendorff's four observers (cac.raw4raters of irrCAC).
    assert gwet_ac1(UNITS, 5) == pytest.approx(0.77544, abs=0.000005)
    # Two raters who nearly always say yes (Gwet, 2002): 118 both yes, 5 and 2 one of them, none both no.
    labels = [("yes", "yes")] * 118 + [("yes", "no")] * 5 + [("no", "yes")] * 2
    assert cohen_kappa(*zip(*labels, strict=True)) == pytest.approx(-0.0234, abs=0.00005)
    pairs = [{"a": one, "b": other} for one, other in labels]
    assert gwet_ac1(pairs, 2) == pytest.approx(0.9408, abs=0.00005)
    with pytest.raises(ValueError, match="two possible labels"):
        gwet_ac1([{"a": "yes", "b": "yes"}], 1)


@settings(max_examples=40)
@given(
    st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 4), max_size=4), max_size=8),
    st.sampled_from([*SCALES]),
)
def test_alpha_equals_its_definition_over_all_pairs(units, scale):
    measured = measure_agreement(units, scale)
    shared = [list(unit.values()) for unit in units if len(unit) > 1]
    values = [value for unit in shared for value in unit]
    if not shared:
        assert measured is None
        return
    counts = Counter(values)

    def squared(one, other):
        if scale is nominal:
            return float(one != other)
        if scale is ordinal:
            low, high = sorted((one, other))
            return (sum(counts[rank] for rank in range(low, high + 1)) - (counts[low] + counts[high]) / 2) ** 2
        return (one - other) ** 2 / ((one + other) ** 2 or 1 if scale is ratio_scale else 1)

    observed = sum(len(unit) * fmean(squared(*pair) for pair in permutations(unit, 2)) for unit in shared)
    expected = fmean(squared(*pair) for pair in permutations(values, 2))
    assert measured.alpha == (pytest.approx(1 - observed / len(values) / expected) if expected else None)
    assert measured.interval is None or measured.interval.low <= measured.interval.high


SETS = st.frozensets(st.sampled_from("wxyz"))


@settings(max_examples=20)
@given(st.lists(st.dictionaries(st.sampled_from("abc"), SETS, min_size=2), min_size=1, max_size=8))
def test_a_distance_of_ones_own_is_used_as_it_is_and_a_person_has_the_mean_of_theirs(units):
    one_or_nothing = measure_agreement(units, by_pair(lambda one, other: float(one != other)))
    assert one_or_nothing.alpha == pytest.approx(measure_agreement(units).alpha)
    measured = measure_agreement(units, by_pair(jaccard_distance))
    for person, mean in measured.by_person.items():
        others = [(u[person], u[name]) for u in units if person in u for name in u if name != person]
        assert mean == pytest.approx(fmean(1 - len(a & b) / len(a | b) if a | b else 0.0 for a, b in others))


@pytest.mark.parametrize(
    ("first", "second", "jaccard", "masi"),
    [("ab", "ab", 0, 0), ("ab", "abc", 1 / 3, 5 / 9), ("ab", "bc", 2 / 3, 8 / 9), ("ab", "cd", 1, 1), ("", "a", 1, 1)],
)
def test_sets_are_apart_by_what_they_share_and_whether_one_contains_the_other(first, second, jaccard, masi):
    one, other = frozenset(first), frozenset(second)
    assert jaccard_distance(one, other) == jaccard_distance(other, one) == pytest.approx(jaccard)
    assert masi_distance(one, other) == masi_distance(other, one) == pytest.approx(masi)


TOOLS = st.lists(st.sampled_from(["read", "wikisearch", "runQuery"]), max_size=6).map(tuple)


@given(TOOLS, TOOLS)
def test_tools_are_apart_as_the_selection_of_demonstrations_has_them(first, second):
    symbols = encode_actions([first, second])
    one, other = (symbols.sequences[label] for label in symbols.groups.labels)
    assert sequence_distance(first, second) == pytest.approx(DISTANCES["longer"](one, [other])[0])


STEPS = st.lists(st.tuples(st.sampled_from("rs"), st.sampled_from("12")), max_size=4).map(tuple)


@given(STEPS, STEPS)
def test_steps_are_apart_by_their_cheapest_alignment(first, second):
    def cheapest(one, other):
        if not one or not other:
            return len(one) + len(other)
        replaced = 0 if one[0] == other[0] else 0.5 if one[0][0] == other[0][0] else 1
        rest = cheapest(one[1:], other), cheapest(one, other[1:])
        return min(replaced + cheapest(one[1:], other[1:]), 1 + min(rest))

    assert step_distance(first, second) == cheapest(first, second) / max(len(first), len(second), 1)


def test_agreement_without_variation_is_not_defined_and_without_two_values_there_is_none():
    same = measure_agreement([{"ada": "yes", "ben": "yes"}] * 5)
    assert (same.alpha, same.interval, same.same) == (None, None, 1.0)
    assert measure_agreement([{"ada": "yes"}, {}]) is None


def make_units(generator, count, agreed, people=3, labels=4):
    """What people say who copy the truth with probability `agreed`, and else draw a label: alpha is agreed squared."""
    truths = generator.integers(labels, size=count)
    return [
        {
            f"p{number}": int(truth if generator.random() < agreed else generator.integers(labels))
            for number in range(people)
        }
        for truth in truths
    ]


@pytest.mark.parametrize("agreed", [0.0, 0.5, 0.9])
def test_annotators_of_known_agreement_are_recovered_within_the_intervals(agreed):
    generator = np.random.default_rng(7)
    inside = 0
    for _ in range(40):
        interval = measure_agreement(make_units(generator, 60, agreed)).interval
        inside += interval.low <= agreed**2 <= interval.high
    # 95 in 100 are expected; 34 or more of 40 with probability 0.998.
    assert inside >= 34


def test_many_different_values_are_measured_by_random_pairs_as_by_all(monkeypatch):
    generator = np.random.default_rng(3)
    units = [
        {name: frozenset(generator.integers(30, size=3).tolist()) | {unit} for name in ("ada", "ben")}
        for unit in range(200)
    ]
    sampled = measure_agreement(units, by_pair(jaccard_distance))
    monkeypatch.setattr(agreement, "MAX_COMPARED_VALUES", 10_000)
    exact = measure_agreement(units, by_pair(jaccard_distance))
    assert sampled.alpha != exact.alpha
    assert sampled.alpha == pytest.approx(exact.alpha, abs=0.005)
    assert sampled.interval.low == pytest.approx(exact.interval.low, abs=0.01)
    assert sampled.interval.high == pytest.approx(exact.interval.high, abs=0.01)
