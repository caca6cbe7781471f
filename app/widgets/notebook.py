"""The notebook: draws the steps of a trace and reports what a person does in it as one action at a time."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

import streamlit as st

from app.widgets.observation import NameLookup, build_observation_view
from app.widgets.page_layout import read_asset
from app.widgets.url_state import clear_url_parameters, get_url_parameter
from app.widgets.usage import format_step_cost, format_trace_cost, format_usage_details
from db.models import Step
from db.trace_record import TraceRecord
from reasoners.provenance import describe_origin
from tools.registry import BUILT_IN_TOOLS

NotebookAction = dict[str, Any]

RATING_SCALE = ("useless", "poor", "fair", "good", "just what was needed")
EMPTY_HINT = (
    "No step yet. Write what you need to know first, choose a tool, fill its form and run it. Names, ids and cells "
    "that a tool finds can be clicked to fill the next form."
)


def show_trace(  # noqa: PLR0913 - each names one way in which the notebook is used
    record: TraceRecord,
    *,
    editable: bool,
    forkable: bool,
    on_act: Callable[[NotebookAction], None] | None = None,
    more: Mapping[str, Any] = MappingProxyType({}),
    is_known_name: NameLookup | None = None,
) -> None:
    """Draw the record; actions (pick, rate, edit, again, fork) go to `on_act` before the page is drawn again.

    `more` overrides fields of the notebook's data: a run can be rated ("ratable"), fixed by the actions fix and rerun
    ("mendable"), begin with its "conclusion", and have its last step "running". `is_known_name` finds the names in
    sentences that can be clicked.
    """
    key = f"notebook_{record.trace.id.hex}"

    def deliver() -> None:
        action = st.session_state[key].act
        # A browser that lags behind may still send an action on the trace it showed before.
        if action and on_act is not None and action["trace"] == record.trace.id.hex:
            on_act(action)

    draw = st.components.v2.component(
        "showhow_notebook",
        html='<div class="notebook"></div>',
        css=read_asset("notebook.css"),
        js=read_asset("notebook.js"),
    )
    data = build_notebook_data(record, editable=editable, forkable=forkable, is_known_name=is_known_name) | {
        "focus": _focused_step(record.trace.id)
    }
    draw(data={**data, **more}, key=key, on_act_change=deliver)


def _focused_step(trace_id: UUID) -> int | None:
    """The step that the link names; a step named for another trace is removed from the link."""
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
    record: TraceRecord, *, editable: bool, forkable: bool, is_known_name: NameLookup | None = None
) -> dict[str, Any]:
    """The notebook's data for notebook.js, as JSON values."""
    edits: dict[UUID | None, int] = {}
    for edit in record.edits:
        if edit.action not in ("rating", "undo", "redo"):
            edits[edit.step_id] = edits.get(edit.step_id, 0) + 1
    return {
        "trace": record.trace.id.hex,
        "steps": [_step_data(step, edits.get(step.id, 0), is_known_name) for step in record.steps],
        "answers": _answer_data(record),
        "spent": format_trace_cost(record.steps),
        "editable": editable,
        "forkable": forkable,
        "scale": RATING_SCALE,
        "hint": EMPTY_HINT if editable else "This trace has no steps.",
    }


def _step_data(step: Step, edits: int, is_known_name: NameLookup | None) -> dict[str, Any]:
    state = _step_state(step)
    return {
        "position": step.position,
        "thought": step.thought,
        "tool": step.tool,
        "tool_title": tool_title(step.tool),
        "arguments": [
            {"name": name, "value": _format_value(value), "origin": describe_origin(step.origins.get(name))}
            for name, value in step.arguments.items()
        ],
        "state": state,
        "error": step.error,
        "view": build_observation_view(step, is_known_name) if state == "done" and not step.error else None,
        "rating": step.rating,
        "spent": " · ".join(format_step_cost(step)),
        "spent_details": "; ".join([*_format_times(step), *format_usage_details(step.usage)]),
        "edits": f"changed {edits}×" if edits else None,
    }


def tool_title(name: str | None) -> str | None:
    """The tool's name on the page; an external tool is called by its identifier."""
    return BUILT_IN_TOOLS[name].title if name in BUILT_IN_TOOLS else name


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
        parts.append(f"{step.active_seconds:.0f} s of them active")
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
