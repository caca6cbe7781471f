"""Drives a reasoner: each step is stored before its tool runs and completed after, within limits, until it ends.

Reasoner and tools work in one thread that reports to the driver through a queue. The driver abandons it when the run is
stopped or reaches its time limit: both take effect at once even if a tool or a model hangs, and a late result is
dropped.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from queue import Empty, SimpleQueue
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
    to_step_result,
)
from runs.budget import BudgetMeter, RunLimitExceeded, RunLimits
from tools.errors import ToolError
from tools.tool import ToolResult
from worlds.source import ErrorKind, SourceError

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


WorkResult = TypeVar("WorkResult")

POLL_SECONDS = 0.2
"""Seconds between two checks for a stop or the time limit."""


class RunStopped(Exception):
    """The run was stopped."""


class CancellableWorker:
    """Runs blocking work in one thread that can be abandoned on cancel or timeout.

    The thread reports through a queue of events: the text that the work emits, and the result of each piece of work.
    """

    def __init__(self, on_text: Callable[[str], None] | None = None) -> None:
        self._on_text = on_text
        self._work_queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._events: SimpleQueue[TextDelta | Future[Any]] = SimpleQueue()
        self._abandoned = Event()
        # The thread has the context of its creator, so that spans of its work belong to the span of the run.
        Thread(target=partial(copy_context().run, self._run_thread), name="showhow run", daemon=True).start()

    def emit_text(self, text: str) -> None:
        """Report text from the work; RunStopped once the worker is abandoned, which ends the stream."""
        if self._abandoned.is_set():
            raise RunStopped
        self._events.put(TextDelta(text))

    def run(self, work: Callable[[], WorkResult], check_cancelled: Callable[[], None]) -> WorkResult:
        """Run the work; return its result or raise its exception.

        While waiting, `on_text` gets the emitted text, and `check_cancelled` is called at least every POLL_SECONDS; an
        exception of either ends the wait.
        """
        self._work_queue.put((Future(), work))
        while True:
            check_cancelled()
            try:
                event = self._events.get(timeout=POLL_SECONDS)
            except Empty:
                continue
            if isinstance(event, Future):
                result: WorkResult = event.result()
                return result
            if self._on_text is not None:
                self._on_text(event.text)

    def abandon(self, clean_up: Callable[[], None]) -> None:
        """End the thread after its current work and `clean_up`, without waiting for it."""
        self._abandoned.set()
        self._work_queue.put((Future(), clean_up))
        self._work_queue.put(None)

    def _run_thread(self) -> None:
        while (piece := self._work_queue.get()) is not None:
            future, work = piece
            try:
                future.set_result(work())
            # The future hands every exception of this thread to the thread that waits for the work and raises it there;
            # no thread waits for abandoned work.
            except BaseException as error:  # noqa: BLE001
                future.set_exception(error)
            self._events.put(future)


class RunRecorder(StepRecorder, Protocol):
    """Records one run in the database or in memory (runs/recorders.py)."""

    @property
    def trace_id(self) -> UUID:
        """The id of the run's trace."""

    @property
    def recorded_steps(self) -> list[Step]:
        """The stored steps; tool calls and open steps among them may be unfinished."""

    @property
    def usage(self) -> Usage:
        """The usage of the run's model calls so far."""

    def finish(self, outcome: RunOutcome) -> None:
        """Store the outcome of the run."""


@dataclass(frozen=True, slots=True)
class RunControl:
    """The limits, the stop event and the text callback of a run."""

    limits: RunLimits = field(default_factory=RunLimits)
    stop: Event = field(default_factory=Event)
    on_text: Callable[[str], None] | None = None
    """Called with the model's text deltas in the thread that drives the run; None turns streaming off."""


def run_reasoner(
    reasoner: Reasoner, task: Task, recorder: RunRecorder, control: RunControl | None = None
) -> RunOutcome:
    """Run the reasoner on the task's question; store and return the outcome.

    The recorder's steps are kept: unfinished tool calls are run first, and open steps without a tool are left to the
    reasoner. A StoreError leaves the trace unfinished, to be resumed; any other exception is a programming error, which
    fails the trace and is raised.
    """
    telemetry = task.context.telemetry
    if telemetry is None:
        return _run_recorded(reasoner, task, recorder, control or RunControl())
    with telemetry.agent_run(reasoner.name, task.question, recorder.trace_id) as span:
        outcome = _run_recorded(reasoner, task, recorder, control or RunControl())
        span.set_attributes({"showhow.ending": outcome.ending})
        if outcome.ending == "failed":
            span.set_error(outcome.ending, outcome.failure or "")
        if outcome.answers is not None:
            answer = {"type": "text", "content": outcome.answers.final_answer}
            span.set_content("gen_ai.output.messages", [{"role": "assistant", "parts": [answer]}])
        return outcome


def _run_recorded(reasoner: Reasoner, task: Task, recorder: RunRecorder, control: RunControl) -> RunOutcome:
    driver = _RunDriver(task, recorder, control)
    try:
        outcome = driver.run(reasoner)
    except StoreError:
        raise
    # Every other exception, also KeyboardInterrupt, is recorded as the trace's failure and raised again: a trace on
    # which no process works must not stay a draft.
    except BaseException as fault:
        recorder.finish(driver.make_result("failed", f"a fault of the program ended it: {type(fault).__name__}"))
        raise
    recorder.finish(outcome)
    return outcome


