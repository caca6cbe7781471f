"""The form of the next step (thought, tool, one field per argument) and the form of the answer that ends a trace.

Fields hold text until the step is run; `parse_arguments` converts it to typed values.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from showhow.app.widgets.observation import NUMBER
from showhow.app.widgets.page_layout import escape_markdown, format_sentence
from showhow.app.widgets.table import shorten
from showhow.db.models import Draft, Step
from showhow.db.questions.answer_formats import AnswerFormat, AnswerKind
from showhow.db.review.review import ReturnedWork
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import dump_json, load_json
from showhow.db.unanswerable import read_unanswerable, write_unanswerable
from showhow.reasoners.mentions import NameLookup, find_values
from showhow.tools.arguments import Parameter, parse_parameters
from showhow.tools.registry import name_tools_by_title
from showhow.tools.tool import SourceKind, Tool

MULTILINE_PARAMETERS = frozenset({"sparql"})
MAX_RADIO_OPTIONS = 4
"""Up to this many choices are radio buttons; more are a select box."""
MAX_SUMMARY_CHARACTERS = 400
"""Characters of an external tool's description."""
MAX_CLAUSE = 90
"""Characters of what a tool does, in its button."""
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
    """The name of the argument's field in the form and in drafts."""
    return f"arg_{tool.name}_{parameter.name}"


def value_field_name(parameter: Parameter) -> str:
    """The name of the field of a part of the answer in the form and in drafts."""
    return f"value_{parameter.name}"


