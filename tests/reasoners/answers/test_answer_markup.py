"""Removal of markup around answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.reasoners.answers.extraction import strip_answer_markup


@pytest.mark.parametrize(
    "written",
    [
        " Lisbon\n",
        "**Lisbon**",
        "Lisbon**",
        '"Lisbon"',
        "\u201cLisbon\u201d",
        "`Lisbon`",
        "```\nLisbon\n```",
        "```text\nLisbon\n```",
        "\\boxed{Lisbon}",
        "$\\boxed{Lisbon}$",
        '{"answer": "Lisbon"}',
        '{"answer": "Lisbon", "why": "The graph says so."}',
        '{"city": "Lisbon"}',
        '["Lisbon"]',
    ],
)
def test_markup_around_an_answer_is_removed(written: str) -> None:
    assert strip_answer_markup(written) == "Lisbon"


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ('["Lisbon", "Porto"]', "Lisbon, Porto"),
        ('{"answers": ["Lisbon", 3]}', "Lisbon, 3"),
        ('{"answer": true}', "yes"),
        ('{"answer": 0}', "0"),
        ("[]", ""),
    ],
)
def test_json_answers_are_converted_to_text(written: str, answer: str) -> None:
    assert strip_answer_markup(written) == answer


@pytest.mark.parametrize(
    "written",
    [
        "[Mount Stevens]",
        '"Heroes" and "Low"',
        "M*A*S*H",
        '{"a": 1, "b": 2}',
        "[" * 5_000,
        "{}",
        '{"answer": null}',
    ],
)
def test_json_without_a_recognizable_answer_is_unchanged(written: str) -> None:
    assert strip_answer_markup(written) == written


@given(st.text())
def test_every_text_can_be_stripped_of_markup(written: str) -> None:
    assert isinstance(strip_answer_markup(written), str)
