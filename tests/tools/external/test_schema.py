"""Schemas of external tools: a slow regular expression in one of them never runs where it would stop other threads."""

import pytest

from tools.arguments import ToolError
from tools.external.schema import check_arguments, check_schema, make_validator

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
@pytest.mark.timeout(20)
def test_patterns_of_a_server_are_left_to_the_server(schema: dict[str, object]) -> None:
    checked = check_schema(schema, "The tool t")
    text = "a" * 60 + "b"
    arguments = {"text": {text: 1} if "patternProperties" in str(schema) else text}
    check_arguments("t", make_validator(checked, with_patterns=False), arguments)


def test_a_pattern_is_checked_where_a_call_can_be_killed() -> None:
    checked = check_schema({"type": "object", "properties": {"code": {"type": "string", "pattern": "^[0-9]+$"}}}, "t")
    validator = make_validator(checked, with_patterns=True)
    check_arguments("t", validator, {"code": "12"})
    with pytest.raises(ToolError, match="t cannot run: code: 'x' does not match"):
        check_arguments("t", validator, {"code": "x"})


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
