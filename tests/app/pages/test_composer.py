"""The forms of steps and answers: what a field begins with, and a field for every required part of an answer."""

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from showhow.db.questions.answer_formats import AnswerFormat

# Drawn as the Annotate page draws it, over the answer format that the test puts into the session.
SCRIPT = """
import streamlit as st

from showhow.app.pages.annotate.answer_form import show_answer_form
from showhow.app.pages.annotate.composer import StepComposer
from showhow.db.models import Project, Question, Trace
from showhow.db.traces.trace_record import TraceRecord
from showhow.tools.registry import BUILT_IN_TOOLS

if "record" not in st.session_state:
    project = Project(name="p", world="w", answer_format=st.session_state["format"])
    question = Question(project_id=project.id, position=1, text="Do it.")
    st.session_state["record"] = TraceRecord(project, question, Trace(question_id=question.id), [])
composer = StepComposer(st.session_state["record"], tuple(BUILT_IN_TOOLS.values()))
show_answer_form(composer)
try:
    st.session_state["answer"] = composer.answer()
except ValueError as error:
    st.session_state["answer"] = str(error)
"""
TEXT, ADDRESS = {"type": "string"}, {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}
AS_JSON = "Answer as JSON"


def draw_form(schema: dict[str, Any]) -> AppTest:
    page = AppTest.from_string(SCRIPT, default_timeout=60)
    page.session_state["format"] = AnswerFormat.from_json({"kind": "json", "schema": schema}).to_json()
    return page.run()


@pytest.mark.parametrize(
    ("schema", "fields"),
    [
        ({"properties": {"a": ADDRESS}, "required": ["a"]}, {"A": '{"town": "Lund"}'}),
        ({"properties": {"a": {"$ref": "#/$defs/t"}}, "required": ["a"], "$defs": {"t": TEXT}}, {"A": "Lund"}),
        ({"properties": {"a": {"type": "array", "items": ADDRESS}}, "required": ["a"]}, {"A": '[{"town": "Lund"}]'}),
        ({"properties": {"a": TEXT, "b": TEXT}, "required": ["a"]}, {"A": "Lund", "B (optional)": "Oslo"}),
        ({"properties": {"a": {"enum": [None]}}, "required": ["a"]}, {"A": "null"}),
        ({"properties": {"a": TEXT}, "anyOf": [{"required": ["a"]}], "required": ["a"]}, {"A": "Lund"}),
        ({"properties": {"a": TEXT}, "required": ["a", "b"]}, {AS_JSON: '{"a": "x", "b": 1}'}),
        ({"properties": {"a": TEXT}, "minProperties": 2}, {AS_JSON: '{"a": "x", "b": 1}'}),
        ({"properties": {"a": TEXT}, "allOf": [{"required": ["b"]}]}, {AS_JSON: '{"a": "x", "b": 1}'}),
        (
            {"properties": {"a": TEXT}, "if": {"required": ["a"]}, "then": {"properties": {"b": TEXT}}},
            {AS_JSON: '{"a": "x", "b": "y"}'},
        ),
        ({"properties": {"a": TEXT}, "dependentRequired": {"a": ["b"]}}, {AS_JSON: '{"a": "x", "b": 1}'}),
        ({"properties": {"a": TEXT}, "$ref": "#/$defs/a", "$defs": {"a": ADDRESS}}, {AS_JSON: '{"town": "y"}'}),
        ({"additionalProperties": TEXT, "required": ["b"]}, {AS_JSON: '{"b": "y"}'}),
    ],
)  # fmt: skip
def test_each_part_that_an_answer_may_need_has_a_field_or_the_answer_is_written_as_json(
    schema: dict[str, Any], fields: dict[str, str]
) -> None:
    schema = {"type": "object", **schema}
    page = draw_form(schema)
    for field in [*page.text_area, *page.text_input]:
        if field.label in fields:
            field.set_value(fields[field.label])
    page.run()
    assert not page.exception
    assert {field.label for field in [*page.text_area, *page.text_input]} == {*fields, "Final thought"}
    answer = AnswerFormat.from_json({"kind": "json", "schema": schema}).normalize(page.session_state["answer"])
    assert set(schema.get("required", ())) <= json.loads(answer).keys()


def test_why_a_question_cannot_be_answered_is_chosen_in_place_of_an_answer_and_taken_back() -> None:
    page = AppTest.from_string(SCRIPT, default_timeout=60)
    page.session_state["format"] = {}
    page.run()
    page.text_input(key=field_key(page, "final_answer")).set_value("Lund").run()
    reason = page.selectbox(key=field_key(page, "reason"))
    reason.set_value("ambiguous").run()
    assert page.session_state["answer"] == "This question cannot be answered: it has more than one meaning."
    assert page.text_input(key=field_key(page, "final_answer")).disabled
    page.selectbox(key=field_key(page, "reason")).set_value(None).run()
    assert page.session_state["answer"] == "Lund"


