"""Parses OpenTelemetry spans in the JSON forms of exporters: OTLP, the SDK's, Phoenix's, Jaeger's."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from showhow.fewshot_library.formats.chat import MessageToolCall, TraceMessage
from showhow.fewshot_library.formats.json_documents import MalformedRecord, parse_utc_datetime
from showhow.guard.json_input import MAX_DEPTH, load_json

_NUMBER = re.compile(r"[0-9]{1,9}")
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
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """The names of the events with their attributes."""
    remarks: list[str] = field(default_factory=list)
    """What could not be read."""

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
        return as_numbered_list(value)


def is_numbered(value: dict[str, Any]) -> bool:
    """Whether the keys are numbers, as those of a list whose elements are attributes of their own."""
    return bool(value) and all(map(_NUMBER.fullmatch, value))


def as_numbered_list(value: Any) -> list[Any]:
    """A list, or the values of numbered keys in order; empty for any other value."""
    if isinstance(value, dict) and is_numbered(value):
        return [value[key] for key in sorted(value, key=int)]
    return value if isinstance(value, list) else []


def parse_json_text(text: str) -> Any:
    """Parse a JSON text, in which numbers may be NaN; a text that is not JSON is returned unchanged."""
    try:
        return load_json(text, constants=True)
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
    """Yield the raw spans of a JSON value: a span, a list of spans, or the nested forms of OTLP and Jaeger."""
    nested = None
    if isinstance(value, dict):
        nested = next((value[key] for key in ("resourceSpans", "scopeSpans", "spans", "data") if key in value), None)
    content = value if nested is None else nested
    if isinstance(content, list):
        for element in content:
            yield from iterate_raw_spans(element)
    else:
        yield content


def parse_span(raw: Any) -> TraceSpan:
    """Parse a raw span; MalformedRecord if it is not one."""
    context = raw.get("context") if isinstance(raw, dict) else None
    own = {key.removeprefix("context."): value for key, value in raw.items()} if isinstance(raw, dict) else {}
    own |= context if isinstance(context, dict) else {}
    if "operationName" in own:
        own = _of_jaeger(own)
    span_id = _first_text(own, "span_id", "spanId") or ""
    # In tables, each attribute is a column.
    columns = {key.removeprefix("attributes."): value for key, value in own.items() if key.startswith("attributes.")}
    own.setdefault("attributes", columns or None)
    # OTLP leaves out empty lists.
    if own.get("attributes") is None and not span_id:
        raise MalformedRecord("it is not a span: it has no attributes")
    remarks: list[str] = []
    attributes: dict[str, Any] = {}
    raw_events = own.get("events")
    events: list[tuple[str, dict[str, Any]]] = []
    # The messages of a model may be attributes of an event.
    for holder in [own, *(raw_events if isinstance(raw_events, list) else [])]:
        fields = dict(_iterate_attributes(holder.get("attributes"), remarks)) if isinstance(holder, dict) else {}
        for key, value in fields.items():
            set_path(attributes, key.split("."), value)
        if holder is not own and fields:
            events.append((str(holder.get("name") or ""), fields))
    return TraceSpan(
        trace_id=_first_text(own, "trace_id", "traceId") or "",
        id=span_id,
        parent_id=_parent_id(own),
        name=_first_text(own, "name") or "",
        started_at=_first_time(own, remarks, "start_time", "startTimeUnixNano"),
        ended_at=_first_time(own, remarks, "end_time", "endTimeUnixNano"),
        error=_error_message(own),
        attributes=attributes,
        events=events,
        remarks=remarks,
    )


def _of_jaeger(own: dict[str, Any]) -> dict[str, Any]:
    """The fields of Jaeger's span under OTLP's names; its times are microseconds, and its logs events."""
    tags = dict(_iterate_attributes(own.get("tags"), []))
    parents = [
        reference.get("spanID")
        for reference in own.get("references") or []
        if isinstance(reference, dict) and reference.get("refType") != "FOLLOWS_FROM"
    ]
    start, duration = own.get("startTime"), own.get("duration")
    times: dict[str, Any] = {"startTimeUnixNano": start * 1000} if isinstance(start, int) else {"start_time": start}
    if isinstance(start, int) and isinstance(duration, int):
        times["endTimeUnixNano"] = (start + duration) * 1000
    logs = [dict(_iterate_attributes(log.get("fields"), [])) for log in own.get("logs") or [] if isinstance(log, dict)]
    is_error = str(tags.get("error")).lower() == "true" or tags.get("otel.status_code") == "ERROR"
    return times | {
        "traceId": own.get("traceID"),
        "spanId": own.get("spanID"),
        "parentSpanId": own.get("parentSpanID") or next(iter(parents), None),
        "name": own["operationName"],
        "attributes": own.get("tags"),
        "events": [{"name": fields.pop("event", ""), "attributes": fields} for fields in logs],
        "status": {"code": "ERROR" if is_error else "OK", "message": tags.get("otel.status_description")},
    }


def _iterate_attributes(raw: Any, remarks: list[str]) -> Iterator[tuple[str, Any]]:
    if isinstance(raw, dict):
        yield from raw.items()
    elif isinstance(raw, list):
        for attribute in raw:
            if isinstance(attribute, dict) and isinstance(attribute.get("key"), str):
                try:
                    value = _unwrap_otlp(attribute.get("value"), remarks)
                except ValueError as error:
                    remarks.append(
                        f"its attribute {attribute['key'][:60]!r} cannot be read ({error}), and was left out"
                    )
                else:
                    yield attribute["key"], value
            else:
                remarks.append("one of its attributes has no key, and was left out")
    elif raw is not None:
        remarks.append(f"its attributes are not a JSON object but a {type(raw).__name__}, and were left out")


def _unwrap_otlp(value: Any, remarks: list[str]) -> Any:
    """The value that OTLP wraps in an object with its type."""
    match value:
        case {"intValue": str() | int() as number}:
            try:
                return int(number)
            except ValueError:
                remarks.append(f"the number {str(number)[:60]!r} of an attribute cannot be read, and was left out")
                return None
        case {"arrayValue": dict(inner)}:
            return [_unwrap_otlp(item, remarks) for item in inner.get("values") or []]
        case {"kvlistValue": dict(inner)}:
            return dict(_iterate_attributes(inner.get("values") or [], remarks))
        case dict():
            return next((value[kind] for kind in _OTLP_SCALARS if kind in value), None)
    return value


def _first_text(own: dict[str, Any], *names: str) -> str | None:
    return next((own[name] for name in names if isinstance(own.get(name), str) and own[name]), None)


def _parent_id(own: dict[str, Any]) -> str | None:
    text = _first_text(own, "parent_id", "parentSpanId", "parent_span_id") or ""
    # Some exporters write zeros for a span without a parent.
    return text if text.lower().removeprefix("0x").strip("0 ") else None


def _first_time(own: dict[str, Any], remarks: list[str], *names: str) -> datetime | None:
    value = next((own[name] for name in names if own.get(name)), None)
    try:
        if isinstance(value, int | float) or (isinstance(value, str) and value.isdecimal()):
            return datetime.fromtimestamp(int(value) / 1e9, UTC)
        return parse_utc_datetime(value, names[0]) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError, MalformedRecord):
        remarks.append(f"its {names[0]} {str(value)[:60]!r} is not a valid time, and was left out")
        return None


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
    is_apart: bool = False
    """Whether the spans below it have a conversation of their own, as those of an agent, a tool or a judge."""
    remarks: list[str] = field(default_factory=list)
    """What could not be read."""
