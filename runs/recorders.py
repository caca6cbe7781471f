"""Recorders: store the steps of a run, and those of a person; runs/model_call_recorder.py stores the model calls."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import Any, Protocol, TypeVar
from uuid import UUID, uuid4

from showhow.db.database import Database
from showhow.db.models import SPAN_SKILL, ModelCall, Step, Trace
from showhow.db.runs import runs
from showhow.db.runs.runs import RunOutcome
from showhow.db.traces import recording, traces
from showhow.db.traces.model_calls import list_call_usages, list_unused_replies, mark_lost_model_calls
from showhow.db.traces.recording import NewStep, StepResult
from showhow.llm.usage import Usage
from showhow.reasoners.base import Action, to_step_result
from showhow.reasoners.skills.skill import SkillCall, SkillResult, read_skill_step
from showhow.reasoners.skills.values import renumber_passages
from showhow.runs.budget import STEP_PURPOSE_PREFIXES, CallCounts, sum_step_usage
from showhow.tools.tool import Observation, ToolResult
from showhow.worlds.source import ErrorKind


class RecordedSteps:
    """The recorded steps of a run, whose results a reasoner that begins again takes.

    `steps` are those of its own trace, found by their place. `later_steps` are those of the trace that it was forked
    from, after the fork; they are found by what was asked, since a person's change may move them to other places.
    """

    def __init__(self, steps: Sequence[Step], later_steps: Sequence[Step] = ()) -> None:
        self._steps: dict[tuple[str | None, str | None], Step] = {
            (step.node, step.skill or step.tool): step for step in steps if step.node is not None
        }
        self._later_steps: dict[str, list[Step]] = {}
        for step in later_steps:
            if step.finished_at is not None and step.error is None and step.skill != SPAN_SKILL:
                self._later_steps.setdefault(_request_key(step), []).append(step)
        first = min((step.position for step in later_steps), default=1)
        # Steps before the fork are copies at the same positions.
        self._positions = {position: position for position in range(1, first)}

    def take(self, move: Action | SkillCall[Any, Any], new: NewStep) -> Step | None:
        """The recorded step of this move, each once; None if there is none, or one with other arguments."""
        place = (new.node, new.skill or new.tool)
        step = self._steps.get(place) if isinstance(move, SkillCall) or move.reuse else None
        if step is None or step.arguments != new.arguments or step.error is not None:
            return None
        return self._steps.pop(place)

    def count_calls(self) -> CallCounts:
        """The calls of the steps that were not taken yet."""
        return CallCounts.from_steps(self._steps.values())

    def take_later(self, move: Action | SkillCall[Any, Any], new: NewStep, position: int) -> StepResult | None:
        """The result of a later step of the parent trace for the new step at this position, each once; else None.

        Among several with the same request, such as samples, that with the same place comes first.
        """
        if isinstance(move, Action) and not move.reuse:
            return None
        candidates = self._later_steps.get(_request_key(new), [])
        for step in sorted(candidates, key=lambda step: step.node != new.node):
            try:
                arguments = renumber_passages(step.arguments, self._positions.__getitem__)
                data = step.data if step.tool else renumber_passages(step.data, self._positions.__getitem__)
            except KeyError:
                # It rests on a passage that the run has not retrieved.
                continue
            if arguments == new.arguments:
                candidates.remove(step)
                self._positions[step.position] = position
                return StepResult(step.observation, data, None, None)
        return None


def _request_key(step: Step | NewStep) -> str:
    """The tool or skill and its arguments, whatever the positions of the steps that passages come from."""
    arguments = renumber_passages(step.arguments, lambda _position: 0)
    return json.dumps([step.tool, step.skill, arguments], sort_keys=True)


def to_new_step(move: Action | SkillCall[Any, Any], seconds: float) -> NewStep:
    """The step to store before a move that takes time."""
    if isinstance(move, Action):
        return move.to_new_step(seconds)
    return NewStep(
        move.skill.description,
        arguments=move.request.model_dump(mode="json", exclude_none=True),
        wall_seconds=seconds,
        parent=move.parent,
        node=move.node,
        skill=move.skill.reference,
        open=True,
    )


def read_recorded(step: Step, move: Action | SkillCall[Any, Any]) -> ToolResult | SkillResult[Any]:
    """The result of a finished step."""
    if isinstance(move, SkillCall):
        return read_skill_step(move.skill, step.data or {})
    kind = None if step.error_kind is None else ErrorKind(step.error_kind)
    observation = None if step.error is not None else Observation(step.observation or "", step.data or {})
    return ToolResult(observation, step.error, step.latency or 0.0, error_kind=kind)


class MemoryRecorder:
    """Records a run in memory, from its beginning or after these steps."""

    def __init__(self, steps: Sequence[Step] = ()) -> None:
        self.reusable_steps: Sequence[Step] = ()
        self.unused_replies: Sequence[ModelCall] = ()
        self.calls_of_no_step = 0
        self.trace_id = uuid4()
        self.steps = list(steps)
        self.result: RunOutcome | None = None

    @property
    def recorded_steps(self) -> list[Step]:
        """The steps so far."""
        return list(self.steps)

    @property
    def usage(self) -> Usage:
        """The usage of the steps so far."""
        return sum_step_usage(self.steps)

    def begin(self, new: NewStep) -> Step:
        """Add a step."""
        self.steps.append(recording.build_step(self.trace_id, len(self.steps) + 1, new))
        return self.steps[-1]

    def complete(self, step: Step, observed: StepResult) -> Step:
        """Add the result of its tool."""
        recording.apply_result(step, observed)
        return step

    def finish(self, outcome: RunOutcome) -> None:
        """Store the outcome of the run."""
        self.result = outcome


def _ignore_step(_step: Step) -> None:
    """The default callback, which does nothing."""


class StoreRecorder:
    """Records a run in its trace in the database; the trace was started, forked or reopened by db/runs/runs.py."""

    def __init__(self, database: Database, trace: Trace, on_step: Callable[[Step], None] = _ignore_step) -> None:
        self.trace_id: UUID = trace.id
        self._database = database
        self._seen_version = trace.version
        self._on_step = on_step
        with database.read() as session:
            self.recorded_steps = traces.load_trace(session, trace.id).steps
            usages = list_call_usages(session, trace.id)
            # The reply that decided a step is used, even if the tool of the step was interrupted.
            self.unused_replies = [
                call
                for call in list_unused_replies(session, trace.id)
                if call.step_id is None or call.purpose.startswith(STEP_PURPOSE_PREFIXES)
            ]
        self.reusable_steps = _load_reusable_steps(database, trace)
        # The usage of steps copied from another trace counts there.
        step_usage = sum_step_usage(
            step for step in self.recorded_steps if step.position > (trace.parent_position or 0)
        )
        # A run may have used more than its steps, such as a reply after which a limit was reached.
        unused = {call.id for call in self.unused_replies}
        used = (Usage(**usage) for id_, usage in usages.items() if id_ not in unused)
        other_usage = sum(used, Usage()) if usages else Usage(**trace.cost)
        self.usage = max(step_usage, other_usage, key=lambda usage: usage.calls)
        self.calls_of_no_step = self.usage.calls - step_usage.calls

    def begin(self, new: NewStep) -> Step:
        """Store the step; Conflict if another process or person has changed the trace."""
        with self._database.begin() as session:
            step = recording.begin_step(session, self.trace_id, new, seen=self._seen_version)
        self._seen_version += 1
        self._on_step(step)
        return step

    def complete(self, step: Step, observed: StepResult) -> Step:
        """Store the result of its tool."""
        with self._database.begin() as session:
            recording.complete_run_step(session, step, observed, seen=self._seen_version)
        self._seen_version += 1
        self._on_step(step)
        return step

    def finish(self, outcome: RunOutcome) -> None:
        """Store the outcome of the run, and mark its unanswered model calls as lost."""
        with self._database.begin() as session:
            mark_lost_model_calls(session, self.trace_id)
            runs.finish_run_trace(session, self.trace_id, outcome, seen=self._seen_version)


def _load_reusable_steps(database: Database, trace: Trace) -> Sequence[Step]:
    """The steps of the parent trace after the fork, if the run was begun to reuse them."""
    if trace.parent_id is None or not trace.result.reuses_parent_steps:
        return ()
    with database.read() as session:
        parent = traces.load_trace(session, trace.parent_id)
    return [step for step in parent.steps if step.position > (trace.parent_position or 0)]


class PersonRecorder:
    """Records the steps of a person in their trace; `seen` is the version of the trace that the page shows."""

    def __init__(self, database: Database, trace_id: UUID, person_id: UUID, seen: int) -> None:
        self._database = database
        self._trace_id = trace_id
        self._person_id = person_id
        self._seen_version = seen
        self.begun: Step | None = None
        """The step that was begun last."""

    def begin(self, new: NewStep) -> Step:
        """Store the step; Conflict if the trace was changed since the page was loaded."""
        with self._database.begin() as session:
            self.begun = recording.begin_step(session, self._trace_id, new, seen=self._seen_version, by=self._person_id)
        return self.begun

    def restart(self, step: Step, typed: dict[str, Any] | None = None) -> Step:
        """Reset the last step so that its tool runs again, with these arguments changed."""
        with self._database.begin() as session:
            self.begun = recording.restart_step(
                session, step.id, seen=self._seen_version, by=self._person_id, typed=typed
            )
        return self.begun

    def complete(self, step: Step, observed: StepResult) -> Step:
        """Store the result of its tool."""
        with self._database.begin() as session:
            return recording.complete_step(session, step.id, observed, by=self._person_id)


ResultT = TypeVar("ResultT")
ToolCaller = Callable[[str, dict[str, Any]], ToolResult]
"""Calls a tool by name with arguments."""

NO_OUTCOME = ToolResult(observation=None, error=None, seconds=0.0)
"""The result of a step without a tool."""


class StepRecorder(Protocol):
    """Stores the steps of one trace."""

    def begin(self, new: NewStep) -> Step:
        """Store a step before its tool runs."""

    def complete(self, step: Step, observed: StepResult) -> Step:
        """Store the result of the step's tool."""


