"""The notebook: draws the steps of a trace and reports the person's actions, one at a time.

A long trace is drawn in pages of STEPS_PER_PAGE steps; a link to a step opens its page.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

import streamlit as st

from showhow.app.widgets.component_values import ANY_NUMBER, ValueForm, read_action
from showhow.app.widgets.method_forms import build_method_form
from showhow.app.widgets.observation import MAX_ITEMS, MAX_ITEMS_ON_REQUEST, build_observation_view
from showhow.app.widgets.page_layout import read_asset
from showhow.app.widgets.step_notes import NOTED_STEP, list_note_data
from showhow.app.widgets.url_state import clear_url_parameters, get_url_parameter
from showhow.db.models import SPAN_SKILL, Step
from showhow.db.review.review_queue import StepOutline
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.value_format import format_count, format_money, format_seconds, format_tokens
from showhow.fewshot_library.formats.showhow import format_trace_json, format_trace_markdown
from showhow.reasoners.mentions import NameLookup
from showhow.reasoners.provenance import describe_origin
from showhow.tools.registry import argument_label, name_tools_by_title, tool_title
from showhow.tools.search import DEFAULT_RESULTS, MAX_RESULTS, websearch, wikisearch

USAGE_LABELS = {"thought": "to write the step", "tool": "inside the tool"}
UsageData = Mapping[str, Any]


def format_step_cost(step: Step) -> list[str]:
    """Format the latency of the step's tool, then tokens and cost of its model calls, if any."""
    time = [format_seconds(step.latency)] if step.latency is not None else []
    return [*time, *_format_tokens_and_cost(step.usage.values())]


def format_usage_details(usage: Mapping[str, UsageData]) -> list[str]:
    """Format one clause for each part of a step that called the model."""
    return [_format_usage(USAGE_LABELS[part], usage[part]) for part in USAGE_LABELS if part in usage]


def format_trace_cost(steps: Iterable[Step]) -> str:
    """Format the total of the model calls of all steps; "" without any."""
    return _format_total([part for step in steps for part in step.usage.values()])


def format_run_cost(usage: UsageData) -> str:
    """Format the total of a run's model calls, including those after its last step; "" without any."""
    return _format_total([usage] if usage else [])


def _format_total(usages: list[UsageData]) -> str:
    calls = sum(part.get("calls") or 0 for part in usages)
    return " · ".join([format_count(calls, "model call"), *_format_tokens_and_cost(usages)]) if usages else ""


def _format_tokens_and_cost(usages: Iterable[UsageData]) -> list[str]:
    usage_list = list(usages)
    if not usage_list:
        return []
    input_tokens, output_tokens, cost = (
        _sum_field(usage_list, name) for name in ("input_tokens", "output_tokens", "cost")
    )
    return [format_tokens(input_tokens, output_tokens), format_money(cost)]


def _sum_field(usages: list[UsageData], name: str) -> Any:
    """The sum of a field; None if one call lacks it."""
    amounts = [usage.get(name) for usage in usages]
    return None if None in amounts else sum(filter(None, amounts))


def _format_usage(part: str, usage: UsageData) -> str:
    input_tokens, output_tokens = (
        "unknown" if usage.get(name) is None else f"{usage[name]:,}" for name in ("input_tokens", "output_tokens")
    )
    calls = format_count(usage.get("calls") or 0, "call")
    return (
        f"{part}: {calls} of {usage.get('model') or 'a model'}, {input_tokens} tokens in and {output_tokens} out, "
        f"{format_seconds(usage.get('seconds') or 0.0)}, {format_money(usage.get('cost'))}"
    )


_LABELS = {"rejected": "returned"}


def status_label(status: str) -> str:
    """The page's word for a stored status."""
    return _LABELS.get(status, status)


NotebookAction = dict[str, Any]

STEPS_PER_PAGE = 50
MAX_RESULT_LENGTH = 160
"""Characters of a result in the outline."""
_STEP: ValueForm = {"trace": str, "step": ANY_NUMBER}
ACTION_FORMS: Mapping[str, ValueForm] = {
    "page": {"trace": str, "page": ANY_NUMBER},
    "search": {"trace": str, "text": str},
    "copy": {"trace": str, "format": str, "nonce": float},
    "rate": {**_STEP, "rating": range(6)},
    "pick": {**_STEP, "value": str, "value_kind": str, "label?": str, "tool?": str, "is_answer?": bool},
    **dict.fromkeys(("show", "complete", "note", "edit", "again", "more", "fix", "change", "rerun", "fork"), _STEP),
}
"""The actions that notebook.js sends."""
COPY_FORMATS = {"JSON": format_trace_json, "Markdown": format_trace_markdown}
RATING_SCALE = ("useless", "poor", "fair", "good", "just what was needed")
EMPTY_HINT = (
    "No step yet. Write what you need to know first, choose a tool, fill in its form and run it. Click names, ids and "
    "cells of a result to fill in the next form."
)