def widget_css_class(key: str) -> str:
    """The CSS class that Streamlit gives the widget of that key, without its prefix."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", key)


def parameter_options(parameter: Parameter) -> tuple[str, ...]:
    """The choices of the argument as labels; () for a text field."""
    return (
        BOOLEAN_OPTIONS
        if parameter.kind == "yes/no"
        else tuple(map(str, parameter.choices))
        if _is_choice(parameter)
        else ()
    )


def show_argument_field(parameter: Parameter, key: str, suggest: Callable[[], str]) -> None:
    """Draw the field; `suggest` returns its text until the person changes it."""
    options = parameter_options(parameter)
    if key not in st.session_state:
        st.session_state[key] = suggest()
    if options and not parameter.required:
        options = (OMITTED, *options) if parameter.default is None else options
    if options and st.session_state[key] not in options:
        # The stored choice is no longer offered, or nothing was chosen yet.
        st.session_state[key] = OMITTED if OMITTED in options else None
    label = escape_markdown(parameter.label) + ("" if parameter.required else " (optional)")
    hint = escape_markdown(name_tools_by_title(parameter.hint)) if _needs_help(parameter) else None
    if options and len(options) <= MAX_RADIO_OPTIONS:
        st.radio(label, options, key=key, horizontal=True, format_func=_option_label, help=hint)
    elif options:
        st.selectbox(
            label,
            options,
            key=key,
            format_func=lambda option: option or "left out",
            placeholder="Choose one",
            help=hint,
        )
    elif (
        parameter.name in MULTILINE_PARAMETERS
        or parameter.kind == "json"
        or (parameter.kind == "list" and parameter.item_kind != "id")
    ):
        height = 190 if parameter.name in MULTILINE_PARAMETERS else FIELD_HEIGHTS[parameter.kind]
        st.text_area(label, key=key, height=height, placeholder=_placeholder(parameter), help=hint)
    else:
        st.text_input(label, key=key, placeholder=_placeholder(parameter), help=hint)


def parse_arguments(parameters: Iterable[Parameter], texts: dict[str, str]) -> dict[str, Any]:
    """Convert the texts to typed arguments; empty optional arguments are left out.

    Raises ValueError, which names the invalid argument and the reason.
    """
    arguments: dict[str, Any] = {}
    for parameter in parameters:
        text = texts[parameter.name]
        if text or parameter.required:
            try:
                arguments[parameter.name] = parameter.parse(text)
            except ValueError as error:
                raise ValueError(f"{parameter.label}: {error}") from error
    return arguments


def _option_label(option: str) -> str:
    return escape_markdown(option) or "left out"


def _is_choice(parameter: Parameter) -> bool:
    return parameter.kind == "choice"


def _needs_help(parameter: Parameter) -> bool:
    """Whether the hint needs a tooltip, since the field cannot show a placeholder."""
    return (
        bool(parameter.hint)
        and (parameter.kind != "text" or parameter.default is not None)
        and parameter.item_kind != "id"
    )


def _placeholder(parameter: Parameter) -> str:
    format_hint = "" if parameter.item_kind == "id" else _FORMAT_HINTS.get(parameter.kind, "")
    return ": ".join(filter(None, (format_hint, name_tools_by_title(parameter.hint))))


ANSWER_FIELDS = {
    "answer_text": ("Answer from the text", "The answer according to the articles"),
    "answer_graph": ("Answer from the graph", "The answer according to the queries"),
    "final_answer": ("Final answer", "Short: a name, a date, a number, yes or no"),
    "final_thought": ("Final thought", "How the steps lead to the answer"),
}
REASON_FIELD = "reason"
"""The field with the reason why the question cannot be answered."""
DEFAULT_ACCEPTED_KINDS = ("title", "entity", NUMBER)
"""The kinds of value that a text argument accepts if its tool does not declare any."""


@dataclass(frozen=True, slots=True)
class StepComposer:
    """The form of one trace; the keys of its widgets begin with a prefix that changes with every step."""

    record: TraceRecord
    tools: tuple[Tool, ...]
    is_known_name: NameLookup | None = None
    """Whether the world has something of that name; None where nobody knows without asking a server."""

    @property
    def scope(self) -> str:
        """The part of the keys that belongs to this trace."""
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
        """Which form is open: "step" or "answer"."""
        return str(st.session_state.get(self.key("mode"), "step"))

    @property
    def tool(self) -> Tool:
        """The chosen tool."""
        name = st.session_state[self.key("tool")]
        # The project's choice of tools may have changed since this form was first drawn.
        return next((tool for tool in self.tools if tool.name == name), self.tools[0])

    def field_values(self) -> dict[str, str]:
        """The texts of the form's fields by name."""
        prefix_length = len(self.prefix) + 1
        fields = {
            k[prefix_length:]: v
            for k, v in st.session_state.items()
            if isinstance(k, str) and k.startswith(self.prefix + "_")
        }
        return {name: value for name, value in fields.items() if isinstance(value, str)}

    def thought(self) -> str:
        """The thought as typed."""
        return str(st.session_state.get(self.key("thought"), "")).strip()

    def arguments(self) -> dict[str, Any]:
        """The typed arguments of the chosen tool; raises ValueError, which names the invalid argument."""
        return parse_arguments(self.tool.parameters, self._argument_texts())

    def missing_fields(self) -> list[str]:
        """The labels of required fields that are empty."""
        texts = self._argument_texts()
        return [p.label for p in self.tool.parameters if p.required and not texts[p.name]]

    def _argument_texts(self) -> dict[str, str]:
        values = {
            p.name: st.session_state.get(self.key(argument_field_name(self.tool, p))) for p in self.tool.parameters
        }
        return {name: str(value or "").strip() for name, value in values.items()}

    @property
    def answer_format(self) -> AnswerFormat:
        """The format of the project's answers."""
        return AnswerFormat.from_json(self.record.project.answer_format)

    @property
    def answer_parameters(self) -> tuple[Parameter, ...]:
        """The fields of an answer that is a JSON object, as its schema describes them.

        () for other answers, and for an object that may need parts without a field.
        """
        schema = self.answer_format.schema
        if schema.get("type") != "object" or _names_other_parts(schema, schema.get("properties", {}).keys()):
            return ()
        return parse_parameters(schema)

    @property
    def answer_fields(self) -> dict[str, tuple[str, str]]:
        """The text fields of the answer form by name, each with label and placeholder."""
        sources = {tool.source for tool in self.tools}
        kind = self.answer_format.kind
        shown = {
            "answer_text": kind == AnswerKind.TEXT and bool(sources & {SourceKind.TEXT, SourceKind.WEB}),
            "answer_graph": kind == AnswerKind.TEXT and SourceKind.GRAPH in sources,
            "final_answer": kind != AnswerKind.NONE and not self.answer_parameters,
            "final_thought": True,
        }
        fields = {name: field for name, field in ANSWER_FIELDS.items() if shown[name]}
        if kind == AnswerKind.JSON and not self.answer_parameters:
            fields["final_answer"] = ("Answer as JSON", f"A value of {dump_json(self.answer_format.schema)}"[:200])
        return fields

    @property
    def takes_answer(self) -> bool:
        """Whether a value can be the answer, or a part of it."""
        return bool(self.answer_parameters) or "final_answer" in self.answer_fields

    def answer(self) -> str:
        """The final answer as typed or chosen, or the JSON object of its fields; ValueError names a wrong field."""
        if reason := self.unanswerable_reason:
            return write_unanswerable(reason)
        if not self.answer_parameters:
            return self.field_values().get("final_answer", "").strip()
        values = {p.name: st.session_state.get(self.key(value_field_name(p))) for p in self.answer_parameters}
        texts = {name: str(value or "").strip() for name, value in values.items()}
        if missing := [p.label for p in self.answer_parameters if p.required and not texts[p.name]]:
            raise ValueError(f"fill in {' and '.join(missing)}")
        return dump_json(parse_arguments(self.answer_parameters, texts))

    @property
    def unanswerable_reason(self) -> str | None:
        """Why the question cannot be answered, as chosen; None if that is not chosen."""
        return st.session_state.get(self.key(REASON_FIELD))

    def start_next_step(self) -> None:
        """Begin a new step with empty fields."""
        st.session_state[f"slot_{self.scope}"] = st.session_state.get(f"slot_{self.scope}", 0) + 1


