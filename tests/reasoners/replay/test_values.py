"""Dates, words and values of sentences."""

from datetime import date

import pytest

from reasoners.replay.derivations import ReplayValue, read_context, read_days, read_values, stem, tokenize


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
        ("31 June 87 BC", None),
        ("0 BC", None),
        ("0000-00-00", None),
    ],
)
def test_a_date_in_any_notation_is_the_days_that_it_may_stand_for(text, days):
    expected = tuple(date.fromisoformat(day).toordinal() for day in days) if days else None
    assert read_days(text) == expected


@pytest.mark.parametrize(
    ("text", "iso", "days"),
    [("44 BC", "-0043-01-01", 365), ("March 45 b.c.e.", "-0044-03", 31), ("29 February 1 BC", "0000-02-29", 1)],
)
def test_a_date_before_christ_is_that_of_iso_8601_which_has_a_year_zero(text, iso, days):
    first, last = read_days(text) or (0, 0)
    assert (first, last) == read_days(iso)
    assert last - first + 1 == days
    assert ReplayValue(text).kind == "date"


def test_a_date_before_christ_is_read_as_a_whole_from_a_sentence():
    sentence = "Cato (died 12 April 46 BC) was a senator."
    context = read_context(sentence, sentence.index("12"), sentence.index(")"), "Cato")
    others = ["Clodius (died 18 January 152 BC) was a tribune."]
    assert [v.text for v in read_values(others, "Clodius", [context], dates=True)] == ["18 January 152 BC"]


def test_values_are_compared_by_id_or_by_date_or_by_name():
    assert ReplayValue("Canada", "Q16").key == ReplayValue("Canadian", "Q16").key
    assert ReplayValue("14 January 1987").key == ReplayValue("1987-01-14").key
    assert ReplayValue("ada LUND").key == ReplayValue("Ada Lund").key


def test_a_possessive_s_is_a_word_of_its_own():
    assert [word for word, _, _ in tokenize("Yuen Shun-Yi's father, St. Lucia")] == [
        *("yuen", "shun-yi", "s", "father", "st", "lucia")
    ]


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
    assert stem(plural) == singular


def test_a_value_is_read_where_a_demonstration_read_one_and_only_as_a_whole():
    sentence = "Sea Star is a film directed by Ada Lund."
    start = sentence.index("Ada")
    context = read_context(sentence, start, start + len("Ada Lund"), "Sea Star")
    others = ["Low Tide is a 1951 film directed by Bo Reed."]
    assert [value.text for value in read_values(others, "Low Tide", [context], dates=False)] == ["Bo Reed"]
    assert read_values(["It was directed by Bo Reed, Junior."], "Low Tide", [context], dates=False) == []
