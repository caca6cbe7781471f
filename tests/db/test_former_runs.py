"""Runs of revision 0012, whose configurations were raw JSON: they open, continue, replay and are exported equal.

The dump has an answered run with its agreement, a limited and a waiting one, a replay, verifications with repetitions,
over failures and one that was stopped, a run of an imported log, and traces of other formats.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import select

from showhow.db.database import Database
from showhow.db.former_configuration import FormerRun, read_run, read_trace
from showhow.db.models import Run, Trace
from showhow.db.run_spec import RunLimits, RunResult, RunSpec
from showhow.db.runs import verifications
from showhow.db.storage.merge import merge_trace
from showhow.db.storage.schema import check_database, downgrade, upgrade
from showhow.db.traces import traces
from showhow.evaluation.scoring.scoring import load_verification_report
from showhow.evaluation.verification.verify import ExecutionOptions, run_verification
from showhow.fewshot_library.formats.showhow import read_records, record_to_json
from showhow.runs.resume import resume_run
from showhow.runs.services import Services
from showhow.settings import Settings
from tests.db.former_versions import FORMER, Rows, export, fill, load_rows, read_rows

REVISION = "0012"
ID = str(uuid4())
NO_PINS = {"model": None, "encoder": None, "world_hash": None, "code_version": None, "tools": None, "options": {}}


@pytest.fixture(scope="module")
def former_rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The rows of the former version's database."""
    return load_rows(tmp_path_factory.mktemp("former"), REVISION)


@pytest.fixture
def upgraded(empty_database: Database, former_rows: Rows) -> Iterator[Database]:
    """The former version's database, on SQLite and on PostgreSQL, as it is now."""
    fill(empty_database, REVISION, former_rows)
    upgrade(empty_database)
    yield empty_database
    assert check_database(empty_database) == []


def test_an_export_of_the_former_version_is_read_as_the_upgraded_database_is_exported(upgraded: Database):
    was = {row["trace"]["id"]: row for row in map(record_to_json, read_records(FORMER / "revision_0012.showhow"))}
    now = {row["trace"]["id"]: row for row in map(json.loads, export(upgraded, "showhow").decode().splitlines())}
    assert now == was
    with upgraded.begin() as session:
        merged = {merge_trace(session, record) for record in read_records(FORMER / "revision_0012.showhow")}
    assert merged == {"same"}


def test_every_value_has_a_plain_name_and_none_is_lost(upgraded: Database, former_rows: Rows):
    with upgraded.read() as session:
        runs = {(run.name, run.reasoner, run.spec.repetitions): run.spec for run in session.scalars(select(Run))}
        records = [traces.load_trace(session, trace_id) for trace_id in session.scalars(select(Trace.id))]
    repeated = runs["verify", "humaniq", 2]
    assert (repeated.sample, repeated.answerable_only, repeated.model) == (3, True, "openai:scripted")
    assert repeated.limits == RunLimits(steps=20, seconds=600.0)
    assert runs["verify", "replay", 1].limits == RunLimits(steps=None, seconds=None)
    assert runs["ask", "atomr", 1].person_skills == ("plan",)
    assert runs["imported", "humaniq", 2].details.keys() == {"imported_as", "inspect"}
    (asked,) = [record for record in records if record.run is not None and record.run.spec.asked_by == "ada"]
    assert asked.trace.result.agreement is not None
    assert asked.trace.result.agreement.agreeing == ("text", "model")
    assert (asked.trace.result.prompt_format, asked.trace.result.details) == ("chat", {"style": "short"})
    (replayed,) = [record for record in records if record.trace.result.replay is not None]
    assert replayed.trace.result.followed_demonstrations < {
        str(reference.id) for reference in replayed.trace.result.demonstrations or ()
    }
    riddles = {"way", "most", "again_of", "unwritten", "form", "cited", "prompts", "answerable"}
    assert not [names for record in records if (names := riddles & record.named_values.keys())]
    former = {str(row["id"]): row["configuration"] for row in former_rows["trace"]}
    for record in records:
        values = json.dumps(record.named_values, ensure_ascii=False)
        for value in former[str(record.trace.id)].values():
            kept = value.values() if isinstance(value, dict) else [value]
            assert all(json.dumps(part, ensure_ascii=False) in values for part in kept if isinstance(part, str))


