"""Parameters parsed from JSON Schemas of several producers."""

import re
from enum import Enum
from typing import Annotated, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from showhow.tools.arguments import Parameter, parse_parameters


class Unit(Enum):
    C = "celsius"
    F = "fahrenheit"


class Place(BaseModel):
    city: str


FIELDS = {
    "text": (str, ...),
    "count": (Annotated[int, Field(description="how\nmany", ge=1)], 3),
    "ratio": (float, 0.5),
    "loud": (bool, False),
    "unit": (Unit, Unit.C),
    "language": (Literal["en", 1], "en"),
    "tags": (Optional[list[str]], None),  # noqa: UP045 - as older code writes it
    "numbers": (list[int], [1]),
    "days": (list[Literal["mon", "tue"]], ...),
    "place": (Place, ...),
    "places": (list[Place], ...),
    "either": (int | str, 5),
    "anything": (object, ...),
    "maybe": (int | None, None),
}


def test_every_kind_of_parameter_is_parsed_from_pydantic_schemas() -> None:
    model = create_model("arguments", **FIELDS)
    parameters = {p.name: p for p in parse_parameters(model.model_json_schema())}
    kinds = {name: (p.kind, p.item_kind) if p.kind == "list" else p.kind for name, p in parameters.items()}
    assert kinds == {
        "text": "text",
        "count": "whole number",
        "ratio": "number",
        "loud": "yes/no",
        "unit": "choice",
        "language": "choice",
        "tags": ("list", "text"),
        "numbers": ("list", "whole number"),
        "days": ("list", "choice"),
        "place": "json",
        "places": "json",
        "either": "json",
        "anything": "json",
        "maybe": "whole number",
    }
    assert [p.name for p in parameters.values() if p.required] == ["text", "days", "place", "places", "anything"]
    assert (parameters["count"].default, parameters["count"].hint) == (3, "how many")
    assert parameters["unit"].choices == ("celsius", "fahrenheit")
    assert parameters["language"].choices == ("en", 1)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": ["string", "null"]}, "text"),
        ({"type": ["string", "integer"]}, "json"),
        ({"const": 7}, "choice"),
        ({"enum": ["a", None]}, "choice"),
        ({"oneOf": [{"type": "null"}, {"type": "boolean"}]}, "yes/no"),
        ({"allOf": [{"$ref": "#/$defs/n"}]}, "number"),
        ({"$ref": "#/$defs/loop"}, "json"),
        ({"$ref": "#/$defs/none"}, "json"),
        ({"type": "array"}, "list"),
        (True, "json"),
        ({}, "json"),
    ],
)
def test_every_kind_of_parameter_is_parsed_from_other_schemas(schema: object, kind: str) -> None:
    definitions = {"n": {"type": "number"}, "loop": {"$ref": "#/$defs/loop"}}
    (parameter,) = parse_parameters({"properties": {"x": schema}, "$defs": definitions})
    assert parameter.kind == kind


VALUES = {
    "text": st.text(alphabet=st.characters(codec="utf-8")),
    "whole number": st.integers(),
    "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    "yes/no": st.booleans(),
    "choice": st.sampled_from(["a", "b c", 3, 4.5]),
    "json": st.recursive(st.none() | st.integers() | st.text(), st.lists) | st.dictionaries(st.text(), st.integers()),
    "list": st.lists(st.text() | st.sampled_from(["[a", "a\nb", " a", ""]), min_size=1) | st.just([]),
}


@given(st.data(), st.sampled_from(sorted(VALUES)))
def test_a_formatted_value_is_parsed_back_with_its_type(data: st.DataObject, kind: str) -> None:
    value = data.draw(VALUES[kind])
    parameter = Parameter("x", kind, choices=("a", "b c", 3, 4.5), item_kind="text" if kind == "list" else "json")
    if value is None:
        assert parameter.format(value) == ""
        return
    read = parameter.parse(parameter.format(value))
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("number", "seven", "'seven' is not a number"),
        ("number", "nan", "not a finite number"),
        ("whole number", "7.5", "'7.5' is not a whole number"),
        ("yes/no", "perhaps", "neither yes nor no"),
        ("choice", "c", "'c' is none of a, b"),
        ("json", '{"a": }', "invalid JSON: expecting value at line 1, column 7"),
        ("json", "[" * 100_000, "nested too deeply"),
    ],
)
def test_the_error_of_a_text_that_cannot_be_parsed_says_why(kind: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Parameter("x", kind, choices=("a", "b"), item_kind="json").parse(text)


def test_lists_are_parsed_by_the_kind_of_their_items() -> None:
    assert Parameter("ids", "list", item_kind="id").parse("Q1, Q2 Q3") == ["Q1", "Q2", "Q3"]
    assert Parameter("names", "list").parse("New York\n\n a, b ") == ["New York", "a, b"]
    assert Parameter("names", "list").parse('["one", "two\\nlines"]') == ["one", "two\nlines"]
    assert Parameter("numbers", "list", item_kind="number").parse("1\n2.5") == [1, 2.5]
    assert Parameter("x", "json", item_kind="text").parse("no JSON, but words") == "no JSON, but words"
    assert Parameter("x", "number").parse(5) == 5


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' + "9" * 5_000 + "}", '{"a":' * 100_000])
def test_json_that_cannot_be_read_is_a_text_where_a_text_may_stand_and_refused_elsewhere(text: str) -> None:
    assert Parameter("value", "json").parse(text) == text
    with pytest.raises(ValueError, match=r"JSON|digits"):
        Parameter("value", "json", item_kind="json").parse(text)
