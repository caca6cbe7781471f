"""LangChain messages as written by `messages_to_dict`, in an object for each chat, one a line.

    chats = [messages_from_dict(json.loads(line)["messages"]) for line in file]

The forms of `dumpd` and `model_dump`, states of LangGraph and runs of LangSmith are read as well.
"""

from collections.abc import Iterator
from typing import Any

from db.trace_record import TraceRecord
from fewshot_library.formats.chat import (
    DATA_LOSS,
    ERROR_LOSS,
    ChatTranscript,
    TraceMessage,
    chat_to_records,
)
from fewshot_library.formats.content_parts import expand_content
from fewshot_library.formats.training_conversations import trace_to_conversations
from fewshot_library.formats.format import (
    FileHead,
    ReadResult,
    RecordRemark,
    TraceExport,
    TraceFormat,
    json_rows_writer,
)
from fewshot_library.formats.json_documents import (
    ExtensibleModel,
    MalformedRecord,
    RecordOrigin,
    document_reader,
    validate_shape,
)
from fewshot_library.formats.openai import ROLE_ALIASES, OpenAIMessage, add_calls, as_list, decode_message

MESSAGE_TYPES = {"system": "system", "user": "human", "assistant": "ai", "tool": "tool"}
_KINDS = ("human", "ai", "tool", "system", "function", "developer", "chat", "remove")


class _LangchainMessageData(ExtensibleModel):
    content: Any = None
    type: str | None = None
    role: str | None = None
    tool_calls: Any = None
    invalid_tool_calls: Any = None
    additional_kwargs: Any = None
    tool_call_id: str | None = None
    name: str | None = None
    status: str | None = None
    artifact: Any = None


class _DumpedMessage(ExtensibleModel):
    """A message as written by `dumpd`."""

    lc: int
    id: list[str]
    kwargs: _LangchainMessageData
    type: str = "constructor"


def _is_message(value: Any) -> bool:
    """Whether a value is a message in one of LangChain's forms, or in that of its chat models."""
    match value:
        case {"type": str(), "data": dict()} | {"lc": int(), "id": list(), "kwargs": {"content": _}}:
            return True
        case {"type": str(kind), "content": _}:
            return _kind(kind) in _KINDS
        case {"role": str(), "content": _}:
            return True
    return False


def _kind(name: str) -> str:
    """The kind of a message from its class, such as AIMessageChunk, or its kind."""
    return name.removesuffix("Chunk").removesuffix("Message").lower()


def _is_chat(value: Any) -> bool:
    return not isinstance(value, list) or any(map(_is_message, value))


def _decode_chat(raw: Any, origin: RecordOrigin) -> Iterator[ReadResult]:
    if isinstance(raw, dict) and "run_type" in raw and raw.get("parent_run_id"):
        remark = f"it is a part of the run {raw['parent_run_id']}, which has the whole conversation, and was left out"
        yield RecordRemark(origin.place, remark)
        return
    fields = raw if isinstance(raw, dict) else {}
    sides = [max(_message_lists(fields.get(side)), key=len, default=[]) for side in ("inputs", "outputs")]
    raw_messages = raw if isinstance(raw, list) else max(_message_lists(raw), key=len, default=[])
    if all(sides) and _text(sides[0][0]) != _text(sides[1][0]):
        # A run of a model has only its reply in the output.
        raw_messages = [*sides[0], *sides[1]]
    if not raw_messages:
        raise MalformedRecord("it is not a list of messages, and has none")
    rest = {name: value for name, value in fields.items() if not any(_message_lists(value))}
    messages = [part for number, raw in enumerate(raw_messages, start=1) for part in _decode_message(raw, number)]
    yield from chat_to_records(ChatTranscript(messages, extra=rest, thought_in_answer=True), origin)


def _message_lists(value: Any) -> Iterator[list[Any]]:
    """The lists of messages in the state of a graph, or in the inputs and outputs of a run."""
    if _is_message(value):
        yield [value]
    elif isinstance(value, list) and any(map(_is_message, value)):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _message_lists(inner)


def _text(message: Any) -> Any:
    fields = next((message[name] for name in ("data", "kwargs") if isinstance(message.get(name), dict)), message)
    return fields.get("content")


def _decode_message(raw: Any, number: int) -> list[TraceMessage]:
    place = f"message {number}"
    try:
        if isinstance(raw, dict) and "role" in raw and "type" not in raw:
            return decode_message(validate_shape(OpenAIMessage, raw), number)
        kind, data = _kind_and_data(raw)
    except MalformedRecord as error:
        raise MalformedRecord(f"{place}: {error}") from error
    if kind == "remove":
        # It removes a message from the state, which the list shows without it.
        return []
    role = data.role or kind if kind == "chat" else kind
    message = TraceMessage(ROLE_ALIASES.get(role, role), call_id=data.tool_call_id, name=data.name)
    message.failed, message.rest = data.status == "error", dict(data.extra_fields)
    if isinstance(data.artifact, dict):
        message.data = data.artifact
    elif data.artifact is not None:
        message.rest["artifact"] = data.artifact
    calls = [*as_list(data.tool_calls), *as_list(data.invalid_tool_calls)]
    provider = dict(data.additional_kwargs) if isinstance(data.additional_kwargs, dict) else {}
    written = [*as_list(provider.pop("tool_calls", None)), *as_list(provider.pop("function_call", None))]
    if provider:
        message.rest["additional_kwargs"] = provider
    # Where the calls were not parsed, they stand as the provider wrote them.
    add_calls(message, calls or written, place)
    return expand_content(message, data.content, place)


def _kind_and_data(raw: Any) -> tuple[str, _LangchainMessageData]:
    match raw:
        case {"lc": _}:
            built = validate_shape(_DumpedMessage, raw)
            return _kind(built.id[-1]) if built.id else "", built.kwargs
        case {"type": str(kind), "data": dict(fields)}:
            return _kind(kind), validate_shape(_LangchainMessageData, fields)
    data = validate_shape(_LangchainMessageData, raw)
    if data.type is None:
        raise MalformedRecord("it has no type")
    return _kind(data.type), data


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
    if head.has_keys("run_type", "inputs"):
        return True
    nested = [(f"{at}type", f"{at}{own}") for at in _PLACES for own in ("data.content", "lc", "kwargs.content")]
    flat = [
        f"{before}{at}"
        for at in _PLACES
        for before in ("", "[].")
        if _kind(head.keys.get(f"{before}{at}type", "")) in _KINDS
    ]
    return any(head.has_keys(*form) for form in nested) or any(f"{at}content" in head.keys for at in flat)


LANGCHAIN = TraceFormat(
    "langchain",
    "LangChain messages, one chat a line",
    _sniff,
    document_reader("langchain", _decode_chat, _is_chat),
    json_rows_writer(_encode_record),
)