def test_a_downgrade_restores_the_rows_but_for_empty_lists_and_that_runs_name_who_asked(
    upgraded: Database, former_rows: Rows
):
    downgrade(upgraded, REVISION)
    rows = read_rows(upgraded)
    upgrade(upgraded)
    for run in rows["run"]:
        run["configuration"].pop("asked_by", None)
    for name, stored in former_rows.items():
        expected = list(map(without_empty_lists, stored))
        assert len(rows[name]) == len(expected)
        assert all(without_empty_lists(row) in expected for row in rows[name])


def without_empty_lists(row: dict[str, Any]) -> dict[str, Any]:
    values = row.get("configuration", {})
    return row | {"configuration": {name: value for name, value in values.items() if value != []}}


@pytest.fixture
def home(tmp_path: Path, harbour_folder: Path, former_rows: Rows) -> Iterator[Services]:
    """A home of the former version, as it is opened now."""
    store = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    fill(store, REVISION, former_rows)
    store.close()
    (tmp_path / "worlds").symlink_to(harbour_folder)
    environ = {"SHOWHOW_HOME": str(tmp_path)}
    services = Services(Settings.from_env(environ), environ)
    yield services
    services.close()


def test_a_stopped_verification_of_the_former_version_goes_on_to_its_end(home: Services):
    with home.database.read() as session:
        run = session.scalars(select(Run).where(Run.name == "verify", Run.finished_at.is_(None))).one()
    assert load_verification_report(home.database, run)["left"] > 0
    run_verification(home, run.id, ExecutionOptions(), Event(), lambda _done, _total: None)
    with home.database.read() as session:
        finished = verifications.find_verification(session, run.id)
    report = load_verification_report(home.database, finished)
    assert (report["left"], report["reasoner"], report["library"]) == (0, "replay", "default:2")
    assert finished.finished_at is not None


def test_a_replay_of_the_former_version_is_repeated_with_its_demonstrations(home: Services):
    with home.database.begin() as session:
        trace = session.scalars(select(Trace).where(Trace.reasoner == "replay", Trace.ending == "answered")).one()
        answer, trace.status, trace.ending = trace.final_answer, "failed", "stopped"
    outcome = resume_run(home, trace.id, RunLimits(steps=60)).execute()
    assert outcome.answers is not None
    assert outcome.answers.final_answer == answer
    with home.database.read() as session:
        assert traces.load_trace(session, trace.id).trace.result.limits == RunLimits(steps=60)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3) | st.just(ID),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["reasoner", "id", "name", "x"]), inner)
    ),
    max_leaves=6,
)
KEYS = [
    *("way", "reasoner", "options", "library", "limits", "worker", "model", "profile", "skills", "person_skills"),
    *("demonstrations", "form", "prompts", "answers", "cited", "response", "links", "unwritten", "agreement", "calls"),
    *(
        "project_id",
        "questions",
        "most",
        "repetitions",
        "again_of",
        "generated",
        "hash",
        "needs",
        "tools",
        "x",
        "details",
    ),
]
DOCUMENTS = st.dictionaries(st.sampled_from(KEYS), VALUES)


@given(DOCUMENTS, DOCUMENTS)
@example({"way": None, "reasoner": ""}, {"limits": {"steps": 3, "odd": 1}})
@example({"reasoner": "humaniq", "library": None}, {"limits": {"steps": "many"}})
def test_any_former_configuration_is_read_with_every_value(of_run, of_trace):
    former = FormerRun("other", of_run, NO_PINS)
    spec, result = read_run(former), read_trace({**of_run, **of_trace}, former)
    assert RunSpec.from_json(spec).to_json() == spec
    assert RunResult.from_json(result).to_json() == result
    kept = json.dumps([spec, result])
    for document in (of_run, of_trace):
        for value in document.values():
            if isinstance(value, str) and value:
                assert json.dumps(value) in kept
