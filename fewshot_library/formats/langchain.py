"""LangChain's messages as its messages_to_dict writes them, one chat a line; its older `dumpd` form is read too."""

from collections.abc import Iterator
from typing import Any

from db.trace_record import TraceRecord
from fewshot_library.formats.chat import (
    CHAT_FIELDS,
    ERROR_LOSS,
    MessageToolCall,
    TraceMessage,
    list_ambiguities,
    trace_to_messages,
)
from fewshot_library.formats.chat_record import ChatTranscript, chat_to_records
from fewshot_library.formats.contents import ExtensibleModel, extra_call_fields, parse_content
from fewshot_library.formats.documents import MalformedRecord, RecordOrigin, document_reader, validate_shape
from fewshot_library.formats.dropped import lost_fields
from fewshot_library.formats.export import TraceExport
from fewshot_library.formats.format import ReadResult, TraceFormat
from fewshot_library.formats.head import FileHead
from fewshot_library.formats.lines import json_lines_writer

MESSAGE_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system", "developer": "system"}
CLASS_TYPES = {"HumanMessage": "human", "AIMessage": "ai", "ToolMessage": "tool", "SystemMessage": "system"}
MESSAGE_TYPES = {"user": "human", "assistant": "ai", "tool": "tool"}


class _LangchainToolCall(ExtensibleModel):
    name: str
    args: dict[str, Any]
    id: str | None = None
    type: str = "tool_call"


class _LangchainMessageData(ExtensibleModel):
    content: Any
    type: str | None = None
    tool_calls: list[_LangchainToolCall] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    status: str = "success"
    artifact: Any = None


class _TypedMessage(ExtensibleModel):
    type: str
    data: _LangchainMessageData


class _DumpedMessage(ExtensibleModel):
    """The form that `dumpd` writes."""

    lc: int
    id: list[str]
    kwargs: _LangchainMessageData
    type: str = "constructor"


def _is_chat(value: Any) -> bool:
    return not isinstance(value, list) or any(
        isinstance(message, dict) and {"data", "lc"} & message.keys() for message in value
    )


def _decode_chat(raw: Any, origin: RecordOrigin) -> Iterator[ReadResult]:
    rest = {name: value for name, value in raw.items() if name != "messages"} if isinstance(raw, dict) else {}
    listed = raw.get("messages") if isinstance(raw, dict) else raw
    if not isinstance(listed, list) or not listed:
        raise MalformedRecord("it is no list of messages")
    messages = [_decode_message(message, number) for number, message in enumerate(listed, start=1)]
    return chat_to_records(ChatTranscript(messages, extra=rest, thought_in_answer=True), origin)


def _decode_message(raw: Any, number: int) -> TraceMessage:
    place = f"message {number}"
    try:
        kind, data = _kind_and_data(raw)
    except MalformedRecord as wrong:
        raise MalformedRecord(f"{place}: {wrong}") from wrong
    if kind not in MESSAGE_ROLES:
        raise MalformedRecord(f"{place} is of the kind {kind!r}, which is none of {', '.join(MESSAGE_ROLES)}")
    content = parse_content(_without_calls(data.content) if data.tool_calls else data.content, place)
    keeps = isinstance(data.artifact, dict)
    rest = data.extra_fields | content.extra | extra_call_fields(data.tool_calls or [])
    if data.artifact is not None and not keeps:
        rest["artifact"] = data.artifact
    return TraceMessage(
        MESSAGE_ROLES[kind],
        content.text,
        content.reasoning,
        calls=[
            MessageToolCall(call.id or f"{number}.{nth}", call.name, call.args)
            for nth, call in enumerate(data.tool_calls or [], start=1)
        ],
        call_id=data.tool_call_id,
        name=data.name,
        failed=data.status == "error",
        data=data.artifact if keeps else None,
        rest=rest,
    )


def _kind_and_data(raw: Any) -> tuple[str, _LangchainMessageData]:
    if isinstance(raw, dict) and "lc" in raw:
        built = validate_shape(_DumpedMessage, raw)
        name = built.id[-1].removesuffix("Chunk") if built.id else ""
        return CLASS_TYPES.get(name, name), built.kwargs
    typed = validate_shape(_TypedMessage, raw)
    return typed.type, typed.data


def _without_calls(content: Any) -> Any:
    """The content without what providers repeat there of the calls."""
    if not isinstance(content, list):
        return content
    return [part for part in content if not (isinstance(part, dict) and part.get("type") in ("tool_use", "tool_call"))]


def _encode_record(record: TraceRecord, _: TraceExport) -> tuple[list[dict[str, Any]], list[str]]:
    unsaid = [what for what in list_ambiguities(record) if what != ERROR_LOSS]
    return [_encode_message(message) for message in trace_to_messages(record)], [
        *lost_fields(record, {*CHAT_FIELDS, "step.data"}),
        *unsaid,
    ]


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


def _sniff(head: FileHead) -> bool:
    forms = [(f"{at}type", f"{at}{own}") for at in ("", "[][].", "messages[].") for own in ("data.content", "lc")]
    return any(head.has_keys(*form) for form in forms)


LANGCHAIN = TraceFormat(
    "langchain",
    "LangChain's messages, one chat a line",
    _sniff,
    document_reader("langchain", _decode_chat, _is_chat),
    json_lines_writer(_encode_record),
)
