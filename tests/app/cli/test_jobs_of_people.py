"""Verbs that pages start as jobs: they act as the person who started them, whom the store checks."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from showhow.app.cli.setup import DEFAULT_PROJECT
from showhow.app.jobs import JobRegistry
from showhow.db.database import Database
from showhow.db.models import User
from showhow.db.people import users
from showhow.db.questions.projects import get_project
from showhow.db.runs import verifications
from showhow.db.traces import libraries
from showhow.tasks.library import FreezeLibrary, freeze
from showhow.tasks.task import dump_call
from tests.app.cli.in_process import run_in_process
from tests.app.test_jobs import wait_for_end
from tests.browser.server import copy_prepared_home

pytestmark = pytest.mark.long

ISLE = Path(__file__).resolve().parents[2] / "worlds" / "isle.jsonl"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs") / "home"
    copy_prepared_home(folder)
    return folder


@pytest.fixture(scope="module")
def store(home: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{home / 'showhow.db'}")
    yield database
    database.close()


@pytest.fixture(scope="module")
def people(store: Database) -> dict[str, User]:
    """ada may do everything, ben reviews, cleo annotates, and dan has no role."""
    with store.begin() as session:
        named = {name: users.register_user(session, name) for name in ("ada", "ben", "cleo")}
        users.set_roles(session, "ben", [users.REVIEWER])
        return named | {"dan": users.find_or_add_author(session, "dan")}


REVIEWERS_WORK = {
    "verify": ["verify", "--project", DEFAULT_PROJECT, "--limit", "1"],
    "freeze": ["library", "freeze", "mine"],
    "run again": ["traces", "replay"],
}
ADMINISTRATORS_WORK = {
    "backup": ["backup", "{home}/backups"],
    "world": ["world", "import", "isle", f"--articles={ISLE}"],
    "generate": ["world", "generate", "crowd", "--people=20"],
    "questions": ["questions", "import", "{home}/questions.jsonl", "--project", DEFAULT_PROJECT],
    "traces": ["traces", "import", "{home}/traces.jsonl"],
    "project": ["project", "edit", DEFAULT_PROJECT, "--overlap", "3"],
    "tools": ["project", "tools", DEFAULT_PROJECT, "--set", "read"],
    "roles": ["users", "role", "cleo", "admin"],
    "people": ["users", "add", "somebody"],
}


def run_as(home: Path, person_id: UUID, words: list[str]) -> tuple[int, str]:
    """Run a verb as a job of the person; returns its status and what it printed about a failure."""
    (home / "questions.jsonl").write_text(json.dumps({"question": "Who?", "answer": "Ada"}), encoding="utf-8")
    traces = home / "traces.jsonl"
    if not traces.exists():
        run_in_process(home, "traces", "export", str(traces), "--status", "approved")
    completed = run_in_process(home, f"--person={person_id}", *(word.format(home=home) for word in words))
    return completed.returncode, completed.stderr


@pytest.mark.parametrize("work", [*REVIEWERS_WORK, *ADMINISTRATORS_WORK])
def test_a_job_of_an_annotator_is_refused_with_who_may_do_it(home, people, work):
    status, said = run_as(home, people["cleo"].id, (REVIEWERS_WORK | ADMINISTRATORS_WORK)[work])
    needed = "a reviewer or admin" if work in REVIEWERS_WORK else "an admin"
    assert (status, f"cleo is not {needed}" in said, "Traceback" in said) == (1, True, False)


@pytest.mark.parametrize("work", ["freeze", "backup"])
def test_a_job_of_a_person_without_a_role_is_refused(home, people, work):
    status, said = run_as(home, people["dan"].id, (REVIEWERS_WORK | ADMINISTRATORS_WORK)[work])
    assert (status, "'dan' has no role here" in said, "Traceback" in said) == (1, True, False)
    assert run_as(home, uuid4(), ["library", "freeze", "mine"])[1].strip().endswith("reload the page")


@pytest.mark.parametrize("work", ["traces", "generate"])
def test_a_reviewer_does_no_work_of_administrators(home, people, work):
    status, said = run_as(home, people["ben"].id, ADMINISTRATORS_WORK[work])
    assert (status, "ben is not an admin" in said) == (1, True)


def test_what_a_reviewers_job_stores_is_the_reviewers(home, store, people):
    assert run_as(home, people["ben"].id, REVIEWERS_WORK["freeze"]) == (0, "")
    with store.read() as session:
        assert libraries.find_version(session, "mine").card["by"] == "ben"
    status, said = run_as(home, people["ben"].id, [*REVIEWERS_WORK["verify"], "--reasoner", "replay"])
    assert status == 0, said
    with store.read() as session:
        (run,) = verifications.list_verifications(session, get_project(session, DEFAULT_PROJECT).id)
        assert run.spec.asked_by == "ben"


def test_a_job_of_a_page_is_a_process_that_acts_as_its_person(home, store, people, monkeypatch):
    monkeypatch.setenv("SHOWHOW_HOME", str(home))
    registry = JobRegistry()
    try:
        call = dump_call(freeze, FreezeLibrary(name="jobs"))
        refused = wait_for_end(registry.start("freezing", "cleo", "Freezing", call, person_id=people["cleo"].id))
        assert (refused.state, "cleo is not a reviewer or admin" in refused.error) == ("failed", True)
        done = wait_for_end(registry.start("freezing", "ada", "Freezing", call, person_id=people["ada"].id))
        assert done.state == "done", done.error
    finally:
        registry.stop_all()
    with store.read() as session:
        assert libraries.find_version(session, "jobs").card["by"] == "ada"
