"""What calls of a language model took: tokens, seconds and money; what nobody told is None and never zero."""

from dataclasses import dataclass
from typing import Any, TypeVar

_TOKENS_PER_PRICE_UNIT = 1_000_000
NumberT = TypeVar("NumberT", int, float)


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """US dollars for a million tokens that go in and that come out."""

    input: float
    output: float

    def cost_of(self, input_tokens: int | None, output_tokens: int | None) -> float | None:
        """What so many tokens cost; None where their number is not known."""
        if input_tokens is None or output_tokens is None:
            return None
        return (self.input * input_tokens + self.output * output_tokens) / _TOKENS_PER_PRICE_UNIT


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls took; tokens are None where a server told none, cost (US dollars) where no price is known.

    Usages add up; what is unknown of one call is unknown of the sum.
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
        """As a step keeps it."""
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
