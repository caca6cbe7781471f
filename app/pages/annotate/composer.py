"""The step being composed: thought, tool, its form, Run; and the answer form that ends a trace.

The fields of a tool's arguments, by what each of them takes; what stands in them is text until the step is run.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.widgets.plain_text import escape_markdown
from db.models import Draft
from db.trace_record import TraceRecord
from tools.parameter import Parameter
from tools.tool import Tool

MULTILINE_PARAMETERS = frozenset({"sparql"})
MAX_RADIO_OPTIONS = 4
"""Up to so many choices stand side by side, more in a box that opens."""
BOOLEAN_OPTIONS = ("yes", "no")
OMITTED = ""
FIELD_HEIGHTS = {"list": 100, "json": 120}
_FORMAT_HINTS = {
    "number": "a number",
    "whole number": "a whole number",
    "list": "one a line",
    "json": "JSON",
}


def argument_field_name(tool: Tool, parameter: Parameter) -> str:
    """The name under which the form keeps the argument."""
    return f"arg_{tool.name}_{parameter.name}"


def widget_css_class(key: str) -> str:
    """The class that Streamlit gives to the widget of that key, without its prefix."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", key)


def parameter_options(parameter: Parameter) -> tuple[str, ...]:
    """What can be chosen, as it is shown; () where something is written."""
    return (
        BOOLEAN_OPTIONS
        if parameter.kind == "yes/no"
        else tuple(map(str, parameter.choices))
        if _is_choice(parameter)
        else ()
    )


def show_argument_field(parameter: Parameter, key: str, first: str) -> None:
    """Draw the field; `first` stands in it until something else was written."""
    options = parameter_options(parameter)
    if key not in st.session_state:
        st.session_state[key] = first
    if options and not parameter.required:
        options = (OMITTED, *options) if parameter.default is None else options
    if options and st.session_state[key] not in options:
        # A choice that is no longer offered, or nothing yet.
        st.session_state[key] = OMITTED if OMITTED in options else None
    label = escape_markdown(parameter.name.replace("_", " ")) + ("" if parameter.required else " (optional)")
    told = escape_markdown(parameter.hint) if _needs_help(parameter) else None
    if options and len(options) <= MAX_RADIO_OPTIONS:
        st.radio(label, options, key=key, horizontal=True, format_func=_option_label, help=told)
    elif options:
        st.selectbox(
            label, options, key=key, format_func=lambda one: one or "left out", placeholder="Choose one", help=told
        )
    elif (
        parameter.name in MULTILINE_PARAMETERS
        or parameter.kind == "json"
        or (parameter.kind == "list" and parameter.item_kind != "id")
    ):
        height = 190 if parameter.name in MULTILINE_PARAMETERS else FIELD_HEIGHTS[parameter.kind]
        st.text_area(label, key=key, height=height, placeholder=_placeholder(parameter), help=told)
    else:
        st.text_input(label, key=key, placeholder=_placeholder(parameter), help=told)


def parse_arguments(parameters: Iterable[Parameter], written: dict[str, str]) -> dict[str, Any]:
    """The arguments with the types that they have; one that may be left out and is empty is left out.

    ValueError says which one is wrong, and how.
    """
    given: dict[str, Any] = {}
    for parameter in parameters:
        text = written[parameter.name]
        if text or parameter.required:
            try:
                given[parameter.name] = parameter.parse(text)
            except ValueError as wrong:
                raise ValueError(f"{parameter.name.replace('_', ' ')}: {wrong}") from wrong
    return given


def _option_label(option: str) -> str:
    return escape_markdown(option) or "left out"


def _is_choice(parameter: Parameter) -> bool:
    return parameter.kind == "choice"


def _needs_help(parameter: Parameter) -> bool:
    """Whether the hint needs a place of its own, since the field is not empty when it is first seen."""
    return (
        bool(parameter.hint)
        and (parameter.kind != "text" or parameter.default is not None)
        and parameter.item_kind != "id"
    )


def _placeholder(parameter: Parameter) -> str:
    form = "" if parameter.item_kind == "id" else _FORMAT_HINTS.get(parameter.kind, "")
    return ": ".join(filter(None, (form, parameter.hint)))


