"""Whether a trace still holds: its actions are run again in the world as it is now and compared with what was observed.

A step differs when the tool gives another text or other data now. It breaks when it fails where it did not fail before,
or when a later step took a value from a place that says something else now, so that the trace cannot be followed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from db.models import Step
from db.trace_record import TraceRecord
from reasoners.provenance import BrokenOrigin, Origin, resolve_origin
from tools.tool import Tool, ToolContext, ToolResult

DriftState = Literal["same", "differs", "broken"]
IGNORED_FIELDS = frozenset({"score", "usage", "seconds"})
"""What may be another number each time and tells nothing of the world."""

StepData = Mapping[int, Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True)
class StepDrift:
    """One action, then and now: the text that was observed, or the error."""

    position: int
    tool: str
    arguments: dict[str, Any]
    state: DriftState
    before: str
    now: str
    why: str = ""
    """What is broken, in a clause."""


@dataclass(frozen=True, slots=True)
class TraceDrift:
    """What became of a trace; `steps` are those whose tool was called."""

    trace: str
    question: str
    world: str
    steps: tuple[StepDrift, ...]

    @property
    def state(self) -> DriftState:
        """The worst of its steps'."""
        states = {step.state for step in self.steps}
        return "broken" if "broken" in states else "differs" if "differs" in states else "same"

    def to_json(self) -> dict[str, Any]:
        """For programs: steps that are the same are only counted."""
        changed = [asdict(step) for step in self.steps if step.state != "same"]
        data = {"trace": self.trace, "question": self.question, "world": self.world, "state": self.state}
        return {**data, "run": len(self.steps), "steps": changed}


def check_trace_drift(record: TraceRecord, context: ToolContext, find: Callable[[str], Tool | None]) -> TraceDrift:
    """Call the tools of the trace anew, each with its arguments; `find` gives a tool by its name."""
    now: dict[int, Mapping[str, Any] | None] = {}
    drifts = list(_compare_steps(record.steps, context, find, now))
    before = {step.position: step.data for step in record.steps}
    for step in record.steps:
        for name, origin in step.origins.items():
            place = _find_changed_step(origin, record.question.text, before, now)
            if place is not None:
                why = f"step {step.position} took its {name.replace('_', ' ')} from here, where something else is now"
                drifts = [_mark_broken(drift, why) if drift.position == place else drift for drift in drifts]
    return TraceDrift(str(record.trace.id), record.question.text, record.project.world, tuple(drifts))


def _compare_steps(
    steps: Sequence[Step],
    context: ToolContext,
    find: Callable[[str], Tool | None],
    now: dict[int, Mapping[str, Any] | None],
) -> Iterator[StepDrift]:
    for step in steps:
        if step.tool is None or step.finished_at is None:
            continue
        tool = find(step.tool)
        if tool is None:
            why = f"there is no tool {step.tool} here"
            yield StepDrift(step.position, step.tool, step.arguments, "broken", _observed_text(step), "", why)
            continue
        # A model would answer in other words, and for money, what was found without one.
        asked_a_model = (step.data or {}).get("route") == "model"
        outcome = tool.call(context if asked_a_model else replace(context, chat=None), step.arguments)
        now[step.position] = outcome.observation.data if outcome.observation is not None else None
        said = outcome.observation.text if outcome.observation is not None else outcome.error or ""
        fails_now = outcome.observation is None and step.error is None
        state: DriftState = "broken" if fails_now else "same" if _is_unchanged(step, outcome) else "differs"
        why = "it did not fail before" if fails_now else ""
        yield StepDrift(step.position, step.tool, step.arguments, state, _observed_text(step), said, why)


def _observed_text(step: Step) -> str:
    return step.error or step.observation or ""


def _is_unchanged(step: Step, outcome: ToolResult) -> bool:
    if outcome.observation is None or step.error is not None:
        return step.error == outcome.error
    # Traces from elsewhere have texts without data.
    same_data = step.data is None or strip_ignored_fields(step.data) == strip_ignored_fields(outcome.observation.data)
    return step.observation == outcome.observation.text and same_data


def strip_ignored_fields(data: Any) -> Any:
    """The data without what is not compared."""
    if isinstance(data, Mapping):
        return {name: strip_ignored_fields(value) for name, value in data.items() if name not in IGNORED_FIELDS}
    return [strip_ignored_fields(value) for value in data] if isinstance(data, list | tuple) else data


def _find_changed_step(origin: Origin, question: str, before: StepData, now: StepData) -> int | None:
    """The step that an argument rests on and that says something else now at that place."""
    if origin["from"] == "parts":
        inner = (_find_changed_step(part["origin"], question, before, now) for part in origin["parts"])
        return next((step for step in inner if step is not None), None)
    if origin["from"] != "step" or origin["step"] not in now:
        return None
    try:
        was = resolve_origin(origin, question, before)
    except BrokenOrigin:
        # It was broken when it was recorded or imported; the world has nothing to do with it.
        return None
    try:
        return origin["step"] if resolve_origin(origin, question, now) != was else None
    except BrokenOrigin:
        return int(origin["step"])


def _mark_broken(step: StepDrift, why: str) -> StepDrift:
    return step if step.state == "broken" else replace(step, state="broken", why=why)
