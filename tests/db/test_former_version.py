"""A database of the former version, revision 0003, is upgraded: everything opens, merges and exports equal.

former/ holds what that version wrote: the dump of a database with traces of people and runs, reviews and a library, and
its exports of all traces.
"""

import json
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert, select

from showhow.db.database import Database
from showhow.db.models import Run, Step, Trace
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.review import queue, review_queue
from showhow.db.review.tool_report import ToolCallFilter, build_tool_report
from showhow.db.run_spec import DemonstrationReference
from showhow.db.runs import verifications
from showhow.db.storage.merge import merge_trace
from showhow.db.storage.schema import check_database, downgrade, upgrade
from showhow.db.traces import libraries, traces
from showhow.db.types import Base
from showhow.fewshot_library.formats.showhow import read_records, record_to_json
from tests.db.former_versions import FORMER, Rows, export, fill, insert_into, load_rows, read_rows

pytestmark = pytest.mark.long

REVISION = "0003"
KINDS_OF_ERRORS = ["not found", "refused query", "wrong arguments", "model", "time limit", "unavailable", "other"]
PINS = {"model": "gpt-4.1", "options": {"k": 3, "selection": "dpp"}}


@pytest.fixture(scope="module")
def former_rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The rows of the former version's database."""
    return load_rows(tmp_path_factory.mktemp("former"), REVISION)


@pytest.fixture
def former(empty_database: Database, former_rows: Rows) -> Database:
    """The former version's database, on SQLite and on PostgreSQL."""
    return fill(empty_database, REVISION, former_rows)


@pytest.fixture
def upgraded(former: Database) -> Iterator[Database]:
    upgrade(former)
    yield former
    assert check_database(former) == []


@pytest.mark.parametrize("name", ["openai", "react"])
def test_traces_are_exported_byte_for_byte_as_the_former_version_did(upgraded, name):
    assert export(upgraded, name) == (FORMER / f"revision_0003.{name}").read_bytes()


def test_an_export_of_the_former_version_is_read_as_the_upgraded_database_is_exported(upgraded):
    """But for kinds of errors, which that version did not store."""
    read = [record_to_json(record) for record in read_records(FORMER / "revision_0003.showhow")]
    now = [json.loads(line) for line in export(upgraded, "showhow").decode().splitlines()]
    kinds = [kind for trace in now for step in trace["steps"] if (kind := step.pop("error_kind", None))]
    assert kinds == [*KINDS_OF_ERRORS, "not found", "other"]
    specs = [trace["run"]["spec"] for trace in now if trace["run"]]
    assert [{name: spec.get(name) for name in PINS} for spec in specs] == [
        PINS,
        *[{"model": None, "options": None}] * 2,
    ]
    assert now == read


def test_exports_of_the_former_version_merge_as_equal(upgraded):
    with upgraded.begin() as session:
        assert {merge_trace(session, record) for record in read_records(FORMER / "revision_0003.showhow")} == {"same"}


def test_failures_of_old_calls_are_counted_by_their_kinds(upgraded):
    with upgraded.read() as session:
        tools = {tool.tool: tool for tool in build_tool_report(session, ToolCallFilter()).tools}
    assert tools["read"].failures == dict.fromkeys(sorted(KINDS_OF_ERRORS), 1)
    assert tools["nope"].failures == {"other": 1}


def test_runs_pin_only_the_values_of_their_configuration(upgraded):
    with upgraded.read() as session:
        runs = {run.name: run.spec for run in session.scalars(select(Run))}
    asked, verified = runs["ask"], runs["verify"]
    assert (asked.model, asked.options) == (PINS["model"], PINS["options"])
    assert (verified.model, verified.options) == (None, {})
    for spec in (asked, verified):
        assert (spec.encoder, spec.world_hash, spec.code_version, spec.tools) == (None, None, None, None)


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


def test_the_configurations_of_a_run_and_its_trace_are_typed_values(upgraded):
    with upgraded.read() as session:
        answered = session.scalars(select(Trace).where(Trace.ending == "answered")).one()
        run = session.get_one(Run, answered.run_id)
    assert (run.spec.reasoner, run.spec.library, run.spec.model) == ("humaniq", "default:1", "gpt-4.1")
    result = answered.result
    assert [type(entry) for entry in result.demonstrations or ()] == [DemonstrationReference]
    assert result.agreement is not None
    assert result.agreement.agreeing == ("text",)
    assert (result.worker, result.details) == ("4711:1:host", {})


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
        session.execute(insert_into("trace", trace), [{**trace, "id": trace_id, "reasoner": "fusion"}])
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
