"""Reads JSON files of other tools: one record, a list, JSON Lines or concatenated values.

A malformed record is refused with its place, and the others are read.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any, TextIO, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from showhow.db.serialization import field_values
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import UnstorableValue, check_storable_text
from showhow.fewshot_library.formats.format import (
    FormatError,
    ReadResult,
    RecordRemark,
    RefusedRecord,
    iterate_lines,
    open_text,
    read_document,
    refuse_encoding,
)
from showhow.guard.input_bounds import MAX_LINE_BYTES, InputBoundExceeded
from showhow.guard.json_input import MalformedJson, check_json, iterate_json_list, load_json

SchemaType = TypeVar("SchemaType", bound=BaseModel)
_LAST_COMMA = re.compile(r",(\s*+[\]}]\s*+)\Z")
_BLANK = re.compile(r"\s*+")
_SMALL_DOCUMENT_CHARACTERS = 16 * 1024 * 1024
"""A longer list is read element by element."""


class MalformedRecord(Exception):
    """A record does not conform to its format; the message says why."""


@dataclass(frozen=True, slots=True)
class RecordOrigin:
    """Where an imported record was read from."""

    format: str
    file: str
    """The file's name without its suffix."""
    place: str


RecordDecoder = Callable[[Any, RecordOrigin], Iterator[ReadResult]]


def document_reader(
    format_name: str,
    decode: RecordDecoder,
    is_list_record: Callable[[list[Any]], bool] | None = None,
) -> Callable[[Path], Iterator[ReadResult]]:
    """Build a reader that decodes one record at a time; a list is a list of records, unless it is one itself."""

    def read(path: Path) -> Iterator[ReadResult]:
        for place, value in read_json_values(path, splits_lists=is_list_record is None):
            is_single = not isinstance(value, list) or (is_list_record is not None and is_list_record(value))
            for record_place, raw in [(place, value)] if is_single else _number_records(place, value):
                origin = RecordOrigin(format_name, path.stem, record_place.removesuffix(", ") or "record 1")
                yield from decode_record(raw, decode, origin)

    return read


def _number_records(place: str, values: list[Any]) -> list[tuple[str, Any]]:
    return [(f"{place}record {number}", value) for number, value in enumerate(values, start=1)]


def decode_record(raw: Any, decode: RecordDecoder, origin: RecordOrigin) -> Iterator[ReadResult]:
    """Decode one record; yields a RefusedRecord if it is malformed or cannot be stored."""
    try:
        if isinstance(raw, MalformedRecord):
            raise raw
        places = list(prepare_to_store(raw))
        # Decoded completely before the first result is yielded, so that a malformed record leaves nothing behind.
        decoded = list(decode(raw, origin))
        for record in decoded:
            if isinstance(record, TraceRecord):
                # Values from JSON inside a text were not part of the first check.
                for noun in (record.question, record.trace, *record.steps):
                    places += prepare_to_store(field_values(noun))
        yield from remark_numbers(places, origin)
        yield from decoded
    except (MalformedRecord, UnstorableValue, InputBoundExceeded) as error:
        yield RefusedRecord(origin.place, str(error))
    except RecursionError:
        yield RefusedRecord(origin.place, "it is nested too deeply")
    # A number or a text that no other check of its format knows.
    except (ValueError, ArithmeticError) as error:
        yield RefusedRecord(origin.place, f"it cannot be read ({error})")


def read_json_values(path: Path, *, splits_lists: bool = True) -> Iterator[tuple[str, Any]]:
    """Yield the JSON values of a file with their places; a line that is not JSON yields a MalformedRecord.

    A long list is read element by element, if it may be split.
    """
    try:
        with open_text(path) as stream:
            first = stream.readline(MAX_LINE_BYTES)
            while first and _is_no_data(first):
                first = stream.readline(MAX_LINE_BYTES)
            rest = stream.read(1)
            stream.seek(0)
            if not first:
                return
            if rest and not isinstance(_parse_json(first), MalformedRecord):
                yield from _read_lines(stream)
            else:
                yield from _read_whole_document(stream, splits_lists=splits_lists)
    except json.JSONDecodeError as error:
        raise FormatError(f"{path}, line {error.lineno}: invalid JSON ({error.msg})") from error
    except MalformedJson as error:
        raise FormatError(f"{path}, line {error.line}: invalid JSON ({error.reason})") from error
    except InputBoundExceeded as error:
        raise FormatError(f"{path}: {error}") from error
    except UnicodeDecodeError as error:
        raise refuse_encoding(path, error) from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: invalid JSON ({error})") from error