def _names_other_parts(schema: Any, names: Collection[str]) -> bool:
    """Whether the schema of an object asks for parts of other names, or may do so by a reference."""
    if not isinstance(schema, Mapping):
        return False
    named = [*schema.get("properties", ()), *schema.get("required", ())]
    named += [name for needed in schema.get("dependentRequired", {}).values() for name in needed]
    parts = [part for keyword in ("allOf", "anyOf", "oneOf") for part in schema.get(keyword, ())]
    parts += [schema.get("then"), schema.get("else"), *schema.get("dependentSchemas", {}).values()]
    return (
        "$ref" in schema
        or not set(named) <= set(names)
        or schema.get("minProperties", 0) > len(names)
        or any(_names_other_parts(part, names) for part in parts)
    )


def seed_composer(composer: StepComposer, draft: Draft | None, returned: ReturnedWork | None) -> None:
    """Fill the empty form from the draft of this step, the answers of returned work, and the previous step."""
    if composer.key("tool") in st.session_state:
        return
    content = draft.content if draft and draft.content.get("step") == len(composer.record.steps) + 1 else {}
    offered = {tool.name for tool in composer.tools}
    for name, value in content.get("fields", {}).items():
        if name != "tool" or value in offered:
            st.session_state[composer.key(name)] = value
    if returned is not None:
        for name in ANSWER_FIELDS:
            st.session_state.setdefault(composer.key(name), getattr(returned.trace, name) or "")
        _seed_answer_object(composer, returned.trace.final_answer)
        reason = read_unanswerable(returned.trace.final_answer)
        if reason and reason.is_stated:
            st.session_state.setdefault(composer.key(REASON_FIELD), str(reason))
            st.session_state[composer.key("final_answer")] = ""
    st.session_state.setdefault(composer.key("tool"), _suggest_tool(composer))
    st.session_state.setdefault(composer.key("mode"), "step")


def _seed_answer_object(composer: StepComposer, answer: str | None) -> None:
    """Fill the fields of an answer that is a JSON object; one from before the schema may be none."""
    try:
        values = load_json(answer) if composer.answer_parameters and answer else {}
    except ValueError:
        return
    if not isinstance(values, dict):
        return
    for parameter in composer.answer_parameters:
        if parameter.name in values:
            key = composer.key(value_field_name(parameter))
            st.session_state.setdefault(key, parameter.format(values[parameter.name]))


def _suggest_tool(composer: StepComposer) -> str:
    last_step = composer.record.steps[-1] if composer.record.steps else None
    offered = [tool.name for tool in composer.tools]
    if last_step is None or last_step.tool is None:
        return offered[0]
    last_tool = next((tool for tool in composer.tools if tool.name == last_step.tool), None)
    suggested = last_tool.next_tool if last_tool and last_tool.next_tool and not last_step.error else last_step.tool
    return suggested if suggested in offered else offered[0]


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
            does, more = _summarize_tool(tool)
            origin = f", from {tool.origin}" if tool.origin else ""
            st.button(
                f"{escape_markdown(tool.title)} :small[{escape_markdown(does)}]",
                key=f"tool_{tool.name}",
                type="primary" if tool.name == composer.tool.name else "secondary",
                shortcut=f"Alt+{number % 10}" if number <= 10 else None,
                on_click=choose,
                args=(tool.name,),
                help=escape_markdown(f"{more} ({tool.name}{origin})"),
            )
    if more := _summarize_tool(composer.tool)[1]:
        with st.container(key="tool_summary"):
            # "wd:" is no word to be capitalized.
            st.caption(format_sentence(more) if more.split()[0].isalpha() else more)
    for parameter in composer.tool.parameters:
        key = composer.key(argument_field_name(composer.tool, parameter))
        show_argument_field(parameter, key, partial(suggest_argument, composer, parameter))


