"""LangChain messages as written by `messages_to_dict`, in an object for each chat, one a line.

    chats = [messages_from_dict(json.loads(line)["messages"]) for line in file]

The forms of `dumpd` and `model_dump`, states of LangGraph, runs of LangSmith and results of agents with their
intermediate steps are read as well.
"""

from typing import Any

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats.chat import (
    DATA_LOSS,
    ERROR_LOSS,
    TraceMessage,
)
from showhow.fewshot_library.formats.conversations import MESSAGE_KINDS, chat_reader, message_kind
from showhow.fewshot_library.formats.format import FileHead, TraceExport, TraceFormat, json_rows_writer
from showhow.fewshot_library.formats.training_conversations import trace_to_conversations

MESSAGE_TYPES = {"system": "system", "user": "human", "assistant": "ai", "tool": "tool"}


def _encode_record(record: TraceRecord, export: TraceExport) -> tuple[list[dict[str, Any]], list[str]]:
    conversations, losses = trace_to_conversations(record, export)
    chats = [{"messages": list(map(_encode_message, conversation.messages))} for conversation in conversations]
    if conversations[0].is_sent:
        return chats, losses
    # A tool message of LangChain has a status and an artifact, so that errors and data of tools are not lost.
    return chats, [loss for loss in losses if loss not in (ERROR_LOSS, DATA_LOSS)]


def _encode_message(message: TraceMessage) -> dict[str, Any]:
    kind = MESSAGE_TYPES[message.role]
    data: dict[str, Any] = {
        "content": message.text_with_reasoning,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": kind,
    }
    data |= {"name": message.name, "id": None}
    if kind == "ai":
        calls = [{"name": c.name, "args": c.arguments, "id": c.id, "type": "tool_call"} for c in message.calls]
        data |= {"tool_calls": calls, "invalid_tool_calls": [], "usage_metadata": None}
    if kind == "tool":
        status = "error" if message.failed else "success"
        data |= {"tool_call_id": message.call_id, "artifact": message.data, "status": status}
    return {"type": kind, "data": data}


_PLACES = ("", "[][].", "messages[].", "values.messages[].", "channel_values.messages[].", "output.messages[].")


def _sniff(head: FileHead) -> bool:
    if head.has_keys("run_type", "inputs") or head.has_keys("intermediate_steps"):
        return True
    nested = [(f"{at}type", f"{at}{own}") for at in _PLACES for own in ("data.content", "lc", "kwargs.content")]
    flat = [
        f"{before}{at}"
        for at in _PLACES
        for before in ("", "[].")
        if message_kind(head.keys.get(f"{before}{at}type", "")) in MESSAGE_KINDS
    ]
    return any(head.has_keys(*form) for form in nested) or any(f"{at}content" in head.keys for at in flat)


LANGCHAIN = TraceFormat(
    "langchain",
    "LangChain messages, one chat a line",
    _sniff,
    chat_reader("langchain"),
    json_rows_writer(_encode_record),
)
