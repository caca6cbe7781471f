"""The definition of a trace format: how it recognizes files, reads and writes them, and which losses it reports.

An export has its traces, their tool definitions and parent traces, and the parts that a format drops.
"""

import codecs
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TextIO
from uuid import UUID

from showhow.db.models import Step
from showhow.db.traces.trace_record import REPETITION_ASPECT, TraceRecord
from showhow.db.types import UnstorableValue, check_storable_text
from showhow.guard.files import open_regular
from showhow.guard.input_bounds import HINT, MAX_DOCUMENT_BYTES, MAX_LINE_BYTES, InputBoundExceeded, is_unbounded
from showhow.guard.json_input import MAX_DEPTH, MalformedJson, iterate_json_list

JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
# The number of records listed for each reason why records were left out.
MAX_LISTED_PLACES = 3


def _no_trace(_: UUID) -> TraceRecord | None:
    return None


def _no_prompt(_: UUID) -> list[dict[str, Any]] | None:
    return None


@dataclass(frozen=True, slots=True)
class ModelExchange:
    """A request that decided a step or the answer of a trace, and the model's reply, as they were sent."""

    prompt: Sequence[Mapping[str, Any]]
    """Messages {role, content, tool_calls, tool_call_id}; a call is {id, name, arguments}."""
    reply: Mapping[str, Any]
    """Its text, calls and thoughts."""
    tools: Sequence[dict[str, Any]] = ()
    """The definitions of the tools that were declared to the model."""


def no_exchanges(_: TraceRecord) -> Sequence[ModelExchange]:
    """The exchanges of a trace that no model recorded."""
    return ()


@dataclass(frozen=True, slots=True)
class TraceExport:
    """The traces to write, the tools offered for them, and access to the traces they were forked from."""

    records: Iterable[TraceRecord]
    tools: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """Tool definitions for chat models: {"type": "function", "function": {name, description, parameters}}."""
    offered_tools: Sequence[str] = ()
    """The tools of a project that names none."""
    find_trace: Callable[[UUID], TraceRecord | None] = _no_trace
    """Returns the trace with this id, or None."""
    find_prompt: Callable[[UUID], list[dict[str, Any]] | None] = _no_prompt
    """Returns the messages that were sent for a step that calls a skill, or None if they are not stored."""
    find_exchanges: Callable[[TraceRecord], Sequence[ModelExchange]] = no_exchanges
    """Returns what was sent for the steps and the answer, in order; nothing if that is not stored, or edited since."""

    def tool_definitions(self, record: TraceRecord) -> list[dict[str, Any]]:
        """The definitions of the tools offered for the trace; unknown tools get one inferred from their calls."""
        # An imported trace has its own definitions.
        imported = record.trace.result.tools
        own = {name: tool for tool in imported or () if (name := _tool_name(tool))}
        names = list(own) if imported is not None else list(record.project.tools or self.offered_tools)
        used = [step.tool for step in record.steps if step.tool is not None]
        definitions = {**self.tools, **own}
        return [
            definitions.get(name) or _infer_definition(name, record.steps) for name in dict.fromkeys([*names, *used])
        ]


def _tool_name(tool: Any) -> str | None:
    match tool:
        case {"function": {"name": str(name)}}:
            return name
    return None


def _infer_definition(name: str, steps: Iterable[Step]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for step in steps:
        if step.tool == name:
            properties |= {argument: _infer_schema(value) for argument, value in step.arguments.items()}
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": properties}},
    }


def _infer_schema(value: Any) -> dict[str, Any]:
    """The JSON schema of a value, inferred from this one example."""
    schema: dict[str, Any] = {"type": JSON_TYPES[type(value)]} if type(value) in JSON_TYPES else {}
    return schema | {"items": _infer_schema(value[0])} if isinstance(value, list) and value else schema


PROJECT_FIELDS = ("world", "guidelines", "tools", "instruction", "answer_format")
QUESTION_FIELDS = ("source_id", "dataset", "split", "kind", "gold_answers", "decomposition", "details")
TRACE_FIELDS = (
    *("answer_text", "answer_graph", "answer_model", "final_answer", "final_thought"),
    *("wall_seconds", "active_seconds", "parent_id", "cost", "run_id", "submitted_at"),
)
STEP_FIELDS = (
    "thought",
    "observation",
    "origins",
    "data",
    "error",
    "error_kind",
    "node",
    "skill",
    "rating",
    "latency",
    "wall_seconds",
    "active_seconds",
)


def lost_fields(record: TraceRecord, stored: Collection[str]) -> Iterator[str]:
    """Describe each non-empty field that is not among the `stored` ones, such as "trace.final_thought"."""
    for names, record_part, part_name in (
        (PROJECT_FIELDS, record.project, "project"),
        (QUESTION_FIELDS, record.question, "question"),
        (TRACE_FIELDS, record.trace, "trace"),
        *((STEP_FIELDS, step, "step") for step in record.steps),
    ):
        for name in names:
            if getattr(record_part, name) not in (None, "", {}, []) and f"{part_name}.{name}" not in stored:
                yield f"a {part_name}'s {name}"
    yield from _lost_required_fields(record, stored)
    yield from ["an undone step"] * len(record.removed)
    yield from ["an edit"] * len(record.edits)
    yield from ["a judgement"] * sum(judgement.aspect != REPETITION_ASPECT for judgement in record.judgements)


