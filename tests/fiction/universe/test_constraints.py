from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.constraints import find_violations
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import FACTS, NONE, WITHHELD, Friendships, Places, Universe
from tests.examples import examples
from tests.fiction.universe.plain_constraints import count_reported, count_violations

UNIVERSE = make_universe(GenerationOptions(people=40, seed=2, family_size=20))
PA, MA, ANN, BEN, ZOE = range(5)


def day(text: str) -> int:
    return date.fromisoformat(text).toordinal()


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


FAMILY = Universe(
    names=("Pa", "Ma", "Ann", "Ben", "Zoe"),
    titles=("Pa", "Ma", "Ann", "Ben", "Zoe"),
    female=np.array([False, True, True, False, True]),
    father=numbers(NONE, NONE, PA, PA, NONE),
    mother=numbers(NONE, NONE, MA, MA, NONE),
    spouse=numbers(MA, PA, NONE, NONE, NONE),
    birth=numbers(day("1900-02-10"), day("1904-02-29"), day("1930-06-01"), day("1931-06-01"), day("1950-01-01")),
    death=numbers(day("1931-01-01"), day("1980-01-01"), NONE, NONE, NONE),
    wedding=numbers(day("1929-01-01"), day("1929-01-01"), NONE, NONE, NONE),
    birthplace=numbers(0, 0, 0, 0, 0),
    residence=numbers(0, 0, 0, 0, 0),
    job=numbers(0, 0, 0, 0, 0),
    hobby=numbers(0, 0, 0, 0, 0),
    friends=Friendships(np.array([(0, 1), (2, 4)], np.int32)),
    places=Places(("Town",), ("Region",), ("Country",), numbers(0), numbers(0)),
    jobs=("baker",),
    hobbies=("chess",),
    today=day("2000-01-01"),
)


def replace_value(universe: Universe, fact: str, row: int, value: int) -> Universe:
    changed = getattr(universe, fact).copy()
    changed[row] = value
    return replace(universe, **{fact: changed})


def violations_with(*changes: tuple[str, int, int]) -> list[str]:
    universe = FAMILY
    for fact, row, value in changes:
        universe = replace_value(universe, fact, row, value)
    return list(find_violations(universe))


def test_a_consistent_family_has_no_violations():
    assert violations_with() == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("father", ANN, NONE)], "Ann has one parent instead of two or none."),
        ([("female", PA, True)], "Pa, the father of Ann, is a woman."),
        ([("female", MA, False)], "Ma, the mother of Ann, is a man."),
        ([("mother", BEN, ZOE)], "Pa and Zoe, the parents of Ben, are not a couple."),
        ([("spouse", ZOE, ZOE)], "Zoe is their own partner."),
        ([("spouse", ZOE, PA)], "Zoe has the partner Pa, who has another partner or none."),
        (
            [("birth", ANN, day("1916-02-09"))],
            "Pa was 15 years old at the birth of Ann; parents must be 16 to 60, to the day.",
        ),
        (
            [("death", PA, NONE), ("birth", BEN, day("1960-02-11"))],
            "Pa was 60 years old at the birth of Ben; parents must be 16 to 60, to the day.",
        ),
        (
            [("birth", PA, day("1940-01-01")), ("wedding", PA, NONE), ("wedding", MA, NONE), ("death", PA, NONE)],
            "Pa was not yet born at the birth of Ann; parents must be 16 to 60, to the day.",
        ),
        (
            [("birth", BEN, day("1931-02-25"))],
            "Ann and Ben were born 269 days apart; siblings who are not twins must be 270 days apart.",
        ),
        (
            [("birth", BEN, day("1930-06-02"))],
            "Ann and Ben were born 1 days apart; siblings who are not twins must be 270 days apart.",
        ),
        ([("wedding", ZOE, day("1980-01-01"))], "Zoe had a wedding but has no partner."),
        ([("wedding", MA, day("1929-01-02"))], "Pa and Ma have two different wedding days."),
        (
            [("wedding", row, day("1920-02-28")) for row in (PA, MA)],
            "Ma was younger than 16 at the wedding.",
        ),
        ([("wedding", row, day("1931-01-02")) for row in (PA, MA)], "Pa was dead at the wedding."),
        ([("birth", BEN, day("1931-09-29"))], "Pa, the father of Ben, was dead for 271 days at the birth."),
        ([("death", MA, day("1931-05-31"))], "Ma, the mother of Ben, was dead for 1 days at the birth."),
        ([("birth", ZOE, day("2000-01-02"))], "The birth of Zoe is after 2000-01-01, the current day."),
        ([("death", ZOE, day("2000-01-02"))], "The death of Zoe is after 2000-01-01, the current day."),
        ([("death", ZOE, day("1949-12-31"))], "Zoe died before being born."),
        ([("father", ZOE, 5)], "The father of Zoe is number 5, which does not exist."),
        ([("residence", ZOE, 1)], "The residence of Zoe is number 1, which does not exist."),
        ([("job", ZOE, 1)], "The job of Zoe is number 1, which does not exist."),
    ],
)
def test_each_planted_violation_is_reported(changes, message):
    assert message in violations_with(*changes)


