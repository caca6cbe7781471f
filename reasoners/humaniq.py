"""HumanIQ: a language model with tools imitates how people answered other questions."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from reasoners.investigation import Finding, Investigation
from reasoners.reasoner import Moves, ReasonerError, Task
from reasoners.response import Writer
from reasoners.setup import Setup
from reasoners.sources import limited
from tools.chat import Chat, Message


@dataclass(frozen=True, slots=True)
class HumanIQ:
    """The agent in one setup; it may serve many runs at once."""

    setup: Setup = field(default_factory=Setup)
    stream: bool = True
    """Whether somebody wants to hear the model's words as they come."""
    chat: Chat | None = None
    """The model that reasons, where it is not the one that the tools ask."""
    name: str = field(default="humaniq", init=False)

    def solve(self, task: Task) -> Moves:
        """Think, act and observe until there is an answer, then write the response."""
        chat = self.chat or model_of(task)
        task = limited(task, self.setup.sources)
        finding: Finding = yield from Investigation(task, self.setup, chat, stream=self.stream).run()
        writer = Writer(self.setup, task, chat, self.stream)
        conclusion = yield from writer.conclude(finding.answers, finding.steps, finding.usage)
        told = {"form": finding.form, "demonstrations_shown": finding.demonstrations}
        return replace(conclusion, details={**told, **conclusion.details})

    def prompt(self, task: Task) -> Sequence[Message]:
        """The messages that the model is sent after the steps that are taken; tools may go beside them."""
        task = limited(task, self.setup.sources)
        return Investigation(task, self.setup, self.chat or model_of(task), stream=False).prompt()


def model_of(task: Task) -> Chat:
    """The language model that the task comes with."""
    if task.context.chat is None:
        raise ReasonerError(
            "This reasoner needs a language model: set SHOWHOW_MODEL, or follow a demonstration instead."
        )
    return task.context.chat
