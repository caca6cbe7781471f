"""What goes into a prompt, whatever its form.

The prompts of this room, in the folder `prompts`.
What a prompt shows of a solution process, before it is written as text or as a chat.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from db.models import Step
from db.trace_record import TraceRecord
from fewshot_library.formats.chat import step_outcome_text
from llm.prompts import PromptTemplates
from reasoners.answers.extraction import format_final_answer
from tools.tool import Tool

render_prompt = PromptTemplates("reasoners.prompting")


@dataclass(frozen=True, slots=True)
class PromptExample:
    """A question with steps towards its answer; without an ending where it is still being worked on."""

    question: str
    steps: tuple[Step, ...]
    final_thought: str = ""
    """The last one, before the answer."""
    final_answer: str | None = None


def build_example(record: TraceRecord, tools: Collection[str] | None, sources: str = "both") -> PromptExample:
    """The trace as an example of asking these sources; calls of tools that are not among these are left out of it."""
    steps = (step for step in record.steps if tools is None or step.tool is None or step.tool in tools)
    return PromptExample(
        record.question.text, tuple(steps), record.trace.final_thought or "", format_final_answer(record.trace, sources)
    )


def replace_observation(step: Step, text: str) -> Step:
    """The step with that text in place of what was observed, or of the error."""
    if text == step_outcome_text(step):
        return step
    return replace(step, observation=None, error=text) if step.observation is None else replace(step, observation=text)


@dataclass(frozen=True, slots=True)
class PromptParts:
    """The parts of one prompt, already cut to size."""

    example: PromptExample
    """The question with the steps so far."""
    demonstrations: tuple[PromptExample, ...]
    tools: Sequence[Tool]
    sources: str
    instruction: str = ""
    """What is asked for next, where the model is not free to choose."""
