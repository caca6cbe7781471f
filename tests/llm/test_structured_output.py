import pytest
from pydantic import BaseModel

from llm.structured_output import ReplyParseError, parse_reply


class Wanted(BaseModel):
    answer: str | None
    quotes: list[str]


GOOD = Wanted(answer="Saltmouth", quotes=["from {Saltmouth}"])


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
def test_the_object_is_found_in_whatever_stands_around_it(text: str):
    assert parse_reply(text, Wanted, "scripted") == GOOD


def test_lines_may_break_within_a_text():
    assert parse_reply('{"answer": "a\nb", "quotes": []}', Wanted, "scripted").answer == "a\nb"


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
def test_what_is_wrong_with_a_reply_is_told(text: str, wrong: str):
    with pytest.raises(ReplyParseError, match=wrong):
        parse_reply(text, Wanted, "scripted")
