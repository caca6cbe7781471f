"""The step being composed: thought, tool, its form, Run; and the answer form that ends a trace."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.components.argument_fields import LONG, argument_field, css_of, field_of, options_of, read_fields
from app.components.plain import plain
from db.models import Draft
from db.record import TraceRecord
from tools.parameter import Parameter
from tools.tool import Tool

ANSWER_FIELDS = {
    "answer_text": ("Answer from the text", "What the articles say"),
    "answer_graph": ("Answer from the graph", "What the queries gave"),
    "final_answer": ("Final answer", "Short, as it would be marked: a name, a date, a number, yes or no"),
    "final_thought": ("Final thought", "How the steps lead to the answer"),
}
# Which kinds of value an argument takes; what is not named here takes any text.
TAKES = {"title": ("title", "address"), "query": ("title",), "sparql": ("query",), "question": ()}
# The tool that is chosen when a value of that kind is clicked: no other one takes it.
ONLY_FOR = {"query": "runQuery", "address": "read"}


@dataclass(frozen=True, slots=True)
class Composer:
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

    def fields(self) -> dict[str, str]:
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
        return read_fields(self.tool.parameters, self._written())

    def missing(self) -> list[str]:
        """The arguments that are still empty and may not be."""
        written = self._written()
        return [p.name for p in self.tool.parameters if p.required and not written[p.name]]

    def _written(self) -> dict[str, str]:
        kept = {p.name: st.session_state.get(self.key(field_of(self.tool, p))) for p in self.tool.parameters}
        return {name: str(value or "").strip() for name, value in kept.items()}

    def next_slot(self) -> None:
        """Begin a new step with empty fields."""
        st.session_state[f"slot_{self.scope}"] = st.session_state.get(f"slot_{self.scope}", 0) + 1


def seed(composer: Composer, draft: Draft | None) -> None:
    """Give the form its first values: the draft's if it is of this step, else what follows from the trace."""
    if composer.key("tool") in st.session_state:
        return
    kept = draft.content if draft and draft.content.get("step") == len(composer.record.steps) + 1 else {}
    known = {tool.name for tool in composer.tools}
    for name, value in kept.get("fields", {}).items():
        if name != "tool" or value in known:
            st.session_state[composer.key(name)] = value
    st.session_state.setdefault(composer.key("tool"), _likely_tool(composer))
    st.session_state.setdefault(composer.key("mode"), "step")


def _likely_tool(composer: Composer) -> str:
    last = composer.record.steps[-1] if composer.record.steps else None
    offered = [tool.name for tool in composer.tools]
    if last is None or last.tool is None:
        return offered[0]
    likely = "runQuery" if last.tool == "generateQuery" and not last.error else last.tool
    return likely if likely in offered else offered[0]


def compose_step(composer: Composer, choose: Callable[[str], None]) -> None:
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
                plain(tool.title),
                key=f"tool_{tool.name}",
                type="primary" if tool.name == composer.tool.name else "secondary",
                shortcut=f"Alt+{number}" if number <= 9 else None,
                on_click=choose,
                args=(tool.name,),
                help=plain(_told(tool)),
            )
    for parameter in composer.tool.parameters:
        key = composer.key(field_of(composer.tool, parameter))
        argument_field(parameter, key, _suggestion(composer, parameter))


def _told(tool: Tool) -> str:
    """What the tool does, in its first words, and where it comes from if it is not ours."""
    first = tool.description.split("\n", maxsplit=1)[0]
    return f"{first} ({tool.name}, of {tool.place})" if tool.place else first


def _suggestion(composer: Composer, parameter: Parameter) -> str:
    if parameter.default is not None:
        return parameter.write(parameter.default)
    if composer.tool.place:
        return ""
    if parameter.name == "question":
        return composer.record.question.text
    last = composer.record.steps[-1] if composer.record.steps else None
    if parameter.name == "sparql" and last and last.data and last.data.get("candidates"):
        return str(last.data["candidates"][0]["sparql"])
    return ""


def compose_answer(composer: Composer) -> None:
    """Draw the answer form."""
    for name, (label, hint) in ANSWER_FIELDS.items():
        if name == "final_thought":
            st.text_area(label, key=composer.key(name), placeholder=hint, height=90)
        else:
            st.text_input(label, key=composer.key(name), placeholder=hint)


def take_value(composer: Composer, value: str, kind: str, source_tool: str | None) -> str | None:
    """Put a clicked value into the form; a sentence when no field takes it."""
    if composer.mode == "answer":
        by_source = "answer_graph" if source_tool in ("runQuery", "getLabel", "getWikiDataID") else "answer_text"
        st.session_state[composer.key(by_source)] = value
        if not st.session_state.get(composer.key("final_answer")):
            st.session_state[composer.key("final_answer")] = value
        return None
    if ONLY_FOR.get(kind) in [tool.name for tool in composer.tools]:
        st.session_state[composer.key("tool")] = ONLY_FOR[kind]
    fitting = [p for p in composer.tool.parameters if _takes(p, kind)]
    if not fitting:
        return f"{composer.tool.title} has no field for this value; choose another tool, then click the value again."
    empty = [p for p in fitting if not st.session_state.get(composer.key(field_of(composer.tool, p)))]
    target = (empty or fitting)[0]
    key = composer.key(field_of(composer.tool, target))
    if target.kind == "list":
        items = target.read(str(st.session_state.get(key, "")))
        st.session_state[key] = target.write(items if value in items else [*items, value])
    elif target.name in LONG and kind == "entity":
        st.session_state[key] = f"{st.session_state.get(key, '')} wd:{value}".strip()
    else:
        st.session_state[key] = value
    return None


def _takes(parameter: Parameter, kind: str) -> bool:
    if parameter.kind == "list":
        return kind == "entity" if parameter.item == "id" else parameter.item == "text"
    if parameter.kind != "text":
        return False
    if parameter.name == "sparql":
        return kind in ("query", "entity")
    return kind in TAKES.get(parameter.name, ("title", "entity"))


def watched(composer: Composer) -> dict[str, str]:
    """The typed fields on the page now, each with the class of its widget."""
    written = [field_of(composer.tool, p) for p in composer.tool.parameters if not options_of(p)]
    names = list(ANSWER_FIELDS) if composer.mode == "answer" else ["thought", *written]
    return {name: css_of(composer.key(name)) for name in names}
