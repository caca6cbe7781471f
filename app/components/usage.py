"""What the calls of the language model took that a step, or all of a trace, needed."""

from collections.abc import Iterable, Mapping
from typing import Any

from app.spent import counted, money, seconds, tokens
from db.models import Step

PARTS = {"thought": "to write the step", "tool": "inside the tool"}
Used = Mapping[str, Any]


def spent_of(step: Step) -> list[str]:
    """The seconds of the step's tool, and the tokens and the cost of its model calls where there were any."""
    time = [seconds(step.latency)] if step.latency is not None else []
    return [*time, *_in_all(step.usage.values())]


def usage_details(usage: Mapping[str, Used]) -> list[str]:
    """A clause for each part of a step that called the model."""
    return [_detail(PARTS[part], usage[part]) for part in PARTS if part in usage]


def trace_spent(steps: Iterable[Step]) -> str:
    """What all steps took in all of a model; "" where none was called."""
    return _told([part for step in steps for part in step.usage.values()])


def spent_in_all(used: Used) -> str:
    """What a run took in all of a model, the calls after its last step too; "" where none was called."""
    return _told([used] if used else [])


def _told(used: list[Used]) -> str:
    calls = sum(part.get("calls") or 0 for part in used)
    return " · ".join([counted(calls, "model call"), *_in_all(used)]) if used else ""


def _in_all(used: Iterable[Used]) -> list[str]:
    every = list(used)
    if not every:
        return []
    taken, given, cost = (_sum(every, name) for name in ("input_tokens", "output_tokens", "cost"))
    return [tokens(taken, given), money(cost)]


def _sum(used: list[Used], name: str) -> Any:
    """What is unknown of one call is unknown of the sum."""
    told = [each.get(name) for each in used]
    return None if None in told else sum(filter(None, told))


def _detail(what: str, used: Used) -> str:
    taken, given = (
        "unknown" if used.get(name) is None else f"{used[name]:,}" for name in ("input_tokens", "output_tokens")
    )
    calls = counted(used.get("calls") or 0, "call")
    return (
        f"{what}: {calls} of {used.get('model') or 'a model'}, {taken} tokens in and {given} out, "
        f"{seconds(used.get('seconds') or 0.0)}, {money(used.get('cost'))}"
    )
