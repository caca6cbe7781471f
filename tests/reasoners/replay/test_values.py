"""Dates, words and values of sentences."""

from datetime import date

import pytest

from reasoners.replay.derivations import ReplayValue, list_stems, read_days


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
    assert ReplayValue(iso).kind == "date"


def test_values_are_compared_by_id_or_by_date_or_by_name():
    assert ReplayValue("Canada", "Q16").key == ReplayValue("Canadian", "Q16").key
    assert ReplayValue("14 January 1987").key == ReplayValue("1987-01-14").key
    assert ReplayValue("ada LUND").key == ReplayValue("Ada Lund").key


def test_a_possessive_s_is_a_word_of_its_own():
    assert list_stems("Yuen Shun-Yi's father, St. Lucia") == ["yuen", "shun-yi", "s", "father", "st", "lucia"]


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("directors", "director"),
        ("churches", "church"),
        ("sisters-in-law", "sister-in-law"),
        ("class", "class"),
        ("grandchildren", "grandchild"),
    ],
)
def test_plurals_have_the_stem_of_their_singular(plural, singular):
    assert list_stems(plural) == [singular]
