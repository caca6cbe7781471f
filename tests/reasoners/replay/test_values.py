"""Dates, words and values of sentences."""

import pytest

from reasoners.replay.derivations import ReplayValue, parse_date, read_context, read_values, stem, tokenize


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("1987-01-14T00:00:00Z", (1987, 1, 14)),
        ("1984-01-01", (1984, 0, 0)),
        ("14 January 1987", (1987, 1, 14)),
        ("January 14, 1987", (1987, 1, 14)),
        ("1987", (1987, 0, 0)),
        ("Hatchet 2", None),
    ],
)
def test_a_date_has_one_meaning_in_any_notation(text, date):
    assert parse_date(text) == date


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
