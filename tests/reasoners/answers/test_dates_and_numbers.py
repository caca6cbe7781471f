"""Numbers, dates and units of measure in one notation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoners.answers.dates_and_numbers import UNITS, format_number, normalize_quantities


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("thirty-two", "32"),
        ("two hundred and five thousand and one", "205001"),
        ("three and four", "3 and 4"),
        ("one two", "1 2"),
        ("the twenty-first century", "the 21st century"),
        ("2.5 million", "2500000"),
        ("$2.5 million", "2500000 dollars"),
        ("1,234,567", "1234567"),
        ("12th of May 1990", "1990-05-12"),
        ("May the fourth", "May the 4th"),
        ("first of May 1990", "1990-05-01"),
        ("Sept. 3, 850", "0850-09-03"),
        ("2004-01-02", "2004-01-02"),
        ("minus five", "-5"),
        ("44 B.C.", "44 bc"),
        ("from 1914 to 1918", "1914-1918"),
        ("c. 1450", "1450"),
        ("C 1450", "C 1450"),
        ("No. 1", "number 1"),
        ("no one", "no one"),
    ],
)
def test_quantities_have_one_notation(text: str, normal: str) -> None:
    assert normalize_quantities(text) == normal


@given(st.integers(0, 10**12))
def test_separators_of_thousands_are_removed(number: int) -> None:
    assert normalize_quantities(f"{number:,}") == normalize_quantities(f"{number:,}".replace(",", " ")) == str(number)


@given(st.dates())
def test_a_date_is_the_same_with_the_day_or_the_month_first(date) -> None:
    month = date.strftime("%B")
    forms = (f"{date.day} {month} {date.year:04}", f"{month} {date.day}, {date.year:04}", date.isoformat())
    assert {normalize_quantities(form) for form in forms} == {date.isoformat()}


@given(st.text())
def test_every_text_can_be_normalized(text: str) -> None:
    assert isinstance(normalize_quantities(text), str)


def test_trailing_zeros_of_decimals_are_removed() -> None:
    assert [format_number(number) for number in ("3.50", "7.0", "70", "1.05")] == ["3.5", "7", "70", "1.05"]


def test_units_have_one_name_in_every_spelling() -> None:
    assert {UNITS[spelling] for spelling in ("km", "kilometer", "kilometers", "kilometre", "kilometres")} == {
        "kilometre"
    }
    assert UNITS["m"] != UNITS["mm"]
