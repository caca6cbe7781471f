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
    """The agent with its options; one instance may serve many runs at once."""

    options: AgentOptions = field(default_factory=AgentOptions)
    chat: ChatClient | None = None
    """The model that reasons, if it is not the one of the task's tools."""
    name: str = field(default="humaniq", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Think, act and observe until there is an answer, then write the response."""
        chat = self.chat or require_model(task)
        task = restrict_to_sources(task, self.options.sources)
        result: ReActResult = yield from ReActLoop(task, self.options, chat).run()
        final = yield from ResponseWriter(self.options, task, chat).write_final_answer(
            result.answers, result.steps, result.usage
        )
        prompt = {"form": result.prompt_format, "demonstrations_shown": result.demonstration_count}
        return replace(final, details={**prompt, **final.details})

    def build_prompt(self, task: Task) -> Sequence[Message]:
        """The messages of the next request, after the task's prior steps."""
        task = restrict_to_sources(task, self.options.sources)
        return ReActLoop(task, self.options, self.chat or require_model(task)).build_prompt()


def require_model(task: Task) -> ChatClient:
    """The language model of the task; ReasonerError if it has none."""
    if task.context.chat is None:
        raise ReasonerError(
            "This reasoner needs a language model: set SHOWHOW_MODEL, or follow a demonstration instead."
        )
    return task.context.chat
