"""Scripted reasoners and simple tools for tests of the driver."""

import time
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any

import numpy as np

from showhow.db.traces.recording import TraceAnswers
from showhow.llm.types import TextDelta
from showhow.reasoners.base import Action, FinalAnswer, ReasonerGenerator, Task
from showhow.tools.arguments import ToolError
from showhow.tools.tool import Observation, SourceKind, Tool, ToolContext, ToolResult
from showhow.worlds.source import SourceTimeout, World

NOWHERE = ToolContext(World("nowhere"), lambda texts: np.zeros((len(texts), 1), dtype=np.float32))
"""For tools that need no world."""
Move = Action | TextDelta | FinalAnswer | BaseException


class Scripted:
    """Yields the moves of its script after the prior steps, and keeps their results."""

    name = "scripted"

    def __init__(self, moves: Sequence[Move]) -> None:
        self.moves = moves
        self.results: list[ToolResult | None] = []
        self.task: Task | None = None
        self.closed = Event()

    def solve(self, task: Task) -> ReasonerGenerator:
        self.task = task
        prior_count = len(task.prior_steps)
        try:
            for move in self.moves:
                if isinstance(move, Action) and prior_count:
                    prior_count -= 1
                elif isinstance(move, BaseException):
                    raise move
                elif isinstance(move, FinalAnswer):
                    return move
                elif isinstance(move, TextDelta):
                    if task.on_text is not None:
                        task.on_text(move.text)
                else:
                    result = yield move
                    self.results.append(result)
            return FinalAnswer(TraceAnswers(final_answer="the end"))
        finally:
            self.closed.set()


def echo(_context: ToolContext, text: str) -> Observation:
    """Return the text."""
    return Observation(text, {"value": text})


def fail(_context: ToolContext, text: str) -> Observation:
    """Fail with the text."""
    raise ToolError(text)


def outage(_context: ToolContext, text: str) -> Observation:
    """Fail with a timeout of a source."""
    raise SourceTimeout(text)


def breaks(_context: ToolContext, text: str) -> Observation:
    """Raise a programming error."""
    raise ZeroDivisionError(text)


def tool_of(function: Callable[..., Observation]) -> Tool:
    """A tool from a function, with its name."""
    return Tool.from_function(function.__name__, function.__name__, function, source=SourceKind.TEXT)


class Hanging:
    """A tool that blocks until `go` is set."""

    def __init__(self) -> None:
        self.called, self.go, self.came_back = Event(), Event(), Event()
        self.on_call: Callable[[], object] = self.called.set

        def hang(_context: ToolContext, text: str) -> Observation:
            """Hang."""
            self.called.set()
            self.on_call()
            self.go.wait(60)
            self.came_back.set()
            return Observation(text, {})

        self.tool = tool_of(hang)


def until(true: Callable[[], Any], seconds: float = 60.0) -> None:
    """Wait until `true` returns a true value."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "the condition was not met in time"
        time.sleep(0.01)
