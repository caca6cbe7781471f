"""Traces side by side: the alignment of their steps, the groups of their answers, and texts that are no markup."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from showhow.app.pages.review.side_by_side import align, describe_step, group_answers
from showhow.db.models import Project
from showhow.db.review.review_queue import StepOutline

SEQUENCES = st.lists(
    st.lists(st.sampled_from("abcd").map(lambda letter: (letter,)), max_size=8), min_size=1, max_size=4
)


@given(SEQUENCES)
def test_every_step_has_one_row_in_its_order(sequences: list[list[tuple[str]]]):
    rows = align(sequences)
    for column, sequence in enumerate(sequences):
        assert [row[column] for row in rows if row[column] is not None] == list(range(len(sequence)))
    assert all(len(row) == len(sequences) and set(row) != {None} for row in rows)


@given(SEQUENCES)
def test_equal_traces_share_all_rows(sequences: list[list[tuple[str]]]):
    first = sequences[0]
    assert align([first, first, first]) == [(place,) * 3 for place in range(len(first))]


def test_a_step_more_moves_no_later_step_out_of_its_row():
    short, long = ([(letter,) for letter in letters] for letters in ("acd", "abcd"))
    assert align([short, long]) == [(0, 0), (None, 1), (1, 2), (2, 3)]
    assert align([long, short, long]) == [(0, 0, 0), (1, None, 1), (2, 1, 2), (3, 2, 3)]
    other = [(letter,) for letter in "axd"]
    assert align([short, other]) == [(0, 0), (1, 1), (2, 2)]


def outline(thought: str = "", tool: str | None = "read", *, is_error: bool = False, **arguments: Any) -> StepOutline:
    return StepOutline(1, thought, tool, arguments, "text", is_error)


def test_steps_are_the_same_by_what_they_do_and_whether_it_failed():
    step = outline("one", title="Oslo")
    assert describe_step(step) == describe_step(outline("another", title="Oslo"))
    for other in (outline(title="Bergen"), outline(tool="search", title="Oslo"), outline(title="Oslo", is_error=True)):
        assert describe_step(step) != describe_step(other)
    assert describe_step(outline("one  two", None)) == describe_step(outline("one two", None))
    assert describe_step(outline("one", None)) != describe_step(outline("two", None))


def test_answers_are_grouped_as_sets_and_exactly_where_the_format_asks_for_values():
    answers = {"ann": "Oslo, Bergen", "ben": "Bergen; Oslo", "cleo": "Bodo"}
    assert group_answers(Project(name="texts", world=""), answers) == [["ann", "ben"], ["cleo"]]
    values = Project(name="values", world="", answer_format={"kind": "json", "schema": {"type": "object"}})
    assert [len(group) for group in group_answers(values, answers)] == [1, 1, 1]
    assert group_answers(Project(name="one", world=""), {"ann": ""}) == [["ann"]]
