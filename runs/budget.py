"""The meter that enforces the limits of a run (db/run_spec.RunLimits)."""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from math import inf
from threading import RLock
from typing import Any
from uuid import UUID

from showhow.db.models import Step
from showhow.db.run_spec import RunLimits
from showhow.llm.errors import ChatError
from showhow.llm.usage import Usage
from showhow.reasoners.base import CallBudget

SKILL_PURPOSE, TOOL_PURPOSE = "skill:", "tool:"
STEP_PURPOSE_PREFIXES = (TOOL_PURPOSE, SKILL_PURPOSE)
"""The purposes of model requests that are sent while their step is under way begin with one of these."""
MAX_CONCURRENT_QUESTIONS = 64
"""The most questions that one process answers at the same time."""


class RunLimitExceeded(Exception):
    """A run has reached a limit; the message names it."""


@dataclass(slots=True)
class CallCounts:
    """The calls of a run."""

    model_calls: int = 0
    """Calls of the model by the reasoner and by its tools, with attempts that were rejected."""
    retrievals: int = 0
    """Calls of tools."""

    @classmethod
    def from_steps(cls, steps: Iterable[Step]) -> "CallCounts":
        """Count the calls of the recorded steps of a run that is resumed."""
        counts = cls()
        for step in steps:
            counts.retrievals += step.tool is not None
            deciding = step.usage.get("thought", {}).get("calls", 0)
            attempts = (step.data or {}).get("calls", 0) if step.skill is not None and step.tool is None else 0
            counts.model_calls += int(attempts) if step.finished_at is not None and attempts else int(deciding)
            counts.model_calls += int(step.usage.get("tool", {}).get("calls", 0)) if step.tool is not None else 0
        return counts


