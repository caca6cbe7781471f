"""Parsing of JSON replies inside other text, and separation of reasoning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from llm.structured_output import ReplyParseError, parse_reply, split_reasoning


class AnswerReply(BaseModel):
    answer: str | None
    quotes: list[str]


GOOD = AnswerReply(answer="Saltmouth", quotes=["from {Saltmouth}"])


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": "Saltmouth", "quotes": ["from {Saltmouth}"]}',
        '```json\n{"answer": "Saltmouth", "quotes": ["from {Saltmouth}"]}\n```',
        'Here it is, {as asked}:\n{"answer": "Saltmouth", "quotes": ["from {Saltmouth}"],}\nIt helps {"answer": 1}',
        '<think>maybe {"answer": "no", "quotes": []}</think>\n{"answer": "Saltmouth", "quotes": ["from {Saltmouth}"]}',
        '{"quotes": 3} {"answer": "Saltmouth", "quotes": ["from {Saltmouth}"]}',
    ],
)
def test_the_json_object_is_found_within_other_text(text: str):
    assert parse_reply(text, AnswerReply, "scripted") == GOOD


def test_strings_may_hold_line_breaks():
    assert parse_reply('{"answer": "a\nb", "quotes": []}', AnswerReply, "scripted").answer == "a\nb"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Saltmouth.", "no JSON object"),
        ("", "no JSON object"),
        ('{"answer": "Saltmouth"', "no JSON object"),
        ('{"answer": "Saltmouth"}', "quotes: field required"),
        ('{"answer": null, "quotes": "x"}', "quotes: input should be a valid list"),
        ('<think>{"answer": null, "quotes": []}', "no JSON object"),
        ("{" * 10_000, "no JSON object"),
        ('{"answer": ' + "[" * 100_000, "no JSON object"),
        ('{"a":' * 50_000, "no JSON object"),
    ],
)
def test_the_error_of_a_reply_says_what_is_wrong(text: str, wrong: str):
    with pytest.raises(ReplyParseError, match=wrong):
        parse_reply(text, AnswerReply, "scripted")


@pytest.mark.parametrize(
    ("text", "parts"),
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
def test_reasoning_is_separated_from_the_reply(text: str, parts: tuple[str, str]) -> None:
    assert split_reasoning(text) == parts


@given(st.text(), st.text())
def test_text_after_closed_reasoning_is_the_whole_reply(thought: str, visible: str) -> None:
    if "<" not in thought + visible:
        assert split_reasoning(f"<think>{thought}</think>{visible}") == (thought.strip(), visible.strip())
