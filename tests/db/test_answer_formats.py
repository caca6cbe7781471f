"""Formats of answers: schemas and answers that cannot be checked or stored are refused."""

import json
import time

import pytest

from showhow.db.database import Conflict
from showhow.db.questions.answer_formats import AnswerFormat, InvalidAnswer

pytestmark = pytest.mark.long

LIST = {"$ref": "#/$defs/list", "$defs": {"list": {"type": "array", "items": {"$ref": "#/$defs/list"}}}}


@pytest.mark.parametrize(
    ("schema", "text", "reason"),
    [
        ({"$ref": "#"}, "1", "refers to itself without end"),
        ({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"allOf": [{"$ref": "#"}]}}}, "{}", "refers to itself"),
        ({}, "NaN", "the number nan, which JSON cannot represent"),
        ({}, '{"a": [-Infinity]}', "the number -inf"),
        ({"type": "number"}, "1e999", "the number inf"),
        (LIST, "[" * 500 + "]" * 500, "nested too deeply"),
        ({}, "[" * 990 + "]" * 990, "nested too deeply"),
        ({}, "[" * 100_000, "nested too deeply"),
        ({}, "9" * 5_000, "Exceeds the limit"),
        ({"multipleOf": 0.5}, "1" + "0" * 400, "too large"),
        ({}, '"\\ud800"', r"U\+D800"),
    ],
)
def test_an_answer_that_cannot_be_checked_or_stored_is_refused_in_a_sentence(schema, text, reason):
    answers = AnswerFormat.from_json({"kind": "json", "schema": schema})
    with pytest.raises(ValueError, match=reason) as refusal:
        answers.normalize(text)
    assert isinstance(refusal.value, InvalidAnswer)


def _doubling(levels: int) -> dict[str, object]:
    """Each level checks the next one twice."""
    levels_by_name = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/l0", "$defs": {**levels_by_name, f"l{levels}": {"type": "array"}}}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"pattern": r"^(\w+\s?)*$"}, json.dumps("a" * 41 + "!")),
        ({"patternProperties": {r"^(\w+\s?)*$": {"type": "string"}}}, json.dumps({"a" * 41 + "!": 1})),
        ({"additionalProperties": False, "patternProperties": {"^(a|a)*$": {}}}, json.dumps({"a" * 41 + "!": 1})),
        ({"items": {"anyOf": [{"pattern": "(x+x+)+y"}, {"type": "number"}]}}, json.dumps(["x" * 60])),
        (_doubling(30), "[]"),
        ({"uniqueItems": True}, json.dumps([{"a": n} for n in range(20_000)])),
    ],
)
def test_an_answer_that_cannot_be_checked_in_time_is_told_in_a_sentence_and_quick_ones_go_on(schema, text):
    answers = AnswerFormat.from_json({"kind": "json", "schema": schema})
    start = time.monotonic()
    with pytest.raises(InvalidAnswer, match=r"could not be checked against .* limit of 2 s"):
        answers.normalize(text)
    assert time.monotonic() - start < 15
    assert AnswerFormat.from_json({"kind": "json", "schema": {"type": "array"}}).normalize("[1]") == "[1]"


def test_a_schema_that_is_too_long_or_cannot_be_checked_in_time_is_not_stored():
    with pytest.raises(Conflict, match=r"the answer schema is not a JSON Schema: it has .* characters"):
        AnswerFormat.from_json({"kind": "json", "schema": {"enum": ["x" * 1_000_001]}})
    required = {"kind": "json", "schema": {"required": [{"a": n} for n in range(20_000)]}}
    with pytest.raises(Conflict, match="the answer schema"):
        AnswerFormat.from_json(required)


def test_an_answer_of_a_recursive_schema_is_stored():
    assert AnswerFormat.from_json({"kind": "json", "schema": LIST}).normalize("[[],\n[[ ]]]") == "[[], [[]]]"


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        ({"kind": "essay"}, "the answer kind 'essay' is none of text, json, none"),
        ({"kind": ["json"]}, "is none of"),
        ({"kind": "json", "schema": [1]}, "not a JSON object"),
        ({"kind": "json", "schema": {"type": "txt"}}, "'txt' is not valid"),
        ({"kind": "json", "schema": {"pattern": "["}}, "is not a 'regex'"),
        ({"kind": "json", "schema": {"default": float("inf")}}, "cannot be stored"),
        ({"kind": "json", "schema": {"$ref": "other.json"}}, "refers to another document"),
        ({"kind": "json", "schema": {"items": {"$dynamicRef": "http://127.0.0.1:9/x"}}}, "refers to another document"),
        ({"kind": "json", "schema": {"pattern": "a{99999999999999}"}}, "could not be checked: .* too large"),
    ],
)
def test_an_answer_format_of_an_unknown_kind_or_without_a_schema_is_refused(stored, reason):
    with pytest.raises(Conflict, match=reason):
        AnswerFormat.from_json(stored)


def test_an_answer_schema_that_is_nested_too_deeply_is_refused():
    schema = {}
    for _ in range(2_000):
        schema = {"items": schema}
    with pytest.raises(Conflict, match="the answer schema is nested too deeply; flatten it"):
        AnswerFormat.from_json({"kind": "json", "schema": schema})