class BudgetMeter:
    """Adds up the steps, usage and time of a run, and compares them with its limits.

    As the CallGate of the run's model it counts requests as they are sent. What a request used is added with the step
    that it belongs to, or at the end of the run if no step has it.
    """

    def __init__(
        self,
        limits: RunLimits,
        steps: int,
        used: Usage,
        current_step: Callable[[], UUID | None] = lambda: None,
        unused: Iterable[Usage] = (),
    ) -> None:
        """`current_step` tells the step of whose tool or skill this thread's request is; None for a decision.

        `unused` is what those replies used that a resumed run may take; each counts when it is taken, or at the end.
        """
        self.steps = steps
        self.usage = used
        self.calls = CallCounts()
        self._begun = CallCounts()
        """Calls of skills, with their further attempts, and of tools that are under way."""
        self._sent = 0
        """Requests of tools and decisions that no finished step has yet."""
        self._unsettled: dict[UUID | None, list[Usage]] = {}
        """What finished requests used that no finished step has yet, by step; None for decisions."""
        self._unused = [*unused]
        self._was_denied = False
        self._current_step = current_step
        self._lock = RLock()
        self.expected_model_calls: int | None = None
        self.reused = 0
        """Results that were taken from the trace that the run was forked from."""
        self.critical_path = 0.0
        """Seconds of the tools and skills that the run had to wait for."""
        self._limits = limits
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the meter was created."""
        return time.monotonic() - self._began

    @property
    def exceeded_time_limit(self) -> str | None:
        """A sentence about the time limit if it is reached."""
        limit = self._limits.seconds
        if limit is None or self.seconds <= limit:
            return None
        return f"the limit of {limit:g} seconds is reached; ask again with a higher one"

    def check_time(self) -> None:
        """Raise RunLimitExceeded if the time limit is reached."""
        if (message := self.exceeded_time_limit) is not None:
            raise RunLimitExceeded(message)

    def check_model(self) -> None:
        """Raise RunLimitExceeded if the model calls have reached the limit of tokens or money."""
        limits, used = self._limits, self.usage
        if limits.tokens is not None:
            if used.max_tokens is None:
                raise RunLimitExceeded(f"{used.model} does not report its tokens, so a limit cannot be enforced")
            if used.max_tokens >= limits.tokens:
                raise RunLimitExceeded(f"the limit of {limits.tokens:,} tokens is reached{_format_bounded(used)}")
        if limits.money is not None:
            if used.max_cost is None:
                raise RunLimitExceeded(f"the price of {used.model} is unknown, so a cost limit cannot be enforced")
            if used.max_cost >= limits.money:
                raise RunLimitExceeded(f"the limit of ${limits.money:g} is reached{_format_bounded(used)}")

    def begin(self, purpose: str) -> None:
        """Count a request of a tool or a decision before it is sent; RunLimitExceeded if it would exceed the limit.

        A tool gets a ChatError, which is its result. Requests of skills are counted by `begin_call`.
        """
        if purpose.startswith(SKILL_PURPOSE):
            return
        with self._lock:
            if self._is_limit_of_calls_reached:
                message = self._describe_limit("calls of the model", self._limits.model_calls)
                raise ChatError(message) if purpose.startswith(TOOL_PURPOSE) else RunLimitExceeded(message)
            self._sent += 1

    def end(self, purpose: str, usage: Usage) -> None:
        """Keep what a request used until the step is finished that it belongs to."""
        step = self._current_step() if purpose.startswith(STEP_PURPOSE_PREFIXES) else None
        with self._lock:
            if usage in self._unused:
                self._unused.remove(usage)
            self._unsettled.setdefault(step, []).append(usage)

    def settle(self, model_calls: int, usage: Usage | None = None, step: UUID | None = None) -> None:
        """Add the model calls of a step: those of its tool or skill, or else the ones that decided it."""
        with self._lock:
            self.usage += usage or Usage()
            self.calls.model_calls += model_calls
            settled = self._unsettled.pop(step, [])
            if step is None:
                # Requests that were refused and sent in another form came before.
                earlier = max(0, len(settled) - model_calls)
                settled, self._unsettled[None] = settled[earlier:], settled[:earlier]
            self._sent -= min(self._sent, len(settled))

    def settle_rest(self, error: ChatError | None = None) -> None:
        """Add, at the end of the run, what was used by requests that no step has, such as the one that failed."""
        with self._lock:
            rest = [*self._unused, *(usage for usages in self._unsettled.values() for usage in usages)]
            self._unused.clear()
            self._unsettled.clear()
            if error is not None and error.usage is not None and all(usage is not error.usage for usage in rest):
                rest.append(error.usage)
            self.usage = sum(rest, self.usage)
            self.calls.model_calls += len(rest)

    @property
    def _is_limit_of_calls_reached(self) -> bool:
        """Whether the calls of the model, with those that are under way, are as many as the limit allows."""
        limit = self._limits.model_calls
        return limit is not None and self.calls.model_calls + self._begun.model_calls + self._sent >= limit

    @staticmethod
    def _describe_limit(kind: str, limit: float | None) -> str:
        return f"the limit of {limit} {kind} is reached; ask again with a higher one"

    def begin_call(self, *, is_skill: bool) -> None:
        """Count a call of a skill, or else of a tool, as begun; RunLimitExceeded if it would exceed a limit."""
        with self._lock:
            limit = self._limits.retrievals
            if is_skill and self._is_limit_of_calls_reached:
                raise RunLimitExceeded(self._describe_limit("calls of the model", self._limits.model_calls))
            if not is_skill and limit is not None and self.calls.retrievals + self._begun.retrievals >= limit:
                raise RunLimitExceeded(self._describe_limit("retrievals", limit))
            self._begun.model_calls += is_skill
            self._begun.retrievals += not is_skill

    def begin_retry(self) -> bool:
        """Count a further attempt of a skill as begun, unless the limit of model calls leaves no room for it."""
        with self._lock:
            self._was_denied |= self._is_limit_of_calls_reached
            self._begun.model_calls += not self._was_denied
            return not self._was_denied

    def check_retries(self) -> None:
        """Raise RunLimitExceeded if a skill was not asked again because of the limit of model calls."""
        if self._was_denied:
            raise RunLimitExceeded(self._describe_limit("calls of the model", self._limits.model_calls))

    def end_skill(self, attempts: int, usage: Usage | None, step: UUID) -> None:
        """Count a call of a skill that was begun as made, with the attempts that it took."""
        with self._lock:
            self._begun.model_calls -= attempts
            sent = self._sent
            self.settle(attempts, usage, step)
            self._sent = sent

    def end_tool(self) -> None:
        """Count a call of a tool that was begun as made."""
        with self._lock:
            self.calls.retrievals += 1
            self._begun.retrievals -= 1

    def remaining(self, recorded: CallCounts) -> CallBudget:
        """What the run may still spend; `recorded` are calls of a resumed run that the reasoner has not reached again.

        They count as not yet made, so that a resumed reasoner decides as before.
        """
        limits, used = self._limits, self.usage
        calls = self.calls.model_calls
        counts = [inf if limits.model_calls is None else limits.model_calls - calls]
        # Tokens and money as calls of the mean size so far; the first call has no size to go by.
        if limits.tokens is not None and used.calls and used.max_tokens:
            counts.append((limits.tokens - used.max_tokens) * used.calls / used.max_tokens)
        if limits.money is not None and used.calls and used.max_cost:
            counts.append((limits.money - used.max_cost) * used.calls / used.max_cost)
        retrievals = inf if limits.retrievals is None else limits.retrievals - self.calls.retrievals
        return CallBudget(min(counts) + recorded.model_calls, retrievals + recorded.retrievals)

    def describe_calls(self) -> dict[str, Any]:
        """The counts of calls and the critical path in seconds, as a trace's result stores them."""
        expected = {} if self.expected_model_calls is None else {"model_calls_expected": self.expected_model_calls}
        reused = {"reused": self.reused} if self.reused else {}
        return {**asdict(self.calls), **expected, **reused, "critical_path": round(self.critical_path, 3)}

    def check_steps(self) -> None:
        """Raise RunLimitExceeded if another step would exceed the limit."""
        if self._limits.steps is not None and self.steps >= self._limits.steps:
            raise RunLimitExceeded(f"the limit of {self._limits.steps} steps is reached; ask again with a higher one")


def _format_bounded(used: Usage) -> str:
    if not used.unreported_calls:
        return "; ask again with a higher one"
    requests = "request" if used.unreported_calls == 1 else "requests"
    return (
        f"; {used.unreported_calls} {requests} to {used.model} reported no tokens and count with the most that is "
        "possible; ask again with a higher one, or set a limit of tokens for replies"
    )


def sum_step_usage(steps: Iterable[Step]) -> Usage:
    """Add up the usage of the model calls that wrote these steps, and of those made by their tools."""
    return sum((Usage(**usage) for step in steps for usage in step.usage.values()), Usage())