@pytest.mark.parametrize(
    "changes",
    [
        [("birth", ANN, day("1920-03-01")), ("wedding", MA, day("1920-03-01")), ("wedding", PA, day("1920-03-01"))],
        [("death", PA, NONE), ("birth", BEN, day("1960-02-10"))],
        [("birth", BEN, day("1930-06-01"))],
        [("birth", BEN, day("1931-02-26"))],
        [("birth", BEN, day("1931-09-28"))],
        [("death", MA, day("1931-06-01"))],
        [("wedding", PA, day("1931-01-01")), ("wedding", MA, day("1931-01-01"))],
        [("birth", ZOE, day("2000-01-01"))],
        [("wedding", PA, NONE), ("wedding", MA, NONE)],
        [("birthplace", ZOE, NONE), ("hobby", ZOE, NONE), ("residence", ZOE, WITHHELD)],
    ],
)
def test_values_at_the_limits_are_allowed(changes):
    assert violations_with(*changes) == []


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(1, 0)], "The friendship of Ma and Pa does not have the lower row first."),
        ([(2, 2)], "The friendship of Ann and Ann does not have the lower row first."),
        ([(0, 1), (0, 1)], "The friendship of Pa and Ma occurs twice."),
        ([(2, 4), (0, 1)], "The friendships are not sorted."),
        ([(0, 5)], "There is a friendship of the rows 0 and 5, but only 5 people."),
    ],
)
def test_an_invalid_friendship_is_reported(pairs, message):
    universe = replace(FAMILY, friends=Friendships(np.array(pairs, np.int32)))
    assert list(find_violations(universe)) == [message]


def test_invalid_places_and_duplicate_titles_are_reported():
    nowhere = replace(FAMILY.places, region=numbers(1), country=numbers(NONE))
    assert list(find_violations(replace(FAMILY, places=nowhere))) == [
        "Town is in number 1, which does not exist.",
        "Region is in number -1, which does not exist.",
    ]
    assert list(find_violations(replace(FAMILY, titles=("Pa", "Ma", "Ann", "Pa", "Pa")))) == [
        "Two articles have the title Pa.",
        "Two articles have the title Pa.",
    ]


@pytest.mark.parametrize("today", [0, NONE, 10**8])
def test_an_invalid_current_day_is_reported(today):
    assert list(find_violations(replace(FAMILY, today=today))) == [
        f"The current day is number {today}, which does not exist."
    ]


CHANGES = st.lists(
    st.tuples(
        st.sampled_from([fact for fact in FACTS if fact not in ("birthplace", "residence", "job", "hobby")]),
        st.integers(0, len(UNIVERSE) - 1),
        st.integers(0, len(UNIVERSE) - 1),
        st.integers(-25_000, 25_000) | st.integers(-400, 400),
    ),
    max_size=12,
)
PAIRS = st.lists(
    st.tuples(st.integers(0, len(UNIVERSE) - 1), st.integers(0, len(UNIVERSE) - 1)), min_size=1, max_size=30
)


@settings(max_examples=examples(200))
@given(CHANGES, st.none() | PAIRS, st.integers(0, len(UNIVERSE) - 1))
def test_violations_equal_those_of_an_independent_check(changes, pairs, namesake):
    universe = UNIVERSE
    for fact, row, other, days in changes:
        if fact in ("father", "mother", "spouse"):
            value = other if days > 0 else NONE
        else:
            before = int(getattr(universe, fact)[row])
            value = NONE if before + days > UNIVERSE.today + 500 and fact != "birth" else max(before, 700_000) + days
        universe = replace_value(universe, fact, row, value)
    if pairs is not None:
        universe = replace(universe, friends=Friendships(np.array(pairs, np.int32)))
    universe = replace(universe, titles=[*UNIVERSE.titles[:-1], UNIVERSE.titles[namesake]])
    sentences = [sentence for sentence in find_violations(universe) if sentence != "The friendships are not sorted."]
    assert sorted(count_reported(sentences).items()) == sorted(count_violations(universe).items())