ANSWER_FIELDS = {
    "answer_text": ("Answer from the text", "What the articles say"),
    "answer_graph": ("Answer from the graph", "What the queries gave"),
    "final_answer": ("Final answer", "Short, as it would be marked: a name, a date, a number, yes or no"),
    "final_thought": ("Final thought", "How the steps lead to the answer"),
}
# Which kinds of value an argument takes; what is not named here takes any text.
ACCEPTED_KINDS = {"title": ("title", "address"), "query": ("title",), "sparql": ("query",), "question": ()}
# The tool that is chosen when a value of that kind is clicked: no other one takes it.
TOOL_FOR_KIND = {"query": "runQuery", "address": "read"}


@dataclass(frozen=True, slots=True)
class StepComposer:
    """The form of one trace; its widgets live under a prefix that changes with every step that was run."""

    record: TraceRecord
    tools: tuple[Tool, ...]

    @property
    def scope(self) -> str:
        """The name under which this trace's composer keeps its state."""
        return self.record.trace.id.hex[-12:]

    @property
    def prefix(self) -> str:
        """The start of the keys of the widgets of the step being composed."""
        return f"c_{self.scope}_{st.session_state.get(f'slot_{self.scope}', 0)}"

    def key(self, field: str) -> str:
        """The key of a field's widget."""
        return f"{self.prefix}_{field}"

    @property
    def mode(self) -> str:
        """What is being written: a step or the answer."""
        return str(st.session_state.get(self.key("mode"), "step"))

    @property
    def tool(self) -> Tool:
        """The tool that is chosen."""
        chosen = st.session_state[self.key("tool")]
        # The project's choice of tools may have changed since this form was first drawn.
        return next((tool for tool in self.tools if tool.name == chosen), self.tools[0])

    def field_values(self) -> dict[str, str]:
        """Every field of the form by name, with what the server knows of it."""
        start = len(self.prefix) + 1
        found = {
            k[start:]: v for k, v in st.session_state.items() if isinstance(k, str) and k.startswith(self.prefix + "_")
        }
        return {name: value for name, value in found.items() if isinstance(value, str)}

    def thought(self) -> str:
        """The thought as typed."""
        return str(st.session_state.get(self.key("thought"), "")).strip()

    def arguments(self) -> dict[str, Any]:
        """The arguments of the chosen tool with their types; ValueError says what is wrong with one."""
        return parse_arguments(self.tool.parameters, self._argument_texts())

    def missing_arguments(self) -> list[str]:
        """The arguments that are still empty and may not be."""
        written = self._argument_texts()
        return [p.name for p in self.tool.parameters if p.required and not written[p.name]]

    def _argument_texts(self) -> dict[str, str]:
        kept = {p.name: st.session_state.get(self.key(argument_field_name(self.tool, p))) for p in self.tool.parameters}
        return {name: str(value or "").strip() for name, value in kept.items()}

    def start_next_step(self) -> None:
        """Begin a new step with empty fields."""
        st.session_state[f"slot_{self.scope}"] = st.session_state.get(f"slot_{self.scope}", 0) + 1


def seed_composer(composer: StepComposer, draft: Draft | None) -> None:
    """Give the form its first values: the draft's if it is of this step, else what follows from the trace."""
    if composer.key("tool") in st.session_state:
        return
    kept = draft.content if draft and draft.content.get("step") == len(composer.record.steps) + 1 else {}
    known = {tool.name for tool in composer.tools}
    for name, value in kept.get("fields", {}).items():
        if name != "tool" or value in known:
            st.session_state[composer.key(name)] = value
    st.session_state.setdefault(composer.key("tool"), _suggest_tool(composer))
    st.session_state.setdefault(composer.key("mode"), "step")


def _suggest_tool(composer: StepComposer) -> str:
    last = composer.record.steps[-1] if composer.record.steps else None
    offered = [tool.name for tool in composer.tools]
    if last is None or last.tool is None:
        return offered[0]
    likely = "runQuery" if last.tool == "generateQuery" and not last.error else last.tool
    return likely if likely in offered else offered[0]


