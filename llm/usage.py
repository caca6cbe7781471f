"""The usage of model calls: tokens, seconds and cost; unknown values are None, never zero."""

from dataclasses import dataclass
from typing import Any, TypeVar

_TOKENS_PER_PRICE_UNIT = 1_000_000
NumberT = TypeVar("NumberT", int, float)


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """US dollars per million input and output tokens."""

    input: float
    output: float

    def cost_of(self, input_tokens: int | None, output_tokens: int | None) -> float | None:
        """The cost of so many tokens; None if their number is unknown."""
        if input_tokens is None or output_tokens is None:
            return None
        return (self.input * input_tokens + self.output * output_tokens) / _TOKENS_PER_PRICE_UNIT


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of calls; tokens are None if the server reports none, cost (US dollars) if no price is known.

    Usages can be added; a value that is unknown for one call is unknown for the sum.
    """

    model: str = ""
    calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    seconds: float = 0.0
    cost: float | None = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        if not self.calls or not other.calls:
            return self if self.calls else other
        return Usage(
            self.model if self.model == other.model else f"{self.model}, {other.model}",
            self.calls + other.calls,
            _add_optional(self.input_tokens, other.input_tokens),
            _add_optional(self.output_tokens, other.output_tokens),
            self.seconds + other.seconds,
            _add_optional(self.cost, other.cost),
        )

    def to_json(self) -> dict[str, Any]:
        """Return JSON values as a step stores them."""
        return {
            "model": self.model,
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "seconds": round(self.seconds, 4),
            "cost": self.cost,
        }


def _add_optional(one: NumberT | None, other: NumberT | None) -> NumberT | None:
    return None if one is None or other is None else one + other
