"""Imports are all or nothing, also when they are stopped or killed, and hold nobody up."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from showhow.app.cli.run import clear_leftovers
from showhow.db import batches
from showhow.db.database import Database, StoreError
from showhow.db.models import Project, Question, Step, Trace, User
from showhow.db.people.users import register_user
from showhow.db.questions.projects import create_project
from showhow.db.questions.question_record import QuestionRecord
from showhow.fewshot_library.formats import SHOWHOW
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.tasks.imports import QuestionImportPlan, import_questions
from tests.app.cli.in_process import run_in_process
from tests.db.test_merge import copy_as
from tests.fewshot_library.traces import export, plain_trace

pytestmark = pytest.mark.long

PATIENCE = 120.0


@pytest.fixture
def services(tmp_path):
    """The services of a home of its own, on SQLite."""
    opened = open_services(tmp_path / "home")
    yield opened
    opened.close()


def open_services(home: Path) -> Services:
    """Services with the settings of that home only."""
    home.mkdir(exist_ok=True)
    values = {"SHOWHOW_HOME": str(home)}
    opened = Services(Settings.from_env(values), values)
    assert opened.database is not None
    return opened


def write_chats(file: Path, count: int) -> Path:
    """A file of chats, each with a question and an answer of its own."""
    with file.open("w") as stream:
        for number in range(count):
            messages = [{"role": "user", "content": f"Who built quay {number}?"}]
            messages += [{"role": "assistant", "content": f"Ada {number}"}]
            stream.write(json.dumps({"messages": messages}) + "\n")
    return file


def start_import(home: Path, *words: str) -> "subprocess.Popen[str]":
    """`showhow` in a process of its own."""
    entry = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from showhow.app.cli.main import main; main()"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SHOWHOW_")}
    return subprocess.Popen(
        [sys.executable, "-c", entry, *words],
        env={**environ, "SHOWHOW_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    """Wait for a condition while the process works."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, "it ended too early"
        assert time.monotonic() < deadline
        time.sleep(0.005)


def count_rows(database: Database, kind: Any) -> int:
    """The number of stored rows of a kind."""
    with database.read() as session:
        return session.scalar(select(func.count()).select_from(kind)) or 0


@pytest.mark.parametrize("stored", [0, 1, 700])
def test_an_import_whose_process_is_killed_goes_on_at_the_next_start_with_each_trace_once(services, tmp_path, stored):
    file = write_chats(tmp_path / "chats.jsonl", 1_500)
    process = start_import(services.settings.home, "traces", "import", str(file))
    imports = services.settings.imports_folder
    if stored:
        wait_until(lambda: count_rows(services.database, Trace) >= stored, process)
    else:
        wait_until(lambda: any(imports.glob("*-import/file/*")), process)
    process.kill()
    process.communicate()
    interrupted = count_rows(services.database, Trace)
    assert interrupted < 1_500
    # The file is not needed any more.
    file.unlink()
    sentences = clear_leftovers(services)
    expected = 1_500 if sentences else 0
    assert bool(sentences) or not stored
    assert all("Finished the import of" in sentence for sentence in sentences)
    assert [count_rows(services.database, kind) for kind in (Trace, Question)] == [expected, expected]
    with services.database.read() as session:
        texts = set(session.scalars(select(Question.text)))
    assert texts == {f"Who built quay {number}?" for number in range(expected)}
    assert list(imports.iterdir()) == []
    assert clear_leftovers(services) == []


def test_an_import_that_is_stopped_is_undone_as_a_whole(services, tmp_path):
    file = write_chats(tmp_path / "chats.jsonl", 1_500)
    kinds = (Trace, Step, Question, Project, User)
    before = [count_rows(services.database, kind) for kind in kinds]
    process = start_import(services.settings.home, "traces", "import", str(file))
    wait_until(lambda: count_rows(services.database, Trace) >= 300, process)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert (process.returncode, stdout) == (1, "")
    assert stderr.endswith("showhow: The import was stopped; nothing was imported.\n")
    assert [count_rows(services.database, kind) for kind in kinds] == before
    assert list(services.settings.imports_folder.iterdir()) == []


