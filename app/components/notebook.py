"""The trace so far, drawn as a lab notebook; what a person does in it comes back as one act."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

import streamlit as st

from app.components.chrome import asset
from app.components.observation import view_of
from app.components.places import forget, here
from app.components.usage import spent_of, trace_spent, usage_details
from db.models import Step
from db.record import TraceRecord
from reasoners.origins import describe

Act = dict[str, Any]

SCALE = ("useless", "poor", "fair", "good", "just what was needed")
HINT = (
    "No step yet. Write what you need to know first, choose a tool, fill its form and run it. Names, ids and cells "
    "that a tool finds can be clicked to fill the next form."
)


def show_trace(
    record: TraceRecord,
    *,
    editable: bool,
    forkable: bool,
    on_act: Callable[[Act], None] | None = None,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Draw the record; acts (pick, rate, edit, again, fork) go to `on_act` before the page is drawn again.

    `more` replaces or joins what the notebook is told: of a run it may be rated ("ratable"), mended by the acts fix and
    rerun ("mendable"), begin with its "conclusion", have its last step "running".
    """
    key = f"notebook_{record.trace.id.hex}"

    def deliver() -> None:
        act = st.session_state[key].act
        # A page that lags behind may still send an act of the trace it showed before.
        if act and on_act is not None and act["trace"] == record.trace.id.hex:
            on_act(act)

    draw = st.components.v2.component(
        "showhow_notebook",
        html='<div class="notebook"></div>',
        css=asset("notebook.css"),
        js=asset("notebook.js"),
    )
    data = notebook_data(record, editable=editable, forkable=forkable) | {"focus": _step_in_focus(record.trace.id)}
    draw(data={**data, **more}, key=key, on_act_change=deliver)


def _step_in_focus(trace_id: UUID) -> int | None:
    """The step that the address names, as long as the trace is the one for which it did."""
    told = here("step")
    if not (told.isascii() and told.isdecimal()):
        return None
    step, of = st.session_state.setdefault("step_in_focus", (told, trace_id))
    if step == told and of != trace_id:
        forget("step")
        return None
    st.session_state["step_in_focus"] = (told, trace_id)
    return int(told)


def notebook_data(record: TraceRecord, *, editable: bool, forkable: bool) -> dict[str, Any]:
    """What the notebook draws, as JSON values."""
    edits: dict[UUID | None, int] = {}
    for edit in record.edits:
        if edit.action not in ("rating", "undo", "redo"):
            edits[edit.step_id] = edits.get(edit.step_id, 0) + 1
    return {
        "trace": record.trace.id.hex,
        "steps": [_step(step, edits.get(step.id, 0)) for step in record.steps],
        "answers": _answers(record),
        "spent": trace_spent(record.steps),
        "editable": editable,
        "forkable": forkable,
        "scale": SCALE,
        "hint": HINT if editable else "This trace has no steps.",
    }


def _step(step: Step, edits: int) -> dict[str, Any]:
    state = _state(step)
    return {
        "position": step.position,
        "thought": step.thought,
        "tool": step.tool,
        "arguments": [
            {"name": name, "value": _plain(value), "origin": describe(step.origins.get(name))}
            for name, value in step.arguments.items()
        ],
        "state": state,
        "error": step.error,
        "view": view_of(step) if state == "done" and not step.error else None,
        "rating": step.rating,
        "spent": " · ".join(spent_of(step)),
        "spent_details": "; ".join([*_times(step), *usage_details(step.usage)]),
        "edits": f"changed {edits}×" if edits else None,
    }


def _state(step: Step) -> str:
    if step.tool is None and step.error is None:
        return "thought"
    return "done" if step.finished_at else "interrupted"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def _times(step: Step) -> list[str]:
    parts = [f"the tool took {step.latency:.3f} s"] if step.latency is not None else []
    if step.wall_seconds is not None:
        parts.append(f"written in {step.wall_seconds:.0f} s")
    if step.active_seconds is not None:
        parts.append(f"{step.active_seconds:.0f} s of them at work")
    return parts


def _answers(record: TraceRecord) -> list[dict[str, str]]:
    trace = record.trace
    named = {
        "Answer": trace.final_answer,
        "From the text": trace.answer_text,
        "From the graph": trace.answer_graph,
        "Known without a source": trace.answer_model,
        "Final thought": trace.final_thought,
    }
    return [{"name": name, "value": value} for name, value in named.items() if value and trace.status != "draft"]
