"""Drives a reasoner: each step is written before its tool runs and completed after, within limits, until it ends.

Reasoner and tools work in a thread that is left behind when the run is stopped or its time is over, so that either is
effective at once even while a tool or a model hangs; what comes of it later is dropped.

Work in a thread of its own that can be left behind: nobody waits for it, and nobody hears what comes of it.
"""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, Protocol, TypeVar
from uuid import UUID

from db.database import StoreError
from db.models import Step
from db.recording import NewStep, StepResult
from db.runs import RunOutcome
from llm.errors import ChatError
from llm.types import TextDelta
from llm.usage import Usage
from reasoners.base import (
    Action,
    FinalAnswer,
    QuestionRefused,
    Reasoner,
    ReasonerError,
    ReasonerGenerator,
    StepCompletion,
    Task,
)
from runs.budget import BudgetMeter, RunLimitExceeded, RunLimits
from tools.errors import ToolError
from tools.tool import Tool, ToolResult
from worlds.source import ErrorKind, SourceError

WorkResult = TypeVar("WorkResult")

POLL_SECONDS = 0.2
"""Seconds between two looks at whether the work is still wanted; with many at work, each look costs the others."""


class CancellableWorker:
    """A thread that does one piece of work after the other."""

    def __init__(self) -> None:
        self._pieces: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        Thread(target=self._work, name="showhow-aside", daemon=True).start()

    def run(self, work: Callable[[], WorkResult], wanted: Callable[[], None]) -> WorkResult:
        """What the work gives or raises; `wanted` is called all along, and what it raises ends the waiting."""
        found: Future[WorkResult] = Future()
        self._pieces.put((found, work))
        while not found.done():
            wanted()
            # What the work itself has raised is only told here, and raised below.
            with suppress(TimeoutError):
                found.exception(POLL_SECONDS)
        return found.result()

    def shut_down(self, last: Callable[[], None]) -> None:
        """Have the thread end when its work does, with one last piece that nobody waits for."""
        self._pieces.put((Future(), last))
        self._pieces.put(None)

    def _work(self) -> None:
        while (piece := self._pieces.get()) is not None:
            found, work = piece
            try:
                found.set_result(work())
            except BaseException as failed:  # noqa: BLE001 - it is raised in the thread that waits for it
                found.set_exception(failed)


NO_OUTCOME = ToolResult(observation=None, error=None, seconds=0.0)
"""What a reasoner is told of a step without a tool."""


class RunStopped(Exception):
    """Somebody has stopped the run."""


class RunRecorder(Protocol):
    """Keeps the record of one run: in the store or in memory (reasoners/keepers.py)."""

    @property
    def recorded_steps(self) -> list[Step]:
        """The steps that are there already; tool calls and open steps among them may be unfinished."""

    @property
    def usage(self) -> Usage:
        """What the language model has taken for this run already."""

    def begin(self, new: NewStep) -> Step:
        """Write a step before its tool runs."""

    def complete(self, step: Step, observed: StepResult) -> Step:
        """Write what its tool gave."""

    def finish(self, ended: RunOutcome) -> None:
        """Write how the run ended."""