def _lost_required_fields(record: TraceRecord, stored: Collection[str]) -> Iterator[str]:
    """The fields that every trace has, unless they are stored."""
    if "project.name" not in stored:
        yield "the project's name"
    if record.author is not None and "trace.author" not in stored:
        yield "a trace's author"
    for name in ("id", "reasoner", "status", "started_at"):
        if f"trace.{name}" not in stored:
            yield f"a trace's {name}"
    if "trace.result" not in stored:
        # The tool definitions of an imported trace are written among the tools.
        yield from (f"a trace's result: {name}" for name in sorted(record.named_values.keys() - {"tools"}))
    for step in record.steps:
        if "step.started_at" not in stored:
            yield "a step's started_at"
        if step.parent_id is not None and "step.parent_id" not in stored:
            yield "a step's parent_id"
        if step.tool is None and step.arguments and "step.input" not in stored:
            yield "the arguments of a step without a tool"


# The last string may be cut off; it matches up to the end, which avoids backtracking over its quotes.
_TOKEN = re.compile(r'"((?:[^"\\]++|\\.)*+)(?:"|\\?\Z)|([{}\[\]:,])', re.DOTALL)


@dataclass(frozen=True)
class FileHead:
    """The first bytes of a file."""

    start: bytes

    @cached_property
    def text(self) -> str:
        """The bytes as text; UnicodeDecodeError if they are neither UTF-8 nor UTF-16."""
        # The last character may be cut in two, which is not an error of the file.
        return codecs.getincrementaldecoder(text_encoding(self.start))().decode(self.start)

    @cached_property
    def keys(self) -> dict[str, str]:
        """The JSON keys as paths such as "[].messages[].role", each with its first text value or an empty text."""
        first_values: dict[str, str] = {}
        try:
            for path, value in _iterate_keys(self.text):
                first_values[path] = first_values.get(path) or value
        except UnicodeDecodeError:
            # A binary file has no keys; a binary format recognizes it by its first bytes.
            return {}
        return first_values

    def has_keys(self, *paths: str) -> bool:
        """Whether the file has all these keys, in its first record or in its list of records."""
        return any(all(prefix + path in self.keys for path in paths) for prefix in ("", "[]."))


MAX_KEY_CHARACTERS = 500
"""Longer paths of keys recognize no format."""


