"""Schemas of external tools: what a schema asks is checked, and no regular expression of one stops anything."""

import time

import pytest

from showhow.guard.schemas import SCHEMA_LIMITS
from showhow.tools.arguments import ToolError, parse_parameters
from showhow.tools.external.schema import check_arguments, check_schema

SLOW = {"type": "string", "pattern": "^(a+)+$"}


@pytest.mark.long
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


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({"$dynamicRef": "#nowhere"}, 1),
        ({"$id": "http://[bad", "$ref": "#/$defs/x"}, 1),
        ({"$ref": "#/%zz"}, 1),
        ({"$ref": "#/properties/x"}, 1),
        ({"multipleOf": 5e-324}, 10**400),
        ({"multipleOf": 0.5}, 10**400),
    ],
    ids=str,
)
def test_arguments_that_a_schema_cannot_check_are_refused_in_a_sentence(
    field: dict[str, object], value: object
) -> None:
    checked = check_schema({"type": "object", "properties": {"x": field}}, "The tool t")
    assert parse_parameters(checked)[0].kind in ("json", "text")
    with pytest.raises(
        ToolError, match=r"t cannot run: its arguments could not be checked against its schema: .{9,400}"
    ):
        check_arguments("t", checked, {"x": value})


@pytest.mark.parametrize(
    "keyword", [{"anyOf": 5}, {"oneOf": "x"}, {"allOf": {}}, {"items": 7}, {"enum": 1}, {"type": {}}]
)
def test_what_an_older_draft_allows_makes_a_form(keyword: dict[str, object]) -> None:
    schema = {"$schema": "http://json-schema.org/draft-03/schema#", "type": "object", "properties": {"x": keyword}}
    try:
        checked = check_schema(schema, "The tool t")
    except ToolError:
        return
    assert [parameter.name for parameter in parse_parameters(checked)] == ["x"]


def test_large_bounds_are_only_bounds() -> None:
    fields = {
        "a": {"minItems": 10**300},
        "b": {"maxLength": 10**300},
        "c": {"format": "regex"},
        "d": {"multipleOf": 1e-308},
    }
    checked = check_schema({"type": "object", "properties": fields}, "The tool t")
    with pytest.raises(ToolError, match="t cannot run: a: "):
        check_arguments("t", checked, {"a": [1], "b": "x", "c": "(", "d": 1})


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
        ({"properties": {"x": {"not": {"$dynamicRef": "http://127.0.0.1:9/s"}}}}, "refers to another document"),
        ({"properties": {"x": {"type": "nothing"}}}, "no valid schema"),
        ({"$schema": []}, "cannot be checked: the schema cannot be used"),
        ({"$schema": "http://[bad"}, "cannot be checked: the schema cannot be used"),
        ({"properties": {"x": {"pattern": "a{99999999999999}"}}}, "cannot be checked: .* too large"),
        ({"properties": {"x": {"pattern": "("}}}, "is not a 'regex'"),
        ({"properties": {"x": {"maxLength": -1}}}, "less than the minimum"),
    ],
)
def test_a_schema_that_no_form_can_show_is_refused(schema: dict[str, object], message: str) -> None:
    with pytest.raises(ToolError, match=message):
        check_schema(schema, "The tool t")
