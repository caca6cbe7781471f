"""Parquet for Hugging Face datasets: a row for each conversation of a trace, with typed columns.

`messages` and `tools` are the conversation, to train a model on. Most traces have one; a method that calls skills has
one for each reply. The first row of a trace has all that it consists of, the others its question, project and fields.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from showhow.db.models import Run
from showhow.db.serialization import ADDED_FIELDS, InvalidRecord, field_types
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import Base
from showhow.fewshot_library.formats.chat import trace_to_messages
from showhow.fewshot_library.formats.conversations import decode_chat
from showhow.fewshot_library.formats.format import (
    ExportLosses,
    FormatError,
    ReadResult,
    TraceExport,
    TraceFormat,
    open_bytes,
)
from showhow.fewshot_library.formats.json_documents import MalformedRecord, RecordOrigin, decode_record
from showhow.fewshot_library.formats.openai import encode_message
from showhow.fewshot_library.formats.showhow import (
    FORMAT_MARK,
    FORMAT_VERSION,
    FORMER_VERSION,
    LIST_MODELS,
    SINGLE_MODELS,
    record_from_json,
    record_to_json,
)
from showhow.fewshot_library.formats.tool_calls import without_nulls
from showhow.fewshot_library.formats.training_conversations import calls_skills, trace_to_conversations
from showhow.guard.input_bounds import InputBoundExceeded
from showhow.guard.json_input import load_json
from showhow.guard.parquet_input import iterate_rows, open_parquet

BATCH_ROWS = 100
_FORMER_JSON = ("configuration", "options")
"""Columns of FORMER_VERSION with JSON."""
RECORD_MODELS: dict[str, type[Base]] = {**SINGLE_MODELS, "run": Run, **LIST_MODELS}
COLUMN_TYPES = {
    str: pa.string(),
    UUID: pa.string(),
    int: pa.int32(),
    float: pa.float64(),
    datetime: pa.timestamp("us", tz="UTC"),
    list[str]: pa.list_(pa.string()),
}
_FUNCTION_TYPE = pa.struct({"name": pa.string(), "arguments": pa.string()})
_CALL_TYPE = pa.struct({"id": pa.string(), "type": pa.string(), "function": _FUNCTION_TYPE})
_MESSAGE_TYPE = pa.struct(
    {
        **dict.fromkeys(("role", "content", "name", "tool_call_id"), pa.string()),
        "tool_calls": pa.list_(_CALL_TYPE),
    }
)
CHAT_COLUMNS = {"messages": pa.list_(_MESSAGE_TYPE), "tools": pa.string(), "conversation": pa.int32()}


@cache
def _model_columns(kind: type[Base]) -> dict[str, pa.DataType | None]:
    """The column types of a model's fields; None for arbitrary data, which is stored as JSON text."""
    columns = {}
    for name, (field_type, *_) in field_types(kind).items():
        # The database's count of completed traces is not exported.
        if name != "completed":
            columns[name] = COLUMN_TYPES.get(field_type)
    return columns


@cache
def _table_schema() -> pa.Schema:
    fields: dict[str, pa.DataType] = dict(CHAT_COLUMNS)
    for name, kind in RECORD_MODELS.items():
        noun = pa.struct({field: column_type or pa.string() for field, column_type in _model_columns(kind).items()})
        fields[name] = pa.list_(noun) if name in LIST_MODELS else noun
    people = pa.struct({"id": pa.string(), "name": pa.string()})
    return pa.schema({**fields, "people": pa.list_(people)})


def _write_table(export: TraceExport, stream: BinaryIO) -> ExportLosses:
    losses = ExportLosses()
    rows: list[dict[str, Any]] = []
    with pq.ParquetWriter(stream, _table_schema(), compression="zstd") as writer:
        for record in export.records:
            rows += _encode_rows(record, export)
            losses.written += 1
            if len(rows) >= BATCH_ROWS:
                writer.write_table(pa.Table.from_pylist(rows, _table_schema()))
                rows = []
        writer.write_table(pa.Table.from_pylist(rows, _table_schema()))
    return losses


