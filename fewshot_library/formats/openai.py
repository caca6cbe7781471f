"""OpenAI's fine-tuning format: one chat a line, with function calls and tool definitions."""

from typing import Any

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats.chat import (
    TraceMessage,
    to_json_text,
)
from showhow.fewshot_library.formats.conversations import chat_reader
from showhow.fewshot_library.formats.format import FileHead, TraceExport, TraceFormat, json_rows_writer
from showhow.fewshot_library.formats.training_conversations import Conversation, trace_to_conversations


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
    chat_reader("openai"),
    json_rows_writer(_encode_record),
)
