"""Verbs at work beside a server, really started."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.widgets.job_panel import Job, JobRegistry
from worlds.folder import WorldError, list_world_names
from worlds.open import read_world_metadata

ISLE = Path(__file__).resolve().parents[2] / "worlds" / "isle.jsonl"


def until(state: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not state():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def over(job: Job) -> Job:
    until(lambda: job.state != "running")
    return job


@pytest.fixture
def worlds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of worlds of a home of its own, which the jobs work in."""
    monkeypatch.setenv("SHOWHOW_HOME", str(tmp_path))
    return tmp_path / "worlds"


@pytest.fixture
def jobs() -> Iterator[JobRegistry]:
    found = JobRegistry()
    yield found
    found.stop_all()


def test_a_job_does_its_verb_and_its_scratch_folder_goes(jobs, worlds, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "articles.jsonl").write_bytes(ISLE.read_bytes())
    words = ["world", "import", "isle", f"--articles={scratch / 'articles.jsonl'}"]
    job = jobs.start("isle", "Importing", words, scratch)
    assert jobs.all() == [job]
    assert over(job).state == "done"
    assert read_world_metadata(worlds, "isle")["articles"] == 7
    assert not scratch.exists()
    took = job.seconds
    jobs.dismiss(job)
    assert jobs.all() == []
    assert job.seconds == took


def test_a_job_that_fails_says_why_in_one_sentence(jobs, worlds):
    job = over(jobs.start("isle", "Importing", ["world", "import", "isle", "--articles=/nowhere"]))
    assert job.state == "failed"
    assert job.last_message.startswith("/nowhere: there is no such file or folder")
    assert list_world_names(worlds) == []


def test_a_stopped_job_leaves_nothing_half_made(jobs, worlds):
    job = jobs.start("crowd", "Generating", ["world", "generate", "crowd", "--people=60000"])
    # In the middle of its work: the folder that is being filled is there.
    until(lambda: worlds.is_dir() and any(worlds.iterdir()))
    with pytest.raises(WorldError, match="being made already"):
        jobs.start("crowd", "Generating", ["world", "generate", "crowd"])
    jobs.dismiss(job)
    assert jobs.all() == [job], "a running job cannot be forgotten"
    job.stop()
    job.stop()
    assert over(job).state == "stopped"
    assert list(worlds.iterdir()) == []
    again = over(jobs.start("crowd", "Generating", ["world", "generate", "crowd", "--people=20"]))
    assert again.state == "done", again.last_message
    assert jobs.all() == [again]


def test_the_last_line_tells_how_much_is_done(jobs):
    job = over(jobs.start("none", "Listing", ["world", "list"]))
    for said, share in {
        "articles: 250 of 1,000, 80 a second, 9 s left": 0.25,
        "graph: 12.5 % done": 0.125,
        "people: 1,000 in 0.3 s": None,
        "": None,
        "2,000 of 1,000": 1.0,
        "0 of 0": None,
    }.items():
        job.last_message = said
        assert job.progress == share
