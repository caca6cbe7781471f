"""Drift: demonstrations are re-run in the worlds as they are now, and compared; and whether replay repeats them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from showhow.db.models import Step
from showhow.db.run_spec import RunLimits
from showhow.db.traces.libraries import DemonstrationFilter, find_version, list_matching_ids
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.traces.traces import load_trace, load_traces
from showhow.evaluation.comparison.selection_usage import Report, load_report, save_report
from showhow.reasoners.base import Task
from showhow.reasoners.provenance import (
    ArgumentPart,
    BrokenOrigin,
    resolve_origin,
    split_argument,
    strip_ignored_fields,
)
from showhow.reasoners.replay.agent import ReplayReasoner
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.runs.services import Services
from showhow.tools.tool import Tool, ToolContext, ToolResult
from showhow.worlds.folder import WorldError
from showhow.worlds.source import SourceError

DriftState = Literal["same", "differs", "broken"]
StepData = Mapping[int, Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True)
class StepDrift:
    """One tool call with its stored and its current result; each is the observed text, or the error."""

    position: int
    tool: str
    arguments: dict[str, Any]
    state: DriftState
    before: str
    now: str
    why: str = ""
    """Why the step is broken; otherwise empty."""


@dataclass(frozen=True, slots=True)
class TraceDrift:
    """The drift of one trace; `steps` holds only the steps with a tool."""

    trace: str
    question: str
    world: str
    steps: tuple[StepDrift, ...]

    @property
    def state(self) -> DriftState:
        """The worst state of its steps."""
        states = {step.state for step in self.steps}
        return "broken" if "broken" in states else "differs" if "differs" in states else "same"

    def to_json(self) -> dict[str, Any]:
        """The drift as JSON; steps that are the same are counted, not listed."""
        changed = [asdict(step) for step in self.steps if step.state != "same"]
        data = {"trace": self.trace, "question": self.question, "world": self.world, "state": self.state}
        return {**data, "run": len(self.steps), "steps": changed}


def check_trace_drift(record: TraceRecord, context: ToolContext, find_tool: Callable[[str], Tool | None]) -> TraceDrift:
    """Re-run the tool calls of the trace; `find_tool` returns a tool by name, or None."""
    data_now: dict[int, Mapping[str, Any] | None] = {}
    drifts = list(_compare_steps(record.steps, context, find_tool, data_now))
    data_before = {step.position: step.data for step in record.steps}
    for step in record.steps:
        for name, origin in step.origins.items():
            parts = split_argument(step.arguments[name], origin)
            changed_position = _find_changed_step(parts, data_before, data_now)
            if changed_position is not None:
                why = f"the value that step {step.position} took from here as its {name.replace('_', ' ')} has changed"
                drifts = [_mark_broken(drift, why) if drift.position == changed_position else drift for drift in drifts]
    return TraceDrift(str(record.trace.id), record.question.text, record.project.world, tuple(drifts))


def _compare_steps(
    steps: Sequence[Step],
    context: ToolContext,
    find_tool: Callable[[str], Tool | None],
    data_now: dict[int, Mapping[str, Any] | None],
) -> Iterator[StepDrift]:
    for step in steps:
        if step.tool is None or step.finished_at is None:
            continue
        tool = find_tool(step.tool)
        if tool is None:
            why = f"the tool {step.tool} is not available"
            yield StepDrift(step.position, step.tool, step.arguments, "broken", _observed_text(step), "", why)
            continue
        # A model is used only where the stored step used one: it would word the same result otherwise, and it costs.
        used_model = (step.data or {}).get("route") == "model"
        outcome = tool.call(context if used_model else replace(context, chat=None), step.arguments)
        data_now[step.position] = outcome.observation.data if outcome.observation is not None else None
        text_now = outcome.observation.text if outcome.observation is not None else outcome.error or ""
        fails_now = outcome.observation is None and step.error is None
        state: DriftState = "broken" if fails_now else "same" if _is_unchanged(step, outcome) else "differs"
        why = "it did not fail before" if fails_now else ""
        yield StepDrift(step.position, step.tool, step.arguments, state, _observed_text(step), text_now, why)


def _observed_text(step: Step) -> str:
    return step.error or step.observation or ""


def _is_unchanged(step: Step, outcome: ToolResult) -> bool:
    if outcome.observation is None or step.error is not None:
        return step.error == outcome.error
    # Imported traces, and older ones of external tools, may have texts without data.
    same_data = not step.data or strip_ignored_fields(step.data) == strip_ignored_fields(outcome.observation.data)
    return step.observation == outcome.observation.text and same_data


def _find_changed_step(parts: Iterable[ArgumentPart], data_before: StepData, data_now: StepData) -> int | None:
    """The position of the first step that a part of an argument points into, if the value there has changed."""
    for _, origin in parts:
        if origin["from"] == "step" and origin["step"] in data_now:
            try:
                value_before = resolve_origin(origin, "", data_before)
            except BrokenOrigin:
                # The origin was already broken when the trace was stored, so the world did not change it.
                continue
            try:
                has_changed = resolve_origin(origin, "", data_now) != value_before
            except BrokenOrigin:
                has_changed = True
            if has_changed:
                return int(origin["step"])
    return None


def _mark_broken(step: StepDrift, why: str) -> StepDrift:
    return step if step.state == "broken" else replace(step, state="broken", why=why)


def check_repetition(record: TraceRecord, context: ToolContext, tools: Sequence[Tool]) -> str | None:
    """Why replay does not repeat a demonstration on its own question; None if it does, with the same answer."""
    recorder = MemoryRecorder()
    task = Task(record.question.full_text, replace(context, chat=None), tools, [record])
    outcome = run_reasoner(ReplayReasoner(), task, recorder, RunControl(RunLimits(steps=None, seconds=None)))
    if outcome.answers is None:
        return outcome.failure or outcome.ending
    shown = [(step.tool, step.arguments) for step in record.steps if step.tool is not None]
    made = [(step.tool, step.arguments) for step in recorder.steps]
    if made != shown:
        place = next((at for at, pair in enumerate(zip(made, shown, strict=False), 1) if pair[0] != pair[1]), len(made))
        return f"call {place} is another one than in the demonstration"
    if outcome.answers.final_answer != record.trace.final_answer:
        return f"it answers {outcome.answers.final_answer!r} in place of {record.trace.final_answer!r}"
    return None


def check_repetitions(services: Services, library: str) -> Report:
    """Have replay answer the own question of each demonstration of a library version; counts, and why some differ."""
    with services.database.read() as session:
        records = list(
            load_traces(session, list_matching_ids(session, DemonstrationFilter(), find_version(session, library).id))
        )
    failures = []
    for record in records:
        try:
            context = services.tool_context(record.project.world)
        except (WorldError, SourceError) as error:
            failures.append({"id": str(record.trace.id), "why": str(error)})
            continue
        tools = services.tool_registry().offered_tools(context.world, record.project.tools)
        if (why := check_repetition(record, context, tools)) is not None:
            failures.append({"id": str(record.trace.id), "why": why})
    return {"demonstrations": len(records), "repeat": len(records) - len(failures), "not": failures}


_STATES_BY_SEVERITY = ("broken", "differs")


def list_demonstration_ids(services: Services, library: str | None, chosen: DemonstrationFilter) -> list[UUID]:
    """The ids of the matching traces of a library version (NAME or NAME:NUMBER), or of all approved traces."""
    with services.database.read() as session:
        return list_matching_ids(session, chosen, find_version(session, library).id if library is not None else None)


def compute_drift(services: Services, ids: Sequence[UUID], done: Callable[[int, int], None]) -> Report:
    """Check every trace; `done` is called with the number of finished traces and their total."""
    drifts: list[TraceDrift] = []
    for finished, trace_id in enumerate(ids, 1):
        drifts.append(_check_trace(services, trace_id))
        done(finished, len(ids))
    counts = {state: sum(drift.state == state for drift in drifts) for state in ("same", "differs", "broken")}
    changed = [drift.to_json() for state in _STATES_BY_SEVERITY for drift in drifts if drift.state == state]
    return {"at": datetime.now(UTC).isoformat(timespec="seconds"), "traces": len(drifts), **counts, "changed": changed}


def _check_trace(services: Services, trace_id: UUID) -> TraceDrift:
    with services.database.read() as session:
        record = load_trace(session, trace_id)
    try:
        context = services.tool_context(record.project.world)
    except (WorldError, SourceError) as error:
        # No tool can run without the world, so every step is broken for the same reason.
        steps = [
            StepDrift(s.position, s.tool, s.arguments, "broken", s.error or s.observation or "", "", str(error))
            for s in record.steps
            if s.tool is not None
        ]
        return TraceDrift(str(trace_id), record.question.text, record.project.world, tuple(steps))
    return check_trace_drift(record, context, services.tool_registry().find)


def load_drift(services: Services, library: str | None) -> Report | None:
    """The last report about a library version, or about all approved traces; None if there is none."""
    return load_report(_drift_path(services, library))


def save_drift(services: Services, library: str | None, report: Report) -> None:
    """Store the report in place of the previous one."""
    save_report(_drift_path(services, library), report)


def _drift_path(services: Services, library: str | None) -> Path:
    if library is None:
        return services.settings.home / "drift.json"
    with services.database.read() as session:
        version = find_version(session, library)
    return services.library_folder(version.id) / "drift.json"
