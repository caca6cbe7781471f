"""The prompts of one run, each within what the model can take.

The rule: observations longer than the setup's measure are always cut to it. Then parts give way in this order until the
prompt fits: the demonstrations' observations are cut to SHORT, the last demonstration's first; demonstrations are left
out, the last first; the run's own observations are cut to SHORT, the oldest first. Instructions, tools, the question,
thoughts and calls stay whole: where these alone are too long, PromptTooLong says so.
"""

from collections.abc import Sequence
from typing import Protocol

from db.models import Step
from fewshot_library.formats.chat import step_outcome_text
from llm.types import ChatReply, Message
from reasoners.base import ReasonerError, Task
from reasoners.humaniq.options import AgentOptions
from reasoners.prompting import truncation
from reasoners.prompting.call_parser import ParsedReply
from reasoners.prompting.parts import PromptExample, PromptParts, build_example, replace_observation
from reasoners.prompting.truncation import truncate_observation
from tools.tool import EncodeFunction, Tool

MIN_OBSERVATION_TOKENS = 60
"""Tokens that an observation keeps at least, where it had as many."""


class PromptTooLong(ReasonerError):
    """What cannot be left out is more than the model can take."""


class PromptFormat(Protocol):
    """One way to write a prompt and to read the reply."""

    name: str
    stop: tuple[str, ...]

    def messages(self, material: PromptParts) -> list[Message]: ...
    def offers(self, tools: Sequence[Tool]) -> Sequence[Tool]: ...
    def read(self, reply: ChatReply, question: str, tools: Sequence[Tool]) -> ParsedReply: ...


class PromptBuilder:
    """Writes the prompts of one run in one form."""

    def __init__(self, form: PromptFormat, task: Task, setup: AgentOptions) -> None:
        self.form = form
        self._question = task.question
        self._encode: EncodeFunction = task.context.encode
        self._setup = setup
        only = None if setup.sources == "both" else {tool.name for tool in task.tools}
        shown = (build_example(record, only, setup.sources) for record in task.demonstrations)
        self._whole = [each for each in shown if each.steps]
        self._left: dict[int, tuple[PromptExample, ...]] = {}
        # Steps are only ever added, so what gave way once would give way again.
        self._given_way = 0

    @property
    def shown(self) -> int:
        """How many demonstrations the last prompt had."""
        return len(self._demonstrations(min(self._given_way, 2 * len(self._whole))))

    def messages(self, steps: Sequence[Step], tools: Sequence[Tool], cue: str = "") -> list[Message]:
        """The prompt for the next step."""
        room = self._setup.context_tokens - self._setup.reply_tokens
        beside = truncation.count_tool_tokens(self.form.offers(tools))
        last = 2 * len(self._whole) + len(steps)
        while True:
            found = self.form.messages(self._material(steps, tools, cue))
            taken = truncation.count_message_tokens(found) + beside
            if taken <= room:
                return found
            if self._given_way >= last:
                raise PromptTooLong(
                    f"The prompt takes about {taken:,} tokens with all left out that may be, and there is room for "
                    f"{room:,}; raise context_tokens, lower reply_tokens, or give the run fewer steps."
                )
            self._given_way += 1

    def _material(self, steps: Sequence[Step], tools: Sequence[Tool], cue: str) -> PromptParts:
        own = self._cut(PromptExample(self._question, tuple(steps)), max(self._given_way - 2 * len(self._whole), 0))
        return PromptParts(
            own, self._demonstrations(min(self._given_way, 2 * len(self._whole))), tools, self._setup.sources, cue
        )

    def _demonstrations(self, given_way: int) -> tuple[PromptExample, ...]:
        """What is left of them after so many parts of theirs gave way."""
        if given_way not in self._left:
            count = len(self._whole)
            kept, uncut = count - max(given_way - count, 0), count - given_way
            shown = enumerate(self._whole[:kept])
            self._left[given_way] = tuple(
                self._cut(each, 0 if place < uncut else len(each.steps)) for place, each in shown
            )
        return self._left[given_way]

    def _cut(self, shown: PromptExample, first: int) -> PromptExample:
        """With its observations cut: the `first` ones to SHORT, the others to the setup's measure."""
        most = self._setup.observation_tokens
        steps = tuple(
            self._cut_step(step, shown.question, min(MIN_OBSERVATION_TOKENS, most) if place < first else most)
            for place, step in enumerate(shown.steps)
        )
        return PromptExample(shown.question, steps, shown.thought, shown.ending)

    def _cut_step(self, step: Step, question: str, most: int) -> Step:
        return replace_observation(step, truncate_observation(step_outcome_text(step), most, question, self._encode))
