"""Equality of answers in the notations of people, models and graphs; more pairs are in tests/evaluation."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from showhow.reasoners.answers.normalization import answers_equal, group_equal_answers, normalize_answer, word_overlap

SAME = [
    ("Lisbon", "lisbon."),
    ("Lisbon", "Lisbon (Q597)"),
    ("Lisbon", "Q597 Lisbon"),
    ("the Netherlands", "Netherlands"),
    ("S\u00e3o Tom\u00e9", "Sao Tome"),
    ("12 May 1990", "May 12, 1990"),
    ("12th of May 1990", "1990-05-12"),
    ("12 Sept. 1990", "1990-09-12T00:00:00Z"),
    ("Jun 3, 1990", "+1990-06-03T00:00:00Z"),
    ("March 1990", "1990-03"),
    ("1990", "in 1990"),
    ("1,234,567", "1234567"),
    ("1 234 567", "1234567"),
    ("7", "seven"),
    ("7.0", "7"),
    ("3.50", "3.5"),
    ("2.5 million", "2,500,000"),
    ("50%", "50 percent"),
    ("-5", "\u22125"),
    ("yes", "True"),
    ("No.", "false"),
    ("yes", "Yes, she was born there."),
    ("no answer", "Nobody."),
    ("Ada, Ben and Cora", "Cora; Ada; Ben"),
    ("Ada Lund & Ben Reed", "Ben Reed and Ada Lund"),
    ("Ada\nBen", "Ben, Ada"),
    ("1. Ada\n2. Ben", "- Ben\n- Ada"),
    ("Mr Ben Reed", "Ben Reed"),
    ("J. K. Rowling", "J.K. Rowling"),
    ("U.S.", "US"),
    ("1990 (1 January)", "1990"),
    ("Saint-Denis", "saint denis"),
    ("Q42", "q42"),
]
DIFFERENT = [
    ("Lisbon", "Porto"),
    ("Ada, Ben", "Ada"),
    ("12 May 1990", "1990"),
    ("12 May 1990", "12 June 1990"),
    ("12.5", "125"),
    ("1.50", "1.05"),
    ("no", "none of them"),
    ("no", "North"),
    ("Q42", "Q43"),
    ("-3", "3"),
    ("The Who", "The The"),
    ("C", "C++"),
    ("C", "C#"),
    ("one", "One Direction"),
    ("2 million", "2 billion"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_answers_in_different_notations_match(one: str, other: str) -> None:
    assert answers_equal(one, other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_answers_do_not_match(one: str, other: str) -> None:
    assert not answers_equal(one, other)


@given(st.text())
@example("*")
@example("1.")
def test_every_answer_has_a_part_and_matches_itself_in_any_case(answer: str) -> None:
    assert normalize_answer(answer)
    assert normalize_answer(f" {answer}\n") == normalize_answer(answer)


LISTED = st.lists(st.sampled_from(["Ada", "Ben Reed", "3", "the Isle", "May 1990"]), min_size=1, unique=True)


@given(LISTED.flatmap(lambda listed: st.tuples(st.just(listed), st.permutations(listed))))
def test_the_order_of_a_list_is_ignored(both: tuple[list[str], list[str]]) -> None:
    listed, mixed = both
    for separator in (", ", "\n", "; "):
        assert answers_equal("; ".join(listed), separator.join(mixed))


@given(st.text(), st.text())
def test_equality_of_answers_is_symmetric(first: str, second: str) -> None:
    assert answers_equal(first, second) == answers_equal(second, first)
    assert answers_equal(first, first)


def test_a_remark_is_compared_if_another_candidate_differs_only_by_it() -> None:
    answers = {"text": "John Smith", "graph": "John Smith (judge)", "model": "John Smith (painter)"}
    assert group_equal_answers(answers) == [["text"], ["graph"], ["model"]]
    assert group_equal_answers({name: answers[name] for name in ("text", "graph")}) == [["text", "graph"]]


def test_the_same_words_in_another_order_overlap_only_partly() -> None:
    assert word_overlap(("trinidad", "and", "tobago"), ("tobago", "and", "trinidad")) < 1.0
    assert word_overlap(("ada", "lund"), ("ada", "reed")) == 0.5
    assert word_overlap((), ()) == 1.0
    assert word_overlap((), ("ada",)) == 0.0
