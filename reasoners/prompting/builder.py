"""The prompts of one run, each within what the model can take.

The rule: observations longer than the options allow are always truncated. Then parts give way in this order until the
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
    stop_sequences: tuple[str, ...]

    def messages(self, material: PromptParts) -> list[Message]: ...
    def tool_declarations(self, tools: Sequence[Tool]) -> Sequence[Tool]: ...
    def parse_reply(self, reply: ChatReply, question: str, tools: Sequence[Tool]) -> ParsedReply: ...


class PromptOptions(Protocol):
    """The options of an agent that shape its prompts (reasoners/humaniq/options.py)."""

    @property
    def sources(self) -> str:
        """Which sources the agent may use: both, text or graph."""

    @property
    def context_tokens(self) -> int:
        """The model's context window."""

    @property
    def reply_tokens(self) -> int:
        """Tokens kept free for the reply."""

    @property
    def observation_tokens(self) -> int:
        """The most tokens of one observation."""


class PromptBuilder:
    """Writes the prompts of one run in one form."""

    def __init__(self, form: PromptFormat, task: Task, options: PromptOptions) -> None:
        self.prompt_format = form
        self._question = task.question
        self._encode: EncodeFunction = task.context.encode
        self._options = options
        only = None if options.sources == "both" else {tool.name for tool in task.tools}
        shown = (build_example(record, only, options.sources) for record in task.demonstrations)
        self._examples = [example for example in shown if example.steps]
        self._examples_by_cuts: dict[int, tuple[PromptExample, ...]] = {}
        # Steps are only ever added, so what gave way once would give way again.
        self._cut_count = 0

    @property
    def demonstration_count(self) -> int:
        """How many demonstrations the last prompt had."""
        return len(self._fit_examples(min(self._cut_count, 2 * len(self._examples))))

    def build_messages(self, steps: Sequence[Step], tools: Sequence[Tool], cue: str = "") -> list[Message]:
        """The prompt for the next step."""
        room = self._options.context_tokens - self._options.reply_tokens
        beside = truncation.count_tool_tokens(self.prompt_format.tool_declarations(tools))
        last = 2 * len(self._examples) + len(steps)
        while True:
            messages = self.prompt_format.messages(self._build_parts(steps, tools, cue))
            taken = truncation.count_message_tokens(messages) + beside
            if taken <= room:
                return messages
            if self._cut_count >= last:
                raise PromptTooLong(
                    f"The prompt takes about {taken:,} tokens with all left out that may be, and there is room for "
                    f"{room:,}; raise context_tokens, lower reply_tokens, or give the run fewer steps."
                )
            self._cut_count += 1

    def _build_parts(self, steps: Sequence[Step], tools: Sequence[Tool], cue: str) -> PromptParts:
        own = self._cut_observations(
            PromptExample(self._question, tuple(steps)), max(self._cut_count - 2 * len(self._examples), 0)
        )
        return PromptParts(
            own, self._fit_examples(min(self._cut_count, 2 * len(self._examples))), tools, self._options.sources, cue
        )

    def _fit_examples(self, given_way: int) -> tuple[PromptExample, ...]:
        """What is left of them after so many parts of theirs gave way."""
        if given_way not in self._examples_by_cuts:
            count = len(self._examples)
            kept, uncut = count - max(given_way - count, 0), count - given_way
            shown = enumerate(self._examples[:kept])
            self._examples_by_cuts[given_way] = tuple(
                self._cut_observations(example, 0 if place < uncut else len(example.steps)) for place, example in shown
            )
        return self._examples_by_cuts[given_way]

    def _cut_observations(self, shown: PromptExample, first: int) -> PromptExample:
        """With its observations cut: the `first` ones to SHORT, the others to the limit of the options."""
        most = self._options.observation_tokens
        steps = tuple(
            self._cut_observation(step, shown.question, min(MIN_OBSERVATION_TOKENS, most) if place < first else most)
            for place, step in enumerate(shown.steps)
        )
        return PromptExample(shown.question, steps, shown.final_thought, shown.final_answer)

    def _cut_observation(self, step: Step, question: str, most: int) -> Step:
        return replace_observation(step, truncate_observation(step_outcome_text(step), most, question, self._encode))
