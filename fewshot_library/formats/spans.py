"""Parses OpenTelemetry spans in the JSON forms of exporters (OTLP, the SDK's, Phoenix's), and their conversations."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from fewshot_library.formats.chat import ChatTranscript, MessageToolCall, TraceMessage, chat_to_records
from fewshot_library.formats.format import ReadResult, RecordRemark
from fewshot_library.formats.json_documents import (
    MalformedRecord,
    RecordOrigin,
    decode_record,
    parse_utc_datetime,
    read_json_values,
)
from guard.json_input import MAX_DEPTH, load_json

_OTLP_SCALARS = ("stringValue", "boolValue", "doubleValue", "bytesValue")


@dataclass(slots=True)
class TraceSpan:
    """One span; attribute names with dots are stored as nested dictionaries."""

    trace_id: str
    id: str
    parent_id: str | None
    name: str
    started_at: datetime | None
    ended_at: datetime | None
    error: str | None
    attributes: dict[str, Any] = field(default_factory=dict)

    def get(self, path: str) -> Any:
        """The value of the attribute "a.b.c"; None if there is none."""
        value: Any = self.attributes
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value.get("") if isinstance(value, dict) and set(value) == {""} else value

    def get_text(self, path: str) -> str | None:
        """The non-empty text of an attribute; None for any other value."""
        value = self.get(path)
        return value if isinstance(value, str) and value else None

    def get_list(self, path: str) -> list[Any]:
        """The list of an attribute: a list, the JSON text of one, or numbered keys; [] for any other value."""
        value = self.get(path)
        if isinstance(value, str):
            value = parse_json_text(value)
        if isinstance(value, dict) and value and all(key.isdigit() for key in value):
            return [value[key] for key in sorted(value, key=int)]
        return value if isinstance(value, list) else []


def parse_json_text(text: str) -> Any:
    """Parse a JSON text; a text that is not JSON is returned unchanged."""
    try:
        return load_json(text)
    except ValueError:
        return text


def nest_keys(flat: Any) -> Any:
    """Convert keys with dots to nested dictionaries: "a.b" becomes "b" under "a"."""
    if isinstance(flat, list):
        return [nest_keys(element) for element in flat]
    if not isinstance(flat, dict):
        return flat
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        set_path(tree, key.split("."), nest_keys(value))
    return tree


def set_path(tree: dict[str, Any], path: list[str], value: Any) -> None:
    """Set the value at a path of a tree; a scalar on the path moves under an empty key."""
    if len(path) > MAX_DEPTH:
        raise MalformedRecord(f"a key has {len(path):,} parts between dots, more than {MAX_DEPTH}")
    for part in path[:-1]:
        child = tree.setdefault(part, {})
        if not isinstance(child, dict):
            child = tree[part] = {"": child}
        tree = child
    existing = tree.get(path[-1])
    if isinstance(existing, dict) and isinstance(value, dict):
        existing.update(value)
    elif isinstance(existing, dict):
        existing[""] = value
    else:
        tree[path[-1]] = value


def iterate_raw_spans(value: Any) -> Iterator[Any]:
    """Yield the raw spans of a JSON value: a span, a list of spans, or OTLP's nested form."""
    nested = None
    if isinstance(value, dict):
        nested = next((value[key] for key in ("resourceSpans", "scopeSpans", "spans") if key in value), None)
    content = value if nested is None else nested
    if isinstance(content, list):
        for element in content:
            yield from iterate_raw_spans(element)
    else:
        yield content


def parse_span(raw: Any) -> TraceSpan:
    """Parse a raw span; MalformedRecord if it is not one."""
    if not isinstance(raw, dict) or "attributes" not in raw:
        raise MalformedRecord("it is not a span: it has no attributes")
    context = raw.get("context")
    own = {key.removeprefix("context."): value for key, value in raw.items()}
    own |= context if isinstance(context, dict) else {}
    attributes: dict[str, Any] = {}
    for key, value in _iterate_attributes(raw["attributes"]):
        set_path(attributes, key.split("."), value)
    events = raw.get("events")
    for event in events if isinstance(events, list) else []:
        # The messages of a model may be attributes of an event.
        if isinstance(event, dict) and event.get("attributes"):
            for key, value in _iterate_attributes(event["attributes"]):
                set_path(attributes, key.split("."), value)
    return TraceSpan(
        trace_id=_first_text(own, "trace_id", "traceId") or "",
        id=_first_text(own, "span_id", "spanId") or "",
        parent_id=_first_text(own, "parent_id", "parentSpanId", "parent_span_id"),
        name=_first_text(own, "name") or "",
        started_at=_first_time(own, "start_time", "startTimeUnixNano"),
        ended_at=_first_time(own, "end_time", "endTimeUnixNano"),
        error=_error_message(own),
        attributes=attributes,
    )


