"""Runs whose process was killed are ended at the next start; runs of living processes go on."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from showhow.db.database import Database
from showhow.db.models import Run
from showhow.db.questions import projects
from showhow.db.runs import runs
from showhow.db.runs.runs import ASK_RUN_NAME, RunOutcome, list_unfinished_traces
from showhow.db.traces import traces
from showhow.db.traces.model_calls import ModelRequest, begin_model_call, list_model_calls
from showhow.db.traces.recording import NewStep, begin_step
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import utc_now
from showhow.runs.ask import FreeQuestion
from showhow.runs.process import current_worker_id
from showhow.runs.resume import IDLE_TIME, end_interrupted_runs
from showhow.runs.services import Services
from showhow.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
# A process of its own whose run is then of a living or of a killed worker.
WORKER = "from showhow.runs.process import current_worker_id; print(current_worker_id(), flush=True); input()"


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    built = Services(Settings.from_env({"SHOWHOW_HOME": str(tmp_path)}))
    yield built
    built.close()


@pytest.fixture
def killed_worker() -> str:
    """The id of a process that was killed."""
    with worker_process() as process:
        assert process.stdout is not None
        worker = process.stdout.readline().strip()
        process.send_signal(signal.SIGKILL)
    return worker


def worker_process() -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WORKER]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def begun(database: Database, worker: str, question: str = "Who?", name: str = ASK_RUN_NAME) -> UUID:
    """A run that has begun a step and a request to a model, by the worker."""
    with database.begin() as session:
        project = projects.get_or_create_project(session, "Asked", world="w")
        asked = FreeQuestion(question)
        projects.add_questions(session, project.id, [asked])
        stored = projects.find_matching_question(session, project.id, asked)
        run = runs.start_run(session, Run(name=name, reasoner="replay", world="w"))
        trace = runs.start_run_trace(session, run, stored.id, worker)
        begin_step(session, trace.id, NewStep("I look.", "wikisearch", {"query": "x"}), seen=trace.version)
        begin_model_call(session, ModelRequest("step", "m", [{"role": "user", "content": "x"}]), trace_id=trace.id)
        return trace.id


def loaded(database: Database, trace_id: UUID) -> TraceRecord:
    with database.read() as session:
        return traces.load_trace(session, trace_id)


def test_a_run_of_a_killed_process_is_ended_once_and_can_be_continued(services: Services, killed_worker: str):
    trace_id = begun(services.database, killed_worker, "Who was " + "x" * 200)
    [message] = end_interrupted_runs(services)
    assert message == (
        f"Ended the run on '{('Who was ' + 'x' * 200)[:80]}…', whose process was killed; continue it on the Ask page."
    )
    record = loaded(services.database, trace_id)
    assert (record.trace.status, record.trace.ending, record.trace.failure) == ("failed", "interrupted", None)
    assert record.run is not None
    assert record.run.finished_at is not None
    assert len(record.steps) == 1
    with services.database.read() as session:
        assert [call.state for call in list_model_calls(session, trace_id)] == ["lost"]
    assert end_interrupted_runs(services) == []
    with services.database.begin() as session:
        assert runs.reopen_run_trace(session, trace_id).status == "draft"


def test_runs_of_this_and_of_another_living_process_go_on(services: Services):
    with worker_process() as process:
        assert process.stdout is not None
        living = [
            begun(services.database, worker) for worker in (current_worker_id(), process.stdout.readline().strip())
        ]
        assert end_interrupted_runs(services) == []
        assert [loaded(services.database, trace).trace.status for trace in living] == ["draft", "draft"]
        process.send_signal(signal.SIGKILL)
    assert len(end_interrupted_runs(services)) == 1
    assert [loaded(services.database, trace).trace.status for trace in living] == ["draft", "failed"]


@pytest.mark.parametrize("worker", ["another-host:1:2.00", ""])
def test_a_run_of_a_process_that_cannot_be_seen_is_ended_after_a_day_without_a_word(services: Services, worker: str):
    trace_id = begun(services.database, worker)
    assert end_interrupted_runs(services) == []
    later = utc_now() + IDLE_TIME + timedelta(minutes=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("showhow.runs.resume.utc_now", lambda: later)
        assert len(end_interrupted_runs(services)) == 1
    assert loaded(services.database, trace_id).trace.ending == "interrupted"


def test_a_person_s_draft_and_an_ended_run_are_not_touched(services: Services, killed_worker: str):
    trace_id = begun(services.database, killed_worker)
    with services.database.begin() as session:
        version = runs.trace_version(session, trace_id)
        runs.finish_run_trace(session, trace_id, RunOutcome("refused", "no demonstration fits"), seen=version)
    assert end_interrupted_runs(services) == []
    record = loaded(services.database, trace_id)
    assert (record.trace.ending, record.trace.failure) == ("refused", "no demonstration fits")
    assert record.run is not None
    # The process was killed between the ending of the trace and that of the run.
    assert record.run.finished_at is not None


def test_a_verification_stays_open_to_be_continued(services: Services, killed_worker: str):
    trace_id = begun(services.database, killed_worker, name="verify")
    [message] = end_interrupted_runs(services)
    assert message.endswith("continue it with `showhow verify`.")
    record = loaded(services.database, trace_id)
    assert record.trace.ending == "interrupted"
    assert record.run is not None
    assert record.run.finished_at is None


def test_a_run_that_is_continued_at_the_same_moment_is_left_alone(services: Services, killed_worker: str):
    trace_id = begun(services.database, killed_worker)
    with services.database.read() as session:
        [listed] = list_unfinished_traces(session)
    with services.database.begin() as session:
        runs.reopen_run_trace(session, trace_id)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("showhow.db.runs.runs.list_unfinished_traces", lambda _: [listed])
        assert end_interrupted_runs(services) == []
    assert loaded(services.database, trace_id).trace.status == "draft"
