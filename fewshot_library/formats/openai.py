"""OpenAI's fine-tuning format: one chat a line, with function calls and tool definitions."""

import json
from collections.abc import Iterator
from typing import Any

from db.trace_record import TraceRecord
from db.types import UnstorableValue, check_storable_json
from fewshot_library.formats.chat import (
    ChatTranscript,
    MessageToolCall,
    TraceMessage,
    chat_to_records,
    to_json_text,
)
from fewshot_library.formats.content_parts import expand_content, read_arguments
from fewshot_library.formats.training_conversations import Conversation, trace_to_conversations
from fewshot_library.formats.format import (
    FileHead,
    ReadResult,
    RecordRemark,
    TraceExport,
    TraceFormat,
    json_rows_writer,
)
from fewshot_library.formats.humaniq_record import strip_code_fence
from fewshot_library.formats.json_documents import (
    ExtensibleModel,
    MalformedRecord,
    RecordOrigin,
    document_reader,
    validate_shape,
)
from guard.json_input import load_json
from llm.text_tool_calls import parse_json_call

ROLE_ALIASES = {
    "developer": "system",
    "human": "user",
    **dict.fromkeys(("ai", "model", "gpt", "tool_call", "function_call"), "assistant"),
    **dict.fromkeys(("function", "tool_response", "ipython", "observation"), "tool"),
}
"""The roles that other tools write in place of OpenAI's."""
CALL_ROLES = ("tool_call", "function_call")
"""The roles of messages whose text is a call in JSON."""


class OpenAIMessage(ExtensibleModel):
    """A chat message of OpenAI's API."""

    role: str | None = None
    content: Any = None
    tool_calls: Any = None
    function_call: Any = None
    tool_call_id: str | int | None = None
    name: str | None = None


class _OpenAIChat(ExtensibleModel):
    messages: list[OpenAIMessage]
    tools: Any = None


def decode_chat(raw: Any, origin: RecordOrigin) -> Iterator[ReadResult]:
    """Convert a chat to a trace."""
    if isinstance(raw, dict):
        # In columns of tables, these are JSON texts.
        texts = {name: load_json_text(raw[name]) for name in ("messages", "tools") if isinstance(raw.get(name), str)}
        raw = raw | texts
    chat = validate_shape(_OpenAIChat, raw)
    messages = [
        part for number, message in enumerate(chat.messages, start=1) for part in decode_message(message, number)
    ]
    tools, remarks = read_tools(chat.tools)
    yield from (RecordRemark(origin.place, remark) for remark in remarks)
    yield from chat_to_records(ChatTranscript(messages, tools, chat.extra_fields, thought_in_answer=True), origin)


def decode_message(raw: OpenAIMessage, number: int) -> list[TraceMessage]:
    """Convert one message; `number` is its position in the chat."""
    place = f"message {number}"
    # The older form has one call in a message, answered by the next function message.
    calls = [*as_list(raw.tool_calls), *as_list(raw.function_call)]
    role = raw.role or ("assistant" if calls else "tool" if raw.tool_call_id else None)
    if role is None:
        raise MalformedRecord(f"{place} has no role")
    call_id = None if raw.tool_call_id is None else str(raw.tool_call_id)
    message = TraceMessage(ROLE_ALIASES.get(role, role), call_id=call_id, name=raw.name)
    message.rest = dict(raw.extra_fields)
    if raw.name is not None and message.role != "tool":
        message.rest["name"] = raw.name
    content = raw.content
    if role in CALL_ROLES and isinstance(content, str) and (written := parse_json_call(content)) is not None:
        calls, content = [{"name": written.name, "arguments": written.arguments}, *calls], None
    add_calls(message, calls, place)
    return expand_content(message, content, place)


_CALL_FIELDS = ("name", "arguments", "args", "input", "id", "type", "error")


