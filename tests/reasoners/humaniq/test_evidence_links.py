"""Marks in a response: those that name a step stay and are found again, the others go and are counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoners.humaniq.response import link_evidence


def test_marks_of_steps_that_saw_something_stay_and_the_others_are_counted() -> None:
    found = link_evidence("Ada is a pilot [step 1]. Her mother is Cora. [steps 2, 9] She flies kites [Step 4].", {1, 2})
    assert found.text == "Ada is a pilot [step 1]. Her mother is Cora. [step 2] She flies kites."
    assert [(link["step"], found.text[link["start"] : link["end"]]) for link in found.links] == [
        (1, "[step 1]"),
        (2, "[step 2]"),
    ]
    assert (found.invalid_references, found.unlinked_sentences) == (2, 1)


def test_other_brackets_are_left_alone() -> None:
    assert link_evidence("It is so [1], [step by step].", {1}).text == "It is so [1], [step by step]."


@pytest.mark.parametrize(
    "mark",
    ["[step 2][step 3]", "[step 2, step 3]", "[steps 2-3]", "[Steps 2 and 3]", "(step 2; step 3)", "【step 2 to 3】"],
)
def test_a_mark_may_name_several_steps(mark: str) -> None:
    found = link_evidence(f"Ada sails {mark}.", {1, 2, 3})
    assert (found.text, found.invalid_references, found.unlinked_sentences) == ("Ada sails [step 2] [step 3].", 0, 0)


def test_a_range_without_an_end_is_no_work() -> None:
    assert link_evidence("Ada sails [steps 1-999999999999].", {1, 5}).text == "Ada sails [step 1]."


@given(
    st.lists(st.tuples(st.sampled_from(["Ada sails.", "She sings"]), st.lists(st.integers(1, 9), max_size=3))),
    st.sets(st.integers(1, 9)),
)
def test_every_mark_is_kept_or_counted(said: list[tuple[str, list[int]]], steps: set[int]) -> None:
    text = " ".join(words + "".join(f" [step {number}]" for number in numbers) for words, numbers in said)
    found = link_evidence(text, steps)
    every = [number for _, numbers in said for number in numbers]
    assert [link["step"] for link in found.links] == [number for number in every if number in steps]
    assert found.invalid_references == sum(number not in steps for number in every)
    assert all(found.text[link["start"] : link["end"]] == f"[step {link['step']}]" for link in found.links)
    assert found.text.count("[step") == len(found.links)
