"""Answers without what models write round them; what belongs to an answer stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoners.answers.extraction import strip_answer_markup


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
def test_the_answer_alone_is_left(written: str) -> None:
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
def test_what_json_holds_is_written_out(written: str, answer: str) -> None:
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
def test_what_cannot_be_told_stays(written: str) -> None:
    assert strip_answer_markup(written) == written


@given(st.text())
def test_it_is_told_of_every_text(written: str) -> None:
    assert isinstance(strip_answer_markup(written), str)
