"""The prompts of one run, each within what the model can take.

The rule: observations longer than the setup's measure are always cut to it. Then parts give way in this order until the
prompt fits: the demonstrations' observations are cut to SHORT, the last demonstration's first; demonstrations are left
out, the last first; the run's own observations are cut to SHORT, the oldest first. Instructions, tools, the question,
thoughts and calls stay whole: where these alone are too long, PromptTooLong says so.
"""

from collections.abc import Sequence
from typing import Protocol

from db.models import Step
from fewshot_library.formats.chat import outcome
from reasoners import tokens
from reasoners.decision import Decision
from reasoners.material import Material
from reasoners.reasoner import ReasonerError, Task
from reasoners.setup import Setup
from reasoners.shortening import shortened
from reasoners.shown import Shown, demonstration, seen_as
from tools.chat import Message, Reply
from tools.tool import Encode, Tool

SHORT = 60
"""Tokens that an observation keeps at least, where it had as many."""


class PromptTooLong(ReasonerError):
    """What cannot be left out is more than the model can take."""


class Form(Protocol):
    """One way to write a prompt and to read the reply."""

    name: str
    stop: tuple[str, ...]

    def messages(self, material: Material) -> list[Message]: ...
    def offers(self, tools: Sequence[Tool]) -> Sequence[Tool]: ...
    def read(self, reply: Reply, question: str, tools: Sequence[Tool]) -> Decision: ...


class Prompting:
    """Writes the prompts of one run in one form."""

    def __init__(self, form: Form, task: Task, setup: Setup) -> None:
        self.form = form
        self._question = task.question
        self._encode: Encode = task.context.encode
        self._setup = setup
        only = None if setup.sources == "both" else {tool.name for tool in task.tools}
        shown = (demonstration(record, only, setup.sources) for record in task.demonstrations)
        self._whole = [each for each in shown if each.steps]
        self._left: dict[int, tuple[Shown, ...]] = {}
        # Steps are only ever added, so what gave way once would give way again.
        self._given_way = 0

    @property
    def shown(self) -> int:
        """How many demonstrations the last prompt had."""
        return len(self._demonstrations(min(self._given_way, 2 * len(self._whole))))

    def messages(self, steps: Sequence[Step], tools: Sequence[Tool], cue: str = "") -> list[Message]:
        """The prompt for the next step."""
        room = self._setup.context_tokens - self._setup.reply_tokens
        beside = tokens.of_tools(self.form.offers(tools))
        last = 2 * len(self._whole) + len(steps)
        while True:
            found = self.form.messages(self._material(steps, tools, cue))
            taken = tokens.of_messages(found) + beside
            if taken <= room:
                return found
            if self._given_way >= last:
                raise PromptTooLong(
                    f"The prompt takes about {taken:,} tokens with all left out that may be, and there is room for "
                    f"{room:,}; raise context_tokens, lower reply_tokens, or give the run fewer steps."
                )
            self._given_way += 1

    def _material(self, steps: Sequence[Step], tools: Sequence[Tool], cue: str) -> Material:
        own = self._cut(Shown(self._question, tuple(steps)), max(self._given_way - 2 * len(self._whole), 0))
        return Material(
            own, self._demonstrations(min(self._given_way, 2 * len(self._whole))), tools, self._setup.sources, cue
        )

    def _demonstrations(self, given_way: int) -> tuple[Shown, ...]:
        """What is left of them after so many parts of theirs gave way."""
        if given_way not in self._left:
            count = len(self._whole)
            kept, uncut = count - max(given_way - count, 0), count - given_way
            shown = enumerate(self._whole[:kept])
            self._left[given_way] = tuple(
                self._cut(each, 0 if place < uncut else len(each.steps)) for place, each in shown
            )
        return self._left[given_way]

    def _cut(self, shown: Shown, first: int) -> Shown:
        """With its observations cut: the `first` ones to SHORT, the others to the setup's measure."""
        most = self._setup.observation_tokens
        steps = tuple(
            self._cut_step(step, shown.question, min(SHORT, most) if place < first else most)
            for place, step in enumerate(shown.steps)
        )
        return Shown(shown.question, steps, shown.thought, shown.ending)

    def _cut_step(self, step: Step, question: str, most: int) -> Step:
        return seen_as(step, shortened(outcome(step), most, question, self._encode))
