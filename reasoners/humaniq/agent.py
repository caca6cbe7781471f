"""HumanIQ: a language model with tools imitates how people answered other questions."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from llm.client import ChatClient
from llm.types import Message
from reasoners.base import ReasonerError, ReasonerGenerator, Task
from reasoners.humaniq.options import AgentOptions
from reasoners.humaniq.react_loop import ReActLoop, ReActResult
from reasoners.humaniq.response import ResponseWriter
from reasoners.humaniq.tool_order import restrict_to_sources


@dataclass(frozen=True, slots=True)
class HumanIQ:
    """The agent in one setup; it may serve many runs at once."""

    options: AgentOptions = field(default_factory=AgentOptions)
    stream: bool = True
    """Whether somebody wants to hear the model's words as they come."""
    chat: ChatClient | None = None
    """The model that reasons, where it is not the one that the tools ask."""
    name: str = field(default="humaniq", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Think, act and observe until there is an answer, then write the response."""
        chat = self.chat or require_model(task)
        task = restrict_to_sources(task, self.options.sources)
        finding: ReActResult = yield from ReActLoop(task, self.options, chat, stream=self.stream).run()
        writer = ResponseWriter(self.options, task, chat, self.stream)
        conclusion = yield from writer.write_final_answer(finding.answers, finding.steps, finding.usage)
        told = {"form": finding.prompt_format, "demonstrations_shown": finding.demonstration_count}
        return replace(conclusion, details={**told, **conclusion.details})

    def build_prompt(self, task: Task) -> Sequence[Message]:
        """The messages that the model is sent after the steps that are taken; tools may go beside them."""
        task = restrict_to_sources(task, self.options.sources)
        return ReActLoop(task, self.options, self.chat or require_model(task), stream=False).build_prompt()


def require_model(task: Task) -> ChatClient:
    """The language model that the task comes with."""
    if task.context.chat is None:
        raise ReasonerError(
            "This reasoner needs a language model: set SHOWHOW_MODEL, or follow a demonstration instead."
        )
    return task.context.chat