def field_key(page: AppTest, field: str) -> str:
    return f"c_{page.session_state['record'].trace.id.hex[-12:]}_0_{field}"


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"type": "array", "items": {"type": "string"}, "default": ["a b", "[c]"]}, ["a b", "[c]"]),
        ({"type": "array", "items": {"type": "integer"}, "default": 3}, [3]),
        ({"type": "array", "default": "abc"}, ["abc"]),
        ({"type": "array", "items": ADDRESS, "default": [{"town": "Lund"}]}, [{"town": "Lund"}]),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b"]}, ["b"]),
    ],
)
def test_a_list_begins_with_its_default(part: dict[str, Any], value: list[Any]) -> None:
    page = draw_form({"type": "object", "properties": {"a": part}, "required": ["a"]})
    assert not page.exception
    assert json.loads(page.session_state["answer"]) == {"a": value}


# Drawn as the Annotate page draws it; the test puts the steps, the names of the world and the tool into the session.
STEP_SCRIPT = """
import streamlit as st

from showhow.app.pages.annotate.composer import StepComposer, show_step_form
from showhow.app.pages.annotate.recorder import PickedValue, choose_tool, insert_value
from showhow.db.models import Project, Question, Step, Trace
from showhow.db.traces.trace_record import TraceRecord
from showhow.tools.registry import BUILT_IN_TOOLS

project = Project(name="p", world="w")
question = Question(project_id=project.id, position=1, text="Who was born earlier, Ada Lund or Bo Ek, in March?")
trace = st.session_state.setdefault("trace", Trace(question_id=question.id))
steps = [Step(trace_id=trace.id, position=place, **step) for place, step in enumerate(st.session_state["steps"], 1)]
is_known_name = st.session_state["names"].__contains__ if st.session_state["names"] else None
composer = StepComposer(TraceRecord(project, question, trace, steps), tuple(BUILT_IN_TOOLS.values()), is_known_name)
st.session_state.setdefault(composer.key("tool"), st.session_state["first_tool"])
for value in st.session_state.pop("clicked", ()):
    insert_value(composer, PickedValue(value, "title"), None)
if name := st.session_state.pop("chosen", None):
    choose_tool(composer, name)
show_step_form(composer, lambda name: choose_tool(composer, name))
"""
NAMES = {"Ada Lund", "Bo Ek", "March"}
SEARCH = {"tool": "wikisearch", "thought": "", "arguments": {"query": "Ada Lund"}}
FOUND = SEARCH | {"data": {"hits": [{"title": "Ada of Lund"}, {"title": "ADA LUND"}]}}
READ = {"tool": "read", "thought": "", "arguments": {"title": "Ada Lund", "question": "?"}}


def draw_step_form(steps: list[dict[str, Any]], tool: str, names: set[str] = NAMES) -> AppTest:
    page = AppTest.from_string(STEP_SCRIPT, default_timeout=60)
    page.session_state["steps"], page.session_state["names"], page.session_state["first_tool"] = steps, names, tool
    return page.run()


def first_field(page: AppTest) -> str:
    assert not page.exception
    return str(page.text_input[0].value)


@pytest.mark.parametrize(
    ("steps", "tool", "names", "text"),
    [
        ([], "wikisearch", NAMES, "Ada Lund"),
        ([], "getWikiDataID", NAMES, "Ada Lund"),
        ([FOUND], "wikisearch", NAMES, "Bo Ek"),
        ([FOUND], "read", NAMES, "ADA LUND"),
        ([SEARCH], "read", NAMES, "Bo Ek"),
        ([FOUND, READ], "wikisearch", NAMES, "Bo Ek"),
        ([FOUND, READ, SEARCH | {"arguments": {"query": "bo ek"}}], "wikisearch", NAMES - {"March"}, ""),
        ([], "wikisearch", {"Bo Ek"}, "Bo Ek"),
        # Nobody knows the names of a live world without asking its server.
        ([], "wikisearch", set(), ""),
        ([FOUND], "read", set(), "ADA LUND"),
    ],
)
def test_a_title_begins_with_what_was_found_or_with_the_next_name_of_the_question(
    steps: list[dict[str, Any]], tool: str, names: set[str], text: str
) -> None:
    assert first_field(draw_step_form(steps, tool, names)) == text


def test_a_clicked_value_replaces_a_suggestion_and_goes_along_to_other_tools() -> None:
    page = draw_step_form([], "wikisearch")
    page.session_state["clicked"] = ["Cy Holm"]
    assert first_field(page.run()) == "Cy Holm"
    page.session_state["chosen"] = "read"
    assert first_field(page.run()) == "Cy Holm"
