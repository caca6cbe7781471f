"""OpenAI's chat format, as models are fine-tuned with it: one chat a line, calls as functions, tools beside them."""

import json
from collections.abc import Iterator
from typing import Any

from db.record import TraceRecord
from fewshot_library.formats.chat import KEPT, Call, Message, chat_of, in_json, unclear
from fewshot_library.formats.chat_record import Chat, record_from
from fewshot_library.formats.contents import Open, beside_calls, said
from fewshot_library.formats.documents import Malformed, Origin, documents_reader, shaped
from fewshot_library.formats.dropped import dropped
from fewshot_library.formats.export import Export
from fewshot_library.formats.format import Format, Found
from fewshot_library.formats.lines import as_lines

ROLES = {"developer": "system", "function": "tool"}


class _Function(Open):
    name: str
    arguments: str | dict[str, Any] = "{}"


class _ToolCall(Open):
    function: _Function
    id: str | None = None
    type: str = "function"


class ChatMessage(Open):
    """A message as JSON."""

    role: str
    content: Any = None
    reasoning_content: str | None = None
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None
    tool_call_id: str | None = None
    name: str | None = None


class _Chat(Open):
    messages: list[ChatMessage]
    tools: list[dict[str, Any]] | None = None


def take(raw: Any, origin: Origin) -> Iterator[Found]:
    """The trace that one of its records tells."""
    chat = shaped(_Chat, raw)
    messages = [message_of(each, number) for number, each in enumerate(chat.messages, start=1)]
    return record_from(Chat(messages, chat.tools or [], chat.rest, thought_in_answer=True), origin)


def message_of(raw: ChatMessage, number: int) -> Message:
    """One of its messages, the `number`th."""
    role = ROLES.get(raw.role, raw.role)
    if role not in ("system", "user", "assistant", "tool"):
        raise Malformed(f"message {number} has the role {raw.role!r}, which is none of system, user, assistant, tool")
    content = said(raw.content, f"message {number}")
    reasoning = "\n\n".join(part for part in (raw.reasoning_content, content.reasoning) if part)
    message = Message(role, content.text, reasoning, call_id=raw.tool_call_id, name=raw.name)
    message.rest = raw.rest | content.rest | beside_calls(raw.tool_calls or [])
    if raw.name is not None and role != "tool":
        message.rest["name"] = raw.name
    for place, call in enumerate(raw.tool_calls or [], start=1):
        message.calls.append(_call(call, f"message {number}, call {place}", f"{number}.{place}"))
    if raw.function_call is not None:
        # The older form knows one call a message, which the next message of a function answers.
        message.calls.append(_call(_ToolCall(function=raw.function_call), f"message {number}", str(number)))
    return message


def _call(raw: _ToolCall, place: str, made_id: str) -> Call:
    arguments = raw.function.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError) as wrong:
            raise Malformed(f"{place}: its arguments are no JSON ({wrong})") from wrong
    if not isinstance(arguments, dict):
        raise Malformed(f"{place}: its arguments are no JSON object")
    return Call(raw.id or made_id, raw.function.name, arguments)


def plain(message: Message, *, arguments_as_text: bool = True) -> dict[str, Any]:
    """The message as JSON values; templates of other models want the arguments as an object."""
    told: dict[str, Any] = {"role": message.role, "content": message.said}
    if message.calls:
        told["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": in_json(call.arguments) if arguments_as_text else call.arguments,
                },
            }
            for call in message.calls
        ]
    if message.call_id is not None:
        told |= {"tool_call_id": message.call_id, "name": message.name}
    return told


def _tell(record: TraceRecord, export: Export) -> tuple[dict[str, Any], list[str]]:
    told: dict[str, Any] = {"messages": [plain(message) for message in chat_of(record)]}
    if tools := export.definitions(record):
        told |= {"tools": tools, "parallel_tool_calls": False}
    return told, [*dropped(record, KEPT), *unclear(record)]


OPENAI = Format(
    "openai",
    "chats with tool calls, as models are fine-tuned with them",
    lambda head: head.has("messages[].role"),
    documents_reader("openai", take),
    as_lines(_tell),
)
