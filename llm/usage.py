"""The usage of model calls: tokens, seconds and cost; unknown values are None, never zero."""

from dataclasses import dataclass
from typing import Any, TypeVar

_TOKENS_PER_PRICE_UNIT = 1_000_000
NumberT = TypeVar("NumberT", int, float)


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """US dollars per million tokens; reasoning is paid as output."""

    input: float
    output: float
    cached: float | None = None
    """Input read from the provider's cache; None for the price of other input."""
    cache_write: float | None = None
    """Input written to the provider's cache; None for the price of other input."""

    def cost_of(self, usage: "Usage") -> float | None:
        """The cost of a call in US dollars; None if a token count is unknown."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = self.input if self.cached is None else self.cached
        cache_write = self.input if self.cache_write is None else self.cache_write
        plain_tokens = max(0, usage.input_tokens - usage.cached_tokens - usage.cache_written_tokens)
        cost = self.input * plain_tokens + cached * usage.cached_tokens + cache_write * usage.cache_written_tokens
        return (cost + self.output * usage.output_tokens) / _TOKENS_PER_PRICE_UNIT

    def max_cost_of(self, input_tokens: int, output_tokens: int) -> float:
        """The cost in US dollars if no input is read from the cache, and all of it is written to the cache."""
        dearest_input = max(self.input, self.cache_write or 0.0)
        return (dearest_input * input_tokens + self.output * output_tokens) / _TOKENS_PER_PRICE_UNIT


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of calls; tokens are None if the server reports none, cost (US dollars) if no price is known.

    Usages can be added; a value that is unknown for one call is unknown for the sum. The bounds remain known: a call
    that reported no tokens counts with the most that it can have used.
    """

    model: str = ""
    calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    seconds: float = 0.0
    cost: float | None = 0.0
    cached_tokens: int = 0
    """The input tokens read from the provider's cache."""
    cache_written_tokens: int = 0
    """The input tokens written to the provider's cache."""
    reasoning_tokens: int = 0
    """The output tokens of the reasoning."""
    unreported_calls: int = 0
    """The requests, including failed attempts, whose tokens were not reported."""
    token_bound: int | None = None
    """The most input and output tokens that the calls can have used; None if it is their sum."""
    cost_bound: float | None = None
    """The most that the calls can have cost; None if it is `cost`."""

    @property
    def max_tokens(self) -> int | None:
        """The most input and output tokens that the calls can have used; None if that is unknown."""
        return (
            self.token_bound if self.token_bound is not None else _add_optional(self.input_tokens, self.output_tokens)
        )

    @property
    def max_cost(self) -> float | None:
        """The most that the calls can have cost in US dollars; None if no price is known."""
        return self.cost_bound if self.cost_bound is not None else self.cost

    def __add__(self, other: "Usage") -> "Usage":
        if not self.calls or not other.calls:
            return self if self.calls else other
        is_bounded = (self.token_bound, other.token_bound) != (None, None)
        return Usage(
            self.model if self.model == other.model else f"{self.model}, {other.model}",
            self.calls + other.calls,
            _add_optional(self.input_tokens, other.input_tokens),
            _add_optional(self.output_tokens, other.output_tokens),
            self.seconds + other.seconds,
            _add_optional(self.cost, other.cost),
            self.cached_tokens + other.cached_tokens,
            self.cache_written_tokens + other.cache_written_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.unreported_calls + other.unreported_calls,
            _add_optional(self.max_tokens, other.max_tokens) if is_bounded else None,
            _add_optional(self.max_cost, other.max_cost) if is_bounded else None,
        )

    def to_json(self) -> dict[str, Any]:
        """The usage as stored by a step; the values that most calls do not have are left out if they are zero."""
        values = {
            "model": self.model,
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "seconds": round(self.seconds, 4),
            "cost": self.cost,
        }
        optional = {
            "cached_tokens": self.cached_tokens,
            "cache_written_tokens": self.cache_written_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "unreported_calls": self.unreported_calls,
            "token_bound": self.token_bound,
            "cost_bound": self.cost_bound,
        }
        return values | {name: value for name, value in optional.items() if value}


def _add_optional(one: NumberT | None, other: NumberT | None) -> NumberT | None:
    return None if one is None or other is None else one + other
