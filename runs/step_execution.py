"""A step as it is executed for people and reasoners alike: stored, its tool called, its result stored."""

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
"""Calls the tool of that name with these arguments."""

NO_OUTCOME = ToolResult(observation=None, error=None, seconds=0.0)
"""The result of a step without a tool."""


class StepRecorder(Protocol):
    """Stores the steps of one trace."""

    def begin(self, new: NewStep) -> Step:
        """Store a step before its tool runs."""

    def complete(self, step: Step, observed: StepResult) -> Step:
        """Store the result of its tool."""


def execute_step(recorder: StepRecorder, new: NewStep, call_tool: ToolCaller) -> tuple[Step, ToolResult]:
    """Store the step, call its tool and store the result; a rejected step and one without a tool call none."""
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
    """Do the work in a thread and wait for it; it is completed even if the caller is interrupted meanwhile.

    The script of a page may be interrupted at any moment by the next click. Work that must not stop halfway, such as a
    stored step and the call of its tool, runs here.
    """
    future: Future[ResultT] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
            future.set_exception(error)

    # Not a daemon: the process ends after it.
    Thread(target=run, name="showhow step").start()
    return future.result()
