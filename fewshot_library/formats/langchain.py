"""LangChain's messages as its messages_to_dict writes them, one chat a line; its older `dumpd` form is read too."""

from collections.abc import Iterator
from typing import Any

from db.record import TraceRecord
from fewshot_library.formats.chat import ERROR, KEPT, Call, Message, chat_of, unclear
from fewshot_library.formats.chat_record import Chat, record_from
from fewshot_library.formats.contents import Open, beside_calls, said
from fewshot_library.formats.documents import Malformed, Origin, documents_reader, shaped
from fewshot_library.formats.dropped import dropped
from fewshot_library.formats.export import Export
from fewshot_library.formats.format import Format, Found
from fewshot_library.formats.head import Head
from fewshot_library.formats.lines import as_lines

ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system", "developer": "system"}
CLASSES = {"HumanMessage": "human", "AIMessage": "ai", "ToolMessage": "tool", "SystemMessage": "system"}
OURS = {"user": "human", "assistant": "ai", "tool": "tool"}


class _Call(Open):
    name: str
    args: dict[str, Any]
    id: str | None = None
    type: str = "tool_call"


class _Data(Open):
    content: Any
    type: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    status: str = "success"
    artifact: Any = None


class _Typed(Open):
    type: str
    data: _Data


class _Built(Open):
    """The form that `dumpd` writes."""

    lc: int
    id: list[str]
    kwargs: _Data
    type: str = "constructor"


def _is_chat(value: Any) -> bool:
    return not isinstance(value, list) or any(isinstance(each, dict) and {"data", "lc"} & each.keys() for each in value)


def _take(raw: Any, origin: Origin) -> Iterator[Found]:
    rest = {name: value for name, value in raw.items() if name != "messages"} if isinstance(raw, dict) else {}
    listed = raw.get("messages") if isinstance(raw, dict) else raw
    if not isinstance(listed, list) or not listed:
        raise Malformed("it is no list of messages")
    messages = [_message(each, number) for number, each in enumerate(listed, start=1)]
    return record_from(Chat(messages, rest=rest, thought_in_answer=True), origin)


def _message(raw: Any, number: int) -> Message:
    place = f"message {number}"
    try:
        kind, data = _kind_and_data(raw)
    except Malformed as wrong:
        raise Malformed(f"{place}: {wrong}") from wrong
    if kind not in ROLES:
        raise Malformed(f"{place} is of the kind {kind!r}, which is none of {', '.join(ROLES)}")
    content = said(_without_calls(data.content) if data.tool_calls else data.content, place)
    keeps = isinstance(data.artifact, dict)
    rest = data.rest | content.rest | beside_calls(data.tool_calls or [])
    if data.artifact is not None and not keeps:
        rest["artifact"] = data.artifact
    return Message(
        ROLES[kind],
        content.text,
        content.reasoning,
        calls=[
            Call(call.id or f"{number}.{nth}", call.name, call.args)
            for nth, call in enumerate(data.tool_calls or [], start=1)
        ],
        call_id=data.tool_call_id,
        name=data.name,
        failed=data.status == "error",
        data=data.artifact if keeps else None,
        rest=rest,
    )


def _kind_and_data(raw: Any) -> tuple[str, _Data]:
    if isinstance(raw, dict) and "lc" in raw:
        built = shaped(_Built, raw)
        name = built.id[-1].removesuffix("Chunk") if built.id else ""
        return CLASSES.get(name, name), built.kwargs
    typed = shaped(_Typed, raw)
    return typed.type, typed.data


def _without_calls(content: Any) -> Any:
    """The content without what providers repeat there of the calls."""
    if not isinstance(content, list):
        return content
    return [part for part in content if not (isinstance(part, dict) and part.get("type") in ("tool_use", "tool_call"))]


def _tell(record: TraceRecord, _: Export) -> tuple[list[dict[str, Any]], list[str]]:
    unsaid = [what for what in unclear(record) if what != ERROR]
    return [_plain(message) for message in chat_of(record)], [*dropped(record, {*KEPT, "step.data"}), *unsaid]


def _plain(message: Message) -> dict[str, Any]:
    kind = OURS[message.role]
    data: dict[str, Any] = {"content": message.said, "additional_kwargs": {}, "response_metadata": {}, "type": kind}
    data |= {"name": message.name, "id": None}
    if kind == "ai":
        calls = [{"name": c.name, "args": c.arguments, "id": c.id, "type": "tool_call"} for c in message.calls]
        data |= {"tool_calls": calls, "invalid_tool_calls": [], "usage_metadata": None}
    if kind == "tool":
        status = "error" if message.failed else "success"
        data |= {"tool_call_id": message.call_id, "artifact": message.data, "status": status}
    return {"type": kind, "data": data}


def _sniff(head: Head) -> bool:
    forms = [(f"{at}type", f"{at}{own}") for at in ("", "[][].", "messages[].") for own in ("data.content", "lc")]
    return any(head.has(*form) for form in forms)


LANGCHAIN = Format(
    "langchain",
    "LangChain's messages, one chat a line",
    _sniff,
    documents_reader("langchain", _take, _is_chat),
    as_lines(_tell),
)
