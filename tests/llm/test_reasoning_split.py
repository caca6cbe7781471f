"""Thoughts between marks are told apart from what is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm.structured_output import split_reasoning


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Lisbon", ("", "Lisbon")),
        ("<think>Porto?\nNo.</think>\n\nLisbon", ("Porto?\nNo.", "Lisbon")),
        ("<THINKING>Porto?</THINKING> Lisbon", ("Porto?", "Lisbon")),
        ("Porto?\nNo.\n</think>\n\nLisbon", ("Porto?\nNo.", "Lisbon")),
        ("<think>one</think>It is <think>two</think>Lisbon", ("one\ntwo", "It is Lisbon")),
        ("one</think><think>two</think>Lisbon", ("one\ntwo", "Lisbon")),
        ("<think>and on and on", ("and on and on", "")),
        ("<think>\n\n</think>\n\nLisbon", ("", "Lisbon")),
        ("I think of 1 < 2 and of </thing>.", ("", "I think of 1 < 2 and of </thing>.")),
    ],
)
def test_thoughts_and_words_are_told_apart(text: str, found: tuple[str, str]) -> None:
    assert split_reasoning(text) == found


@given(st.text(), st.text())
def test_what_is_said_behind_closed_thoughts_is_all_that_is_said(thought: str, said: str) -> None:
    if "<" not in thought + said:
        assert split_reasoning(f"<think>{thought}</think>{said}") == (thought.strip(), said.strip())
