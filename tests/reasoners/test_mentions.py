"""Mentions in sentences and questions: whole dates, numbers, and the names that a world knows."""

import pytest

from showhow.reasoners.mentions import find_question_mentions, find_values


def values_of(sentence: str, names: frozenset[str] | None = None) -> list[str]:
    lookup = None if names is None else names.__contains__
    return [sentence[start:end] for start, end in find_values(sentence, lookup)]


def test_two_names_joined_by_and_are_two_values():
    sentence = "Her friends are Andreas Nkomose and Galen Giacconi."
    assert values_of(sentence) == ["Andreas Nkomose", "Galen Giacconi"]
    assert values_of(sentence, frozenset({"Andreas Nkomose", "Galen Giacconi"})) == [
        "Andreas Nkomose",
        "Galen Giacconi",
    ]


@pytest.mark.parametrize("date", ["19 September 1908", "September 19, 1908", "September 1908", "1908-09-19"])
@pytest.mark.parametrize("names", [None, frozenset({"September"})])
def test_a_whole_date_is_one_value_and_a_month_alone_is_none(date: str, names: frozenset[str] | None):
    assert values_of(f"In September he recalled {date}.", names) == [date]


def test_with_a_lookup_only_known_names_are_values():
    names = frozenset({"Romeo and Juliet", "Ada King", "Ockham"})
    assert values_of("In Ockham Ada King's Uncle Bertram read Romeo and Juliet.", names) == [
        "Ockham",
        "Ada King",
        "Romeo and Juliet",
    ]


def test_numbers_are_values():
    assert values_of("It has 1,204 people and 3.5 ships.", frozenset()) == ["1,204", "3.5"]


@pytest.mark.parametrize(
    ("question", "mentions"),
    [
        ("Where was the father of ADA KING born?", ["ADA KING"]),
        ("Who directed Mamma Mia! and Mulan (Film)?", ["Mamma Mia!", "Mulan (Film)"]),
        ("Did ada king-noel marry before 8 July 1835?", ["ada king-noel", "8 July 1835"]),
        ("Is the film Ockham older than 30 years?", ["Ockham", "30"]),
        # No world knows it, and its capitals show where it ends.
        ("Who is the mother of Zoë Amberly-Voss?", ["Zoë Amberly-Voss"]),
        ("Who?", []),
    ],
)
def test_a_question_mentions_the_longest_known_names_in_any_case(question: str, mentions: list[str]):
    known = {"ada king", "ada", "ada king-noel", "mamma mia!", "mulan (film)", "mulan", "ockham", "film"}
    spans = find_question_mentions(question, lambda name: name.casefold() in known, {"film", "father", "mother"})
    assert [question[start:end] for start, end in spans] == mentions
