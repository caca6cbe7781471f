"""Moving a database between SQLite and PostgreSQL: nothing is lost, and a failure leaves the target empty."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.string import TextLoader
from sqlalchemy import select, text

from showhow.db.database import Database, StoreError
from showhow.db.models import Attempt, Question, Run, Step, Trace
from showhow.db.questions import projects
from showhow.db.storage.move import move_database
from showhow.db.storage.schema import check_database, downgrade, upgrade
from showhow.db.types import Base
from tests.app.cli.in_process import run_in_process
from tests.db.former_versions import export, fill, load_rows
from tests.servers.postgresql import PostgresqlServer

TEXTS = ["", "\\.", "\\N", "a\tb\nc\r\n\\", "'; DROP TABLE step; --", "ẞ 😀 \u2028 e\u0301", '"', "null", "{}"]
VALUES = ["", 0, -1, 2**53 + 1, 0.1 + 0.2, 1.5e-300, True, None, {"b": 1, "a": [1.0, -0.0, 10**30, None]}, [], "7", [7]]


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Database]:
    """A SQLite database with what a former version wrote, and with values that are hard to carry."""
    store = Database(f"sqlite:///{tmp_path / 'full.db'}")
    fill(store, "0012", load_rows(tmp_path, "0012"))
    upgrade(store)
    moment = datetime(1999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    with store.begin() as session:
        project = projects.create_project(session, "hard \N{SNOWMAN}", "w", instruction=TEXTS[5])
        question = Question(project_id=project.id, position=1, text="?", tags=["ä", "b c"], details={"n": VALUES})
        session.add(question)
        session.flush()
        trace = Trace(question_id=question.id, started_at=moment)
        session.add(trace)
        session.flush()
        steps = [
            Step(
                trace_id=trace.id,
                position=number + 1,
                thought=TEXTS[number % len(TEXTS)],
                arguments={"z": value, "a": TEXTS},
                data=value,
                latency=0.1 * number,
                started_at=moment + timedelta(microseconds=number),
            )
            for number, value in enumerate(VALUES)
        ]
        session.add_all(steps)
        session.flush()
        # A step that is stored before the one that it belongs to.
        steps[0].parent_id = steps[-1].id
    yield store
    store.close()


@pytest.fixture
def new_postgresql(postgresql_server: PostgresqlServer) -> Iterator[Callable[[], Database]]:
    made: list[Database] = []

    def make() -> Database:
        made.append(Database(postgresql_server.create_database(f"m{uuid4().hex}")))
        return made[-1]

    yield make
    for store in made:
        store.close()


def read_directly(database: Database) -> dict[str, list[str]]:
    """Every row of every table by the driver alone, in SQLite's values."""
    if database.is_sqlite:
        with closing(sqlite3.connect(database.url.database or "")) as connection:
            listed = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            return {name: _sorted(connection.execute(f'SELECT * FROM "{name}"')) for (name,) in listed}
    with psycopg.connect(database.connection_string) as driver:
        driver.adapters.register_loader("json", TextLoader)
        listed = driver.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
        return {name: _sorted(driver.execute(f'SELECT * FROM "{name}"')) for (name,) in listed}


def _sorted(cursor: Any) -> list[str]:
    names = [column[0] for column in cursor.description]
    return sorted(repr(sorted((name, _plain(value)) for name, value in zip(names, row, strict=True))) for row in cursor)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"
    if isinstance(value, UUID):
        return value.hex
    return int(value) if isinstance(value, bool) else value


def orders(database: Database) -> dict[str, list[Any]]:
    """The beginnings of the rows in the order in which the database returns them."""
    with database.read() as session:
        return {
            # All columns, so that no index is read in place of the table.
            table.name: [row[:2] for row in session.connection().execute(select(table))]
            for table in Base.metadata.sorted_tables
        }


def is_empty(database: Database) -> bool:
    with database.read() as session:
        if database.is_sqlite:
            return not session.scalar(text("SELECT count(*) FROM sqlite_schema"))
        return not session.scalar(text("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"))


