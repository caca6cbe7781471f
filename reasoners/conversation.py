"""The prompt as chat messages with tool calls, and what is read out of the replies."""

import json
from collections.abc import Iterator, Sequence

from fewshot_library.formats import chat
from reasoners.calling import Call, NoCall, called, read_json
from reasoners.decision import Decision
from reasoners.ending import ANSWER
from reasoners.material import Material
from reasoners.prompt import prompt
from reasoners.react import read_text
from reasoners.shown import Shown
from tools.chat import Call as Written
from tools.chat import Message, Reply
from tools.thinking import apart
from tools.tool import Tool

NAME = "chat"
MOST_CALLS = 4
"""So many calls of one reply are run; a model that sends more has stopped to look at what comes back."""


HOW = "Go on with a call of one tool; or, if you know the answer, write it behind `Final Answer:`."


class Conversation:
    """Messages, with the tools beside them."""

    name = NAME
    stop: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._shown: tuple[Shown, ...] | None = None
        self._written: list[Message] = []

    def messages(self, material: Material) -> list[Message]:
        """The instructions, the demonstrations as earlier questions, the question with the steps so far."""
        found = [*self._opening(material), *_messages(material.shown, "")]
        return [*found, Message("user", material.cue)] if material.cue else found

    def _opening(self, material: Material) -> list[Message]:
        """What comes before the question; written once, as long as the demonstrations are the same."""
        if self._shown is not material.demonstrations:
            system = prompt("chat", sources=material.sources, demonstrations=len(material.demonstrations))
            self._shown, self._written = material.demonstrations, [Message("system", system)]
            for number, each in enumerate(material.demonstrations, start=1):
                self._written += _messages(each, f"shown_{number}_")
        return self._written

    def offers(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """The tools that go beside the messages."""
        return tools

    def read(self, reply: Reply, question: str, tools: Sequence[Tool]) -> Decision:
        """What the model decided."""
        if not reply.calls:
            return read_text(reply, question, tools, HOW)
        try:
            calls = tuple(_call(written, question, tools) for written in reply.calls[:MOST_CALLS])
        except NoCall as wrong:
            return Decision(_as_written(reply), refused=str(wrong))
        thinking, said = apart(reply.text)
        return Decision(said or thinking, calls, left_out=len(reply.calls) - len(calls))


def _call(written: Written, question: str, tools: Sequence[Tool]) -> Call:
    given = written.arguments
    if isinstance(given, str):
        tool = next((tool for tool in tools if tool.name == written.name), None)
        given = dict(read_json(tool, given)) if tool is not None else {}
    return called(written.name, given, question, tools)


def _as_written(reply: Reply) -> str:
    calls = (
        f"{call.name}({call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)})"
        for call in reply.calls
    )
    return "\n".join(filter(None, (reply.text.strip(), *calls)))


def _messages(shown: Shown, prefix: str) -> Iterator[Message]:
    yield Message("user", shown.question)
    for step in shown.steps:
        for each in chat.turn_of(step):
            calls = tuple(Written(f"{prefix}{call.id}", call.name, call.arguments) for call in each.calls)
            answers = f"{prefix}{each.call_id}" if each.call_id else ""
            # Servers refuse an assistant's message with neither words nor calls.
            yield Message(each.role, each.said or ("" if calls else "(nothing)"), calls, answers)
    if shown.ending is not None:
        yield Message("assistant", "\n\n".join(filter(None, (shown.thought, f"{ANSWER} {shown.ending}"))))
