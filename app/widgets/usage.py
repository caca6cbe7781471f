"""What the calls of the language model took that a step, or all of a trace, needed."""

from collections.abc import Iterable, Mapping
from typing import Any

from db.models import Step
from evaluation.number_format import format_count, format_money, format_seconds, format_tokens

USAGE_LABELS = {"thought": "to write the step", "tool": "inside the tool"}
UsageData = Mapping[str, Any]


def format_step_cost(step: Step) -> list[str]:
    """The seconds of the step's tool, and the tokens and the cost of its model calls where there were any."""
    time = [format_seconds(step.latency)] if step.latency is not None else []
    return [*time, *_format_tokens_and_cost(step.usage.values())]


def format_usage_details(usage: Mapping[str, UsageData]) -> list[str]:
    """A clause for each part of a step that called the model."""
    return [_format_usage(USAGE_LABELS[part], usage[part]) for part in USAGE_LABELS if part in usage]


def format_trace_cost(steps: Iterable[Step]) -> str:
    """What all steps took in all of a model; "" where none was called."""
    return _format_total([part for step in steps for part in step.usage.values()])


def format_run_cost(used: UsageData) -> str:
    """What a run took in all of a model, the calls after its last step too; "" where none was called."""
    return _format_total([used] if used else [])


def _format_total(used: list[UsageData]) -> str:
    calls = sum(part.get("calls") or 0 for part in used)
    return " · ".join([format_count(calls, "model call"), *_format_tokens_and_cost(used)]) if used else ""


def _format_tokens_and_cost(used: Iterable[UsageData]) -> list[str]:
    every = list(used)
    if not every:
        return []
    taken, given, cost = (_sum_field(every, name) for name in ("input_tokens", "output_tokens", "cost"))
    return [format_tokens(taken, given), format_money(cost)]


def _sum_field(used: list[UsageData], name: str) -> Any:
    """What is unknown of one call is unknown of the sum."""
    told = [each.get(name) for each in used]
    return None if None in told else sum(filter(None, told))


def _format_usage(what: str, used: UsageData) -> str:
    taken, given = (
        "unknown" if used.get(name) is None else f"{used[name]:,}" for name in ("input_tokens", "output_tokens")
    )
    calls = format_count(used.get("calls") or 0, "call")
    return (
        f"{what}: {calls} of {used.get('model') or 'a model'}, {taken} tokens in and {given} out, "
        f"{format_seconds(used.get('seconds') or 0.0)}, {format_money(used.get('cost'))}"
    )
