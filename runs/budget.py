"""The limits of a run, and the meter that enforces them."""

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from db.models import Step
from llm.usage import Usage
from reasoners.base import DEFAULT_STEP_LIMIT

DEFAULT_MAX_SECONDS = 600.0


class RunLimitExceeded(Exception):
    """A run has reached a limit; the message names it."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of a run; None for no limit."""

    steps: int | None = DEFAULT_STEP_LIMIT
    tokens: int | None = None
    """Input and output tokens of all model calls."""
    seconds: float | None = DEFAULT_MAX_SECONDS
    """Since the run was started or resumed."""
    money: float | None = None
    """In US dollars."""

    def to_json(self) -> dict[str, Any]:
        """The limits that are set, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class BudgetMeter:
    """Adds up the steps, usage and time of a run, and compares them with its limits."""

    def __init__(self, limits: RunLimits, steps: int, used: Usage) -> None:
        self.steps = steps
        self.usage = used
        self._limits = limits
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the meter was made."""
        return time.monotonic() - self._began

    def add(self, usage: dict[str, Any] | None) -> None:
        """Add the usage of model calls."""
        if usage:
            self.usage += Usage(**usage)

    def check_time(self) -> None:
        """Raise RunLimitExceeded when the time is over."""
        most = self._limits.seconds
        if most is not None and self.seconds > most:
            raise RunLimitExceeded(f"the limit of {most:g} seconds is reached; ask again with a higher one")

    def check_model(self) -> None:
        """Raise RunLimitExceeded when the model calls have reached the limit of tokens or money."""
        limits, used = self._limits, self.usage
        if limits.tokens is not None:
            if used.input_tokens is None or used.output_tokens is None:
                raise RunLimitExceeded(f"{used.model} does not tell its tokens, so that no limit of them can be kept")
            if used.input_tokens + used.output_tokens >= limits.tokens:
                raise RunLimitExceeded(f"the limit of {limits.tokens:,} tokens is reached; ask again with a higher one")
        if limits.money is not None:
            if used.cost is None:
                raise RunLimitExceeded(f"no price of {used.model} is known, so that no limit of money can be kept")
            if used.cost >= limits.money:
                raise RunLimitExceeded(f"the limit of ${limits.money:g} is reached; ask again with a higher one")

    def check_steps(self) -> None:
        """Raise RunLimitExceeded when another step would exceed the limit."""
        if self._limits.steps is not None and self.steps >= self._limits.steps:
            raise RunLimitExceeded(f"the limit of {self._limits.steps} steps is reached; ask again with a higher one")


def sum_step_usage(steps: Iterable[Step]) -> Usage:
    """The usage of the model calls that wrote these steps, and of those that their tools made."""
    return sum((Usage(**usage) for step in steps for usage in step.usage.values()), Usage())
