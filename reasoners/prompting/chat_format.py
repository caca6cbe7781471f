"""The prompt as chat messages with tool calls, and what is read out of the replies."""

import json
from collections.abc import Iterator, Sequence

from fewshot_library.formats import chat
from llm.structured_output import split_reasoning
from llm.types import ChatReply, Message
from llm.types import ModelToolCall as Written
from reasoners.answers.extraction import FINAL_ANSWER_LABEL
from reasoners.prompting.call_parser import (
    InvalidToolCall,
    ParsedReply,
    ParsedToolCall,
    parse_call,
    parse_json_arguments,
)
from reasoners.prompting.parts import PromptExample, PromptParts, render_prompt
from reasoners.prompting.react_format import parse_react_reply
from tools.tool import Tool

CHAT_FORMAT_NAME = "chat"
MAX_CALLS_PER_REPLY = 4
"""So many calls of one reply are run; a model that sends more has stopped to look at what comes back."""


CHAT_RETRY_HINT = "Go on with a call of one tool; or, if you know the answer, write it behind `Final Answer:`."


class ChatFormat:
    """Messages, with the tools beside them."""

    name = CHAT_FORMAT_NAME
    stop_sequences: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._cached_examples: tuple[PromptExample, ...] | None = None
        self._cached_messages: list[Message] = []

    def messages(self, material: PromptParts) -> list[Message]:
        """The instructions, the demonstrations as earlier questions, the question with the steps so far."""
        messages = [*self._opening_messages(material), *_example_messages(material.example, "")]
        return [*messages, Message("user", material.instruction)] if material.instruction else messages

    def _opening_messages(self, material: PromptParts) -> list[Message]:
        """What comes before the question; written once, as long as the demonstrations are the same."""
        if self._cached_examples is not material.demonstrations:
            system = render_prompt("chat", sources=material.sources, demonstrations=len(material.demonstrations))
            self._cached_examples, self._cached_messages = material.demonstrations, [Message("system", system)]
            for number, message in enumerate(material.demonstrations, start=1):
                self._cached_messages += _example_messages(message, f"shown_{number}_")
        return self._cached_messages

    def tool_declarations(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """The tools that go beside the messages."""
        return tools

    def parse_reply(self, reply: ChatReply, question: str, tools: Sequence[Tool]) -> ParsedReply:
        """What the model decided."""
        if not reply.calls:
            return parse_react_reply(reply, question, tools, CHAT_RETRY_HINT)
        try:
            calls = tuple(_parse_tool_call(written, question, tools) for written in reply.calls[:MAX_CALLS_PER_REPLY])
        except InvalidToolCall as wrong:
            return ParsedReply(_format_reply(reply), rejection=str(wrong))
        thinking, said = split_reasoning(reply.text)
        return ParsedReply(said or thinking, calls, skipped_calls=len(reply.calls) - len(calls))


def _parse_tool_call(written: Written, question: str, tools: Sequence[Tool]) -> ParsedToolCall:
    given = written.arguments
    if isinstance(given, str):
        tool = next((tool for tool in tools if tool.name == written.name), None)
        given = dict(parse_json_arguments(tool, given)) if tool is not None else {}
    return parse_call(written.name, given, question, tools)


def _format_reply(reply: ChatReply) -> str:
    calls = (
        f"{call.name}({call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)})"
        for call in reply.calls
    )
    return "\n".join(filter(None, (reply.text.strip(), *calls)))


def _example_messages(shown: PromptExample, prefix: str) -> Iterator[Message]:
    yield Message("user", shown.question)
    for step in shown.steps:
        for message in chat.step_to_messages(step):
            calls = tuple(Written(f"{prefix}{call.id}", call.name, call.arguments) for call in message.calls)
            answers = f"{prefix}{message.call_id}" if message.call_id else ""
            # Servers refuse an assistant's message with neither words nor calls.
            yield Message(message.role, message.text_with_reasoning or ("" if calls else "(nothing)"), calls, answers)
    if shown.final_answer is not None:
        yield Message(
            "assistant", "\n\n".join(filter(None, (shown.final_thought, f"{FINAL_ANSWER_LABEL} {shown.final_answer}")))
        )
