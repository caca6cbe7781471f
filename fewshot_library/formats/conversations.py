"""Finds the messages of a conversation in a record, in whatever form an interface or a tool wrote them.

All forms become OpenAI's: a role, and a content that may be a list of parts.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from showhow.fewshot_library.formats.agent_runs import usual_instruction, usual_run, usual_step, without_events
from showhow.fewshot_library.formats.chat import ChatTranscript, TraceMessage, chat_to_records
from showhow.fewshot_library.formats.chat_templates import is_template, parse_template, split_conversations
from showhow.fewshot_library.formats.content_parts import expand_content, part_kind
from showhow.fewshot_library.formats.format import FileHead, ReadResult, RecordRemark, TraceFormat, read_text_document
from showhow.fewshot_library.formats.json_documents import (
    ExtensibleModel,
    MalformedRecord,
    RecordOrigin,
    decode_record,
    document_reader,
    read_json_values,
    validate_shape,
)
from showhow.fewshot_library.formats.react import read_text_turns
from showhow.fewshot_library.formats.thoughts import split_thoughts
from showhow.fewshot_library.formats.tool_calls import add_calls, as_list, load_json_text, read_tools
from showhow.llm.text_tool_calls import parse_json_call

ROLE_ALIASES = {
    **dict.fromkeys(("developer", "system-prompt"), "system"),
    **dict.fromkeys(("human", "request"), "user"),
    **dict.fromkeys(("ai", "model", "gpt", "bot", "chatbot", "response", "tool_call", "function_call"), "assistant"),
    **dict.fromkeys(("function", "tool_response", "ipython", "observation"), "tool"),
}
"""The roles that other tools write in place of OpenAI's."""
CALL_ROLES = ("tool_call", "function_call")
"""The roles of messages whose text is a call in JSON."""
MESSAGE_KINDS = ("human", "ai", "tool", "system", "function", "developer", "chat", "remove")
"""The kinds of LangChain's messages."""
_PARTS = ("parts", "blocks", "items")
"""Where other interfaces put the parts of a content."""
_SESSIONS = ("sessionId", "session_id", "conversation_id", "thread_id")
_REJECTED = "rejected"
"""The reply of a preference pair that is not to be followed."""
_PEEK_CHARACTERS = 200
_TEXT_COLUMNS = ("messages", "conversations", "tools")
"""Fields that are JSON texts in the columns of tables."""


class _Message(ExtensibleModel):
    role: str | None = None
    content: Any = None
    tool_calls: Any = None
    function_call: Any = None
    invalid_tool_calls: Any = None
    additional_kwargs: Any = None
    tool_call_id: str | int | None = None
    name: str | None = None
    tool_name: str | None = None
    status: str | None = None
    artifact: Any = None


def message_kind(name: str) -> str:
    """The kind of a message of LangChain from its class, such as AIMessageChunk, or its kind."""
    return name.removesuffix("Chunk").removesuffix("Message").lower()


def usual_message(raw: Any) -> dict[str, Any] | None:
    """A message in OpenAI's form; None if the value is no message."""
    return usual_step(raw) or _usual_form(raw)


def _usual_form(raw: Any) -> dict[str, Any] | None:
    message: dict[str, Any] | None = None
    match raw:
        case {"lc": int(), "id": [*_, str(name)], "kwargs": {"content": _} as fields}:
            message = _of_langchain(name, fields)
        case {"type": str(name), "data": dict(fields)} if message_kind(name) in MESSAGE_KINDS:
            message = _of_langchain(name, fields)
        case {"role": str()} if raw.keys() & {"content", "tool_calls", "function_call", *_PARTS}:
            message = _with_parts(raw)
        case {"type": str(name), "content": _} if message_kind(name) in MESSAGE_KINDS:
            message = _of_langchain(name, raw)
        case {"tool_calls": [*_]} | {"function_call": {}}:
            message = {**raw, "role": "assistant"}
        case {"tool_call_id": str(), "content": _}:
            message = {**raw, "role": "tool"}
        case {"from": str(role), "value": value}:
            message = {**_without(raw, "from", "value"), "role": role, "content": value}
        case {"kind": "request" | "response" as role, "parts": list()}:
            message = _with_parts({**_without(raw, "kind"), "role": role})
        case {"source": str(source), "type": str(kind), "content": content}:
            # An agent of AutoGen has a name of its own, and only the user is called so.
            name = "reasoning" if "thought" in kind.lower() else "content"
            fields = {"role": "user" if source == "user" else "assistant", name: content}
            message = _without(raw, "source", "type", "content") | fields
    return message