def _read_whole_document(stream: TextIO, *, splits_lists: bool) -> Iterator[tuple[str, Any]]:
    beginning = stream.read(_SMALL_DOCUMENT_CHARACTERS + 1)
    stream.seek(0)
    if splits_lists and beginning.lstrip()[:1] == "[" and _is_large(beginning):
        elements = enumerate(iterate_json_list(stream.read, constants=True), start=1)
        yield from ((f"record {number}, ", value) for number, (_, value) in elements)
        return
    text = read_document(stream)
    if text.lstrip()[:1] in ("#", "/", "`"):
        text = "\n".join("" if _is_no_data(line) else line for line in text.split("\n"))
    check_json(text)
    text = _LAST_COMMA.sub(r"\1", text)
    try:
        yield "", json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            yield from _read_concatenated(text)
            return
        later_lines = (line for line in text.split("\n")[1:] if line.strip())
        first = next(later_lines, None)
        if first is None or isinstance(_parse_json(first), MalformedRecord):
            raise
        # JSON Lines with a malformed first line; the others are read.
        stream.seek(0)
        yield from _read_lines(stream)


def _is_large(text: str) -> bool:
    if len(text) > _SMALL_DOCUMENT_CHARACTERS:
        return True
    try:
        check_json(text)
    except InputBoundExceeded:
        return True
    return False


def _read_concatenated(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the values of several JSON texts in a row, each of any number of lines, as consoles print them."""
    decoder = json.JSONDecoder()
    number, end = 0, 0
    while (start := _skip_blank(text, end)) < len(text):
        number += 1
        value, end = decoder.raw_decode(text, start)
        yield f"record {number}, ", value


def _skip_blank(text: str, start: int) -> int:
    match = _BLANK.match(text, start)
    return match.end() if match else start


def _read_lines(stream: TextIO) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(iterate_lines(stream), start=1):
        if not _is_no_data(line):
            yield f"line {number}, ", _parse_json(line)


def _is_no_data(line: str) -> bool:
    """Whether a line is empty, a comment or a code fence, none of which begins a line of JSON."""
    return not line.strip() or line.startswith(("#", "//", "```"))


def _parse_json(text: str) -> Any:
    """The value of a line, which may be one of a list, or of a sequence with record separators."""
    try:
        return load_json(text.strip().lstrip("\x1e").removesuffix(","), constants=True)
    except InputBoundExceeded as error:
        return MalformedRecord(str(error))
    except ValueError as error:
        return MalformedRecord(f"invalid JSON ({error})")


def remark_numbers(places: list[str], origin: RecordOrigin) -> Iterator[RecordRemark]:
    """A remark on the numbers at these places, if there are any."""
    if places:
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        yield RecordRemark(origin.place, f"{places[0]}{more}: no number of JSON (NaN or infinite), and read as absent")


def prepare_to_store(value: Any) -> Iterator[str]:
    """Replace NaN and infinite numbers by None and yield their places; UnstorableValue for a text or key."""
    if isinstance(value, str):
        check_storable_text(value)
    elif isinstance(value, list | dict):
        for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
            if isinstance(key, str):
                check_storable_text(key)
            places = [""] if isinstance(inner, float) and not isfinite(inner) else prepare_to_store(inner)
            for place in places:
                if not place:
                    value[key] = None
                yield f"{key}.{place}" if place else str(key)


def validate_shape(shape: type[SchemaType], value: Any) -> SchemaType:
    """Validate a value against a pydantic model; MalformedRecord names the first invalid field."""
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        raise MalformedRecord(_first_error(error)) from error


def _first_error(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_input=False)[0]
    place = ""
    for part in details["loc"]:
        place += f"[{part}]" if isinstance(part, int) else f".{part}"
    return f"{place.lstrip('.') or 'it'}: {details['msg'][:1].lower()}{details['msg'][1:]}"


def parse_utc_datetime(text: str, place: str) -> datetime:
    """Parse an ISO 8601 time to UTC; a time without a time zone is taken for UTC."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise MalformedRecord(f"{place}: {text[:60]!r} is not a valid time ({error})") from error


def read_utc_datetime(value: Any, place: str, remarks: list[str]) -> datetime | None:
    """The time in an ISO 8601 text; None if there is none, with a remark if it cannot be read."""
    if value in (None, ""):
        return None
    try:
        return parse_utc_datetime(str(value), place)
    except MalformedRecord as error:
        remarks.append(f"{error}, and was left out")
        return None


class ExtensibleModel(BaseModel):
    """A JSON object with known keys; unknown keys are kept, and a null is as good as no key where none is required."""

    model_config = ConfigDict(extra="allow", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: inner for name, inner in value.items() if inner is not None or name not in optional}

    @property
    def extra_fields(self) -> dict[str, Any]:
        """The unknown keys with non-empty values."""
        return {name: value for name, value in (self.model_extra or {}).items() if value not in (None, "", [], {})}


def extra_call_fields(calls: Iterable[ExtensibleModel]) -> dict[str, Any]:
    """The fields of a message's calls other than name and arguments."""
    extras = [call.extra_fields for call in calls]
    return {"tool_calls": extras} if any(extras) else {}
