"""What servers say about their rate limits: waiting times in headers and messages, and what is left of a budget."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from showhow.worlds.live.http.rate_limiter import parse_retry_after

_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNIT = r"milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d"
_NUMBER = r"\d{1,20}(?:\.\d{1,20})?"
_MAX_DURATION_CHARACTERS = 100
_DURATION = re.compile(rf"({_NUMBER})\s*({_UNIT})(?![a-z])", re.IGNORECASE)
_WAIT_IN_TEXT = re.compile(
    r"\b(?:try(?:ing)? again|retry(?:ing)?|wait|come back)\b[^\d.;]{0,40}"
    rf"((?:{_NUMBER}\s{{0,9}}(?:{_UNIT})(?![a-z])(?:,|\s|and){{0,9}})+)",
    re.IGNORECASE,
)
_BARE_SECONDS_IN_TEXT = re.compile(r"\bretry[-_ ]after\b[^\d]{0,5}(\d{1,5}(?:\.\d+)?)(?![\w:-])", re.IGNORECASE)
_BUDGET_HEADER = re.compile(r"(?:^|-)ratelimit-(.+)$")
_BUDGET_FIELDS = ("limit", "remaining", "reset")
_WINDOW_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
_MAX_RELATIVE_RESET = 1e9
_MAX_EPOCH_SECONDS = 1e11


@dataclass(frozen=True, slots=True)
class RateBudget:
    """What a server says is left until its limit: of requests, or of tokens."""

    counts_tokens: bool
    remaining: float
    reset_seconds: float
    """Seconds until the budget is whole again."""


def parse_duration(text: str) -> float | None:
    """Seconds of a duration such as "1.9s", "6m0s" or "500ms"; a number alone is seconds. None if it is none."""
    text = text.strip()
    if len(text) > _MAX_DURATION_CHARACTERS:
        return None
    parts = _DURATION.findall(text)
    if parts and not re.sub(r"[\s,]|and", "", _DURATION.sub("", text)):
        return sum(float(number) * _unit_seconds(unit) for number, unit in parts)
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _unit_seconds(unit: str) -> float:
    unit = unit.casefold()
    return _UNIT_SECONDS["ms" if unit.startswith(("ms", "milli")) else unit[0]]


def parse_wait(headers: Mapping[str, str], message: str) -> float | None:
    """Seconds to wait by the headers of an error, or else by its message; None if neither names a time."""
    milliseconds = parse_duration(_find_header(headers, "retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    header = _find_header(headers, "retry-after")
    seconds = parse_duration(header)
    if seconds is None:
        seconds = parse_retry_after(header or None)
    if seconds is None:
        match = _WAIT_IN_TEXT.search(message) or _BARE_SECONDS_IN_TEXT.search(message)
        seconds = parse_duration(match[1]) if match else None
    if seconds is None:
        spent = [budget.reset_seconds for budget in parse_budgets(headers) if budget.remaining < 1]
        seconds = max(spent, default=None)
    return seconds


def _find_header(headers: Mapping[str, str], name: str) -> str:
    """A header, or the one that a proxy passes on under a name with a prefix, as LiteLLM's does."""
    prefixed = (value for other, value in headers.items() if other.endswith(f"-{name}"))
    return headers.get(name) or next(prefixed, "")


def parse_budgets(headers: Mapping[str, str]) -> list[RateBudget]:
    """The budgets in headers such as x-ratelimit-remaining-requests or anthropic-ratelimit-tokens-reset."""
    fields: dict[str, dict[str, str]] = {}
    for name, value in headers.items():
        match = _BUDGET_HEADER.search(name.lower())
        words = match[1].split("-") if match else []
        field = next((word for word in words if word in _BUDGET_FIELDS), None)
        if field is not None:
            unit = "-".join(word for word in words if word != field)
            fields.setdefault(unit, {})[field] = value
    return [budget for unit, values in fields.items() if (budget := _to_budget(unit, values)) is not None]


def _to_budget(unit: str, values: Mapping[str, str]) -> RateBudget | None:
    remaining = parse_duration(values.get("remaining", ""))
    reset = _parse_reset(values["reset"]) if "reset" in values else _WINDOW_SECONDS.get(unit)
    if remaining is None or reset is None:
        return None
    return RateBudget("token" in unit, remaining, reset)


def _parse_reset(text: str) -> float | None:
    """Seconds until a reset, written as a duration, a moment, or seconds or milliseconds since 1970."""
    seconds = parse_duration(text)
    now = datetime.now(UTC)
    if seconds is None:
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            return None
        return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())
    if seconds < _MAX_RELATIVE_RESET:
        return seconds
    moment_seconds = seconds if seconds < _MAX_EPOCH_SECONDS else seconds / 1000
    return max(0.0, moment_seconds - now.timestamp())
