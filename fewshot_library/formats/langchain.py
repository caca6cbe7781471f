"""LangChain messages as written by `messages_to_dict`, one chat a line; the older `dumpd` form is read as well."""

from collections.abc import Iterator
from typing import Any

from db.trace_record import TraceRecord
from fewshot_library.formats.chat import (
    CHAT_FIELDS,
    ERROR_LOSS,
    ChatTranscript,
    MessageToolCall,
    TraceMessage,
    chat_to_records,
    list_ambiguities,
    trace_to_messages,
)
from fewshot_library.formats.content_parts import expand_content
from fewshot_library.formats.format import (
    FileHead,
    ReadResult,
    TraceExport,
    TraceFormat,
    json_lines_writer,
    lost_fields,
)
from fewshot_library.formats.json_documents import (
    ExtensibleModel,
    MalformedRecord,
    RecordOrigin,
    document_reader,
    extra_call_fields,
    validate_shape,
)

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
    """A message as written by `dumpd`."""

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
    raw_messages = raw.get("messages") if isinstance(raw, dict) else raw
    if not isinstance(raw_messages, list) or not raw_messages:
        raise MalformedRecord("it is not a list of messages")
    messages = [part for number, raw in enumerate(raw_messages, start=1) for part in _decode_message(raw, number)]
    return chat_to_records(ChatTranscript(messages, extra=rest, thought_in_answer=True), origin)


def _decode_message(raw: Any, number: int) -> list[TraceMessage]:
    place = f"message {number}"
    try:
        kind, data = _kind_and_data(raw)
    except MalformedRecord as error:
        raise MalformedRecord(f"{place}: {error}") from error
    if kind not in MESSAGE_ROLES:
        raise MalformedRecord(f"{place} is of the kind {kind!r}, not one of {', '.join(MESSAGE_ROLES)}")
    has_data = isinstance(data.artifact, dict)
    rest = data.extra_fields | extra_call_fields(data.tool_calls or [])
    if data.artifact is not None and not has_data:
        rest["artifact"] = data.artifact
    message = TraceMessage(
        MESSAGE_ROLES[kind],
        calls=[MessageToolCall(call.id or "", call.name, call.args) for call in data.tool_calls or []],
        call_id=data.tool_call_id,
        name=data.name,
        failed=data.status == "error",
        data=data.artifact if has_data else None,
        rest=rest,
    )
    return expand_content(message, data.content, place)


def _kind_and_data(raw: Any) -> tuple[str, _LangchainMessageData]:
    if isinstance(raw, dict) and "lc" in raw:
        built = validate_shape(_DumpedMessage, raw)
        name = built.id[-1].removesuffix("Chunk") if built.id else ""
        return CLASS_TYPES.get(name, name), built.kwargs
    typed = validate_shape(_TypedMessage, raw)
    return typed.type, typed.data


def _encode_record(record: TraceRecord, _: TraceExport) -> tuple[list[dict[str, Any]], list[str]]:
    # A tool message of LangChain has a status, so errors of tools are not lost.
    ambiguities = [loss for loss in list_ambiguities(record) if loss != ERROR_LOSS]
    return [_encode_message(message) for message in trace_to_messages(record)], [
        *lost_fields(record, {*CHAT_FIELDS, "step.data"}),
        *ambiguities,
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
    "LangChain messages, one chat a line",
    _sniff,
    document_reader("langchain", _decode_chat, _is_chat),
    json_lines_writer(_encode_record),
)
