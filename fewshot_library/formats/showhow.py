"""Showhow's own format: one trace a line with everything that belongs to it; nothing is lost either way."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from db.models import Base, Edit, Judgement, Project, Question, Run, Step, Trace
from db.plain import BrokenNoun, from_plain, to_plain
from db.record import TraceRecord
from fewshot_library.formats.export import Export
from fewshot_library.formats.format import Format, FormatError, opened_text
from fewshot_library.formats.head import Head
from fewshot_library.formats.lines import as_lines

MARK = "showhow-trace"
VERSION = 1
ONE: dict[str, type[Base]] = {"project": Project, "question": Question, "trace": Trace}
MANY: dict[str, type[Base]] = {"steps": Step, "removed": Step, "edits": Edit, "judgements": Judgement}
KEYS = {"format", "version", "run", "people", *ONE, *MANY}


def _sniff(head: Head) -> bool:
    return head.keys.get("format") == MARK


def read(path: Path) -> Iterator[TraceRecord]:
    """The traces of the file in order; a line that is wrong stops the reading."""
    with opened_text(path) as stream:
        number = 0
        try:
            for line in stream:
                number += 1
                if line.strip():
                    yield record_told(json.loads(line))
        except (BrokenNoun, json.JSONDecodeError, RecursionError) as wrong:
            raise FormatError(f"{path}, line {number}: {wrong}") from wrong
        except UnicodeDecodeError as wrong:
            raise FormatError(f"{path}, after line {number}: no UTF-8 ({wrong.reason})") from wrong


def record_told(told: Any) -> TraceRecord:
    """The record that these values tell; BrokenNoun says what is wrong with them."""
    if not isinstance(told, dict) or told.get("format") != MARK:
        raise BrokenNoun(f'this is no trace of Showhow\'s: "format" is not "{MARK}"')
    if told.get("version") != VERSION:
        raise BrokenNoun(
            f"version {told.get('version')} of the format is not known here, only {VERSION}; update Showhow"
        )
    if odd := sorted(KEYS ^ told.keys()):
        raise BrokenNoun(f"{odd[0]!r} is {'unknown' if odd[0] in told else 'missing'}")
    one = {name: from_plain(kind, told[name]) for name, kind in ONE.items()}
    many = {name: [from_plain(kind, each) for each in _list(told, name)] for name, kind in MANY.items()}
    run = from_plain(Run, told["run"]) if told["run"] is not None else None
    record = TraceRecord(**one, **many, run=run, people=_people(told["people"]))  # type: ignore[arg-type]
    if fault := next(record.faults(), None):
        raise BrokenNoun(fault)
    return record


def _list(told: dict[str, Any], name: str) -> list[Any]:
    found = told[name]
    if not isinstance(found, list):
        raise BrokenNoun(f"{name!r} is no list")
    return found


def _people(told: Any) -> dict[UUID, str]:
    if not isinstance(told, dict) or not all(isinstance(name, str) and name for name in told.values()):
        raise BrokenNoun("'people' does not name each person")
    try:
        return {UUID(key): name for key, name in told.items()}
    except ValueError as wrong:
        raise BrokenNoun("'people' has a key that is no UUID") from wrong


def told_of(record: TraceRecord) -> dict[str, Any]:
    """The record as JSON values."""
    told: dict[str, Any] = {"format": MARK, "version": VERSION}
    told |= {name: to_plain(getattr(record, name)) for name in ONE}
    # The store's own count of its traces, which is another one elsewhere.
    del told["question"]["completed"]
    told["people"] = {str(key): record.people[key] for key in sorted(record.people)}
    told["run"] = to_plain(record.run) if record.run else None
    return told | {name: [to_plain(noun) for noun in getattr(record, name)] for name in MANY}


def _line(record: TraceRecord, _: Export) -> tuple[dict[str, Any], tuple[str, ...]]:
    return told_of(record), ()


SHOWHOW = Format("showhow", "everything, one trace a line", _sniff, read, as_lines(_line))