def show_step_form(composer: StepComposer, choose: Callable[[str], None]) -> None:
    """Draw the form of a step."""
    st.text_area(
        "Thought",
        key=composer.key("thought"),
        height=110,
        placeholder="What do you need to know next, and why?",
    )
    with st.container(horizontal=True, gap="small", key="tools"):
        for number, tool in enumerate(composer.tools, 1):
            st.button(
                escape_markdown(tool.title),
                key=f"tool_{tool.name}",
                type="primary" if tool.name == composer.tool.name else "secondary",
                shortcut=f"Alt+{number}" if number <= 9 else None,
                on_click=choose,
                args=(tool.name,),
                help=escape_markdown(_tool_help(tool)),
            )
    for parameter in composer.tool.parameters:
        key = composer.key(argument_field_name(composer.tool, parameter))
        show_argument_field(parameter, key, _suggest_argument(composer, parameter))


def _tool_help(tool: Tool) -> str:
    """What the tool does, in its first words, and where it comes from if it is not ours."""
    first = tool.description.split("\n", maxsplit=1)[0]
    return f"{first} ({tool.name}, of {tool.origin})" if tool.origin else first


def _suggest_argument(composer: StepComposer, parameter: Parameter) -> str:
    if parameter.default is not None:
        return parameter.format(parameter.default)
    if composer.tool.origin:
        return ""
    if parameter.name == "question":
        return composer.record.question.text
    last = composer.record.steps[-1] if composer.record.steps else None
    if parameter.name == "sparql" and last and last.data and last.data.get("candidates"):
        return str(last.data["candidates"][0]["sparql"])
    return ""


def show_answer_form(composer: StepComposer) -> None:
    """Draw the answer form."""
    for name, (label, hint) in ANSWER_FIELDS.items():
        if name == "final_thought":
            st.text_area(label, key=composer.key(name), placeholder=hint, height=90)
        else:
            st.text_input(label, key=composer.key(name), placeholder=hint)


def insert_value(composer: StepComposer, value: str, kind: str, source_tool: str | None) -> str | None:
    """Put a clicked value into the form; a sentence when no field takes it."""
    if composer.mode == "answer":
        by_source = "answer_graph" if source_tool in ("runQuery", "getLabel", "getWikiDataID") else "answer_text"
        st.session_state[composer.key(by_source)] = value
        if not st.session_state.get(composer.key("final_answer")):
            st.session_state[composer.key("final_answer")] = value
        return None
    if TOOL_FOR_KIND.get(kind) in [tool.name for tool in composer.tools]:
        st.session_state[composer.key("tool")] = TOOL_FOR_KIND[kind]
    fitting = [p for p in composer.tool.parameters if _accepts_kind(p, kind)]
    if not fitting:
        return f"{composer.tool.title} has no field for this value; choose another tool, then click the value again."
    empty = [p for p in fitting if not st.session_state.get(composer.key(argument_field_name(composer.tool, p)))]
    target = (empty or fitting)[0]
    key = composer.key(argument_field_name(composer.tool, target))
    if target.kind == "list":
        items = target.parse(str(st.session_state.get(key, "")))
        st.session_state[key] = target.format(items if value in items else [*items, value])
    elif target.name in MULTILINE_PARAMETERS and kind == "entity":
        st.session_state[key] = f"{st.session_state.get(key, '')} wd:{value}".strip()
    else:
        st.session_state[key] = value
    return None


def _accepts_kind(parameter: Parameter, kind: str) -> bool:
    if parameter.kind == "list":
        return kind == "entity" if parameter.item_kind == "id" else parameter.item_kind == "text"
    if parameter.kind != "text":
        return False
    if parameter.name == "sparql":
        return kind in ("query", "entity")
    return kind in ACCEPTED_KINDS.get(parameter.name, ("title", "entity"))


def typed_field_classes(composer: StepComposer) -> dict[str, str]:
    """The typed fields on the page now, each with the class of its widget."""
    written = [argument_field_name(composer.tool, p) for p in composer.tool.parameters if not parameter_options(p)]
    names = list(ANSWER_FIELDS) if composer.mode == "answer" else ["thought", *written]
    return {name: widget_css_class(composer.key(name)) for name in names}