def _of_langchain(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    kind = message_kind(name)
    return {**_without(fields, "type"), "role": fields.get("role") or kind if kind == "chat" else kind}


def _with_parts(raw: dict[str, Any]) -> dict[str, Any]:
    name = next((name for name in _PARTS if isinstance(raw.get(name), list)), None)
    if name is None:
        return raw
    # A text beside its parts repeats them.
    texts = [part.get("text", part.get("content")) for part in raw[name] if isinstance(part, dict)]
    beside = [part for part in as_list(raw.get("content")) if part not in raw[name] and _part_text(part) not in texts]
    return {**_without(raw, name), "content": [*beside, *raw[name]]}


def _part_text(part: Any) -> Any:
    return part.get("text") if isinstance(part, dict) else part


def _without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def _is_item(value: Any) -> bool:
    """Whether a value stands between messages, as a call, a result or a thought does in OpenAI's Responses."""
    return isinstance(value, dict) and isinstance(value.get("type"), str) and usual_message(value) is None


def decode_message(raw: dict[str, Any], place: str) -> list[TraceMessage]:
    """Convert a message in OpenAI's form; the results of calls within it follow it as messages of their own."""
    try:
        fields = validate_shape(_Message, raw)
    except MalformedRecord as error:
        raise MalformedRecord(f"{place}: {error}") from error
    role = fields.role or ""
    if role == "remove":
        # It removes a message from the state of a graph, which the list shows without it.
        return []
    provider = dict(fields.additional_kwargs) if isinstance(fields.additional_kwargs, dict) else {}
    parsed = [*as_list(fields.tool_calls), *as_list(fields.invalid_tool_calls), *as_list(fields.function_call)]
    # Where the calls were not parsed, they stand as the provider wrote them.
    written = [*as_list(provider.pop("tool_calls", None)), *as_list(provider.pop("function_call", None))]
    call_id = fields.tool_call_id if fields.tool_call_id is not None else provider.pop("tool_call_id", None)
    message = TraceMessage(ROLE_ALIASES.get(role, role), call_id=None if call_id is None else str(call_id))
    message.name, message.failed = fields.name or fields.tool_name, fields.status == "error"
    beside = {"additional_kwargs": provider, "name": fields.name if message.role != "tool" else None}
    if isinstance(fields.artifact, dict):
        message.data = fields.artifact
    else:
        beside["artifact"] = fields.artifact
    message.rest = fields.extra_fields | {name: value for name, value in beside.items() if value}
    content = fields.content
    if role in CALL_ROLES and isinstance(content, str):
        thought, text = split_thoughts(content)
        if (call := parse_json_call(text)) is not None:
            parsed = [{"name": call.name, "arguments": call.arguments}, *parsed]
            message.reasoning, content = thought, None
    add_calls(message, parsed or written, place)
    if message.role != "user" or not isinstance(content, list):
        return expand_content(message, content, place)
    # Some interfaces put the instructions into the first message of the user.
    system = [part for part in content if isinstance(part, dict) and part_kind(part).startswith("system")]
    instructions = [TraceMessage("system", str(part.get("content") or "")) for part in system]
    return [*instructions, *expand_content(message, [part for part in content if part not in system], place)]


def decode_messages(values: Sequence[Any]) -> list[TraceMessage]:
    """Convert the messages of a list, and what stands between them, which belongs to the assistant's next message."""
    joined: list[tuple[str, dict[str, Any]]] = []
    # The content that goes on, and the id of its message; None behind an item.
    parts: list[Any] | None = None
    last_id: Any = None
    for number, value in enumerate(values, start=1):
        message, is_item = usual_message(value), _is_item(value)
        if message is None and not is_item:
            raise MalformedRecord(f"message {number} has no role")
        of_response = is_item or (message is not None and value.get("type") == "message" and "role" in value)
        content = [value] if message is None else as_list(message.get("content"))
        own_id = None if is_item or not of_response else value.get("id")
        # A stream that was recorded part by part repeats the id of the message.
        is_of_model = of_response and (message is None or message["role"] == "assistant")
        if parts is not None and is_of_model and (is_item or last_id is None or own_id == last_id):
            parts += content
        elif is_of_model:
            parts = list(content)
            joined.append((f"message {number}", {**(message or {"role": "assistant"}), "content": parts}))
        else:
            parts = None
            joined.append((f"message {number}", message or {}))
        last_id = own_id
    return [part for place, message in joined for part in decode_message(message, place)]


def _is_message(value: Any) -> bool:
    return usual_message(value) is not None


def _message_lists(value: Any, depth: int = 0) -> Iterator[tuple[int, list[Any]]]:
    """The lists of messages within a value with their depths; a message that stands alone is a list of one."""
    if _is_message(value):
        yield depth, [value]
    elif isinstance(value, list) and (any(map(_is_message, value)) or _are_items(value)):
        yield depth, value
    elif isinstance(value, list | dict):
        fields = {name: inner for name, inner in value.items() if name != _REJECTED} if isinstance(value, dict) else {}
        for inner in fields.values() or (value if isinstance(value, list) else ()):
            yield from _message_lists(inner, depth + 1)


def _are_items(values: list[Any]) -> bool:
    kinds = [part_kind(value) if _is_item(value) else "" for value in values]
    return bool(kinds) and all("call" in kind or "reasoning" in kind for kind in kinds)


def _message_key(message: Any) -> str:
    usual = usual_message(message) or {"content": message}
    fields = [usual.get(name) or None for name in ("content", "tool_calls")]
    return json.dumps(fields, sort_keys=True, default=str)


def _role(message: Any) -> str:
    role = str((usual_message(message) or {"role": "assistant"})["role"])
    return ROLE_ALIASES.get(role, role)


def find_conversation(raw: Any) -> tuple[list[Any], dict[str, Any], list[str]]:
    """The messages of a record, its other fields, and remarks on messages that are left out."""
    if isinstance(raw, dict) and (run := usual_run(raw)) is not None:
        messages, rest = run
        return messages, rest, [_leave_out(values) for _, values in _message_lists(rest)]
    lists = list(_message_lists(raw))
    if isinstance(raw, dict) and not lists and (plain := _plain_conversation(raw)) is not None:
        return plain
    asked = [(depth, values) for depth, values in lists if any(_role(message) == "user" for message in values)]
    # The question may be a text, with a list of nothing but the reply.
    text = raw.get("input") if isinstance(raw, dict) and lists and not asked else None
    question = [{"role": "user", "content": text}] if isinstance(text, str) else []
    _, main = min(asked or lists, key=lambda one: (one[0], -len(one[1])), default=(0, []))
    if not main:
        raise MalformedRecord("it is not a list of messages, and has none")
    messages, remarks = without_events([*question, *_in_order_of_time(main)])
    keys = set(map(_message_key, messages))
    used = [main]
    for _, values in lists:
        is_reply = all(_role(message) not in ("user", "system") for message in values)
        if all(_message_key(message) in keys for message in values):
            used.append(values)
        elif is_reply and _awaits_reply(messages[-1]):
            # The reply to a request stands beside it.
            messages += values
            keys.update(map(_message_key, values))
            used.append(values)
        else:
            remarks.append(_leave_out(values))
    rest = _prune(raw, {id(part) for values in used for part in (values, *values)}) if isinstance(raw, dict) else {}
    return messages, rest, remarks


def _leave_out(values: list[Any]) -> str:
    return f"another list with {len(values)} of its messages was left out"


def _plain_conversation(raw: dict[str, Any]) -> tuple[list[Any], dict[str, Any], list[str]] | None:
    """The conversation in the texts of a record that has no message: an instruction, or a chat template's text."""
    if (instruction := usual_instruction(raw)) is not None:
        return *instruction, []
    name = next((name for name, value in raw.items() if isinstance(value, str) and is_template(value)), None)
    return None if name is None else (parse_template(raw[name]), _without(raw, name), [])


def _awaits_reply(message: Any) -> bool:
    usual = usual_message(message) or {}
    return _role(message) != "assistant" or not usual.get("content")


def _in_order_of_time(messages: list[Any]) -> list[Any]:
    """The messages; reversed where an interface lists the newest first."""
    written = [message.get("created_at") if isinstance(message, dict) else None for message in messages]
    times = [time for time in written if isinstance(time, int | float)]
    is_reversed = len(times) == len(messages) and all(a > b for a, b in pairwise(times))
    return messages[::-1] if is_reversed else messages


def _prune(value: Any, used: set[int]) -> Any:
    """The value without the messages that were used."""
    if id(value) in used:
        return None
    if not any(_message_lists(value)):
        return value
    if isinstance(value, list):
        return [kept for inner in value if (kept := _prune(inner, used))]
    return {name: kept for name, inner in value.items() if (kept := _prune(inner, used))}


def decode_chat(raw: Any, origin: RecordOrigin) -> Iterator[ReadResult]:
    """Convert the conversation of a record to a trace."""
    if isinstance(raw, dict) and "run_type" in raw and raw.get("parent_run_id"):
        remark = f"it is a part of the run {raw['parent_run_id']}, which has the whole conversation, and was left out"
        yield RecordRemark(origin.place, remark)
        return
    if isinstance(raw, dict):
        raw = raw | {name: load_json_text(raw[name]) for name in _TEXT_COLUMNS if isinstance(raw.get(name), str)}
    values, rest, remarks = find_conversation(raw)
    tools, tool_remarks = read_tools(rest.pop("tools", None))
    yield from (RecordRemark(origin.place, remark) for remark in [*remarks, *tool_remarks])
    extra = {name: value for name, value in rest.items() if value not in (None, "", [], {})}
    messages = decode_messages(values)
    read_text_turns(messages)
    yield from chat_to_records(ChatTranscript(messages, tools, extra, thought_in_answer=True), origin)


def _is_chat(value: list[Any]) -> bool:
    return any(map(_is_message, value)) or _are_items(value)


def chat_reader(format_name: str) -> Callable[[Path], Iterator[ReadResult]]:
    """A reader of one conversation a record; a list is a conversation or has several."""
    return document_reader(format_name, decode_chat, _is_chat)


def _read_any(path: Path) -> Iterator[ReadResult]:
    """Read conversations whose messages may stand one a line, or again in each later record of a log of requests."""
    begun = {digest for _, raw in _iterate_records(path) for digest in _iterate_digests(raw, whole=False)}
    for place, raw in _iterate_records(path):
        origin = RecordOrigin("chats", path.stem, place.removesuffix(", ") or "record 1")
        if begun.intersection(_iterate_digests(raw, whole=True)):
            yield RecordRemark(origin.place, "another record has its messages and goes on with them; it was left out")
        else:
            yield from decode_record(raw, _decode_exchange, origin)


def _decode_exchange(raw: Any, origin: RecordOrigin) -> Iterator[ReadResult]:
    if len(find_conversation(raw)[0]) == 1:
        # In a file of another kind, each line may have one.
        raise MalformedRecord("it has one message only, and so no question with a reply")
    yield from decode_chat(raw, origin)


def _iterate_records(path: Path) -> Iterator[tuple[str, Any]]:
    sessions: dict[str, list[Any]] = {}
    others: list[tuple[str, Any]] = []
    typed: set[str] = set()
    if is_template(read_text_document(path, _PEEK_CHARACTERS)):
        conversations = split_conversations(parse_template(read_text_document(path)))
        yield from ((f"conversation {number}", messages) for number, messages in enumerate(conversations, start=1))
        return
    for place, value in read_json_values(path, splits_lists=False):
        if (text := _typed_text(value)) is not None:
            typed.add(text)
        if (message := _line_message(value)) is not None:
            session = next((str(value[name]) for name in _SESSIONS if value.get(name)), "")
            sessions.setdefault(session, []).append(message)
        elif len(records := _split_records(value)) > 1:
            yield from ((f"{place}record {number}", inner) for number, inner in enumerate(records, start=1))
        else:
            others.append((place, value))
    # Beside messages, other lines are of their tool.
    yield from (
        (f"conversation {number}", [_mark_instructions(message, typed) for message in messages])
        for number, messages in enumerate(sessions.values(), start=1)
    )
    yield from ((place, value) for place, value in others if not sessions or isinstance(value, MalformedRecord))


def _split_records(value: Any) -> list[Any]:
    """The records of a list, or of the lists in an object that has no conversation of its own."""
    if isinstance(value, list) and not _is_chat(value):
        return value
    lists = [inner for inner in value.values() if isinstance(inner, list)] if isinstance(value, dict) else []
    records = [record for inner in lists if not _is_chat(inner) for record in inner if _count_asked(record)]
    return records if _count_asked(value) == sum(map(_count_asked, records)) else [value]


def _count_asked(value: Any) -> int:
    return sum(any(_role(message) == "user" for message in messages) for _, messages in _message_lists(value))


def _line_message(value: Any) -> Any:
    """The message of a line that is one, or has one beside its time and place; None for other lines."""
    if not isinstance(value, dict):
        return None
    lists = [values for _, values in _message_lists(value)]
    if _is_message(value) or (_are_items([value]) and not any(any(map(_is_message, values)) for values in lists)):
        return value
    if value.get("type") == "response_item" and isinstance(value.get("payload"), dict):
        # A session of Codex.
        return value["payload"]
    message = value.get("message")
    is_only = _is_message(message) and len(lists) == 1
    return message if is_only and value.get("isSidechain") is not True else None


def _typed_text(value: Any) -> str | None:
    """What a line of a session of Codex says that its user typed; None for another line."""
    match value:
        case {"type": "event_msg", "payload": {"type": "user_message", "message": str(text)}}:
            return text.strip()
    return None


def _mark_instructions(message: Any, typed: set[str]) -> Any:
    """The message; as instructions if a session says what its user typed, and it is another text with their role."""
    texts = {str(_part_text(part)).strip() for part in as_list((usual_message(message) or {}).get("content"))}
    is_typed = not typed or _role(message) != "user" or not texts.isdisjoint(typed)
    return message if is_typed else {**message, "role": "developer"}


def _iterate_digests(raw: Any, *, whole: bool) -> Iterator[int]:
    """The digest of a record's messages, or of each of their beginnings."""
    try:
        messages, _, _ = find_conversation(raw)
    except MalformedRecord:
        return
    digest = 0
    for message in messages:
        if digest and not whole:
            yield digest
        digest = hash((digest, _role(message), _message_key(message)))
    if whole:
        yield digest


_MESSAGE_FIELD = re.compile(r"(?:\A|[.\]])(?:role|from|part_kind|step_number)\Z")


_FORMS = (
    *(("source", "type", "content"), ("source", "action", "args"), ("kind", "source", "timestamp")),
    *(("instruction", "output"), ("instruction", "response")),
)


def _sniff(head: FileHead) -> bool:
    is_known = any(map(_MESSAGE_FIELD.search, head.keys)) or any(_has_form(head, *form) for form in _FORMS)
    return is_known or is_template(head.text) or any(map(is_template, head.keys.values()))


def _has_form(head: FileHead, first: str, *others: str) -> bool:
    """Whether an object anywhere in the file has these keys."""
    before = [key.removesuffix(first) for key in head.keys if key == first or key.endswith(f".{first}")]
    return any(all(f"{at}{name}" in head.keys for name in others) for at in before)


CHATS = TraceFormat("chats", "conversations in the forms of other interfaces and tools", _sniff, _read_any)