class _RunDriver:
    """Drives one run."""

    def __init__(self, task: Task, recorder: RunRecorder, control: RunControl) -> None:
        self._recorder = recorder
        self._control = control
        self._meter = BudgetMeter(control.limits, len(recorder.recorded_steps), recorder.usage)
        self._worker = CancellableWorker(control.on_text)
        task = _set_model_deadline(task, control.limits.seconds)
        self._task = replace(task, on_text=self._worker.emit_text) if control.on_text is not None else task
        self._tools = {tool.name: tool for tool in task.tools}
        self._open_steps: dict[UUID, Step] = {}

    def run(self, reasoner: Reasoner) -> RunOutcome:
        """Run to the end and return the outcome."""
        try:
            final = self._solve(reasoner)
        except RunStopped:
            return self.make_result("stopped", f"it was stopped after {_format_step_count(self._meter.steps)}")
        except RunLimitExceeded as error:
            return self.make_result("limit", str(error))
        except QuestionRefused as error:
            return self.make_result("refused", str(error))
        except (ReasonerError, ChatError, ToolError, SourceError) as error:
            return self._make_failure(error)
        self._meter.add(final.usage)
        if not final.answers.final_answer.strip():
            return self.make_result("failed", f"{reasoner.name} came to an end without an answer")
        return replace(self.make_result("answered", None), answers=final.answers, details=final.details)

    def _make_failure(self, error: Exception) -> RunOutcome:
        """The outcome of a run that this error ended."""
        if not isinstance(error, ChatError):
            return self.make_result("failed", str(error))
        self._meter.usage += error.usage or Usage()
        # The model's requests end with the time of the run.
        limit = self._meter.exceeded_time_limit
        return self.make_result("limit" if limit else "failed", limit or str(error))

    def make_result(self, ending: str, failure: str | None) -> RunOutcome:
        """The outcome of the run with its usage and seconds so far."""
        usage = self._meter.usage.to_json() if self._meter.usage.calls else {}
        return RunOutcome(ending, failure, usage=usage, seconds=self._meter.seconds)

    def _solve(self, reasoner: Reasoner) -> FinalAnswer:
        actions: ReasonerGenerator | None = None
        try:
            steps = self._complete_tool_calls()
            self._open_steps = {step.id: step for step in steps if step.finished_at is None}
            actions = reasoner.solve(replace(self._task, prior_steps=steps))
            outcome: ToolResult | None = None
            while True:
                self._meter.check_model()
                before = self._meter.seconds
                action = self._worker.run(partial(_advance, actions, outcome), self._check_cancelled)
                if isinstance(action, FinalAnswer):
                    return action
                if isinstance(action, StepCompletion):
                    outcome = self._complete_open_step(action)
                else:
                    outcome = self._run_action(action, self._meter.seconds - before)
        finally:
            self._worker.abandon(actions.close if actions is not None else lambda: None)

    def _complete_tool_calls(self) -> list[Step]:
        """Run the tools of unfinished steps; return the recorded steps. Steps without a tool stay open."""
        steps = self._recorder.recorded_steps
        for index, step in enumerate(steps):
            if step.finished_at is None and step.tool is not None:
                steps[index], _ = complete_tool_call(self._recorder, step, self._call_tool)
        return steps

    def _run_action(self, action: Action, seconds: float) -> ToolResult:
        self._meter.add(action.usage)
        self._meter.check_steps()
        self._meter.steps += 1
        step, outcome = execute_step(self._recorder, action.to_new_step(seconds), self._call_tool)
        if step.finished_at is None and step.tool is None:
            self._open_steps[step.id] = step
        return outcome

    def _complete_open_step(self, completion: StepCompletion) -> ToolResult:
        step = self._open_steps.pop(completion.step, None)
        if step is None:
            raise ReasonerError(f"the step {completion.step} is not open, so it cannot be completed")
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

    def _call_tool(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        tool = self._tools.get(name)
        if tool is None:
            error = f"there is no tool {name} here; use one of {', '.join(self._tools)}"
            return ToolResult(observation=None, error=error, seconds=0.0, error_kind=ErrorKind.UNAVAILABLE)
        outcome = self._worker.run(partial(tool.call, self._task.context, arguments), self._check_cancelled)
        self._meter.usage += outcome.usage or Usage()
        return outcome

    def _check_cancelled(self) -> None:
        if self._control.stop.is_set():
            raise RunStopped
        self._meter.check_time()


def _set_model_deadline(task: Task, seconds: float | None) -> Task:
    """The task with a model that retries its requests until the time limit of the run."""
    chat = task.context.chat
    if seconds is None or chat is None:
        return task
    return replace(task, context=replace(task.context, chat=chat.with_deadline(time.monotonic() + seconds)))


def _advance(actions: ReasonerGenerator, outcome: ToolResult | None) -> Action | StepCompletion | FinalAnswer:
    """The reasoner's next action, or its final answer."""
    try:
        return actions.send(outcome)
    except StopIteration as end:
        final: FinalAnswer = end.value
        return final


def _format_step_count(count: int) -> str:
    return f"{count} step" if count == 1 else f"{count} steps"
