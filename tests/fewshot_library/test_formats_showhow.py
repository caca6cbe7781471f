"""Showhow's own format: exports round-trip, and malformed lines are refused."""

import json
import random
import tempfile
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from showhow.db.database import Database, StoreError
from showhow.db.models import User
from showhow.db.storage.merge import is_same_trace, merge_trace
from showhow.db.storage.schema import upgrade
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.traces.traces import iterate_traces
from showhow.fewshot_library.formats import detect_format, read_traces
from showhow.fewshot_library.formats.format import FormatError
from showhow.fewshot_library.formats.showhow import SHOWHOW, read_records
from tests.examples import examples
from tests.fewshot_library.traces import export, plain_trace, records


def written(*given_records: TraceRecord) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "written.jsonl"
        losses = export(SHOWHOW, given_records, path)
        assert (losses.written, losses.summary_lines()) == (len(given_records), [])
        return path.read_text(encoding="utf-8")


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(records(), max_size=3))
def test_exports_round_trip(given_records):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.jsonl"
        path.write_text(written(*given_records), encoding="utf-8")
        assert list(read_records(path)) == given_records


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(records())
def test_imported_traces_round_trip_through_the_store(record):
    with tempfile.TemporaryDirectory() as folder:
        store = new_store(Path(folder) / "x.db")
        with store.begin() as session:
            assert merge_trace(session, record) == "added"
        with store.begin() as session:
            assert merge_trace(session, record) == "same"
        store.close()