def test_what_the_store_refuses_in_a_later_batch_takes_the_earlier_ones_back(services, tmp_path, monkeypatch):
    # Every trace is a batch of its own.
    monkeypatch.setattr(batches, "HOLD_SECONDS", 0.0)
    first = plain_trace()
    file = tmp_path / "own.jsonl"
    export(SHOWHOW, [first, copy_as(first.question.id, first)], file)
    done = run_in_process(services.settings.home, "traces", "import", file)
    assert done.returncode == 1
    assert "contradicts the stored data" in done.stderr
    assert done.stderr.endswith("no trace was imported\n")
    assert [count_rows(services.database, kind) for kind in (Trace, Step, Question)] == [0, 0, 0]


def test_undoing_an_import_leaves_what_others_have_changed_since(services, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "HOLD_SECONDS", 0.0)
    records = [{"question": f"Who built quay {number}?", "answer": "Ada"} for number in range(4)]
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    answered: list[Any] = []

    def interrupt(_: Any, session: Any) -> None:
        stored = list(session.scalars(select(Question)))
        if len(stored) == 2:
            answered.append(stored[0].id)
            session.add(Trace(question_id=stored[0].id))
        if len(stored) == 3:
            raise StoreError("no more")

    original = batches.write_in_batches

    def write(*arguments: Any, end_batch: Any, **options: Any) -> None:
        def end(session: Any) -> None:
            end_batch(session)
            interrupt(None, session)

        original(*arguments, end_batch=end, **options)

    monkeypatch.setattr("showhow.tasks.imports.write_in_batches", write)
    with pytest.raises(StoreError, match="no more"):
        import_questions(services, file, QuestionImportPlan("Quays", "isle"))
    with services.database.read() as session:
        assert [question.id for question in session.scalars(select(Question))] == answered


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_others_write_while_an_import_works(tmp_path, store, request):
    opened = open_services(tmp_path / "home")
    request.addfinalizer(opened.close)
    database, environ = opened.database, {}
    if store == "postgresql":
        url = request.getfixturevalue("postgresql_server").create_database("imports")
        database, environ = Database(url), {"SHOWHOW_DATABASE_URL": url}
        request.addfinalizer(database.close)
        run_in_process(tmp_path / "home", "db", "upgrade", **environ)
    file = tmp_path / "questions.jsonl"
    file.write_text(
        "".join(json.dumps({"question": f"Who built quay {n}?", "answer": "Ada"}) + "\n" for n in range(30_000))
    )
    command = ("questions", "import", str(file), "--project", "Quays")
    with database.begin() as session:
        create_project(session, "Quays", "isle")
    process = subprocess.Popen(
        [sys.executable, "-c", "from showhow.app.cli.main import main; main()", *command],
        env={**os.environ, "SHOWHOW_HOME": str(tmp_path / "home"), **environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    waits = []
    wait_until(lambda: count_rows(database, Question) > 0, process)
    while process.poll() is None:
        started = time.monotonic()
        with database.begin() as session:
            register_user(session, f"visitor {len(waits)}")
        waits.append(time.monotonic() - started)
    stderr = process.communicate()[1]
    assert process.returncode == 0, stderr
    assert count_rows(database, Question) == 30_000
    # An import in one transaction would have let none or one of them in; a wait is some 0.3 s on a quiet machine.
    assert len(waits) > 3
    assert sorted(waits)[len(waits) // 2] < 1.0


def test_a_question_file_that_is_imported_again_adds_nothing(services, tmp_path):
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps({"question": "Who?", "answer": "Ada"}) + "\n")
    plan = QuestionImportPlan("Quays", "isle", guidelines="Look twice.")
    assert [import_questions(services, file, plan).counts.added for _ in range(2)] == [1, 0]
    assert list(plan.iter_records(file)) == [QuestionRecord("Who?", gold_answers=[{"text": "Ada", "entity": None}])]
    with services.database.read() as session:
        assert session.scalar(select(Project.guidelines)) == "Look twice."
