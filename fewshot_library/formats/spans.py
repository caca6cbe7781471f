"""Spans of OpenTelemetry as JSON, in the forms that exporters write: OTLP, the SDK's own, Phoenix's."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fewshot_library.formats.documents import MalformedRecord, parse_utc_datetime

_OTLP_SCALARS = ("stringValue", "boolValue", "doubleValue", "bytesValue")


@dataclass(slots=True)
class TraceSpan:
    """One span; the dots in the names of its attributes are taken as a tree."""

    trace_id: str
    id: str
    parent_id: str | None
    name: str
    started_at: datetime | None
    ended_at: datetime | None
    error: str | None
    attributes: dict[str, Any] = field(default_factory=dict)

    def get(self, path: str) -> Any:
        """What stands at "a.b.c"; None where nothing does."""
        place: Any = self.attributes
        for part in path.split("."):
            place = place.get(part) if isinstance(place, dict) else None
        return place.get("") if isinstance(place, dict) and set(place) == {""} else place

    def get_text(self, path: str) -> str | None:
        """The text that stands there."""
        value = self.get(path)
        return value if isinstance(value, str) and value else None

    def get_list(self, path: str) -> list[Any]:
        """The list that stands there, be it one, JSON text of one, or numbered keys."""
        value = self.get(path)
        if isinstance(value, str):
            value = parse_json_text(value)
        if isinstance(value, dict) and value and all(key.isdigit() for key in value):
            return [value[key] for key in sorted(value, key=int)]
        return value if isinstance(value, list) else []


def parse_json_text(text: str) -> Any:
    """The value of a JSON text; the text itself where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def nest_keys(flat: Any) -> Any:
    """The value with each "a.b" among its keys as a key "b" under a key "a"."""
    if isinstance(flat, list):
        return [nest_keys(item) for item in flat]
    if not isinstance(flat, dict):
        return flat
    grown: dict[str, Any] = {}
    for key, value in flat.items():
        set_path(grown, key.split("."), nest_keys(value))
    return grown


def set_path(grown: dict[str, Any], path: list[str], value: Any) -> None:
    """Put the value at the path; what stood there as a text moves under an empty key."""
    for part in path[:-1]:
        below = grown.setdefault(part, {})
        if not isinstance(below, dict):
            below = grown[part] = {"": below}
        grown = below
    last = grown.get(path[-1])
    if isinstance(last, dict) and isinstance(value, dict):
        last.update(value)
    elif isinstance(last, dict):
        last[""] = value
    else:
        grown[path[-1]] = value


def iterate_raw_spans(value: Any) -> Iterator[Any]:
    """The raw spans of a JSON value: one, a list of them, or OTLP's nesting."""
    nested = None
    if isinstance(value, dict):
        nested = next((value[key] for key in ("resourceSpans", "scopeSpans", "spans") if key in value), None)
    listed = value if nested is None else nested
    if isinstance(listed, list):
        for item in listed:
            yield from iterate_raw_spans(item)
    else:
        yield listed


def parse_span(raw: Any) -> TraceSpan:
    """The span; Malformed says what is wrong with it."""
    if not isinstance(raw, dict) or "attributes" not in raw:
        raise MalformedRecord("it is no span: it has no attributes")
    context = raw.get("context")
    own = {key.removeprefix("context."): value for key, value in raw.items()}
    own |= context if isinstance(context, dict) else {}
    attributes: dict[str, Any] = {}
    for key, value in _iterate_attributes(raw["attributes"]):
        set_path(attributes, key.split("."), value)
    events = raw.get("events")
    for event in events if isinstance(events, list) else []:
        # What a model said may be told by an event of the span's.
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
        raise MalformedRecord(f"its attributes are no JSON object but a {type(raw).__name__}")


def _unwrap_otlp(value: Any) -> Any:
    """The value that OTLP wraps in its kind."""
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
    except (ValueError, OverflowError, OSError) as wrong:
        raise MalformedRecord(f"its {names[0]} {value!r} is no time ({wrong})") from wrong
    return parse_utc_datetime(value, f"its {names[0]}") if isinstance(value, str) else None


def _error_message(own: dict[str, Any]) -> str | None:
    """What went wrong, where the span says that it failed."""
    status = own.get("status")
    fields = status if isinstance(status, dict) else {"status_code": own.get("status_code")}
    code = fields.get("status_code", fields.get("code"))
    if str(code).upper() not in ("ERROR", "STATUS_CODE_ERROR", "2"):
        return None
    message = fields.get("description") or fields.get("message") or own.get("status_message")
    return str(message) if message else "it failed"
