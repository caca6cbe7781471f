"""Derivations are recognized in demonstrations, and give the answer that a direct computation gives."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.reasoners.answers.dates_and_numbers import read_days
from showhow.reasoners.provenance import MONTHS
from showhow.reasoners.replay.derivations import (
    DERIVATIONS,
    FILTERS,
    OPPOSITES,
    ORDERS,
    SHARED,
    Evidence,
    LookUpRows,
    Mismatch,
    ReplayValue,
    derive_answer,
    list_values,
    recognize_derivation,
)


def result(root: str, **values: str | list[str]) -> tuple[str, LookUpRows]:
    """The values of each subject."""
    rows = {name: [texts] if isinstance(texts, str) else texts for name, texts in values.items()}
    return root, tuple((ReplayValue(name), tuple(map(ReplayValue, texts))) for name, texts in rows.items())


def compared(first: str, second: str) -> Evidence:
    return Evidence((result("Ada", Ada=first), result("Bo", Bo=second)))


@given(st.dates(date(1000, 1, 1)), st.dates(date(1000, 1, 1)))
def test_the_earlier_and_the_later_of_two_dates_are_those_of_the_calendar(one, other):
    evidence = compared(f"{one:%Y-%m-%d}", f"{other:%Y-%m-%d}")
    if (one.month, one.day) == (1, 1) or (other.month, other.day) == (1, 1):
        # Such a date may stand for its year.
        if one.year == other.year:
            return
    elif one == other:
        with pytest.raises(Mismatch):
            derive_answer("least", evidence)
        return
    assert derive_answer("least", evidence) == ("Ada" if one < other else "Bo")
    assert derive_answer("greatest", evidence) == ("Bo" if one < other else "Ada")
    assert derive_answer("not after", evidence) == ("yes" if one <= other else "no")


def test_a_comparison_names_of_whom_nothing_was_observed():
    with pytest.raises(Mismatch, match="nothing was observed of Bo"):
        derive_answer("least", Evidence((result("Ada", Ada="1922-11-23"), result("Bo", Bo=[]))))


MONTH_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
PARTS = st.tuples(st.integers(-9_998, 9_999), st.integers(1, 12), st.integers(2, 31))


def julian_day(year: int, month: int, day: int) -> int:
    """The Julian day number of a day of the Gregorian calendar, by the formula of Fliegel and Van Flandern."""
    months = (14 - month) // 12
    years, month = year + 20_000 - months, month + 12 * months - 3
    return day + (153 * month + 2) // 5 + 365 * years + years // 4 - years // 100 + years // 400


def write_date(year: int, month: int, day: int, *, in_words: bool) -> str:
    """The date as sources or as sentences write it."""
    if not in_words or year < 1:
        return f"{'-' * (year < 0)}{abs(year):04}-{month:02}-{day:02}"
    return f"{day} {MONTHS[month - 1]} {year:04}"


@given(PARTS, PARTS, st.booleans(), st.booleans())
def test_dates_before_and_after_christ_are_compared_as_the_calendar_counts_days(one, other, in_words, other_in_words):
    texts = write_date(*one, in_words=in_words), write_date(*other, in_words=other_in_words)
    evidence = compared(*texts)
    is_leap = [year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) for year, _, _ in (one, other)]
    if any(
        day > MONTH_LENGTHS[month - 1] - (month == 2 and not leap)
        for (_, month, day), leap in zip((one, other), is_leap, strict=True)
    ):
        # There is no such day, as 31 June.
        for name in ("least", "greatest", "not after"):
            with pytest.raises(Mismatch):
                derive_answer(name, evidence)
        return
    days, others = read_days(texts[0]), read_days(texts[1])
    assert days is not None
    assert others is not None
    assert others[0] - days[0] == julian_day(*other) - julian_day(*one)
    assert derive_answer("not after", evidence) == ("yes" if one <= other else "no")
    if one != other:
        assert derive_answer("least", evidence) == ("Ada" if one < other else "Bo")


def test_a_life_across_the_eras_is_compared_by_its_length():
    births = result("Ada", Ada="-0062-09-23"), result("Bo", Bo="-0099-01-01")
    deaths = result("Ada", Ada="0014-08-19"), result("Bo", Bo="-0043-03-15")
    lives = Evidence((births[0], deaths[0], births[1], deaths[1]))
    assert derive_answer("greatest", lives) == "Ada"


def test_a_year_and_a_date_of_that_year_are_not_compared():
    with pytest.raises(Mismatch, match="not exact enough"):
        derive_answer("least", compared("1984-01-01", "1984-05-02"))
    assert derive_answer("least", compared("1984-01-01", "1985-05-02")) == "Ada"


@pytest.mark.parametrize(
    ("evidence", "answer", "derivation"),
    [
        (compared("1900-02-03", "1910-02-03"), "Ada", "least"),
        (compared("1900-02-03", "1910-02-03"), "Bo", "greatest"),
        (compared("Peru", "Peru"), "yes", "same"),
        (compared("Peru", "Chile"), "yes", "different"),
        (Evidence((result("Ada", Ada=["Cy", "Di"]),)), "Di, Cy", "all"),
        (Evidence((result("Ada", Ada=["Cy", "Di"]),)), "2", "count"),
        (Evidence((result("Ada", Ada=[]),)), "no answer", "none"),
        (Evidence((result("Ada", Cy="1900", Di="1910"),), ReplayValue("1905")), "Cy", "before"),
        (Evidence((result("Ada", Cy="1900", Di="1910"),), ReplayValue("1895")), "2", "count of after"),
        (Evidence((result("Ada", Cy="Peru", Di="Chile"),), ReplayValue("Chile")), "Di", "equal"),
        (Evidence((result("Ada", Ada=["Cy", "Di"]), result("Bo", Bo=["Di", "Ed"]))), "Di", "common"),
    ],
)
def test_the_derivation_of_an_answer_is_recognized(evidence, answer, derivation):
    assert recognize_derivation(evidence, answer) == derivation


def test_an_answer_that_does_not_follow_has_no_derivation():
    assert recognize_derivation(compared("1900-02-03", "1910-02-03"), "Cy") is None


def test_lives_are_compared_by_length_and_overlap():
    lives = Evidence(
        (result("Ada", Ada="1900"), result("Ada", Ada="1980"), result("Bo", Bo="1970"), result("Bo", Bo="1990"))
    )
    assert derive_answer("greatest", lives) == "Ada"
    assert derive_answer("least", lives) == "Bo"
    assert derive_answer("overlap", lives) == "yes"


def test_each_derivation_is_told_in_words():
    assert {*FILTERS, *ORDERS, *SHARED, *OPPOSITES} <= DERIVATIONS.keys()
    assert all(words and words[0].islower() for words in DERIVATIONS.values())


def test_values_are_compared_by_id_or_by_date_or_by_name():
    assert ReplayValue("Canada", "Q16").key == ReplayValue("Canadian", "Q16").key
    assert ReplayValue("14 January 1987").key == ReplayValue("1987-01-14").key
    assert ReplayValue("ada LUND").key == ReplayValue("Ada Lund").key


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ("1127-01-01T00:00:00Z", "1127"),
        ("0953-01-01T00:00:00Z", "953"),
        ("1127-01-01", "1127-01-01"),
        ("1127-01-02T00:00:00Z", "1127-01-02"),
    ],
)
def test_a_year_whose_first_day_stands_for_it_is_answered_as_a_year(literal, text):
    assert list_values({"rows": [[{"kind": "literal", "value": literal}]]}) == {"/rows": [ReplayValue(text)]}
