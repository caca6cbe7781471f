"""JSON from elsewhere: one record, a list of them, or one after the other; a broken one is refused with its place."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO, TypeVar

from pydantic import BaseModel, ValidationError

from db.bulk_insert import field_values as fields
from db.trace_record import TraceRecord
from db.types import UnstorableValue, check_storable_text
from fewshot_library.formats.format import FormatError, ReadResult, RefusedRecord, open_text

SchemaType = TypeVar("SchemaType", bound=BaseModel)


class MalformedRecord(Exception):
    """A record is not what its format says; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class RecordOrigin:
    """Where a record from elsewhere stood."""

    format: str
    file: str
    """The file's name without its ending."""
    place: str


RecordDecoder = Callable[[Any, RecordOrigin], Iterator[ReadResult]]


def document_reader(
    format_name: str, take: RecordDecoder, is_record: Callable[[Any], bool] = lambda value: not isinstance(value, list)
) -> Callable[[Path], Iterator[ReadResult]]:
    """A reader that takes record for record; a list that is no record itself is a list of records."""

    def read(path: Path) -> Iterator[ReadResult]:
        for place, value in read_json_values(path):
            listed = (
                [(place, value)]
                if isinstance(value, MalformedRecord) or is_record(value)
                else _number_records(place, value)
            )
            for where, raw in listed:
                yield from decode_record(
                    raw, take, RecordOrigin(format_name, path.stem, where.removesuffix(", ") or "record 1")
                )

    return read


def _number_records(place: str, values: list[Any]) -> list[tuple[str, Any]]:
    return [(f"{place}record {number}", value) for number, value in enumerate(values, start=1)]


def decode_record(raw: Any, take: RecordDecoder, origin: RecordOrigin) -> Iterator[ReadResult]:
    """What becomes of one record; one that is malformed is refused."""
    try:
        if isinstance(raw, MalformedRecord):
            raise raw
        _check_storable(raw)
        # All of a record or nothing: what is wrong at its end must not leave its beginning.
        results = list(take(raw, origin))
        for record in results:
            if isinstance(record, TraceRecord):
                # What was JSON text within a text is known only now.
                _check_storable([fields(noun) for noun in (record.question, record.trace, *record.steps)])
        yield from results
    except (MalformedRecord, UnstorableValue) as wrong:
        yield RefusedRecord(origin.place, str(wrong))
    except RecursionError:
        yield RefusedRecord(origin.place, "it is nested too deeply")


def read_json_values(path: Path) -> Iterator[tuple[str, Any]]:
    """The JSON values of a file with their places; of a line that is none, why."""
    try:
        with open_text(path) as stream:
            first = stream.readline()
            while first and not first.strip():
                first = stream.readline()
            rest = stream.read(1)
            stream.seek(0)
            if not first:
                return
            if rest and not isinstance(_parse_json(first), MalformedRecord):
                yield from _read_lines(stream)
            else:
                yield from _read_whole_document(stream)
    except json.JSONDecodeError as wrong:
        raise FormatError(f"{path}, line {wrong.lineno}: no JSON ({wrong.msg})") from wrong
    except (ValueError, RecursionError) as wrong:
        raise FormatError(f"{path}: no JSON in UTF-8 ({wrong})") from wrong


def _read_whole_document(stream: TextIO) -> Iterator[tuple[str, Any]]:
    text = stream.read()
    try:
        yield "", json.loads(text, parse_constant=_reject_constant)
    except json.JSONDecodeError as wrong:
        if wrong.msg == "Extra data":
            yield from _read_concatenated(text)
            return
        later = [line for line in text.split("\n")[1:] if line.strip()]
        if not later or isinstance(_parse_json(later[0]), MalformedRecord):
            raise
        # The first of many lines is broken, and no reason to refuse the others.
        stream.seek(0)
        yield from _read_lines(stream)


def _read_concatenated(text: str) -> Iterator[tuple[str, Any]]:
    """The values of a text that holds several, each over as many lines as it likes, as consoles print them."""
    decoder = json.JSONDecoder(parse_constant=_reject_constant)
    number, end = 0, 0
    while rest := text[end:].lstrip():
        number, end = number + 1, len(text) - len(rest)
        value, end = decoder.raw_decode(text, end)
        yield f"record {number}, ", value


def _read_lines(stream: TextIO) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(stream, start=1):
        if line.strip():
            yield f"line {number}, ", _parse_json(line)


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as wrong:
        return MalformedRecord(f"no JSON ({wrong})")


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is no number that JSON knows")


def _check_storable(value: Any) -> None:
    """Raise UnstorableText or Malformed for what no database keeps."""
    if isinstance(value, str):
        check_storable_text(value)
    elif isinstance(value, float) and value - value != 0:
        raise MalformedRecord(f"it has the number {value}, which JSON does not know")
    elif isinstance(value, list):
        for inner in value:
            _check_storable(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            check_storable_text(key)
            _check_storable(inner)


def validate_shape(shape: type[SchemaType], value: Any) -> SchemaType:
    """The value as that shape; Malformed names the first place that is wrong."""
    try:
        return shape.model_validate(value)
    except ValidationError as wrong:
        raise MalformedRecord(_first_error(wrong)) from wrong


def _first_error(wrong: ValidationError) -> str:
    error = wrong.errors(include_url=False, include_input=False)[0]
    place = ""
    for part in error["loc"]:
        place += f"[{part}]" if isinstance(part, int) else f".{part}"
    return f"{place.lstrip('.') or 'it'}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def parse_utc_datetime(text: str, place: str) -> datetime:
    """The moment in UTC; one that names no time zone is taken to be in it."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as wrong:
        raise MalformedRecord(f"{place}: {text[:60]!r} is no time ({wrong})") from wrong