def _ignore_text(_text: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class RunControl:
    """How whoever started a run holds it: its limits, a way to stop it, an ear for what the model says."""

    limits: RunLimits = field(default_factory=RunLimits)
    stop: Event = field(default_factory=Event)
    on_text: Callable[[str], None] = _ignore_text
    """Called from another thread; the text of a step begins anew with the step."""


def run_reasoner(reasoner: Reasoner, task: Task, keeper: RunRecorder, reins: RunControl | None = None) -> RunOutcome:
    """Let the reasoner answer the task's question; how that ends is kept and given, whatever it is.

    The steps that the keeper has are taken as they are: unfinished tool calls are run first, open steps without a tool
    are left to the reasoner. A StoreError leaves the trace as it is, to be resumed; any other exception is a fault of
    the program, fails the trace and is raised.
    """
    driver = _RunDriver(task, keeper, reins or RunControl())
    try:
        ended = driver.run(reasoner)
    except StoreError:
        raise
    except BaseException as fault:
        keeper.finish(driver.make_result("failed", f"a fault of the program ended it: {type(fault).__name__}"))
        raise
    keeper.finish(ended)
    return ended


class _RunDriver:
    """One run at work."""

    def __init__(self, task: Task, keeper: RunRecorder, reins: RunControl) -> None:
        self._task = task
        self._recorder = keeper
        self._control = reins
        self._tools = {tool.name: tool for tool in task.tools}
        self._meter = BudgetMeter(reins.limits, len(keeper.recorded_steps), keeper.usage)
        self._worker = CancellableWorker()
        self._abandoned = Event()
        self._open_steps: dict[UUID, Step] = {}

    def run(self, reasoner: Reasoner) -> RunOutcome:
        """How it ended."""
        try:
            conclusion = self._solve(reasoner)
        except RunStopped:
            return self.make_result("stopped", f"it was stopped after {_format_step_count(self._meter.steps)}")
        except RunLimitExceeded as full:
            return self.make_result("limit", str(full))
        except QuestionRefused as refused:
            return self.make_result("refused", str(refused))
        except (ReasonerError, ChatError, ToolError, SourceError) as failed:
            if isinstance(failed, ChatError):
                self._meter.usage += failed.usage or Usage()
            return self.make_result("failed", str(failed))
        self._meter.add(conclusion.usage)
        if not conclusion.answers.final_answer.strip():
            return self.make_result("failed", f"{reasoner.name} came to an end without an answer")
        return replace(self.make_result("answered", None), answers=conclusion.answers, details=conclusion.details)

    def make_result(self, ending: str, failure: str | None) -> RunOutcome:
        """An end here and now."""
        usage = self._meter.usage.to_json() if self._meter.usage.calls else {}
        return RunOutcome(ending, failure, usage=usage, seconds=self._meter.seconds)

    def _solve(self, reasoner: Reasoner) -> FinalAnswer:
        moves: ReasonerGenerator | None = None
        try:
            taken = self._complete_tool_calls()
            self._open_steps = {step.id: step for step in taken if step.finished_at is None}
            moves = reasoner.solve(replace(self._task, prior_steps=taken))
            outcome: ToolResult | None = None
            while True:
                self._meter.check_model()
                before = self._meter.seconds
                move = self._worker.run(lambda m=moves, o=outcome: self._advance(m, o), self._check_cancelled)  # type: ignore[misc]
                if isinstance(move, FinalAnswer):
                    return move
                if isinstance(move, StepCompletion):
                    outcome = self._complete_open_step(move)
                else:
                    outcome = self._run_action(move, self._meter.seconds - before)
        finally:
            self._abandoned.set()
            self._worker.shut_down(moves.close if moves is not None else lambda: None)

    def _complete_tool_calls(self) -> list[Step]:
        """The recorded steps, after the tool of each unfinished one was run; steps without a tool stay open."""
        steps = self._recorder.recorded_steps
        for place, step in enumerate(steps):
            if step.finished_at is None and step.tool is not None:
                steps[place] = self._complete(step, self._call_tool(step.tool, step.arguments))
        return steps

    def _advance(self, moves: ReasonerGenerator, outcome: ToolResult | None) -> Action | StepCompletion | FinalAnswer:
        """The next action or the conclusion; what is said meanwhile is handed on."""
        try:
            move = moves.send(outcome)
            while isinstance(move, TextDelta):
                if self._abandoned.is_set():
                    raise RunStopped
                self._control.on_text(move.text)
                move = next(moves)
        except StopIteration as end:
            conclusion: FinalAnswer = end.value
            return conclusion
        return move

    def _run_action(self, action: Action, seconds: float) -> ToolResult:
        """Write the step, run its tool, write what it gave."""
        self._meter.add(action.usage)
        self._meter.check_steps()
        step = self._recorder.begin(
            NewStep(
                thought=action.thought,
                tool=action.tool,
                arguments=action.arguments,
                origins=action.origins,
                wall_seconds=seconds,
                usage=action.usage,
                refusal=action.rejection,
                refusal_kind=str(ErrorKind.WRONG_ARGUMENTS) if action.rejection is not None else None,
                parent=action.parent,
                node=action.node,
                skill=action.skill,
                data=action.data,
                open=action.open,
                id=action.id,
            )
        )
        self._meter.steps += 1
        if action.rejection is not None:
            kind = ErrorKind.WRONG_ARGUMENTS
            return ToolResult(observation=None, error=action.rejection, seconds=0.0, error_kind=kind)
        if action.tool is None:
            if step.finished_at is None:
                self._open_steps[step.id] = step
            return NO_OUTCOME
        outcome = self._call_tool(action.tool, action.arguments)
        self._complete(step, outcome)
        return outcome

    def _complete_open_step(self, completion: StepCompletion) -> ToolResult:
        step = self._open_steps.pop(completion.step, None)
        if step is None:
            raise ReasonerError(f"the step {completion.step} is not open, so that it cannot be completed")
        self._meter.add(completion.usage)
        self._recorder.complete(
            step,
            StepResult(
                text=completion.observation,
                data=completion.data,
                error=completion.error,
                latency=None,
                usage=completion.usage,
                error_kind=str(completion.error_kind) if completion.error_kind is not None else None,
            ),
        )
        return NO_OUTCOME

    def _complete(self, step: Step, outcome: ToolResult) -> Step:
        self._meter.usage += outcome.usage or Usage()
        return self._recorder.complete(step, convert_outcome(outcome))

    def _call_tool(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        tool: Tool | None = self._tools.get(name)
        if tool is None:
            error = f"there is no tool {name} here; use one of {', '.join(self._tools)}"
            return ToolResult(observation=None, error=error, seconds=0.0, error_kind=ErrorKind.UNAVAILABLE)
        return self._worker.run(lambda: tool.call(self._task.context, arguments), self._check_cancelled)

    def _check_cancelled(self) -> None:
        if self._control.stop.is_set():
            raise RunStopped
        self._meter.check_time()


def convert_outcome(outcome: ToolResult) -> StepResult:
    """The outcome of a call as a step keeps it."""
    seen = outcome.observation
    text, data = (seen.text, seen.data) if seen else (None, None)
    usage = outcome.usage.to_json() if outcome.usage else None
    kind = str(outcome.error_kind) if outcome.error_kind is not None else None
    return StepResult(text, data, outcome.error, outcome.seconds, usage, kind)


def _format_step_count(count: int) -> str:
    return f"{count} step" if count == 1 else f"{count} steps"