def _encode_rows(record: TraceRecord, export: TraceExport) -> Iterator[dict[str, Any]]:
    encoded = record_to_json(record)
    columns: dict[str, Any] = {
        name: [_pack_fields(kind, item) for item in encoded[name]]
        if name in LIST_MODELS
        else encoded[name] and _pack_fields(kind, encoded[name])
        for name, kind in RECORD_MODELS.items()
    }
    columns["people"] = [{"id": key, "name": name} for key, name in encoded["people"].items()]
    for number, conversation in enumerate(trace_to_conversations(record, export)[0], start=1):
        yield columns | {
            "messages": list(map(encode_message, conversation.messages)),
            "tools": json.dumps(conversation.tools, ensure_ascii=False),
            "conversation": number,
        }
        columns |= {name: [] for name in LIST_MODELS}


def _pack_fields(kind: type[Base], noun: dict[str, Any]) -> dict[str, Any]:
    packed: dict[str, Any] = {}
    for name, column in _model_columns(kind).items():
        value = noun[name] if name in noun else ADDED_FIELDS[kind][name]
        if column is None and value is not None:
            value = json.dumps(value, ensure_ascii=False, allow_nan=False)
        elif column == COLUMN_TYPES[datetime] and value is not None:
            value = datetime.fromisoformat(value)
        packed[name] = value
    return packed


def _unpack_fields(kind: type[Base], noun: Any) -> Any:
    if not isinstance(noun, dict):
        raise MalformedRecord(f"its {kind.__name__.lower()} is missing")
    unpacked = dict(noun)
    for name, value in noun.items():
        if isinstance(value, datetime):
            unpacked[name] = value.isoformat()
        elif isinstance(value, str) and (
            name in _FORMER_JSON or _model_columns(kind).get(name, COLUMN_TYPES[str]) is None
        ):
            unpacked[name] = load_json(value)
    return unpacked


def _read_table(path: Path) -> Iterator[ReadResult]:
    """Read the traces of a Showhow export, or the chats of another file with a column `messages`."""
    try:
        with open_bytes(path) as stream, open_parquet(stream) as file:
            names = set(file.schema_arrow.names)
            own = RECORD_MODELS.keys() | {"people"} <= names
            if not own and "messages" not in names:
                raise FormatError(f"{path} has neither the columns of Showhow's traces nor a column messages")
            for number, row in enumerate(iterate_rows(file, stream), start=1):
                if own and (row.get("conversation") or 1) > 1:
                    continue
                origin = RecordOrigin(PARQUET.name, path.stem, f"row {number}")
                values = _json_values(row) if own else without_nulls(_json_values(row))
                yield from decode_record(values, _decode_own_row if own else decode_chat, origin)
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"{path} cannot be read as Parquet: {error}") from error
    except InputBoundExceeded as error:
        raise FormatError(f"{path}: {error}") from error


def _json_values(row: Any) -> Any:
    """Convert a row to JSON values."""
    match row:
        case dict():
            return {name: _json_values(value) for name, value in row.items()}
        case list():
            return [_json_values(value) for value in row]
        case datetime():
            return row.isoformat()
        case None | bool() | int() | float() | str():
            return row
    return f"{row!r}"


def _decode_own_row(row: Any, _: RecordOrigin) -> Iterator[ReadResult]:
    is_former = isinstance(row["trace"], dict) and "configuration" in row["trace"]
    encoded: dict[str, Any] = {"format": FORMAT_MARK, "version": FORMER_VERSION if is_former else FORMAT_VERSION}
    try:
        for name, kind in RECORD_MODELS.items():
            if name in LIST_MODELS:
                encoded[name] = [_unpack_fields(kind, item) for item in row[name] or []]
            else:
                encoded[name] = None if name == "run" and row[name] is None else _unpack_fields(kind, row[name])
        encoded["people"] = {person["id"]: person["name"] for person in row["people"] or []}
        record = record_from_json(encoded)
    except (InvalidRecord, ValueError, KeyError) as error:
        raise MalformedRecord(str(error)) from error
    if _contradicts(row.get("messages"), record):
        raise MalformedRecord("its messages and its steps differ; remove the column messages or make them agree")
    yield record


def _contradicts(messages: Any, record: TraceRecord) -> bool:
    """Whether the messages are not those of the steps; what was sent to a model cannot be told from them."""
    is_sent = calls_skills(record) or (messages and messages[0].get("role") == "system")
    own = list(map(encode_message, trace_to_messages(record)))
    return messages is not None and not is_sent and without_nulls(messages) != own


PARQUET = TraceFormat(
    "parquet",
    "rows for Hugging Face datasets, without losses",
    lambda head: head.start.startswith(b"PAR1"),
    _read_table,
    _write_table,
    keeps_split=True,
)
