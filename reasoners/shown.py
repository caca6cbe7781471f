"""What a prompt shows of a solution process, before it is written as text or as a chat."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from db.models import Step
from db.record import TraceRecord
from fewshot_library.formats.chat import outcome
from reasoners.ending import ending_of


@dataclass(frozen=True, slots=True)
class Shown:
    """A question with steps towards its answer; without an ending where it is still being worked on."""

    question: str
    steps: tuple[Step, ...]
    thought: str = ""
    """The last one, before the answer."""
    ending: str | None = None


def demonstration(record: TraceRecord, tools: Collection[str] | None, sources: str = "both") -> Shown:
    """The trace as an example of asking these sources; calls of tools that are not among these are left out of it."""
    steps = (step for step in record.steps if tools is None or step.tool is None or step.tool in tools)
    return Shown(record.question.text, tuple(steps), record.trace.final_thought or "", ending_of(record.trace, sources))


def seen_as(step: Step, text: str) -> Step:
    """The step with that text in place of what was observed, or of the error."""
    if text == outcome(step):
        return step
    return replace(step, observation=None, error=text) if step.observation is None else replace(step, observation=text)
