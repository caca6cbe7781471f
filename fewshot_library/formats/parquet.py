"""Parquet as Hugging Face datasets loads it: a row a trace, its nouns in typed columns, and its chat to train on."""

import json
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from db.models import Base, Run
from db.plain import BrokenNoun, kinds
from db.record import TraceRecord
from fewshot_library.formats.chat import chat_of
from fewshot_library.formats.documents import Malformed, Origin, taken
from fewshot_library.formats.export import Export
from fewshot_library.formats.format import Format, FormatError, Found, Losses
from fewshot_library.formats.openai import plain
from fewshot_library.formats.openai import take as take_chat
from fewshot_library.formats.showhow import MANY, MARK, ONE, VERSION, record_told, told_of

ROWS = 100
NOUNS: dict[str, type[Base]] = {**ONE, "run": Run, **MANY}
TYPES = {
    str: pa.string(),
    UUID: pa.string(),
    int: pa.int32(),
    float: pa.float64(),
    datetime: pa.timestamp("us", tz="UTC"),
    list[str]: pa.list_(pa.string()),
}
_FUNCTION = pa.struct({"name": pa.string(), "arguments": pa.string()})
_CALL = pa.struct({"id": pa.string(), "type": pa.string(), "function": _FUNCTION})
_MESSAGE = pa.struct(
    {
        **dict.fromkeys(("role", "content", "name", "tool_call_id"), pa.string()),
        "tool_calls": pa.list_(_CALL),
    }
)
CHAT = {"messages": pa.list_(_MESSAGE), "tools": pa.string()}


@cache
def _columns(kind: type[Base]) -> dict[str, pa.DataType | None]:
    """The noun's fields with their types; None for data of any shape, which is kept as JSON text."""
    columns = {}
    for name, (first, *_) in kinds(kind).items():
        # The store's own count of a question's traces belongs to no file.
        if name != "completed":
            columns[name] = TYPES.get(first)
    return columns


@cache
def _schema() -> pa.Schema:
    fields: dict[str, pa.DataType] = dict(CHAT)
    for name, kind in NOUNS.items():
        noun = pa.struct({field: found or pa.string() for field, found in _columns(kind).items()})
        fields[name] = pa.list_(noun) if name in MANY else noun
    people = pa.struct({"id": pa.string(), "name": pa.string()})
    return pa.schema({**fields, "people": pa.list_(people)})


def _write(export: Export, stream: BinaryIO) -> Losses:
    losses = Losses()
    rows: list[dict[str, Any]] = []
    with pq.ParquetWriter(stream, _schema(), compression="zstd") as writer:
        for record in export.records:
            rows.append(_row(record, export))
            losses.written += 1
            if len(rows) == ROWS:
                writer.write_table(pa.Table.from_pylist(rows, _schema()))
                rows = []
        writer.write_table(pa.Table.from_pylist(rows, _schema()))
    return losses


def _row(record: TraceRecord, export: Export) -> dict[str, Any]:
    told = told_of(record)
    row: dict[str, Any] = _chat(record)
    row["tools"] = json.dumps(export.definitions(record), ensure_ascii=False)
    for name, kind in NOUNS.items():
        noun = told[name]
        row[name] = [_packed(kind, each) for each in noun] if name in MANY else noun and _packed(kind, noun)
    row["people"] = [{"id": key, "name": name} for key, name in told["people"].items()]
    return row


def _chat(record: TraceRecord) -> dict[str, Any]:
    return {"messages": [plain(message) for message in chat_of(record)]}


def _packed(kind: type[Base], noun: dict[str, Any]) -> dict[str, Any]:
    packed: dict[str, Any] = {}
    for name, column in _columns(kind).items():
        value = noun[name]
        if column is None and value is not None:
            value = json.dumps(value, ensure_ascii=False, allow_nan=False)
        elif column == TYPES[datetime] and value is not None:
            value = datetime.fromisoformat(value)
        packed[name] = value
    return packed


def _unpacked(kind: type[Base], noun: Any) -> Any:
    if not isinstance(noun, dict):
        raise Malformed(f"its {kind.__name__.lower()} is missing")
    told = dict(noun)
    for name, value in noun.items():
        if isinstance(value, datetime):
            told[name] = value.isoformat()
        elif isinstance(value, str) and _columns(kind).get(name, TYPES[str]) is None:
            told[name] = json.loads(value)
    return told


def _read(path: Path) -> Iterator[Found]:
    """The traces of our own files as they were; the chats of others' that have a column of messages."""
    try:
        with pq.ParquetFile(path) as file:
            names = set(file.schema_arrow.names)
            own = NOUNS.keys() | {"people"} <= names
            if not own and "messages" not in names:
                raise FormatError(f"{path} has neither the columns of Showhow's traces nor one of messages")
            for number, row in enumerate(_rows(file), start=1):
                origin = Origin(PARQUET.name, path.stem, f"row {number}")
                yield from taken(_values(row), _take_own if own else take_chat, origin)
    except (pa.ArrowException, OSError) as failed:
        raise FormatError(f"{path} cannot be read as Parquet: {failed}") from failed


def _rows(file: pq.ParquetFile) -> Iterator[dict[str, Any]]:
    for batch in file.iter_batches(batch_size=ROWS):
        yield from batch.to_pylist()


def _values(row: Any) -> Any:
    """The row as JSON values; what a chat leaves out, a column of structs holds as null."""
    match row:
        case dict():
            return {name: _values(value) for name, value in row.items()}
        case list():
            return [_values(value) for value in row]
        case datetime():
            return row.isoformat()
        case None | bool() | int() | float() | str():
            return row
    return f"{row!r}"


def _take_own(row: Any, _: Origin) -> Iterator[Found]:
    told: dict[str, Any] = {"format": MARK, "version": VERSION}
    try:
        for name, kind in NOUNS.items():
            if name in MANY:
                told[name] = [_unpacked(kind, each) for each in row[name] or []]
            else:
                told[name] = None if name == "run" and row[name] is None else _unpacked(kind, row[name])
        told["people"] = {each["id"]: each["name"] for each in row["people"] or []}
        record = record_told(told)
    except (BrokenNoun, ValueError, KeyError) as wrong:
        raise Malformed(str(wrong)) from wrong
    if "messages" in row and _without_nulls(row["messages"]) != _chat(record)["messages"]:
        raise Malformed("its messages tell another trace than its steps; leave the column out or make them agree")
    yield record


def _without_nulls(messages: Any) -> Any:
    if not isinstance(messages, list):
        return messages
    return [{name: value for name, value in each.items() if value is not None} for each in messages]


PARQUET = Format(
    "parquet",
    "rows for Hugging Face datasets, nothing lost",
    lambda head: head.start.startswith(b"PAR1"),
    _read,
    _write,
)
