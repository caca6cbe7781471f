"""OpenAI's fine-tuning format: one chat a line, with function calls and tool definitions."""

from collections.abc import Iterator
from typing import Any

from db.trace_record import TraceRecord
from fewshot_library.formats.chat import (
    CHAT_FIELDS,
    ChatTranscript,
    MessageToolCall,
    TraceMessage,
    chat_to_records,
    list_ambiguities,
    to_json_text,
    trace_to_messages,
)
from fewshot_library.formats.content_parts import expand_content
from fewshot_library.formats.format import ReadResult, TraceExport, TraceFormat, json_lines_writer, lost_fields
from fewshot_library.formats.json_documents import (
    ExtensibleModel,
    MalformedRecord,
    RecordOrigin,
    document_reader,
    extra_call_fields,
    validate_shape,
)
from guard.json_input import load_json

ROLE_ALIASES = {"developer": "system", "function": "tool"}


class _FunctionCall(ExtensibleModel):
    name: str
    arguments: str | dict[str, Any] = "{}"


class _OpenAIToolCall(ExtensibleModel):
    function: _FunctionCall
    id: str | None = None
    type: str = "function"


class OpenAIMessage(ExtensibleModel):
    """A chat message of OpenAI's API."""

    role: str
    content: Any = None
    tool_calls: list[_OpenAIToolCall] | None = None
    function_call: _FunctionCall | None = None
    tool_call_id: str | None = None
    name: str | None = None


class _OpenAIChat(ExtensibleModel):
    messages: list[OpenAIMessage]
    tools: list[dict[str, Any]] | None = None


def decode_chat(raw: Any, origin: RecordOrigin) -> Iterator[ReadResult]:
    """Convert a chat to a trace."""
    chat = validate_shape(_OpenAIChat, raw)
    messages = [
        part for number, message in enumerate(chat.messages, start=1) for part in decode_message(message, number)
    ]
    return chat_to_records(
        ChatTranscript(messages, chat.tools or [], chat.extra_fields, thought_in_answer=True), origin
    )


def decode_message(raw: OpenAIMessage, number: int) -> list[TraceMessage]:
    """Convert one message; `number` is its position in the chat."""
    role = ROLE_ALIASES.get(raw.role, raw.role)
    if role not in ("system", "user", "assistant", "tool"):
        raise MalformedRecord(f"message {number} has the role {raw.role!r}, not one of system, user, assistant, tool")
    message = TraceMessage(role, call_id=raw.tool_call_id, name=raw.name)
    message.rest = raw.extra_fields | extra_call_fields(raw.tool_calls or [])
    if raw.name is not None and role != "tool":
        message.rest["name"] = raw.name
    for call_number, call in enumerate(raw.tool_calls or [], start=1):
        message.calls.append(_decode_call(call, f"message {number}, call {call_number}"))
    if raw.function_call is not None:
        # The older form has one call in a message, answered by the next function message.
        message.calls.append(_decode_call(_OpenAIToolCall(function=raw.function_call), f"message {number}"))
    return expand_content(message, raw.content, f"message {number}")


def _decode_call(raw: _OpenAIToolCall, place: str) -> MessageToolCall:
    arguments = raw.function.arguments
    if isinstance(arguments, str):
        try:
            arguments = load_json(arguments or "{}")
        except ValueError as error:
            raise MalformedRecord(f"{place}: its arguments are not JSON ({error})") from error
    if not isinstance(arguments, dict):
        raise MalformedRecord(f"{place}: its arguments are not a JSON object")
    return MessageToolCall(raw.id or "", raw.function.name, arguments)


def encode_message(message: TraceMessage, *, arguments_as_text: bool = True) -> dict[str, Any]:
    """Convert a message to JSON values; chat templates of other models expect the arguments as an object."""
    encoded: dict[str, Any] = {"role": message.role, "content": message.text_with_reasoning}
    if message.calls:
        encoded["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": to_json_text(call.arguments) if arguments_as_text else call.arguments,
                },
            }
            for call in message.calls
        ]
    if message.call_id is not None:
        encoded |= {"tool_call_id": message.call_id, "name": message.name}
    return encoded


def _encode_record(record: TraceRecord, export: TraceExport) -> tuple[dict[str, Any], list[str]]:
    encoded: dict[str, Any] = {"messages": [encode_message(message) for message in trace_to_messages(record)]}
    if tools := export.tool_definitions(record):
        encoded |= {"tools": tools, "parallel_tool_calls": False}
    return encoded, [*lost_fields(record, CHAT_FIELDS), *list_ambiguities(record)]


OPENAI = TraceFormat(
    "openai",
    "OpenAI chats with tool calls, for fine-tuning",
    lambda head: head.has_keys("messages[].role"),
    document_reader("openai", decode_chat),
    json_lines_writer(_encode_record),
)
