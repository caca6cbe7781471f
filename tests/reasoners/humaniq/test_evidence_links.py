"""Step references in a response: valid ones are linked, others removed and counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.reasoners.humaniq.response import link_evidence


def test_references_to_steps_with_observations_stay_and_others_are_counted() -> None:
    linked = link_evidence(
        "Ada is a pilot [step 1]. Her mother is Cora. [steps 2, 9] She flies kites [Step 4].", {1, 2}
    )
    assert linked.text == "Ada is a pilot [step 1]. Her mother is Cora. [step 2] She flies kites."
    assert [(link["step"], linked.text[link["start"] : link["end"]]) for link in linked.links] == [
        (1, "[step 1]"),
        (2, "[step 2]"),
    ]
    assert (linked.invalid_references, linked.unlinked_sentences) == (2, 1)


def test_other_brackets_are_left_alone() -> None:
    assert link_evidence("It is so [1], [step by step].", {1}).text == "It is so [1], [step by step]."


@pytest.mark.parametrize(
    "mark",
    ["[step 2][step 3]", "[step 2, step 3]", "[steps 2-3]", "[Steps 2 and 3]", "(step 2; step 3)", "【step 2 to 3】"],
)
def test_a_reference_may_name_several_steps(mark: str) -> None:
    linked = link_evidence(f"Ada sails {mark}.", {1, 2, 3})
    assert (linked.text, linked.invalid_references, linked.unlinked_sentences) == ("Ada sails [step 2] [step 3].", 0, 0)


def test_an_extremely_long_range_is_not_expanded() -> None:
    assert link_evidence("Ada sails [steps 1-999999999999].", {1, 5}).text == "Ada sails [step 1]."


@given(
    st.lists(st.tuples(st.sampled_from(["Ada sails.", "She sings"]), st.lists(st.integers(1, 9), max_size=3))),
    st.sets(st.integers(1, 9)),
)
def test_every_reference_is_linked_or_counted(said: list[tuple[str, list[int]]], steps: set[int]) -> None:
    text = " ".join(words + "".join(f" [step {number}]" for number in numbers) for words, numbers in said)
    linked = link_evidence(text, steps)
    every = [number for _, numbers in said for number in numbers]
    assert [link["step"] for link in linked.links] == [number for number in every if number in steps]
    assert linked.invalid_references == sum(number not in steps for number in every)
    assert all(linked.text[link["start"] : link["end"]] == f"[step {link['step']}]" for link in linked.links)
    assert linked.text.count("[step") == len(linked.links)