def without_numbers(rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """SQLite keeps a JSON number alone as a number, PostgreSQL as its text; what both read is compared apart."""
    return {name: listed for name, listed in rows.items() if name != "step"}


def test_a_database_goes_to_postgresql_and_back_without_a_change(
    full: Database, new_postgresql: Callable[[], Database], tmp_path: Path
):
    file = Path(full.url.database or "")
    before, exported, order = read_directly(full), export(full, "showhow"), orders(full)
    assert sum(map(bool, before.values())) > 15
    bytes_before = sha256(file.read_bytes()).digest()
    middle, back = new_postgresql(), Database(f"sqlite:///{tmp_path / 'back.db'}")
    moved = move_database(full, middle)
    assert sha256(file.read_bytes()).digest() == bytes_before
    assert {name: contents.rows for name, contents in moved.tables.items()} == {
        name: len(before[name]) for name in moved.tables
    }
    assert without_numbers(read_directly(middle)) == without_numbers(before)
    assert (export(middle, "showhow"), orders(middle)) == (exported, order)
    again = move_database(middle, back)
    assert again.tables == moved.tables
    # Row by row as the driver reads them, numbers of JSON and their types too.
    assert (read_directly(back), export(back, "showhow"), orders(back)) == (before, exported, order)
    assert check_database(back) == check_database(middle) == check_database(full)
    back.close()


def test_a_database_that_postgresql_wrote_comes_back_from_sqlite_without_a_change(
    full: Database, new_postgresql: Callable[[], Database], tmp_path: Path
):
    first, last = new_postgresql(), new_postgresql()
    file = Database(f"sqlite:///{tmp_path / 'between.db'}")
    move_database(full, first)
    with first.begin() as session:
        trace_id = session.scalars(select(Trace.id)).first()
        session.add_all(
            Step(trace_id=trace_id, position=100 + number, data=value, tool=TEXTS[number % len(TEXTS)])
            for number, value in enumerate(VALUES)
        )
    move_database(first, file)
    move_database(file, last)
    assert read_directly(last) == read_directly(first)
    file.close()


def test_a_target_that_is_not_empty_is_refused_and_stays_as_it_is(
    full: Database, new_postgresql: Callable[[], Database], tmp_path: Path
):
    used = Database(f"sqlite:///{tmp_path / 'used.db'}")
    upgrade(used)
    beside = new_postgresql()
    with beside.begin() as session:
        session.execute(text("CREATE TABLE trace (x int)"))
    for target in (used, full, beside):
        before = read_directly(target)
        with pytest.raises(StoreError, match="the target is not empty"):
            move_database(full, target)
        assert read_directly(target) == before
    used.close()
    # Tables of other programs stay beside ours.
    shared = new_postgresql()
    with shared.begin() as session:
        session.execute(text("CREATE TABLE other_program (x int)"))
    move_database(full, shared)
    assert "other_program" in read_directly(shared)


def test_what_the_other_database_cannot_hold_moves_nothing(full: Database, new_postgresql: Callable[[], Database]):
    target = new_postgresql()
    for damage, repair in (
        ("UPDATE trace SET author_id = '00000000000000000000000000000001'", "UPDATE trace SET author_id = NULL"),
        ("UPDATE question SET text = 'a' || char(0) || 'b'", "UPDATE question SET text = 'a'"),
        ("UPDATE question SET completed = 'many'", "UPDATE question SET completed = 0"),
    ):
        with closing(sqlite3.connect(full.url.database or "")) as connection:
            connection.execute(damage)
            connection.commit()
            with pytest.raises(StoreError) as refusal:
                move_database(full, target)
            assert "\n" not in str(refusal.value)
            assert is_empty(target)
            connection.execute(repair)
            connection.commit()
    move_database(full, target)


def test_only_a_database_of_this_version_is_moved(full: Database, new_postgresql: Callable[[], Database]):
    downgrade(full, "0012")
    with pytest.raises(StoreError, match="showhow db upgrade"):
        move_database(full, new_postgresql())


def test_work_that_goes_on_in_the_former_database_is_named(full: Database, new_postgresql: Callable[[], Database]):
    with full.begin() as session:
        question = session.scalars(select(Question)).first()
        assert question is not None
        run = Run(name="ask", reasoner="humaniq", world="w")
        session.add(run)
        session.flush()
        attempt = Attempt(run_id=run.id, question_id=question.id, position=1, state="leased")
        session.add_all([Trace(question_id=question.id, run_id=run.id, reasoner="humaniq"), attempt])
    findings = move_database(full, new_postgresql()).findings
    assert [finding.partition(":")[0] for finding in findings] == [
        "1 runs that have not ended",
        "1 attempts that workers have",
    ]


KILLED_MOVE = """
import os, sys
from showhow.db.database import Database
from showhow.db.storage import move
tables = [0]
copy = move._copy_table
def copy_some(*arguments):
    tables[0] += 1
    if tables[0] == 12:
        os.kill(os.getpid(), 9)
    return copy(*arguments)
move._copy_table = copy_some
move.move_database(Database(sys.argv[1]), Database(sys.argv[2]))
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_move_that_is_killed_leaves_an_empty_target_and_goes_through_the_next_time(
    full: Database, new_postgresql: Callable[[], Database], tmp_path: Path, kind: str
):
    target = new_postgresql() if kind == "postgresql" else Database(f"sqlite:///{tmp_path / 'target.db'}")
    address = target.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", KILLED_MOVE, str(full.url), address]
    killed = subprocess.run(command, check=False, capture_output=True, env=dict(os.environ))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert is_empty(target)
    move_database(full, target)
    target.close()


def test_the_verb_moves_the_database_of_the_home_and_shows_no_password(
    full: Database, new_postgresql: Callable[[], Database], tmp_path: Path
):
    target = new_postgresql()
    address = target.connection_string.replace("postgres@", "postgres:hidden@")
    environ = {"SHOWHOW_DATABASE_URL": str(full.url)}
    done = run_in_process(tmp_path, "db", "move", address, **environ)
    assert done.returncode == 0, done.stderr
    assert "their digests are equal" in done.stdout
    assert "hidden" not in done.stdout
    refused = run_in_process(tmp_path, "db", "move", address, **environ)
    assert (refused.returncode, "not empty" in refused.stderr) == (1, True)
