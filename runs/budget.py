"""What a run may take, and what it has taken."""

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from db.models import Step
from llm.usage import Usage

DEFAULT_MAX_STEPS = 20
DEFAULT_MAX_SECONDS = 600.0


class RunLimitExceeded(Exception):
    """The run has taken as much as it may; the message says of what."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The most that a run may take; None for as much as it likes."""

    steps: int | None = DEFAULT_MAX_STEPS
    tokens: int | None = None
    """In and out, of all calls of the language model."""
    seconds: float | None = DEFAULT_MAX_SECONDS
    """Since it was begun or went on."""
    money: float | None = None
    """In US dollars."""

    def to_json(self) -> dict[str, Any]:
        """The limits by name, those that there are."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class BudgetMeter:
    """What a run has taken, held against its limits."""

    def __init__(self, limits: RunLimits, steps: int, used: Usage) -> None:
        self.steps = steps
        self.usage = used
        self._limits = limits
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the meter was made."""
        return time.monotonic() - self._began

    def add(self, usage: dict[str, Any] | None) -> None:
        """Count what calls of the language model took."""
        if usage:
            self.usage += Usage(**usage)

    def check_time(self) -> None:
        """LimitReached when the time is over."""
        most = self._limits.seconds
        if most is not None and self.seconds > most:
            raise RunLimitExceeded(f"the limit of {most:g} seconds is reached; ask again with a higher one")

    def check_model(self) -> None:
        """LimitReached when the language model has taken all that it may."""
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
        """LimitReached when there may be no further step."""
        if self._limits.steps is not None and self.steps >= self._limits.steps:
            raise RunLimitExceeded(f"the limit of {self._limits.steps} steps is reached; ask again with a higher one")


def sum_step_usage(steps: Iterable[Step]) -> Usage:
    """What the calls of the language model took in all that wrote these steps and that their tools made."""
    return sum((Usage(**taken) for step in steps for taken in step.usage.values()), Usage())
