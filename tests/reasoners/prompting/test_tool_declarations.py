"""Declarations of tools: the thought comes first, and finish ends a run."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry

from showhow.db.questions.answer_formats import AnswerFormat
from showhow.db.run_spec import RunResult
from showhow.db.traces.recording import TraceAnswers
from showhow.db.unanswerable import UnanswerableReason, write_unanswerable
from showhow.reasoners.prompting.builder import build_example
from showhow.reasoners.prompting.tool_declarations import (
    Finish,
    InvalidFinish,
    declare_tools,
    finish_name,
    parse_finish,
    prompt_versions,
    take_thought,
)
from showhow.tools.arguments import parse_parameters
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import Observation, Tool, ToolContext
from tests.reasoners.example_traces import PILOT, record_of


def nothing(_context: ToolContext, _arguments: Mapping[str, Any]) -> Observation:
    return Observation("nothing", {})


def made(name: str, **properties: str) -> Tool:
    """An external tool with these arguments, by name and type."""
    fields = {argument: {"type": kind} for argument, kind in properties.items()}
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return Tool(name, name, f"{name}.", schema, nothing, parse_parameters(schema))


def test_a_tool_with_a_thought_of_its_own_keeps_it() -> None:
    (thinks, finish) = declare_tools([made("think", thought="string")], "both")
    assert list(thinks.schema["properties"]) == ["thought_before", "thought"]
    assert thinks.schema["required"] == ["thought_before", "thought"]
    assert finish.name == "finish"
    assert take_thought({"thought_before": "So.", "thought": "mine"}, ["thought"]) == ("So.", {"thought": "mine"})


def test_a_tool_without_arguments_takes_a_thought() -> None:
    roll, _ = declare_tools([Tool("roll", "roll", "roll.", {"type": "object"}, nothing, ())], "both")
    assert roll.schema["required"] == ["thought"]


def test_finish_gives_way_to_a_tool_of_that_name() -> None:
    assert finish_name(["read", "Finish"]) == "finish_run"
    assert [tool.name for tool in declare_tools([made("finish")], "both")] == ["finish", "finish_run"]


@pytest.mark.parametrize(
    ("sources", "says"), [("both", ["text_says", "graph_says"]), ("text", ["text_says"]), ("graph", ["graph_says"])]
)
def test_finish_asks_for_the_answers_of_the_allowed_sources(sources: str, says: list[str]) -> None:
    finish = declare_tools([], sources)[-1]
    assert list(finish.schema["properties"]) == ["thought", "answers", *says, "cannot_be_answered", "found", "steps"]
    assert finish.schema["required"] == ["thought", "answers", *says, "found"]


def test_a_reason_beside_an_answer_says_nothing() -> None:
    filled = {"answers": ["Ada"], "cannot_be_answered": "false premise", "found": True}
    assert parse_finish(filled).answers == ("Ada",)
    (silent,) = parse_finish({**filled, "answers": []}).answers
    assert silent == write_unanswerable(UnanswerableReason.FALSE_PREMISE)


NODE = {
    "type": "object",
    "properties": {"name": {"$ref": "#/$defs/name"}, "const": {"$ref": "#"}},
    "required": ["name"],
}
NAME = {"type": "string", "maxLength": 5}


@pytest.mark.parametrize(
    "schema",
    [
        {**NODE, "$defs": {"name": NAME}},
        {**NODE, "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:x", "$defs": {"name": NAME}},
        {"$ref": "#/$defs/node", "$defs": {"name": NAME, "node": {**NODE, "additionalProperties": {"$ref": "#"}}}},
        {
            **{"type": "object", "definitions": {"name": {**NAME, "$anchor": "short"}}, "required": ["name"]},
            "properties": {
                "name": {"$ref": "#short"},
                "const": {"required": ["name"], "properties": NODE["properties"]},
            },
            "$defs": {"name": {"$ref": "#/properties/name"}},
        },
        {
            **NODE,
            "default": {"$ref": "#"},
            "$defs": {"name": {"$id": "urn:name", "$ref": "#/$defs/a", "$defs": {"a": NAME}}},
        },
    ],
)
def test_the_declaration_of_finish_is_a_schema_whose_value_has_the_schema_of_the_answers(
    schema: dict[str, Any],
) -> None:
    answers = AnswerFormat.from_json({"kind": "json", "schema": schema})
    declared = declare_tools([], "both", answers)[-1].schema
    Draft202012Validator.check_schema(declared)
    assert declared["properties"]["value"].get("default") == schema.get("default")
    validator = Draft202012Validator(declared, registry=Registry())
    for value in ({"name": "a"}, {"name": "a", "const": {"name": "bc"}}, {"const": {}}, {"name": "a", "const": {}}):
        for changed in (value, {**value, "name": "too long"}, {**value, "const": {"name": "too long"}}):
            fits = Draft202012Validator(schema, registry=Registry()).is_valid(changed)
            assert validator.is_valid({"thought": "So.", "found": True, "value": changed}) == fits


@pytest.mark.parametrize(
    ("arguments", "finish"),
    [
        ({"answers": ["Washington, D.C."], "found": True}, Finish(("Washington, D.C.",))),
        ({"answers": "Bern", "steps": "step 3 and 4"}, Finish(("Bern",), steps=(3, 4))),
        ({"answer": 1931, "steps": 2}, Finish(("1931",), steps=(2,))),
        ({"answers": [True, "**Bern**", "Bern"]}, Finish(("yes", "Bern"))),
        ({"answers": ["none"], "found": True}, Finish(("none",))),
        ({"answers": ["No, they were not found."], "found": True}, Finish(("No, they were not found.",))),
        ({"answers": ["Bern"], "text_says": "none", "graph_says": None}, Finish(("Bern",), text_says=())),
        ({"answers": ["Bern"], "found": "no", "thought": "So."}, Finish((), thought="So.", is_done=False)),
        ({"answers": ["The steps do not confirm"]}, Finish(())),
    ],
)
def test_finish_is_parsed_in_many_notations(arguments: dict[str, Any], finish: Finish) -> None:
    assert parse_finish(arguments) == finish


@given(
    st.dictionaries(
        st.sampled_from(["answers", "found", "text_says", "steps", "thought"]),
        st.none() | st.booleans() | st.text() | st.lists(st.integers() | st.text() | st.lists(st.text(), max_size=1)),
    )
)
def test_any_arguments_are_an_answer_or_rejected(arguments: dict[str, Any]) -> None:
    with suppress(InvalidFinish):
        assert all(answer.strip() for answer in parse_finish(arguments).answers)


def test_an_answer_without_sources_belongs_to_the_last_source() -> None:
    assert Finish(("Bern",)).to_answers("graph", "both") == TraceAnswers("Bern", answer_graph="Bern")
    assert Finish(("Bern",), text_says=(), graph_says=()).to_answers("graph", "both") == TraceAnswers("Bern")
    said = Finish(("Bern",), text_says=("Bern",), graph_says=("Basel",))
    assert said.to_answers("graph", "text") == TraceAnswers("Bern", answer_text="Bern")


def test_a_demonstration_lists_its_answers_only_if_they_are_known_to_be_several() -> None:
    finish = build_example(PILOT, None).finish
    assert finish is not None
    assert finish["answers"] == finish["text_says"] == ["ferry pilot"]
    assert (finish["graph_says"], finish["steps"]) == ([], [1, 3])
    single = record_of("Where?", PILOT_STEPS, final_answer="Washington, D.C.")
    assert build_example(single, None).finish["answers"] == ["Washington, D.C."]  # type: ignore[index]
    several = record_of("Where?", PILOT_STEPS, final_answer="Bern, Basel")
    several.question.gold_answers = [{"text": "Basel"}, {"text": "Bern"}]
    assert build_example(several, None).finish["answers"] == ["Bern", "Basel"]  # type: ignore[index]
    stored = record_of("Where?", PILOT_STEPS, final_answer="Washington, D.C.; Bern")
    stored.trace.result = RunResult(answers=("Washington, D.C.", "Bern"), cited_steps=(1,))
    assert build_example(stored, None).finish["answers"] == ["Washington, D.C.", "Bern"]  # type: ignore[index]
    stored.trace.final_answer = "Basel"
    assert build_example(stored, None).finish["answers"] == ["Basel"]  # type: ignore[index]


PILOT_STEPS = [("I look.", "wikisearch", {"query": "Ada"}, "Bern", None)]


def test_the_version_of_a_prompt_changes_with_its_tools_and_is_the_same_otherwise() -> None:
    tools = list(BUILT_IN_TOOLS.values())
    versions = prompt_versions(tools, "both")
    assert versions == prompt_versions(tools, "both")
    assert set(versions) == {"step", "own answer", "response", "tool:read", "tool:generateQuery"}
    fewer = prompt_versions(tools[:1], "both")
    assert fewer["step"] != versions["step"]
    assert fewer["own answer"] == versions["own answer"]
    assert set(fewer) == {"step", "own answer", "response"}
    assert prompt_versions(tools, "text")["step"] != versions["step"]
