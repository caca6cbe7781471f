"""Schemas of external tools: what a schema asks is checked, and no regular expression of one stops anything."""

import time

import pytest

from guard.schemas import SCHEMA_LIMITS
from tools.arguments import ToolError
from tools.external.schema import check_arguments, check_schema

SLOW = {"type": "string", "pattern": "^(a+)+$"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"text": SLOW}},
        {
            "type": "object",
            "properties": {"text": {"anyOf": [SLOW, {"$ref": "#/$defs/slow"}]}},
            "$defs": {"slow": SLOW},
        },
        {"type": "object", "properties": {"text": {"type": "object", "patternProperties": {"^(a+)+$": {}}}}},
    ],
)
def test_a_pattern_of_a_server_that_takes_too_long_is_told_in_a_sentence(schema: dict[str, object]) -> None:
    checked = check_schema(schema, "The tool t")
    text = "a" * 60 + "b"
    arguments = {"text": {text: 1} if "patternProperties" in str(schema) else text}
    start = time.monotonic()
    with pytest.raises(ToolError, match=r"t cannot run: its arguments could not be checked .* limit of 2 s; shorten"):
        check_arguments("t", checked, arguments)
    assert time.monotonic() - start < SCHEMA_LIMITS.seconds + 10


def test_a_pattern_is_checked() -> None:
    checked = check_schema({"type": "object", "properties": {"code": {"type": "string", "pattern": "^[0-9]+$"}}}, "t")
    check_arguments("t", checked, {"code": "12"})
    with pytest.raises(ToolError, match="t cannot run: code: 'x' does not match"):
        check_arguments("t", checked, {"code": "x"})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "string"}, "not an object"),
        ({"properties": {"x": {"$ref": "http://127.0.0.1:9/s"}}}, "refers to another document"),
        ({"properties": {"x": {"type": "nothing"}}}, "no valid schema"),
    ],
)
def test_a_schema_that_no_form_can_show_is_refused(schema: dict[str, object], message: str) -> None:
    with pytest.raises(ToolError, match=message):
        check_schema(schema, "The tool t")