def add_calls(message: TraceMessage, raw_calls: list[Any], place: str) -> None:
    """Add the calls to the message, in the forms of OpenAI and LangChain; one that is malformed keeps its text."""
    extras: list[dict[str, Any]] = []
    for number, raw in enumerate(raw_calls, start=1):
        call = raw if isinstance(raw, dict) else {}
        # OpenAI nests the function, or the tool that takes a text, under its kind.
        kind = next((name for name in ("function", "custom") if isinstance(call.get(name), dict)), None)
        function = call if kind is None else call[kind]
        name = function.get("name")
        if not isinstance(name, str):
            message.remarks.append(f"{place}, call {number}, names no tool, and was kept but not read")
            extras.append(call or {"call": raw})
            continue
        written = next((function[field] for field in ("arguments", "args", "input") if field in function), None)
        if isinstance(written, dict):
            written = without_nulls(written) if kind is not None else written
        elif isinstance(written, str) and kind != "custom":
            written = strip_code_fence(written)
        arguments, problem = ({"input": written}, "") if kind == "custom" else read_arguments(written)
        try:
            check_storable_json(arguments)
        except UnstorableValue as error:
            # In the JSON text, such a character is escaped.
            text = written if isinstance(written, str) else json.dumps(written)
            arguments, problem = {"input": text}, f"its arguments cannot be stored ({error}), and were kept as a text"
        if call.get("type") == "invalid_tool_call":
            problem = str(call.get("error") or problem or "the model's call is not valid")
        call_id = "" if call.get("id") is None else str(call["id"])
        message.calls.append(MessageToolCall(call_id, name, arguments, problem))
        inner = {} if kind is None else {key: value for key, value in function.items() if key not in _CALL_FIELDS}
        rest = {key: value for key, value in call.items() if key not in (*_CALL_FIELDS, kind)}
        extras.append({key: value for key, value in (rest | inner).items() if value not in (None, "", [], {})})
    if any(extras):
        message.rest["tool_calls"] = extras


def without_nulls(value: Any) -> Any:
    """The value without null fields: tables store objects with different fields as one type with all of them."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def read_tools(raw: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """The tool definitions from a list of objects or JSON texts, and remarks on those that cannot be read."""
    tools: list[dict[str, Any]] = []
    remarks: list[str] = []
    for number, value in enumerate(as_list(raw), start=1):
        tool = without_nulls(load_json_text(value) if isinstance(value, str) else value)
        match tool:
            case {"function": {"name": str()}}:
                tools.append(tool)
            case {"name": str()}:
                # Other interfaces do not nest the function.
                function = {name: field for name, field in tool.items() if name not in ("type", "input_schema")}
                schema = {"parameters": tool["input_schema"]} if "input_schema" in tool else {}
                tools.append({"type": "function", "function": function | schema})
            case _:
                remarks.append(f"the definition of tool {number} names no function, and was left out")
    return tools, remarks


def as_list(value: Any) -> list[Any]:
    """The list, or one with the value as its only element; empty for an empty value."""
    return value if isinstance(value, list) else [value] if value else []


def load_json_text(text: str) -> Any:
    """Parse a JSON text; a text that is not JSON is returned unchanged."""
    try:
        return load_json(text)
    except ValueError:
        return text


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


def _encode_record(record: TraceRecord, export: TraceExport) -> tuple[list[dict[str, Any]], list[str]]:
    conversations, losses = trace_to_conversations(record, export)
    return list(map(_encode_conversation, conversations)), losses


def _encode_conversation(conversation: Conversation) -> dict[str, Any]:
    messages = list(map(encode_message, conversation.messages))
    for message in messages[: conversation.shown]:
        if message["role"] == "assistant":
            # What the model was shown is not trained on.
            message["weight"] = 0
    is_parallel = any(len(message.calls) > 1 for message in conversation.messages)
    offered = {"tools": conversation.tools, "parallel_tool_calls": is_parallel} if conversation.tools else {}
    return {"messages": messages} | offered


def _sniff(head: FileHead) -> bool:
    texts = (head.keys.get(name, "") for name in ("messages", "[].messages"))
    return head.has_keys("messages[].role") or any(text.startswith("[") and "role" in text for text in texts)


OPENAI = TraceFormat(
    "openai",
    "OpenAI chats with tool calls, for fine-tuning",
    _sniff,
    document_reader("openai", decode_chat),
    json_rows_writer(_encode_record),
)
