"""Showhow's own format: one complete trace on each line, exported and imported without losses.

Model calls are not part of it; they stay in the database of the installation that made them.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from showhow.db.former_configuration import read_record
from showhow.db.models import Edit, Judgement, Project, Question, Run, Step, Trace
from showhow.db.serialization import InvalidRecord, from_json_fields, to_json_fields
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import Base
from showhow.fewshot_library.formats.format import (
    FileHead,
    FormatError,
    TraceExport,
    TraceFormat,
    iterate_lines,
    json_lines_writer,
    open_text,
)
from showhow.guard.json_input import load_json

FORMAT_MARK = "showhow-trace"
FORMAT_VERSION = 2
FORMER_VERSION = 1
SINGLE_MODELS: dict[str, type[Base]] = {"project": Project, "question": Question, "trace": Trace}
LIST_MODELS: dict[str, type[Base]] = {"steps": Step, "removed": Step, "edits": Edit, "judgements": Judgement}
RECORD_KEYS = {"format", "version", "run", "people", *SINGLE_MODELS, *LIST_MODELS}


def _sniff(head: FileHead) -> bool:
    return head.keys.get("format") == FORMAT_MARK


def read_records(path: Path) -> Iterator[TraceRecord]:
    """Read the traces of a file in order; FormatError at the first invalid line."""
    with open_text(path) as stream:
        number = 0
        try:
            for line in iterate_lines(stream):
                number += 1
                if line.strip():
                    yield record_from_json(load_json(line))
        except UnicodeDecodeError as error:
            raise FormatError(f"{path}, after line {number}: not UTF-8 ({error.reason})") from error
        except (InvalidRecord, ValueError) as error:
            raise FormatError(f"{path}, line {number}: {error}") from error


def record_from_json(value: Any) -> TraceRecord:
    """Build a record from JSON values; InvalidRecord if they are not a valid trace."""
    if not isinstance(value, dict) or value.get("format") != FORMAT_MARK:
        raise InvalidRecord(f'this is not a trace of Showhow: "format" is not "{FORMAT_MARK}"')
    if value.get("version") not in (FORMER_VERSION, FORMAT_VERSION):
        raise InvalidRecord(
            f"version {value.get('version')} of the format is not supported, only {FORMER_VERSION} and "
            f"{FORMAT_VERSION}; update Showhow"
        )
    if mismatched := sorted(RECORD_KEYS ^ value.keys()):
        raise InvalidRecord(f"{mismatched[0]!r} is {'unknown' if mismatched[0] in value else 'missing'}")
    if value["version"] == FORMER_VERSION:
        value = read_record(value)
    single = {name: from_json_fields(kind, value[name]) for name, kind in SINGLE_MODELS.items()}
    lists = {
        name: [from_json_fields(kind, fields) for fields in _require_list(value, name)]
        for name, kind in LIST_MODELS.items()
    }
    run = from_json_fields(Run, value["run"]) if value["run"] is not None else None
    record = TraceRecord(**single, **lists, run=run, people=_parse_people(value["people"]))  # type: ignore[arg-type]
    if inconsistency := next(record.find_inconsistencies(), None):
        raise InvalidRecord(inconsistency)
    return record


def _require_list(record: dict[str, Any], name: str) -> list[Any]:
    value = record[name]
    if not isinstance(value, list):
        raise InvalidRecord(f"{name!r} is not a list")
    return value


def _parse_people(value: Any) -> dict[UUID, str]:
    if not isinstance(value, dict) or not all(isinstance(name, str) and name for name in value.values()):
        raise InvalidRecord("'people' does not name each person")
    try:
        return {UUID(key): name for key, name in value.items()}
    except ValueError as error:
        raise InvalidRecord("'people' has a key that is not a UUID") from error


def record_to_json(record: TraceRecord) -> dict[str, Any]:
    """Convert the record to JSON values."""
    encoded: dict[str, Any] = {"format": FORMAT_MARK, "version": FORMAT_VERSION}
    encoded |= {name: to_json_fields(getattr(record, name)) for name in SINGLE_MODELS}
    # The count of completed traces belongs to the database, not to the trace.
    del encoded["question"]["completed"]
    encoded["people"] = {str(key): record.people[key] for key in sorted(record.people)}
    encoded["run"] = to_json_fields(record.run) if record.run else None
    return encoded | {name: [to_json_fields(model) for model in getattr(record, name)] for name in LIST_MODELS}


def _encode_record(record: TraceRecord, _: TraceExport) -> tuple[dict[str, Any], tuple[str, ...]]:
    return record_to_json(record), ()


SHOWHOW = TraceFormat(
    "showhow",
    "everything, one trace a line",
    _sniff,
    read_records,
    json_lines_writer(_encode_record),
    keeps_split=True,
)


def format_trace_json(record: TraceRecord) -> str:
    """The trace as one JSON object, which `showhow traces import` reads."""
    return json.dumps(record_to_json(record), ensure_ascii=False, indent=2)


def format_trace_markdown(record: TraceRecord) -> str:
    """The trace as Markdown for people: question, steps with their observations, answer."""
    parts = [f"# {record.question.text}"]
    for step in record.steps:
        arguments = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in step.arguments.items()
        )
        action = f"`{step.tool}({arguments})`" if step.tool else ""
        observation = step.error or step.observation or ""
        quoted = "\n".join(f"> {line}" for line in observation.splitlines())
        parts += [f"## Step {step.position}", *filter(None, (step.thought, action, quoted))]
    if record.trace.final_answer:
        parts += ["## Answer", record.trace.final_answer]
    return "\n\n".join(parts) + "\n"
