"""Drives a reasoner: each step is written before its tool runs and completed after, within limits, until it ends.

Reasoner and tools work in a thread that is left behind when the run is stopped or its time is over, so that either is
effective at once even while a tool or a model hangs; what comes of it later is dropped.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, Protocol

from db.database import StoreError
from db.models import Step
from db.recording import NewStep, Observed
from db.runs import Ended
from reasoners.aside import Aside
from reasoners.limits import LimitReached, Limits, Meter
from reasoners.reasoner import Action, Conclusion, Moves, Reasoner, ReasonerError, Refused, Saying, Task
from tools.chat_errors import ChatError
from tools.tool import Outcome, Tool
from tools.tool_error import ToolError
from tools.usage import Usage
from worlds.source import SourceError

NOTHING = Outcome(observation=None, error=None, seconds=0.0)
"""What a reasoner is told of a step without a tool."""


class Stopped(Exception):
    """Somebody has stopped the run."""


class Keeper(Protocol):
    """Keeps the record of one run: in the store or in memory (reasoners/keepers.py)."""

    @property
    def taken(self) -> list[Step]:
        """The steps that are there already; the last one may be unfinished."""

    @property
    def used(self) -> Usage:
        """What the language model has taken for this run already."""

    def begin(self, new: NewStep) -> Step:
        """Write a step before its tool runs."""

    def complete(self, step: Step, observed: Observed) -> Step:
        """Write what its tool gave."""

    def conclude(self, ended: Ended) -> None:
        """Write how the run ended."""


def _unheard(_text: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Reins:
    """How whoever started a run holds it: its limits, a way to stop it, an ear for what the model says."""

    limits: Limits = field(default_factory=Limits)
    stop: Event = field(default_factory=Event)
    hear: Callable[[str], None] = _unheard
    """Called from another thread; the text of a step begins anew with the step."""


def run(reasoner: Reasoner, task: Task, keeper: Keeper, reins: Reins | None = None) -> Ended:
    """Let the reasoner answer the task's question; how that ends is kept and given, whatever it is.

    The steps that the keeper has are taken as they are; an unfinished last one is run first. A StoreError leaves the
    trace as it is, to be gone on with; any other exception is a fault of the program, fails the trace and is raised.
    """
    driver = _Driver(task, keeper, reins or Reins())
    try:
        ended = driver.drive(reasoner)
    except StoreError:
        raise
    except BaseException as fault:
        keeper.conclude(driver.ended("failed", f"a fault of the program ended it: {type(fault).__name__}"))
        raise
    keeper.conclude(ended)
    return ended


class _Driver:
    """One run at work."""

    def __init__(self, task: Task, keeper: Keeper, reins: Reins) -> None:
        self._task = task
        self._keeper = keeper
        self._reins = reins
        self._tools = {tool.name: tool for tool in task.tools}
        self._meter = Meter(reins.limits, len(keeper.taken), keeper.used)
        self._aside = Aside()
        self._left = Event()

    def drive(self, reasoner: Reasoner) -> Ended:
        """How it ended."""
        try:
            conclusion = self._solve(reasoner)
        except Stopped:
            return self.ended("stopped", f"it was stopped after {_steps(self._meter.steps)}")
        except LimitReached as full:
            return self.ended("limit", str(full))
        except Refused as refused:
            return self.ended("refused", str(refused))
        except (ReasonerError, ToolError, SourceError) as failed:
            if isinstance(failed, ChatError):
                self._meter.used += failed.usage or Usage()
            return self.ended("failed", str(failed))
        self._meter.add(conclusion.usage)
        if not conclusion.answers.final_answer.strip():
            return self.ended("failed", f"{reasoner.name} came to an end without an answer")
        return replace(self.ended("answered", None), answers=conclusion.answers, details=conclusion.details)

    def ended(self, ending: str, failure: str | None) -> Ended:
        """An end here and now."""
        usage = self._meter.used.to_json() if self._meter.used.calls else {}
        return Ended(ending, failure, usage=usage, seconds=self._meter.seconds)

    def _solve(self, reasoner: Reasoner) -> Conclusion:
        moves: Moves | None = None
        try:
            taken = self._finished()
            moves = reasoner.solve(replace(self._task, taken=taken))
            outcome: Outcome | None = None
            while True:
                self._meter.check_model()
                before = self._meter.seconds
                move = self._aside.do(lambda m=moves, o=outcome: self._advance(m, o), self._wanted)  # type: ignore[misc]
                if isinstance(move, Conclusion):
                    return move
                outcome = self._take(move, self._meter.seconds - before)
        finally:
            self._left.set()
            self._aside.leave(moves.close if moves is not None else lambda: None)

    def _finished(self) -> list[Step]:
        """The steps that are there, the last one run if it was not."""
        taken = self._keeper.taken
        if taken and taken[-1].finished_at is None:
            outcome = self._call(taken[-1].tool or "", taken[-1].arguments)
            taken = [*taken[:-1], self._complete(taken[-1], outcome)]
        return taken

    def _advance(self, moves: Moves, outcome: Outcome | None) -> Action | Conclusion:
        """The next action or the conclusion; what is said meanwhile is handed on."""
        try:
            move = moves.send(outcome)
            while isinstance(move, Saying):
                if self._left.is_set():
                    raise Stopped
                self._reins.hear(move.text)
                move = next(moves)
        except StopIteration as end:
            conclusion: Conclusion = end.value
            return conclusion
        return move

    def _take(self, action: Action, seconds: float) -> Outcome:
        """Write the step, run its tool, write what it gave."""
        self._meter.add(action.usage)
        self._meter.check_steps()
        step = self._keeper.begin(
            NewStep(
                thought=action.thought,
                tool=action.tool,
                arguments=action.arguments,
                origins=action.origins,
                wall_seconds=seconds,
                usage=action.usage,
                refused=action.refused,
            )
        )
        self._meter.steps += 1
        if action.refused is not None:
            return Outcome(observation=None, error=action.refused, seconds=0.0)
        if action.tool is None:
            return NOTHING
        outcome = self._call(action.tool, action.arguments)
        self._complete(step, outcome)
        return outcome

    def _complete(self, step: Step, outcome: Outcome) -> Step:
        self._meter.used += outcome.usage or Usage()
        return self._keeper.complete(step, observed(outcome))

    def _call(self, name: str, arguments: dict[str, Any]) -> Outcome:
        tool: Tool | None = self._tools.get(name)
        if tool is None:
            known = ", ".join(self._tools)
            return Outcome(observation=None, error=f"there is no tool {name} here; use one of {known}", seconds=0.0)
        return self._aside.do(lambda: tool.call(self._task.context, arguments), self._wanted)

    def _wanted(self) -> None:
        if self._reins.stop.is_set():
            raise Stopped
        self._meter.check_time()


def observed(outcome: Outcome) -> Observed:
    """The outcome of a call as a step keeps it."""
    seen = outcome.observation
    text, data = (seen.text, seen.data) if seen else (None, None)
    usage = outcome.usage.to_json() if outcome.usage else None
    return Observed(text=text, data=data, error=outcome.error, latency=outcome.seconds, usage=usage)


def _steps(count: int) -> str:
    return f"{count} step" if count == 1 else f"{count} steps"