def _iterate_attributes(raw: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(raw, dict):
        yield from raw.items()
    elif isinstance(raw, list):
        for attribute in raw:
            if not isinstance(attribute, dict) or not isinstance(attribute.get("key"), str):
                raise MalformedRecord("one of its attributes has no key")
            yield attribute["key"], _unwrap_otlp(attribute.get("value"))
    else:
        raise MalformedRecord(f"its attributes are not a JSON object but a {type(raw).__name__}")


def _unwrap_otlp(value: Any) -> Any:
    """The value that OTLP wraps in an object with its type."""
    match value:
        case {"intValue": str() | int() as number}:
            return int(number)
        case {"arrayValue": dict(inner)}:
            return [_unwrap_otlp(item) for item in inner.get("values") or []]
        case {"kvlistValue": dict(inner)}:
            return dict(_iterate_attributes(inner.get("values") or []))
        case dict():
            return next((value[kind] for kind in _OTLP_SCALARS if kind in value), None)
    return value


def _first_text(own: dict[str, Any], *names: str) -> str | None:
    return next((own[name] for name in names if isinstance(own.get(name), str) and own[name]), None)


def _first_time(own: dict[str, Any], *names: str) -> datetime | None:
    value = next((own[name] for name in names if own.get(name)), None)
    try:
        if isinstance(value, int | float) or (isinstance(value, str) and value.isdigit()):
            return datetime.fromtimestamp(int(value) / 1e9, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise MalformedRecord(f"its {names[0]} {value!r} is not a valid time ({error})") from error
    return parse_utc_datetime(value, f"its {names[0]}") if isinstance(value, str) else None


def _error_message(own: dict[str, Any]) -> str | None:
    """The error of a span with an error status; None otherwise."""
    status = own.get("status")
    fields = status if isinstance(status, dict) else {"status_code": own.get("status_code")}
    code = fields.get("status_code", fields.get("code"))
    if str(code).upper() not in ("ERROR", "STATUS_CODE_ERROR", "2"):
        return None
    message = fields.get("description") or fields.get("message") or own.get("status_message")
    return str(message) if message else "it failed"


@dataclass(slots=True)
class SpanToolRun:
    """One run of a tool, from its span."""

    call: MessageToolCall
    content: str | None
    rating: int | None = None


@dataclass(slots=True)
class SpanContent:
    """The content of a span, whatever convention names its attributes."""

    input_messages: list[TraceMessage] = field(default_factory=list)
    """The messages that the model was sent."""
    output_messages: list[TraceMessage] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    tool_run: SpanToolRun | None = None
    input_text: str | None = None
    output_text: str | None = None
    final_answer: str | None = None
    """The answer of an agent, where its span has one."""
    annotations: list[Any] = field(default_factory=list)


SpanDecoder = Callable[[TraceSpan], SpanContent]


def span_trace_reader(format_name: str, decode: SpanDecoder) -> Callable[[Path], Iterator[ReadResult]]:
    """A reader of spans; the spans of a trace may stand anywhere in the file."""

    def read(path: Path) -> Iterator[ReadResult]:
        traces: dict[str, list[TraceSpan]] = {}
        for place, value in read_json_values(path):
            for number, raw in enumerate(iterate_raw_spans(value), start=1):
                origin = RecordOrigin(format_name, path.stem, f"{place}span {number}")
                yield from decode_record(raw, partial(_collect_span, traces), origin)
        for number, (trace_id, spans) in enumerate(traces.items(), start=1):
            origin = RecordOrigin(format_name, path.stem, f"trace {trace_id or number}")
            yield from decode_record(spans, partial(_decode_spans, decode), origin)

    return read


def _collect_span(traces: dict[str, list[TraceSpan]], raw: Any, _: RecordOrigin) -> Iterator[ReadResult]:
    span = parse_span(raw)
    traces.setdefault(span.trace_id, []).append(span)
    return iter(())


def _decode_spans(decode: SpanDecoder, spans: list[TraceSpan], origin: RecordOrigin) -> Iterator[ReadResult]:
    spans.sort(key=lambda span: (span.started_at is None, span.started_at.timestamp() if span.started_at else 0.0))
    contents = [(span, decode(span)) for span in spans]
    models = [content for _, content in contents if content.input_messages or content.output_messages]
    tool_runs = [(span, content.tool_run) for span, content in contents if content.tool_run is not None]
    if not models and not tool_runs:
        raise MalformedRecord("none of its spans has a message of a model or a result of a tool")
    chat = _longest_conversation(models) if models else ChatTranscript(_messages_from_tools(contents, tool_runs))
    used = _attach_tool_results(chat.messages, tool_runs)
    final_answer = next((content.final_answer for _, content in contents if content.final_answer), None)
    if final_answer is not None and (chat.messages[-1].role != "assistant" or chat.messages[-1].calls):
        # An agent may answer by a tool; then the call of that tool is the last message of its model.
        chat.messages.append(TraceMessage("assistant", final_answer))
    chat.tools = next((content.tools for content in models if content.tools), [])
    chat.extra = {"spans": [span.name for span in spans], "trace_id": spans[0].trace_id}
    if annotations := [annotation for _, content in contents for annotation in content.annotations]:
        chat.extra["annotations"] = annotations
    roots = [span for span in spans if span.parent_id is None]
    chat.error = next((span.error for span in roots if span.error), None)
    times = [time for span in spans for time in (span.started_at, span.ended_at) if time is not None]
    if times:
        chat.started_at, chat.finished_at = min(times), max(times)
    yield RecordRemark(
        origin.place, f"of its {len(spans)} spans only messages, calls, results and ratings were imported"
    )
    if elsewhere := _count_unrelated_calls(models, chat.messages) + len(tool_runs) - used:
        yield RecordRemark(
            origin.place, f"{elsewhere} of its model and tool calls belong to other conversations and were left out"
        )
    yield from chat_to_records(chat, origin)


def _longest_conversation(models: list[SpanContent]) -> ChatTranscript:
    """The longest conversation, the latest of equal ones; it includes the ones that it continues."""
    longest = max(reversed(models), key=lambda content: len(content.input_messages) + len(content.output_messages))
    return ChatTranscript([*longest.input_messages, *longest.output_messages])


def _count_unrelated_calls(models: list[SpanContent], messages: list[TraceMessage]) -> int:
    """How many calls of a model have an output that is not among the messages."""
    keys = [_message_key(message) for message in messages]
    return sum(any(_message_key(message) not in keys for message in content.output_messages) for content in models)


def _message_key(message: TraceMessage) -> Any:
    return message.content, [(call.name, call.arguments) for call in message.calls]


def _messages_from_tools(
    contents: list[tuple[TraceSpan, SpanContent]], tool_runs: list[tuple[TraceSpan, SpanToolRun]]
) -> list[TraceMessage]:
    """The messages of a trace without recorded messages of a model."""
    question = next(
        (content.input_text for _, content in contents if content.input_text and content.tool_run is None), None
    )
    if question is None:
        raise MalformedRecord("none of its spans has the question")
    messages = [TraceMessage("user", question)]
    messages += [TraceMessage("assistant", calls=[use.call]) for _, use in tool_runs]
    answer = next(
        (content.output_text for _, content in contents if content.output_text and content.tool_run is None), None
    )
    return messages + ([TraceMessage("assistant", answer)] if answer is not None else [])


def _attach_tool_results(messages: list[TraceMessage], uses: list[tuple[TraceSpan, SpanToolRun]]) -> int:
    """Add results, errors, times and ratings of tool spans to the calls; return how many spans had a call."""
    answers = {message.call_id: message for message in messages if message.role == "tool"}
    calls = {call.id: call for message in messages for call in message.calls}
    runs_by_call: dict[str, tuple[TraceSpan, SpanToolRun]] = {}
    for span, use in uses:
        # A span without the id of its call belongs to the first call of its tool that has no span yet.
        named_id = use.call.id if use.call.id in calls else None
        by_name = (
            candidate for candidate in calls if candidate not in runs_by_call and calls[candidate].name == use.call.name
        )
        call_id = named_id or next(by_name, None)
        if call_id is not None:
            runs_by_call[call_id] = span, use
    missing: dict[str, TraceMessage] = {}
    for call_id, (span, use) in runs_by_call.items():
        answer = answers.get(call_id)
        if answer is None:
            answer = missing[call_id] = TraceMessage("tool", use.content or span.error or "", call_id=call_id)
        answer.failed, answer.at, answer.rating = span.error is not None, span.ended_at, use.rating
    messages[:] = [
        item
        for message in messages
        for item in (message, *(missing.pop(call.id) for call in message.calls if call.id in missing))
    ]
    return len(runs_by_call)
