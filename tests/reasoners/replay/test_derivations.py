"""Derivations are recognized in demonstrations, and give the answer that a direct computation gives."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoners.replay.derivations import (
    DERIVATIONS,
    OPPOSITES,
    SYMMETRIC,
    Evidence,
    LookUpResult,
    ReplayValue,
    UndecidedAnswer,
    derive_answer,
    recognize_derivation,
)


def result(root: int, **values: str | list[str]) -> LookUpResult:
    """The values of each subject."""
    rows = {name: [texts] if isinstance(texts, str) else texts for name, texts in values.items()}
    return LookUpResult(
        root, tuple((ReplayValue(name), tuple(map(ReplayValue, texts))) for name, texts in rows.items())
    )


def compared(first: str, second: str) -> Evidence:
    return Evidence((result(0, Ada=first), result(1, Bo=second)), ("Ada", "Bo"))


@given(st.dates(date(1000, 1, 1)), st.dates(date(1000, 1, 1)))
def test_the_earlier_and_the_later_of_two_dates_are_those_of_the_calendar(one, other):
    evidence = compared(f"{one:%Y-%m-%d}", f"{other:%Y-%m-%d}")
    if (one.month, one.day) == (1, 1) or (other.month, other.day) == (1, 1):
        # Such a date may stand for its year.
        if one.year == other.year:
            return
    elif one == other:
        with pytest.raises(UndecidedAnswer):
            derive_answer("least", evidence)
        return
    assert derive_answer("least", evidence) == ("Ada" if one < other else "Bo")
    assert derive_answer("greatest", evidence) == ("Bo" if one < other else "Ada")
    assert derive_answer("not after", evidence) == ("yes" if one <= other else "no")


def test_a_year_and_a_date_of_that_year_are_not_compared():
    with pytest.raises(UndecidedAnswer, match="not exact enough"):
        derive_answer("least", compared("1984-01-01", "1984-05-02"))
    assert derive_answer("least", compared("1984-01-01", "1985-05-02")) == "Ada"


@pytest.mark.parametrize(
    ("evidence", "answer", "derivation"),
    [
        (compared("1900-02-03", "1910-02-03"), "Ada", "least"),
        (compared("1900-02-03", "1910-02-03"), "Bo", "greatest"),
        (compared("Peru", "Peru"), "yes", "same"),
        (compared("Peru", "Chile"), "yes", "different"),
        (Evidence((result(0, Ada=["Cy", "Di"]),), ("Ada",)), "Di, Cy", "all"),
        (Evidence((result(0, Ada=["Cy", "Di"]),), ("Ada",)), "2", "count"),
        (Evidence((result(0, Ada=[]),), ("Ada",)), "no answer", "none"),
        (Evidence((result(0, Cy="1900", Di="1910"),), ("Ada",), ReplayValue("1905")), "Cy", "before"),
        (Evidence((result(0, Cy="1900", Di="1910"),), ("Ada",), ReplayValue("1895")), "2", "count of after"),
        (Evidence((result(0, Cy="Peru", Di="Chile"),), ("Ada",), ReplayValue("Chile")), "Di", "equal"),
        (Evidence((result(0, Ada=["Cy", "Di"]), result(1, Bo=["Di", "Ed"])), ("Ada", "Bo")), "Di", "common"),
    ],
)
def test_the_derivation_of_an_answer_is_recognized(evidence, answer, derivation):
    assert recognize_derivation(evidence, answer) == derivation


def test_an_answer_that_does_not_follow_has_no_derivation():
    assert recognize_derivation(compared("1900-02-03", "1910-02-03"), "Cy") is None


def test_lives_are_compared_by_length_and_overlap():
    lives = Evidence(
        (result(0, Ada="1900"), result(0, Ada="1980"), result(1, Bo="1970"), result(1, Bo="1990")), ("Ada", "Bo")
    )
    assert derive_answer("longest", lives) == "Ada"
    assert derive_answer("shortest", lives) == "Bo"
    assert derive_answer("overlap", lives) == "yes"


def test_each_derivation_is_told_in_words():
    assert {*SYMMETRIC, *OPPOSITES, "not after", "within", "equal"} <= DERIVATIONS.keys()
    assert all(words and words[0].islower() for words in DERIVATIONS.values())
