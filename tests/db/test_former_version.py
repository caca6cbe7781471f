"""A database of the former version, revision 0003, is upgraded: everything opens, merges and exports equal.

former/ holds what that version wrote: the dump of a database with traces of people and runs, reviews and a library, and
its exports of all traces.
"""

import io
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import column, insert, inspect, select, table

from db import libraries, projects, queue, review_queue, traces, users, verifications
from db.database import Database
from db.merge import merge_trace
from db.models import Run, Step, Trace
from db.schema import check_database, downgrade, upgrade
from db.tool_report import ToolCallFilter, build_tool_report
from db.trace_configuration import DemonstrationReference, TraceConfiguration
from db.types import Base
from fewshot_library.formats import FORMATS
from fewshot_library.formats.format import TraceExport
from fewshot_library.formats.showhow import read_records

FORMER = Path(__file__).with_name("former")
REVISION = "0003"
KINDS_OF_ERRORS = ["not found", "refused query", "wrong arguments", "model", "time limit", "unavailable", "other"]
PINS = {"model": "gpt-4.1", "options": {"k": 3, "selection": "dpp"}}

Rows = dict[str, list[dict[str, Any]]]


def read_rows(database: Database) -> Rows:
    """Every row of every table, with the columns that the database has."""
    with database.read() as session:
        connection = session.connection()
        shape = inspect(connection)
        names = {name: [column["name"] for column in shape.get_columns(name)] for name in shape.get_table_names()}
        return {
            current.name: sorted(
                (
                    dict(row)
                    for row in connection.execute(select(*(current.c[name] for name in names[current.name]))).mappings()
                ),
                key=repr,
            )
            for current in Base.metadata.sorted_tables
            if current.name in names
        }


@pytest.fixture(scope="module")
def former_rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The rows of the former version's database."""
    path = tmp_path_factory.mktemp("former") / "showhow.db"
    connection = sqlite3.connect(path)
    connection.executescript((FORMER / "revision_0003.sql").read_text(encoding="utf-8"))
    connection.close()
    store = Database(f"sqlite:///{path}")
    rows = read_rows(store)
    store.close()
    return rows


@pytest.fixture
def former(empty_database: Database, former_rows: Rows) -> Database:
    """The former version's database, on SQLite and on PostgreSQL."""
    upgrade(empty_database, REVISION)
    with empty_database.begin() as session:
        for current in Base.metadata.sorted_tables:
            if rows := former_rows.get(current.name):
                # Today's table would add the defaults of columns that came later.
                columns = [column(name, current.c[name].type) for name in rows[0]]
                session.execute(insert(table(current.name, *columns)), rows)
    return empty_database


@pytest.fixture
def upgraded(former: Database) -> Iterator[Database]:
    upgrade(former)
    yield former
    assert check_database(former) == []


def export(database: Database, name: str) -> bytes:
    stream = io.BytesIO()
    write = FORMATS[name].write
    assert write is not None
    with database.read() as session:
        write(TraceExport(list(traces.iterate_traces(session))), stream)
    return stream.getvalue()


@pytest.mark.parametrize("name", ["openai", "react"])
def test_traces_are_exported_byte_for_byte_as_the_former_version_did(upgraded, name):
    assert export(upgraded, name) == (FORMER / f"traces.{name}").read_bytes()


def test_showhows_export_differs_only_by_error_kinds_and_run_pins(upgraded):
    was = [json.loads(line) for line in (FORMER / "traces.showhow").read_text(encoding="utf-8").splitlines()]
    now = [json.loads(line) for line in export(upgraded, "showhow").decode().splitlines()]
    kinds = [kind for trace in now for step in trace["steps"] if (kind := step.pop("error_kind", None))]
    assert kinds == [*KINDS_OF_ERRORS, "not found", "other"]
    pins = [{name: trace["run"].pop(name, None) for name in PINS} for trace in now if trace["run"]]
    assert pins == [PINS, {"model": None, "options": None}, {"model": None, "options": None}]
    assert now == was


def test_exports_of_the_former_version_merge_as_equal(upgraded):
    with upgraded.begin() as session:
        assert {merge_trace(session, record) for record in read_records(FORMER / "traces.showhow")} == {"same"}


def test_failures_of_old_calls_are_counted_by_their_kinds(upgraded):
    with upgraded.read() as session:
        tools = {tool.tool: tool for tool in build_tool_report(session, ToolCallFilter()).tools}
    assert tools["read"].failures == dict.fromkeys(sorted(KINDS_OF_ERRORS), 1)
    assert tools["nope"].failures == {"other": 1}