def _summarize_tool(tool: Tool) -> tuple[str, str]:
    """What the tool does, and what else the first line of its description says."""
    line = name_tools_by_title(tool.description.strip().split("\n", maxsplit=1)[0])[:MAX_SUMMARY_CHARACTERS]
    does, *more = re.split(r"[;:.] ", line, maxsplit=1)
    return (shorten(does, MAX_CLAUSE), line) if len(does) > MAX_CLAUSE else (does.removesuffix("."), "".join(more))


def suggest_argument(composer: StepComposer, parameter: Parameter) -> str:
    """What the field of an argument begins with: its default, or what the question or the last step leads to."""
    if parameter.default is not None:
        return parameter.format(parameter.default)
    if composer.tool.origin:
        return ""
    if parameter.name == "question":
        return composer.record.question.text
    last_step = composer.record.steps[-1] if composer.record.steps else None
    if parameter.name == "entity" and last_step and last_step.data and last_step.data.get("relations"):
        # A relation of the same entity is followed next.
        return str(last_step.data["entity"])
    if parameter.name == "sparql" and last_step and last_step.data and last_step.data.get("candidates"):
        return str(last_step.data["candidates"][0]["sparql"])
    return _suggest_name(composer) if "title" in (parameter.accepts or ()) else ""


def _suggest_name(composer: StepComposer) -> str:
    """The title that the last step searched for and found; to search again, the question's first name not used."""
    steps, question = composer.record.steps, composer.record.question.text
    if steps and steps[-1].tool != composer.tool.name:
        searched = _used_words(steps[-1:])
        titles = [str(hit["title"]) for hit in (steps[-1].data or {}).get("hits", ())]
        if (title := next((title for title in titles if title.casefold() in searched), None)) is not None:
            return title
    if composer.is_known_name is None:
        return ""
    used = _used_words(steps)
    values = [question[start:end] for start, end in find_values(question, composer.is_known_name)]
    # Dates and numbers of the question are no names.
    return next((name for name in values if name.casefold() not in used and composer.is_known_name(name)), "")


def _used_words(steps: Iterable[Step]) -> set[str]:
    return {str(value).casefold() for step in steps for value in step.arguments.values()}


def list_takers(tools: Iterable[Tool]) -> dict[str, list[dict[str, str]]]:
    """List the tools that take each kind of value, for the menu of a clicked value."""
    tools = tuple(tools)
    kinds = {*DEFAULT_ACCEPTED_KINDS, *(kind for tool in tools for p in tool.parameters for kind in p.accepts or ())}
    return {
        kind: [
            {"name": tool.name, "title": tool.title}
            for tool in tools
            if any(accepts_kind(parameter, kind) for parameter in tool.parameters)
        ]
        for kind in sorted(kinds)
    }


def accepts_kind(parameter: Parameter, kind: str) -> bool:
    """Whether a clicked value of that kind can fill the argument."""
    if parameter.kind == "list":
        return (
            kind in (parameter.accepts or ("entity",)) if parameter.item_kind == "id" else parameter.item_kind == "text"
        )
    if parameter.kind in ("number", "whole number"):
        return kind == NUMBER
    if parameter.kind != "text":
        return False
    return kind in (DEFAULT_ACCEPTED_KINDS if parameter.accepts is None else parameter.accepts)


def typed_field_classes(composer: StepComposer) -> dict[str, str]:
    """The typed fields of the open form by name, each with the CSS class of its widget."""
    if composer.mode == "answer":
        values = [value_field_name(p) for p in composer.answer_parameters if not parameter_options(p)]
        names = [*values, *composer.answer_fields]
    else:
        arguments = [p for p in composer.tool.parameters if not parameter_options(p)]
        names = ["thought", *(argument_field_name(composer.tool, parameter) for parameter in arguments)]
    return {name: widget_css_class(composer.key(name)) for name in names}