@dataclass(slots=True)
class NotebookPosition:
    """The part of a trace that a person looks at; a value of the session."""

    page: int | None = None
    """The page, from 0; None before the first choice."""
    count: int | None = None
    """The number of steps when it was drawn last."""
    step: int | None = None
    """The step that was asked for."""
    requests: int = 0
    """How often a step was asked for, so that each request is followed."""
    complete: set[int] = field(default_factory=set)
    """The steps whose observations are shown with all items."""

    def apply(self, action: NotebookAction, steps: Sequence[Step]) -> bool:
        """Follow an action that changes what is looked at; False for any other action."""
        if action["kind"] == "page":
            self.page, self.step = action["page"], None
        elif action["kind"] == "show":
            self.step, self.requests = action["step"], self.requests + 1
            self.page = page_of_step(steps, self.step)
        elif action["kind"] == "search":
            matches = [step.position for step in steps if _contains(step, action["text"])]
            later = [position for position in matches if position > (self.step or 0)]
            if matches:
                self.apply({"kind": "show", "step": (later or matches)[0]}, steps)
        elif action["kind"] == "complete":
            self.complete.add(action["step"])
        else:
            return False
        return True

    def choose_page(self, steps: Sequence[Step], linked_step: int | None, *, editable: bool, grows: bool) -> int:
        """The page to draw: the chosen one, that of the step in the link, or the one at which such a trace opens.

        A new step opens the last page, unless it is a run's and an earlier page is looked at.
        """
        last_page = _last_page(len(steps))
        if self.count is not None and self.count < len(steps):
            was_at_end = self.page is None or self.page == _last_page(self.count)
            if editable or (grows and was_at_end):
                self.page, self.step = last_page, None
        self.count = len(steps)
        if self.page is not None:
            return min(self.page, last_page)
        if linked_step is not None:
            return page_of_step(steps, linked_step)
        return last_page if editable or grows else 0


@dataclass(frozen=True, slots=True)
class VisiblePart:
    """The page of steps that is drawn, and the positions of steps that are shown with all items."""

    page: int = 0
    complete: frozenset[int] = frozenset()


def _contains(step: Step, text: str) -> bool:
    parts = (
        step.thought,
        step.tool or "",
        *map(str, step.arguments.values()),
        step.observation or "",
        step.error or "",
    )
    return text.casefold() in "\n".join(parts).casefold()


def _last_page(count: int) -> int:
    return max(0, count - 1) // STEPS_PER_PAGE


