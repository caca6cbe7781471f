"""Parsing and validation of tool calls in the notations that models use."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.fewshot_library.formats.humaniq_record import format_input_line
from showhow.reasoners.prompting.call_parser import InvalidToolCall, parse_call
from showhow.tools.arguments import parse_parameters
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import Observation, Tool, ToolContext

QUESTION = "Who is the mother of Ada Reed?"


WEIGH = {
    "type": "object",
    "properties": {
        "thing": {"type": "string"},
        "times": {"type": "integer", "default": 1},
        "exactly": {"type": "boolean", "default": False},
    },
    "required": ["thing"],
}


def nothing(_context: ToolContext, _arguments: Mapping[str, Any]) -> Observation:
    return Observation("nothing", {})


def made(name: str, schema: dict[str, Any]) -> Tool:
    """An external tool."""
    return Tool(name, name, f"{name}.", schema, nothing, parse_parameters(schema))


OFFERED = [*BUILT_IN_TOOLS.values(), made("weigh", WEIGH), made("roll", {"type": "object", "properties": {}})]
PLAIN = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(str.strip)
ARGUMENTS = st.one_of(
    st.tuples(st.sampled_from(["wikisearch", "websearch"]), st.fixed_dictionaries({"query": PLAIN})),
    st.tuples(st.just("read"), st.fixed_dictionaries({"title": PLAIN, "question": PLAIN})),
    st.tuples(
        st.just("generateQuery"),
        st.fixed_dictionaries(
            {"question": PLAIN, "entity_ids": st.lists(st.from_regex(r"Q[1-9]\d{0,3}", fullmatch=True))}
        ),
    ),
    st.tuples(st.just("weigh"), st.fixed_dictionaries({"thing": PLAIN, "times": st.integers()})),
)


def test_the_usage_hint_shows_the_required_arguments() -> None:
    for tool, argument in (("wikisearch", "query"), ("websearch", "query"), ("getWikiDataID", "title")):
        assert format_input_line(tool, {argument: "Ada Reed"}, QUESTION) == "Ada Reed"


@given(ARGUMENTS)
def test_a_call_parses_back_from_its_input_line(call: tuple[str, dict[str, Any]]) -> None:
    tool, arguments = call
    line = format_input_line(tool, arguments, QUESTION)
    assert parse_call(tool, line, QUESTION, OFFERED).arguments == arguments
    assert parse_call(tool, arguments, QUESTION, OFFERED).arguments == arguments


@pytest.mark.parametrize(
    ("name", "given", "arguments"),
    [
        ("WikiSearch", "Ada Reed", {"query": "Ada Reed"}),
        ("WIKISEARCH", '{"query": "Ada Reed"}', {"query": "Ada Reed"}),
        ("wikisearch", '```json\n{"query": "Ada Reed"}\n```', {"query": "Ada Reed"}),
        ("runQuery", "```sparql\nASK { ?s ?p ?o }\n```", {"sparql": "ASK { ?s ?p ?o }"}),
        ("getLabel", "[Q1, Q2]", {"ids": ["Q1", "Q2"]}),
        ("getLabel", {"ids": "Q1, Q2"}, {"ids": ["Q1", "Q2"]}),
        ("GenerateSparql", "[Q1]", {"question": QUESTION, "entity_ids": ["Q1"]}),
        ("wikisearch", {"query": 1990}, {"query": "1990"}),
        ("weigh", "a boat", {"thing": "a boat"}),
        (
            "weigh",
            {"thing": "a boat", "times": "3", "exactly": "yes"},
            {"thing": "a boat", "times": 3, "exactly": True},
        ),
        ("weigh", {"thing": "a boat", "times": None}, {"thing": "a boat"}),
        ("roll", "", {}),
        ("roll", None, {}),
    ],
)
def test_calls_are_parsed_in_many_notations(name: str, given: Any, arguments: dict[str, Any]) -> None:
    assert parse_call(name, given, QUESTION, OFFERED).arguments == arguments


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("google", "Ada", "There is no tool 'google'. Use one of these: wikisearch, read"),
        ("wikisearch", "", "was called without arguments"),
        ("wikisearch", '{"query": "Ada', "no valid JSON"),
        ("read", "Ada Reed", "takes more than a plain line"),
        ("read", '{"title": "Ada"}', "question is missing"),
        ("weigh", {"thing": "a boat", "times": "often"}, "times: 'often' is not a whole number"),
        ("getLabel", {"ids": {"id": "Q1"}}, "is no list"),
        ("roll", {"twice": True}, "it has no argument 'twice'"),
    ],
)
def test_the_error_of_an_invalid_call_says_how_to_call_the_tool(name: str, given: Any, why: str) -> None:
    with pytest.raises(InvalidToolCall, match=r"Call it with|Use one of") as error:
        parse_call(name, given, QUESTION, OFFERED)
    assert why in str(error.value)


@given(st.sampled_from([tool.name for tool in OFFERED]), st.text() | st.text().map('{{"{}'.format))
def test_any_text_is_a_valid_call_or_raises_invalid_tool_call(name: str, written: str) -> None:
    with suppress(InvalidToolCall):
        assert parse_call(name, written, QUESTION, OFFERED).tool == name