def test_runs_pin_only_the_values_of_their_configuration(upgraded):
    with upgraded.read() as session:
        runs = {run.name: run for run in session.scalars(select(Run))}
    ask_run, verified = runs["ask"], runs["verify"]
    assert {name: getattr(ask_run, name) for name in PINS} == PINS
    assert (verified.model, verified.options) == (None, {})
    for run in (ask_run, verified):
        assert (run.encoder, run.world_hash, run.code_version, run.tools) == (None, None, None, None)


def test_lists_and_the_library_open_as_before(upgraded):
    with upgraded.read() as session:
        (project,) = projects.list_projects(session)
        ada = users.register_user(session, "ada")
        assert review_queue.count_by_status(session, project.id) == {"approved": 1, "draft": 1, "rejected": 1}
        assert queue.measure_progress(session, project.id, ada.id).completed_by_user == 1
        (demonstration,) = libraries.load_demonstrations(session, libraries.find_version(session, "default:1").id)
        assert demonstration.question == "Who built quay 1?"
        (verification,) = verifications.list_verifications(session, project.id)
        outcomes = verifications.list_outcomes(session, verification)
    assert [outcome.ending for outcome in outcomes] == [None, None, None, "refused"]


def test_the_configuration_of_every_trace_and_run_is_read_and_written_without_a_change(upgraded):
    with upgraded.read() as session:
        stored = [*session.scalars(select(Trace.configuration)), *session.scalars(select(Run.configuration))]
        answered = session.scalars(select(Trace.configuration).where(Trace.ending == "answered")).one()
    assert [TraceConfiguration.from_json(document).to_json() for document in stored] == stored
    configuration = TraceConfiguration.from_json(answered)
    assert (configuration.reasoner, configuration.library, configuration.model) == ("humaniq", "default:1", "gpt-4.1")
    assert configuration.demonstrations is not None
    assert [type(entry) for entry in configuration.demonstrations] == [DemonstrationReference]
    assert configuration.agreement is not None
    assert configuration.agreement.agreeing == ("text",)
    assert configuration.extra == {}


FUSION_STEPS = [
    ("wikisearch", "I look."),
    (None, "The reply could not be read."),
    (None, "From text only: Cora"),
    ("getWikiDataID", "From text only: nothing yet."),
    (None, "From the graph only: none\nThe model failed 3 times in a row."),
]
FUSION_NODES = ["text", "text", "text answer", "graph", "graph answer"]
FUSION_DATA = [{"title": "Quay 0"}, None, {"answer": "Cora"}, {"title": "Quay 0"}, {"answer": None}]


def insert_fusion_trace(database: Database, former_rows: Rows, count: int) -> UUID:
    """Insert a trace of late fusion with these first steps, as the former version wrote it."""
    trace = next(row for row in former_rows["trace"] if row["reasoner"] == "humaniq")
    called = next(row for row in former_rows["step"] if row["observation"] is not None)
    trace_id = uuid4()
    steps = [
        {**called, "id": uuid4(), "trace_id": trace_id, "position": place, "tool": tool, "thought": thought}
        | ({} if tool else {"data": None, "observation": None, "arguments": {}, "origins": {}})
        for place, (tool, thought) in enumerate(FUSION_STEPS[:count], start=1)
    ]
    tables = Base.metadata.tables
    with database.begin() as session:
        session.execute(insert(tables["trace"]), [{**trace, "id": trace_id, "reasoner": "fusion"}])
        session.execute(insert(tables["step"]), steps)
    return trace_id


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_steps_of_late_fusion_get_the_nodes_by_which_it_resumes(former: Database, former_rows: Rows, count: int):
    trace_id = insert_fusion_trace(former, former_rows, count)
    before = read_rows(former)
    upgrade(former)
    with former.read() as session:
        steps = traces.load_trace(session, trace_id).steps
        others = session.scalars(select(Step).where(Step.trace_id != trace_id)).all()
    assert [(step.node, step.data) for step in steps] == list(zip(FUSION_NODES, FUSION_DATA, strict=True))[:count]
    assert {step.node for step in others} == {None}
    downgrade(former, REVISION)
    assert read_rows(former) == before
    upgrade(former)


def test_a_downgrade_restores_the_rows_of_the_former_revision(former, former_rows):
    upgrade(former)
    downgrade(former, REVISION)
    assert read_rows(former) == former_rows
    upgrade(former)
