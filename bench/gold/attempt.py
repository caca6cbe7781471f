"""A trace in the making: tools are really run, and each call becomes a step with the origins of its arguments."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from db.models import Step, now
from reasoners.origins import known_values, traced
from tools.registry import tool as tool_named
from tools.tool import Context

MOST_STEPS = 100


class Stuck(Exception):
    """The trace cannot be led to its end; the message says why."""


class Attempt:
    """The steps of one trace, and what has been seen in them."""

    def __init__(self, trace_id: UUID, question: str, context: Context) -> None:
        self.steps: list[Step] = []
        self._trace_id, self._question, self._context = trace_id, question, context
        self._seen: set[str] = set()
        self._texts: list[str] = [question]
        self._notes: list[str] = []

    def act(self, thought: str, tool: str, **arguments: str | list[str]) -> dict[str, Any]:
        """What the tool observes; Stuck when it fails or the trace would be too long."""
        if len(self.steps) == MOST_STEPS:
            raise Stuck(f"it would take more than {MOST_STEPS} steps")
        data = {step.position: step.data for step in self.steps}
        began = now()
        outcome = tool_named(tool).call(self._context, arguments)
        found = outcome.observation
        step = Step(
            trace_id=self._trace_id,
            position=len(self.steps) + 1,
            thought=self.thought(thought),
            tool=tool,
            arguments=arguments,
            origins=traced(arguments, self._question, data),
            observation=found.text if found else None,
            data=found.data if found else None,
            error=outcome.error,
            latency=outcome.seconds,
            started_at=began,
            finished_at=now(),
        )
        self.steps.append(step)
        if found is None:
            raise Stuck(f"{tool} failed in step {step.position}: {outcome.error}")
        self._remember(found.data)
        return found.data

    def note(self, finding: str) -> None:
        """What the steps so far have come to, with which the next thought begins."""
        self._notes.append(finding)

    def thought(self, text: str) -> str:
        """The next thought: what was noted since the last one, then the text."""
        notes, self._notes = self._notes, []
        return " ".join((*dict.fromkeys(notes), text))

    def peek(self, tool: str, **arguments: str | list[str]) -> dict[str, Any] | None:
        """What the tool would observe, without a step; None when it fails."""
        found = tool_named(tool).call(self._context, arguments).observation
        return found.data if found else None

    def knows(self, value: str) -> bool:
        """Whether that title, id or label is a value of an observation."""
        return value in self._seen

    def reads(self, text: str) -> bool:
        """Whether that name stands in the question or in something that was observed."""
        return text in self._seen or any(text in each for each in self._texts)

    def _remember(self, data: Mapping[str, Any]) -> None:
        self._seen.update(known.text for known in known_values({0: data}))
        self._texts += sentences_of(data)


def sentences_of(data: Mapping[str, Any]) -> Iterator[str]:
    """Every sentence of an observation: of what was read, or of the snippets of what was found."""
    yield from data.get("sentences", ())
    for hit in (*data.get("hits", ()), *data.get("pages", ())):
        yield hit["snippet"]
