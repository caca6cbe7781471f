"""One step of a person: stored before its tool runs, completed after, and never interrupted halfway."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, Protocol, TypeVar

from db.models import Step
from db.recording import NewStep, StepResult
from reasoners.base import to_step_result
from tools.tool import ToolResult
from worlds.source import ErrorKind

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