def page_of_step(steps: Sequence[Step], position: int) -> int:
    """The page, from 0, of the step with this position; the last page for a later one."""
    order = [step.position for step, _ in order_as_tree(steps)]
    place = order.index(position) if position in order else sum(other < position for other in order)
    return min(place // STEPS_PER_PAGE, _last_page(len(steps)))


def order_as_tree(steps: Sequence[Step]) -> list[tuple[Step, int]]:
    """The steps with their depths: children follow their parent, in the order in which they began."""
    present = {step.id for step in steps}
    children: dict[UUID | None, list[Step]] = {}
    for step in steps:
        children.setdefault(step.parent_id if step.parent_id in present else None, []).append(step)
    ordered: list[tuple[Step, int]] = []
    stack = [(step, 0) for step in reversed(children.get(None, ()))]
    while stack:
        step, depth = stack.pop()
        ordered.append((step, depth))
        stack += [(child, depth + 1) for child in reversed(children.get(step.id, ()))]
    return ordered


def show_trace(  # noqa: PLR0913 - each names one way in which the notebook is used
    record: TraceRecord,
    *,
    editable: bool,
    forkable: bool,
    grows: bool = False,
    on_act: Callable[[NotebookAction], None] | None = None,
    overrides: Mapping[str, Any] = MappingProxyType({}),
    is_known_name: NameLookup | None = None,
) -> None:
    """Draw the record; actions (pick, rate, edit, again, fork) go to `on_act` before the page is drawn again.

    A trace that is `editable` or `grows`, since its run goes on, opens at its last page, any other at its first.
    `overrides` replaces fields of the notebook's data, such as "ratable", "fixable" (offers the actions fix and
    rerun), "changeable" (offers to change a skill's reply), "notable" (offers notes on steps), "gold" (of
    compare_on_request), "conclusion" (the answer, drawn first), "folded" (opens as an outline), "thoughts" (the
    outline has them), "takers" (the tools that take each kind of value), "titles" (of tools, by name) and
    "interrupted". `is_known_name` decides which names in sentences can be clicked.
    """
    key = f"notebook_{record.trace.id.hex}"
    looked_at: NotebookPosition = st.session_state.setdefault(f"{key}_position", NotebookPosition())

    def deliver() -> None:
        action = read_action(key, "act", ACTION_FORMS)
        # A slow browser may still send an action on the trace that it showed before.
        if action is None or action["trace"] != record.trace.id.hex or looked_at.apply(action, record.steps):
            return
        if action["kind"] == "copy":
            write = COPY_FORMATS.get(action["format"])
            if write is not None:
                st.session_state[f"{key}_copied"] = {"nonce": str(action["nonce"]), "text": write(record)}
            return
        if action["kind"] == "note":
            st.session_state[NOTED_STEP] = action["step"]
            return
        if on_act is not None:
            on_act(action)

    draw = st.components.v2.component(
        "showhow_notebook",
        html='<div class="frame"><div class="notebook"></div><div class="sr live" role="status"></div></div>',
        css=read_asset("notebook.css") + read_asset("method_form.css"),
        js=read_asset("method_form.js") + read_asset("notebook.js"),
    )
    linked_step = _focused_step(record.trace.id)
    page = looked_at.choose_page(record.steps, linked_step, editable=editable, grows=grows)
    part = VisiblePart(page, frozenset(looked_at.complete))
    data = build_notebook_data(record, part, editable=editable, forkable=forkable, is_known_name=is_known_name) | {
        "grows": grows,
        "focus": looked_at.step or linked_step,
        "focus_request": looked_at.requests,
        "copied": st.session_state.pop(f"{key}_copied", None),
    }
    draw(data={**data, **overrides}, key=key, on_act_change=deliver)


def _focused_step(trace_id: UUID) -> int | None:
    """The step in the link; a step of another trace is removed from the link."""
    position = get_url_parameter("step")
    if not (position.isascii() and position.isdecimal()):
        return None
    last_position, last_trace_id = st.session_state.setdefault("step_in_focus", (position, trace_id))
    if last_position == position and last_trace_id != trace_id:
        clear_url_parameters("step")
        return None
    st.session_state["step_in_focus"] = (position, trace_id)
    return int(position)


def build_notebook_data(
    record: TraceRecord,
    part: VisiblePart = VisiblePart(),
    *,
    editable: bool,
    forkable: bool,
    is_known_name: NameLookup | None = None,
) -> dict[str, Any]:
    """The notebook's data for notebook.js, as JSON values, with the steps of one page."""
    edits: dict[UUID | None, int] = {}
    for edit in record.edits:
        if edit.action not in ("rating", "undo", "redo"):
            edits[edit.step_id] = edits.get(edit.step_id, 0) + 1
    notes = list_note_data(record)
    first = part.page * STEPS_PER_PAGE
    form = build_method_form(record.trace.reasoner, record.steps)
    return {
        "trace": record.trace.id.hex,
        "form": None if form is None else asdict(form),
        "world": record.project.world,
        "steps": [
            _step_data(
                step,
                edits.get(step.id, 0),
                is_known_name,
                MAX_ITEMS_ON_REQUEST if step.position in part.complete else MAX_ITEMS,
            )
            | {"depth": depth, "notes": notes.get(step.id, []), "span": _working_time(step, record.trace.started_at)}
            for step, depth in order_as_tree(record.steps)[first : first + STEPS_PER_PAGE]
        ],
        "count": len(record.steps),
        "page": part.page,
        "per_page": STEPS_PER_PAGE,
        "last": record.steps[-1].position if record.steps else None,
        "answers": _answer_data(record),
        "spent": format_trace_cost(record.steps),
        "timed": record.trace.run_id is not None,
        "folded": False,
        "thoughts": False,
        "editable": editable,
        "forkable": forkable,
        "notable": False,
        "scale": RATING_SCALE,
        "hint": EMPTY_HINT if editable else "This trace has no steps.",
    }


def _step_data(step: Step, edits: int, is_known_name: NameLookup | None, limit: int) -> dict[str, Any]:
    state = _step_state(step)
    return {
        "position": step.position,
        "node": step.node,
        "thought": _span_question(step) or step.thought,
        "is_span": step.skill == SPAN_SKILL,
        "marks": list_step_marks(step),
        "is_skill_call": step.tool is None and step.skill not in (None, SPAN_SKILL) and step.finished_at is not None,
        "reply": step.observation if state == "thought" else None,
        "tool": step.tool,
        "tool_title": None if step.tool is None else tool_title(step.tool),
        "arguments": [
            {"name": label, "value": value, "origin": describe_origin(step.origins.get(name))}
            for name, label, value in list_shown_arguments(step)
        ],
        "state": state,
        "result": _result_line(step),
        "error": name_tools_by_title(step.error) if step.error else None,
        "view": build_observation_view(step, is_known_name, limit) if state == "done" and not step.error else None,
        "more_results": larger_limit(step),
        "rating": step.rating,
        "spent": " · ".join(format_step_cost(step)),
        "spent_details": "; ".join([*_format_times(step), *format_usage_details(step.usage)]),
        "edits": f"changed {edits}×" if edits else None,
    }


def _working_time(step: Step, begun: datetime) -> tuple[float, float] | None:
    """When work on the step began, in seconds after its trace, and how long it took, model calls included."""
    if step.finished_at is None:
        return None
    deciding = float((step.usage.get("thought") or {}).get("seconds") or 0.0)
    start = max(0.0, (step.started_at - begun).total_seconds() - deciding)
    return start, max(0.0, (step.finished_at - begun).total_seconds() - start)


def _result_line(step: Step) -> str:
    """The beginning of the observation, or of the error, on one line."""
    text = name_tools_by_title(step.error) if step.error else step.observation or ""
    return " ".join(text[:MAX_RESULT_LENGTH].split())


def _span_question(step: Step) -> str | None:
    """The question of a completed span, with the answers that it refers to filled in."""
    question = (step.data or {}).get("question") if step.skill == SPAN_SKILL else None
    return question if isinstance(question, str) else None


def list_step_marks(step: Step) -> list[str]:
    """What stands beside a step without a tool: its skill or operator, how it was answered, its fallback."""
    data = step.data or {}
    if step.skill is None or step.tool is not None:
        return []
    name = data.get("op") if step.skill == SPAN_SKILL else step.skill.partition("/")[0].replace("_", " ")
    how = data.get("how") if step.skill == SPAN_SKILL else None
    calls = data.get("calls", 0) if step.skill != SPAN_SKILL else 0
    return [
        *([str(name)] if name else []),
        *([f"by {how}"] if how in ("code", "model") else [str(how)] if how and how != "operator" else []),
        *([f"fallback: {data['fallback']}"] if data.get("fallback") else []),
        *([f"written by {data['written_by']}"] if data.get("written_by") else []),
        *([f"asked {calls} times"] if calls > 1 else []),
        *([f"shown {len(data['shots'])} examples"] if data.get("shots") else []),
        *([] if step.finished_at else ["not finished"]),
    ]


def list_shown_arguments(step: Step | StepOutline) -> list[tuple[str, str, str]]:
    """The name, the label and the formatted value of each argument of the step."""
    return [(name, argument_label(step.tool, name), _format_value(value)) for name, value in step.arguments.items()]


def larger_limit(step: Step) -> int | None:
    """The limit for more results of a search; None if it has found all, or finds as many as it may."""
    data = step.data or {}
    count = len(data.get("hits") or data.get("pages") or ())
    limit = step.arguments.get("limit") or DEFAULT_RESULTS
    is_search = step.tool in (wikisearch.__name__, websearch.__name__)
    return min(4 * limit, MAX_RESULTS) if is_search and limit <= count < MAX_RESULTS else None


def _step_state(step: Step) -> str:
    if step.tool is None and step.error is None:
        return "thought"
    return "done" if step.finished_at else "interrupted"


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def _format_times(step: Step) -> list[str]:
    parts = [f"the tool took {step.latency:.3f} s"] if step.latency is not None else []
    if step.wall_seconds is not None:
        parts.append(f"written in {step.wall_seconds:.0f} s")
    if step.active_seconds is not None:
        parts.append(f"{step.active_seconds:.0f} s of that active")
    return parts


def _answer_data(record: TraceRecord) -> list[dict[str, str]]:
    trace = record.trace
    answers = {
        "Answer": trace.final_answer,
        "From the text": trace.answer_text,
        "From the graph": trace.answer_graph,
        "From the model's own knowledge": trace.answer_model,
        "Final thought": trace.final_thought,
    }
    return [{"name": name, "value": value} for name, value in answers.items() if value and trace.status != "draft"]
