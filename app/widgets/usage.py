"""Formats the tokens, cost and time of the model calls of a step, a trace or a run."""

from collections.abc import Iterable, Mapping
from typing import Any

from db.models import Step
from evaluation.number_format import format_count, format_money, format_seconds, format_tokens

USAGE_LABELS = {"thought": "to write the step", "tool": "inside the tool"}
UsageData = Mapping[str, Any]


def format_step_cost(step: Step) -> list[str]:
    """The seconds of the step's tool, then tokens and cost of its model calls if there were any."""
    time = [format_seconds(step.latency)] if step.latency is not None else []
    return [*time, *_format_tokens_and_cost(step.usage.values())]


def format_usage_details(usage: Mapping[str, UsageData]) -> list[str]:
    """One clause for each part of a step that called the model."""
    return [_format_usage(USAGE_LABELS[part], usage[part]) for part in USAGE_LABELS if part in usage]


def format_trace_cost(steps: Iterable[Step]) -> str:
    """The model calls of all steps in sum; "" without any."""
    return _format_total([part for step in steps for part in step.usage.values()])


def format_run_cost(used: UsageData) -> str:
    """The model calls of a run in sum, with those after its last step; "" without any."""
    return _format_total([used] if used else [])


def _format_total(used: list[UsageData]) -> str:
    calls = sum(part.get("calls") or 0 for part in used)
    return " · ".join([format_count(calls, "model call"), *_format_tokens_and_cost(used)]) if used else ""


def _format_tokens_and_cost(used: Iterable[UsageData]) -> list[str]:
    every = list(used)
    if not every:
        return []
    input_tokens, output_tokens, cost = (_sum_field(every, name) for name in ("input_tokens", "output_tokens", "cost"))
    return [format_tokens(input_tokens, output_tokens), format_money(cost)]


def _sum_field(used: list[UsageData], name: str) -> Any:
    """The sum of a field; None when it is unknown of one call."""
    amounts = [usage.get(name) for usage in used]
    return None if None in amounts else sum(filter(None, amounts))


def _format_usage(what: str, used: UsageData) -> str:
    input_tokens, output_tokens = (
        "unknown" if used.get(name) is None else f"{used[name]:,}" for name in ("input_tokens", "output_tokens")
    )
    calls = format_count(used.get("calls") or 0, "call")
    return (
        f"{what}: {calls} of {used.get('model') or 'a model'}, {input_tokens} tokens in and {output_tokens} out, "
        f"{format_seconds(used.get('seconds') or 0.0)}, {format_money(used.get('cost'))}"
    )