def execute_step(recorder: StepRecorder, new: NewStep, call_tool: ToolCaller) -> tuple[Step, ToolResult]:
    """Store the step, call its tool and store the result; a rejected step, or one without a tool, is only stored."""
    step = recorder.begin(new)
    if new.refusal is not None:
        return step, ToolResult(None, new.refusal, 0.0, error_kind=ErrorKind.WRONG_ARGUMENTS)
    if new.tool is None:
        return step, NO_OUTCOME
    return complete_tool_call(recorder, step, call_tool)


def complete_tool_call(recorder: StepRecorder, step: Step, call_tool: ToolCaller) -> tuple[Step, ToolResult]:
    """Call the tool of a stored step, and store the result."""
    outcome = call_tool(step.tool or "", step.arguments)
    return recorder.complete(step, to_step_result(outcome)), outcome


def run_to_completion(work: Callable[[], ResultT]) -> ResultT:
    """Run the work in a thread and wait for it; the work is completed even if the caller is interrupted.

    Streamlit may interrupt the script of a page at any moment. Work that must not stop halfway, such as storing a step
    and calling its tool, runs here.
    """
    future: Future[ResultT] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        # The future hands every exception of this thread to the waiting thread, where result() raises it.
        except BaseException as error:  # noqa: BLE001
            future.set_exception(error)

    # Not a daemon: the process ends after it.
    Thread(target=run, name="showhow step").start()
    return future.result()