def _iterate_keys(text: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of a JSON text that may be cut off, or of several JSON texts in a row.

    Keys below the depth that is read are left out.
    """
    # The paths of the open brackets.
    paths: list[str] = [""]
    key = ""
    last_string: str | None = None
    for match in _TOKEN.finditer(text):
        string, sign = match.group(1), match.group(2)
        if sign is None:
            if key:
                yield key, string
            last_string, key = string, ""
        elif sign == ":" and last_string is not None:
            key = f"{paths[-1]}.{last_string}".lstrip(".")[:MAX_KEY_CHARACTERS]
            yield key, ""
            last_string = None
        elif sign in "{[":
            if len(paths) > MAX_DEPTH:
                return
            path = key or paths[-1]
            paths.append(path + ("[]" if sign == "[" else ""))
            key, last_string = "", None
        elif sign in "}]" and len(paths) > 1:
            paths.pop()
            key, last_string = "", None
        else:
            key, last_string = "", None


class FormatError(Exception):
    """A file cannot be read and nothing of it is imported; the message names the file, the place and the reason."""


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record that was left out, with the reason."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class RecordRemark:
    """A remark on the next record, which is imported nevertheless."""

    place: str
    text: str


ReadResult = TraceRecord | RefusedRecord | RecordRemark


@dataclass(slots=True)
class ExportLosses:
    """The result of an export: the number of traces written, what was lost by kind, and the records left out."""

    written: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    refused: list[RefusedRecord] = field(default_factory=list)

    def summary_lines(self) -> list[str]:
        """The losses as sentences, one a line."""
        places_by_reason: dict[str, list[str]] = {}
        for refusal in self.refused:
            places_by_reason.setdefault(refusal.reason, []).append(refusal.place)
        lines = [f"the format does not store {what} ({count})" for what, count in sorted(self.lost.items())]
        return lines + [f"left out: {_list_places(places)}: {reason}" for reason, places in places_by_reason.items()]


def _list_places(places: list[str]) -> str:
    return ", ".join(places[:MAX_LISTED_PLACES]) + (
        f" and {len(places) - MAX_LISTED_PLACES} more" if len(places) > MAX_LISTED_PLACES else ""
    )


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """One format; `read` or `write` is None if it can only be exported or imported."""

    name: str
    purpose: str
    sniff: Callable[[FileHead], bool] | None = None
    """Whether a file with this beginning has the format; None if the format cannot be imported."""
    read: Callable[[Path], Iterator[ReadResult]] | None = None
    write: Callable[[TraceExport, BinaryIO], ExportLosses] | None = None
    keeps_split: bool = False
    """Whether its files say of which split each question is, so that test questions in them are not trained on."""


def text_writer(
    write: Callable[[TraceExport, TextIO], ExportLosses],
) -> Callable[[TraceExport, BinaryIO], ExportLosses]:
    """Turn a writer of text into a writer of bytes: UTF-8, with the same line ends on every platform."""

    def write_bytes(export: TraceExport, stream: BinaryIO) -> ExportLosses:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n", write_through=True)
        try:
            return write(export, text)
        finally:
            # Otherwise the wrapper would close the caller's file.
            text.detach()

    return write_bytes


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading bytes; FormatError if it is missing or no regular file."""
    try:
        return open_regular(path)
    except OSError as error:
        raise FormatError(f"{path} cannot be opened: {error.strerror}") from error


def text_encoding(start: bytes) -> str:
    """The encoding of a text by its first bytes: UTF-16 with its byte order mark, else UTF-8 with one or without."""
    return "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"


def open_text(path: Path) -> TextIO:
    """Open a file for reading as UTF-8, or as UTF-16 with a byte order mark."""
    stream = open_bytes(path)
    encoding = text_encoding(stream.read(2))
    stream.seek(0)
    # Line ends are kept: a carriage return in a thought does not end a line of the file.
    return io.TextIOWrapper(stream, encoding=encoding, newline="\n")


def iterate_lines(stream: TextIO) -> Iterator[str]:
    """Yield the lines with their ends; FormatError for one that is too long."""
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise FormatError(f"{stream.name}, line {number}: it is longer than {MAX_LINE_BYTES >> 20} MB")
        yield line


def read_document(stream: TextIO) -> str:
    """Read a text that has to be parsed as a whole; InputBoundExceeded if it is too long for that."""
    text = stream.read() if is_unbounded() else stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(text) > MAX_DOCUMENT_BYTES and not is_unbounded():
        raise InputBoundExceeded(
            f"it is longer than {MAX_DOCUMENT_BYTES >> 20} MB, and has to be read as a whole; {HINT}"
        )
    return text


def read_text_document(path: Path, size: int = -1) -> str:
    """Read a text that is parsed as a whole, or its first characters; FormatError if it is too long, or not UTF-8."""
    try:
        with open_text(path) as stream:
            return read_document(stream) if size < 0 else stream.read(size)
    except UnicodeDecodeError as error:
        raise refuse_encoding(path, error) from error
    except InputBoundExceeded as error:
        raise FormatError(f"{path}: {error}") from error


def refuse_encoding(path: Path, error: UnicodeDecodeError) -> FormatError:
    """The error for a text in another encoding."""
    return FormatError(f"{path} is not a text in UTF-8 ({error.reason}); save it in UTF-8, and import it again")


def read_json_list(path: Path) -> Iterator[Any]:
    """Read a file that is one JSON list of records, one of which is in memory at a time."""
    try:
        with open_text(path) as stream:
            yield from (record for _, record in iterate_json_list(stream.read))
    except MalformedJson as error:
        raise FormatError(f"{path}, line {error.line}: invalid JSON ({error.reason})") from error
    except UnicodeDecodeError as error:
        raise refuse_encoding(path, error) from error
    except ValueError as error:
        raise FormatError(f"{path}: invalid JSON ({error})") from error


def find_unstorable_field(raw: dict[str, Any]) -> str | None:
    """Describe the first field of a record that the database cannot store; None if there is none."""
    for name, value in raw.items():
        try:
            check_storable_text(str(name))
            check_storable_text(value if isinstance(value, str) else "")
        except UnstorableValue as error:
            return f"its {name!r}: {error}"
    return None


class UnsupportedTrace(Exception):
    """The format cannot represent this trace; the message says why."""


RecordEncoder = Callable[[TraceRecord, TraceExport], tuple[Any, Iterable[str]]]
"""Returns the JSON value of a trace, and a description of each loss."""


def json_lines_writer(encode: RecordEncoder) -> Callable[[TraceExport, BinaryIO], ExportLosses]:
    """Build a writer of one line for each trace."""

    def encode_one(record: TraceRecord, export: TraceExport) -> tuple[list[Any], Iterable[str]]:
        value, lost = encode(record, export)
        return [value], lost

    return json_rows_writer(encode_one)


def json_rows_writer(
    encode: Callable[[TraceRecord, TraceExport], tuple[list[Any], Iterable[str]]],
) -> Callable[[TraceExport, BinaryIO], ExportLosses]:
    """Build a writer of the lines of each trace, one or more."""

    def write(export: TraceExport, stream: TextIO) -> ExportLosses:
        losses = ExportLosses()
        for record in export.records:
            try:
                values, lost = encode(record, export)
            except UnsupportedTrace as error:
                losses.refused.append(RefusedRecord(f"trace {record.trace.id}", str(error)))
                continue
            stream.writelines(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n" for value in values)
            losses.lost.update(lost)
            losses.written += 1
        return losses

    return text_writer(write)