@cache
def empty_database() -> bytes:
    """An empty database, created once because the migrations take long."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        store = Database(f"sqlite:///{path}")
        upgrade(store)
        store.close()
        return path.read_bytes()


def new_store(path: Path) -> Database:
    path.write_bytes(empty_database())
    return Database(f"sqlite:///{path}")


def carried(folder: Path, name: str, source: Path) -> Path:
    """The export of an empty database after importing the file."""
    store = new_store(folder / f"{name}.db")
    with store.begin() as session:
        for record in read_traces(source, "showhow"):
            assert merge_trace(session, record) == "added"
    path = folder / f"{name}.jsonl"
    with store.read() as session:
        export(SHOWHOW, iterate_traces(session), path)
    store.close()
    return path


@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(records(), min_size=1, max_size=3, unique_by=lambda record: record.project.name))
def test_an_export_imported_elsewhere_exports_the_same_bytes(given_records):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "given.jsonl").write_text(written(*given_records), encoding="utf-8")
        first = carried(folder, "first", folder / "given.jsonl")
        second = carried(folder, "second", first)
        assert second.read_bytes() == first.read_bytes()
        by_id = {record.trace.id: record for record in read_records(second)}
        assert by_id.keys() == {record.trace.id for record in given_records}
        assert all(is_same_trace(by_id[record.trace.id], record) for record in given_records)


def test_a_partial_export_has_the_same_bytes_from_a_partial_store(tmp_path):
    approved, waiting = plain_trace(), plain_trace()
    ben = User(name="ben")
    waiting.project, waiting.question = approved.project, approved.question
    waiting.trace.question_id, waiting.trace.author_id = approved.question.id, ben.id
    waiting.trace.status, waiting.edits, waiting.people = "submitted", [], {ben.id: "ben"}
    store = new_store(tmp_path / "whole.db")
    with store.begin() as session:
        assert [merge_trace(session, record) for record in (waiting, approved)] == ["added", "added"]
    with store.read() as session:
        export(SHOWHOW, iterate_traces(session, status="approved"), tmp_path / "part.jsonl")
    store.close()
    part = tmp_path / "part.jsonl"
    assert carried(tmp_path, "elsewhere", part).read_bytes() == part.read_bytes()


def test_a_megabyte_of_thought_and_deeply_nested_data_round_trip(tmp_path):
    record = plain_trace("long 👍 " * 150_000)
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"in": [deep]}
    record.steps[0].data = deep
    path = tmp_path / "traces.jsonl"
    path.write_text(written(record), encoding="utf-8")
    assert detect_format(path).name == "showhow"
    assert list(read_traces(path)) == [record]


BROKEN = {
    "not json": lambda _: "{",
    "not a trace of Showhow": lambda _: json.dumps({"a": 1}),
    "version 3": lambda told: json.dumps({**told, "version": 3}),
    "'steps' is missing": lambda told: json.dumps({k: v for k, v in told.items() if k != "steps"}),
    "'extra' is unknown": lambda told: json.dumps({**told, "extra": 1}),
    "the trace has no 'question_id'": lambda told: json.dumps(
        {**told, "trace": {k: v for k, v in told["trace"].items() if k != "question_id"}}
    ),
    "the trace has an unknown field 'x'": lambda told: json.dumps({**told, "trace": {**told["trace"], "x": 1}}),
    "the trace's id is 'x'": lambda told: json.dumps({**told, "trace": {**told["trace"], "id": "x"}}),
    "of the kind int, not str": lambda told: json.dumps({**told, "question": {**told["question"], "text": 3}}),
    "has no time zone": lambda told: json.dumps({**told, "trace": {**told["trace"], "started_at": "2026-01-01T00:00"}}),
    "is none of draft": lambda told: json.dumps({**told, "trace": {**told["trace"], "status": "lost"}}),
    "not numbered 1, 2, 3": lambda told: json.dumps({**told, "steps": [{**told["steps"][0], "position": 2}]}),
    "the usage of a step's model calls": lambda told: json.dumps(
        {**told, "steps": [{**told["steps"][0], "usage": {"tool": {"cost": "free"}}}]}
    ),
    "not between 1 and 5": lambda told: json.dumps({**told, "steps": [{**told["steps"][0], "rating": 6}]}),
    "too large": lambda told: json.dumps({**told, "trace": {**told["trace"], "version": 10**30}}),
    "Infinity is not a JSON number": lambda told: json.dumps(
        {**told, "trace": {**told["trace"], "wall_seconds": float("inf")}}
    ),
    "an argument's origin has": lambda told: json.dumps(
        {**told, "steps": [{**told["steps"][0], "origins": {"a": {}}}]}
    ),
    "a step that is referred to is missing": lambda told: json.dumps({**told, "steps": []}),
    "a person has no name": lambda told: json.dumps({**told, "people": {}}),
    "at most 4,194,304 can be stored": lambda told: json.dumps(
        {**told, "project": {**told["project"], "name": "x" * 50_000_000}}
    ),
    "the project's answer_format: the answer kind 'essay' is none of": lambda told: json.dumps(
        {**told, "project": {**told["project"], "answer_format": {"kind": "essay"}}}
    ),
    "the project's answer_format: the answer schema is not a JSON Schema: 'txt'": lambda told: json.dumps(
        {**told, "project": {**told["project"], "answer_format": {"kind": "json", "schema": {"type": "txt"}}}}
    ),
    "U+0000": lambda told: json.dumps({**told, "project": {**told["project"], "name": "nul \x00"}}),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_malformed_line_raises_an_error_with_number_and_reason(tmp_path, reason):
    good = written(plain_trace())
    broken = BROKEN[reason](json.loads(written(plain_trace())))
    path = tmp_path / "traces.jsonl"
    path.write_text(f"{good}\n{broken}\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"traces\.jsonl, line 3: ") as refused:
        list(read_records(path))
    assert reason in str(refused.value) or reason == "not json"


def _mutated(data: Any, chance: random.Random) -> Any:
    """A copy of the record with one random change."""
    junk = [
        None,
        -1,
        10**40,
        1.5,
        True,
        "",
        "\x00",
        "\ud83d",
        [],
        {},
        [[]],
        {"a": float("nan")},
        "0001-01-01T00:00:00+14:00",
    ]
    if isinstance(data, dict) and data and chance.random() < 0.9:
        key = chance.choice(sorted(data))
        if chance.random() < 0.1:
            return {other: value for other, value in data.items() if other != key}
        return {**data, key: _mutated(data[key], chance)}
    if isinstance(data, list) and data and chance.random() < 0.9:
        place = chance.randrange(len(data))
        return [*data[:place], _mutated(data[place], chance), *data[place + 1 :]]
    return chance.choice(junk)


def test_malformed_files_are_refused_or_imported_without_harm(tmp_path):
    chance = random.Random(5)
    store = new_store(tmp_path / "x.db")
    path = tmp_path / "traces.jsonl"
    outcomes = {"refused": 0, "kept": 0}
    for _ in range(500):
        line = json.dumps(_mutated(json.loads(written(plain_trace())), chance)).encode()
        if chance.random() < 0.2:
            place = chance.randrange(len(line))
            line = (
                line[:place] + chance.choice([b"", b"\xff", b"\x00", b"}", b'"']) + line[place + chance.randrange(9) :]
            )
        path.write_bytes(line)
        try:
            with store.begin() as session:
                for record in read_records(path):
                    merge_trace(session, record)
            outcomes["kept"] += 1
        except (FormatError, StoreError):
            outcomes["refused"] += 1
    store.close()
    assert outcomes["refused"] > 200
    assert outcomes["kept"] > 10


def test_times_are_stored_in_utc(tmp_path):
    record = plain_trace()
    fields = json.loads(written(record))
    moment = record.trace.started_at
    fields["trace"]["started_at"] = (moment + timedelta(hours=2)).isoformat().replace("+00:00", "+02:00")
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(fields))
    (kept,) = read_records(path)
    assert kept.trace.started_at == moment
