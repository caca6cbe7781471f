"""Background jobs, started as real processes."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from showhow.app.jobs import Job, JobError, JobRegistry, create_upload_folder
from showhow.fiction.universe.options import GenerationOptions
from showhow.tasks.progress import parse_progress_event
from showhow.tasks.task import dump_call
from showhow.tasks.worlds import GenerateWorld, ImportWorld, generate, import_
from showhow.worlds.folder import list_world_names
from showhow.worlds.open import read_world_metadata

pytestmark = pytest.mark.long

ISLE = Path(__file__).resolve().parents[1] / "worlds" / "isle.jsonl"


def import_isle(articles: str | Path) -> str:
    return dump_call(import_, ImportWorld(name="isle", articles=Path(articles)))


def generate_crowd(people: int) -> str:
    return dump_call(generate, GenerateWorld(name="crowd", options=GenerationOptions(people=people)))


def wait_until(state: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not state():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_for_end(job: Job) -> Job:
    wait_until(lambda: job.state != "running")
    return job


@pytest.fixture
def worlds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of worlds of a temporary home, which the jobs use."""
    monkeypatch.setenv("SHOWHOW_HOME", str(tmp_path))
    return tmp_path / "worlds"


@pytest.fixture
def jobs() -> Iterator[JobRegistry]:
    registry = JobRegistry()
    yield registry
    registry.stop_all()


def test_a_job_runs_its_task_and_removes_its_scratch_folder(jobs, worlds, tmp_path):
    scratch = create_upload_folder(tmp_path / "uploads", "isle")
    (scratch.path / "articles.jsonl").write_bytes(ISLE.read_bytes())
    call = import_isle(scratch.path / "articles.jsonl")
    job = jobs.start("world", "isle", "Importing", call, scratch, person_id=None)
    assert jobs.list_jobs("world") == [job]
    assert wait_for_end(job).state == "done"
    assert read_world_metadata(worlds, "isle")["articles"] == 7
    assert list((tmp_path / "uploads").iterdir()) == []
    seconds = job.seconds
    jobs.dismiss(job)
    assert jobs.list_jobs("world") == []
    assert job.seconds == seconds


def test_a_failed_job_has_its_error_as_one_sentence(jobs, worlds):
    job = wait_for_end(jobs.start("world", "isle", "Importing", import_isle("/nowhere"), person_id=None))
    assert job.state == "failed"
    assert job.error.startswith("/nowhere: there is no such file or folder")
    assert list_world_names(worlds) == []


def test_a_stopped_job_removes_the_unfinished_world(jobs, worlds):
    job = jobs.start("world", "crowd", "Generating", generate_crowd(60_000), person_id=None)
    # The work has begun once the unfinished folder exists.
    wait_until(lambda: worlds.is_dir() and any(worlds.iterdir()))
    with pytest.raises(JobError, match="already running"):
        jobs.start("world", "crowd", "Generating", generate_crowd(1000), person_id=None)
    jobs.dismiss(job)
    assert jobs.list_jobs("world") == [job], "a running job cannot be forgotten"
    job.stop()
    job.stop()
    assert wait_for_end(job).state == "stopped"
    assert list(worlds.iterdir()) == []
    again = wait_for_end(jobs.start("world", "crowd", "Generating", generate_crowd(20), person_id=None))
    assert again.state == "done", again.message
    assert jobs.list_jobs("world") == [again]


TAKES_BACK = """
import signal, time
def take_back(*_):
    for count in range(60 * {talks}):
        print('{{"event": "progress", "message": "x", "done": %d, "total": 60}}' % count, file=sys.stderr, flush=True)
        time.sleep(0.1)
    time.sleep({silent_seconds})
    raise SystemExit(1)
import sys
signal.signal(signal.SIGINT, take_back)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(("talks", "silent_seconds", "is_killed"), [(1, 0, False), (0, 60, True)])
def test_a_stopped_job_may_clean_up_for_as_long_as_it_reports_progress(
    monkeypatch: pytest.MonkeyPatch, talks: int, silent_seconds: int, *, is_killed: bool
):
    monkeypatch.setattr("showhow.app.jobs._GRACE_SECONDS", 3.0)
    program = TAKES_BACK.format(talks=talks, silent_seconds=silent_seconds)
    command = [sys.executable, "-c", program]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    job = Job("import", "Mine", "Importing into", subprocess.Popen(command, **pipes))  # type: ignore[call-overload]
    Thread(target=job.read_progress, daemon=True).start()
    assert job.process.stdout.readline() == "ready\n"
    job.stop()
    assert wait_for_end(job).was_killed == is_killed
    assert job.seconds >= 3.0
    job.process.stdout.close()


def test_progress_is_parsed_from_json_lines_and_other_lines_are_ignored(jobs, worlds):
    job = wait_for_end(jobs.start("world", "crowd", "Generating", generate_crowd(20), person_id=None))
    assert job.last_event.event in {"progress", "note"}
    assert job.message == job.last_event.message
    for line, share in {
        '{"event": "progress", "message": "x", "stage": "graph", "done": 250, "total": 1000}': 0.25,
        '{"event": "progress", "message": "x", "stage": "people", "done": 7, "total": 0}': None,
        '{"event": "progress", "message": "x", "done": 2000, "total": 1000}': 1.0,
        '{"event": "note", "message": "250 of 1,000"}': None,
    }.items():
        assert parse_progress_event(line).fraction == share
    for line in ("12 of 30", "", "[]", "{}", '{"event": "note"}', "Warning: 3 of 4"):
        assert parse_progress_event(line) is None


def test_the_registry_finds_a_job_by_kind_and_name(jobs, worlds):
    job = jobs.start("world", "isle", "Importing", import_isle(ISLE), person_id=None)
    assert jobs.find("world", "isle") is job
    assert jobs.find("usage", "isle") is None
    assert wait_for_end(job).state == "done"
    assert jobs.find("world", "isle") is job
