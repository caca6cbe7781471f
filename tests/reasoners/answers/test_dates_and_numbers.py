"""Numbers, dates and units of measure in one notation."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.reasoners.answers.dates_and_numbers import (
    UNITS,
    DateNotation,
    format_number,
    normalize_quantities,
    read_days,
    write_date,
)


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


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("1987-01-14T00:00:00Z", ("1987-01-14", "1987-01-14")),
        ("1984-01-01", ("1984-01-01", "1984-12-31")),
        ("14 January 1987", ("1987-01-14", "1987-01-14")),
        ("January 14, 1987", ("1987-01-14", "1987-01-14")),
        ("February 1988", ("1988-02-01", "1988-02-29")),
        ("1987", ("1987-01-01", "1987-12-31")),
        ("Hatchet 2", None),
        ("1987-02-30", None),
        ("31 June 1987", None),
    ],
)
def test_a_date_in_any_notation_is_the_days_that_it_may_stand_for(text, days):
    expected = tuple(date.fromisoformat(day).toordinal() for day in days) if days else None
    assert read_days(text) == expected


@pytest.mark.parametrize(("iso", "days"), [("-0043-01-01", 365), ("-0044-03", 31), ("0000-02-29", 1)])
def test_a_date_before_christ_is_that_of_iso_8601_which_has_a_year_zero(iso, days):
    first, last = read_days(iso) or (0, 0)
    assert last - first + 1 == days
    assert last < (read_days("0001-01-02") or (0, 0))[0]


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("1931-03-05", ("1931-03-05", "5 March 1931", "March 5, 1931")),
        ("Mar 5th, 1931", ("1931-03-05", "5 March 1931", "March 5, 1931")),
        ("1931-03-05T00:00:00Z", ("1931-03-05", "5 March 1931", "March 5, 1931")),
        ("1931-03", ("1931-03", "March 1931", "March 1931")),
        *((other, (other,) * 3) for other in ("1931", "1931-02-30", "March 5", "5 March 44 BC", "1931-03-05T12:30")),
        *((other, (other,) * 3) for other in ("Bloody Sunday, 5 March 1931", "May", "-0044-03-15", "")),
    ],
)
def test_a_whole_date_is_written_in_each_notation_and_other_texts_stay(text, forms):
    assert tuple(write_date(text, notation) for notation in DateNotation) == forms
    assert all(write_date(form, notation) == form for form, notation in zip(forms, DateNotation, strict=True))
