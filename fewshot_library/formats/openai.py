"""OpenAI's fine-tuning format: one chat a line, with function calls and tool definitions."""

from typing import Any

from db.trace_record import TraceRecord
from fewshot_library.formats.chat import (
    TraceMessage,
    calls_skills,
    list_conversation_losses,
    to_json_text,
    trace_to_conversations,
)
from fewshot_library.formats.conversations import chat_reader
from fewshot_library.formats.format import FileHead, TraceExport, TraceFormat, json_rows_writer


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
    conversations, tools = trace_to_conversations(record, export), export.tool_definitions(record)
    offered = {"tools": tools, "parallel_tool_calls": False} if tools and not calls_skills(record) else {}
    chats = [{"messages": [encode_message(message) for message in messages]} | offered for messages in conversations]
    return chats, list_conversation_losses(record)


def _sniff(head: FileHead) -> bool:
    texts = (head.keys.get(name, "") for name in ("messages", "[].messages"))
    return head.has_keys("messages[].role") or any(text.startswith("[") and "role" in text for text in texts)


OPENAI = TraceFormat(
    "openai",
    "OpenAI chats with tool calls, for fine-tuning",
    _sniff,
    chat_reader("openai"),
    json_rows_writer(_encode_record),
)
