"""Restoring a backup: what is restored, what is kept, what is refused, and kills at any moment."""

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from showhow.db.database import Database, StoreError, StoreUnavailable
from showhow.db.questions import projects
from showhow.db.sqlite_files import commit_restored_file, restore_lock
from showhow.db.storage.backup import back_up_database
from showhow.db.storage.restore import remove_abandoned_copy, restore_database
from showhow.db.storage.schema import check_database, current_revision, downgrade, latest_revision, upgrade
from tests.db.conftest import full_disk

pytestmark = pytest.mark.long

SQLITE = ["sqlite"]
DEATHS = 16


@pytest.fixture(autouse=True)
def client_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find PostgreSQL's client programs also where they are not on the path."""
    programs = max(map(str, Path("/usr/lib/postgresql").glob("*/bin")), default="")
    monkeypatch.setenv("PATH", programs, prepend=":")


def add_project(store: Database, name: str) -> None:
    with store.begin() as session:
        projects.create_project(session, name, "w")


def names(store: Database) -> list[str]:
    with store.read() as session:
        return [project.name for project in projects.list_projects(session)]


@pytest.fixture
def backup(database: Database, tmp_path: Path) -> Path:
    """A backup with one project; the database has a second one."""
    add_project(database, "first")
    file = tmp_path / "backup"
    back_up_database(database, file)
    add_project(database, "second")
    return file


def test_a_restored_database_equals_the_backup_and_the_former_one_is_kept(database: Database, backup: Path):
    restored = restore_database(database, backup)
    assert (restored.revision, restored.findings) == (latest_revision(), [])
    assert names(database) == ["first"]
    add_project(database, "third")
    database.close()
    former = Database(
        f"sqlite:///{restored.former}" if database.is_sqlite else database.url.set(database=restored.former)
    )
    assert names(former) == ["first", "second"]
    assert check_database(former) == []
    former.close()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_what_a_killed_restore_left_on_postgresql_is_replaced(database: Database, backup: Path):
    engine = create_engine(database.url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        digest = sha256(str(database.url.database).encode()).hexdigest()[:32]
        connection.execute(text(f"CREATE DATABASE showhow_restoring_{digest}"))
        restore_database(database, backup)
        databases = set(connection.scalars(text("SELECT datname FROM pg_database")))
    engine.dispose()
    assert f"showhow_restoring_{digest}" not in databases
    assert names(database) == ["first"]


# PostgreSQL cuts names after 63 bytes.
@pytest.mark.parametrize("name", ["é" * 31 + "a", "é" * 29, "a" * 53 + "_restoring"])
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_the_former_database_has_the_name_that_is_reported(database: Database, backup: Path, name: str):
    engine = create_engine(database.url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
        store = Database(database.url.set(database=name))
        upgrade(store)
        add_project(store, "kept aside")
        restored = restore_database(store, backup)
        assert names(store) == ["first"]
        store.close()
        former = Database(database.url.set(database=restored.former))
        assert names(former) == ["kept aside"]
        former.close()
        for unused in (name, restored.former):
            connection.execute(text(f'DROP DATABASE "{unused}"'))
    engine.dispose()


def test_a_linked_database_is_restored_beside_the_file_that_the_link_leads_to(tmp_path: Path):
    (tmp_path / "disk").mkdir()
    link = tmp_path / "showhow.db"
    link.symlink_to(tmp_path / "disk" / "real.db")
    store = Database(f"sqlite:///{link}")
    upgrade(store)
    add_project(store, "first")
    back_up_database(store, tmp_path / "backup")
    add_project(store, "second")
    restored = restore_database(store, tmp_path / "backup")
    assert names(store) == ["first"]
    store.close()
    assert link.is_symlink()
    assert restored.former
    former = Database(f"sqlite:///{restored.former}")
    assert names(former) == ["first", "second"]
    former.close()


@pytest.fixture
def other_process(database: Database) -> Iterator["subprocess.Popen[str]"]:
    """A process that has read the database, keeps its connection and does nothing; it ends with its stdin."""
    program = (
        "import sys; from showhow.db.database import Database; from showhow.db.storage.schema import current_revision;"
        "store = Database(sys.argv[1]); print(current_revision(store), flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, database.url.render_as_string(hide_password=False)],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == latest_revision()
    yield process
    process.communicate()


def test_a_database_in_use_is_not_replaced(database: Database, backup: Path, other_process: "subprocess.Popen[str]"):
    with pytest.raises(StoreUnavailable, match="in use; stop `showhow run`"):
        restore_database(database, backup)
    assert names(database) == ["first", "second"]
    other_process.communicate()
    restore_database(database, backup)
    assert names(database) == ["first"]


def test_a_backup_of_an_older_version_is_upgraded(database: Database, tmp_path: Path):
    downgrade(database, "0003")
    back_up_database(database, tmp_path / "old")
    upgrade(database)
    restored = restore_database(database, tmp_path / "old")
    assert restored.revision == latest_revision() == current_revision(database)


def test_a_backup_of_a_newer_version_is_refused(database: Database, backup: Path, tmp_path: Path):
    with database.begin() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    back_up_database(database, tmp_path / "newer")
    restore_database(database, backup)
    with pytest.raises(StoreUnavailable, match=r"revision 9999.*update the program"):
        restore_database(database, tmp_path / "newer")
    assert names(database) == ["first"]


def test_what_is_no_backup_is_refused_and_nothing_is_replaced(database: Database, backup: Path, tmp_path: Path):
    whole = backup.read_bytes()
    (tmp_path / "letter").write_text("Dear Ada, " * 1000)
    (tmp_path / "empty").touch()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "folder").mkdir()
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE x (y)")
    for file in ("letter", "empty", "cut", "folder", "missing", "other.db"):
        with pytest.raises(StoreError) as refused:
            restore_database(database, tmp_path / file)
        assert "\n" not in str(refused.value)
        assert names(database) == ["first", "second"]


@pytest.mark.parametrize("database", SQLITE, indirect=True)
def test_a_sqlite_database_is_restored_whatever_lies_beside_it(database: Database, backup: Path):
    path = Path(database.url.database or "")
    wal = path.with_name("showhow.db-wal")
    database.close()
    foreign = path.with_name("foreign.db")
    with closing(sqlite3.connect(foreign)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.executescript("CREATE TABLE x (y); " + "INSERT INTO x VALUES (1);" * 50)
        logs = [b"not a wal", foreign.with_name("foreign.db-wal").read_bytes()]
    for log in logs:
        shutil.copy(backup, path)
        wal.write_bytes(log)
        restored = restore_database(Database(database.url), backup)
        assert names(database) == ["first"]
        assert check_database(database) == []
        database.close()
        assert Path(f"{restored.former}-wal").read_bytes() == log
    path.unlink()
    assert restore_database(Database(database.url), backup).former is None
    assert names(database) == ["first"]


@pytest.mark.parametrize("database", SQLITE, indirect=True)
def test_the_database_itself_is_no_backup(database: Database):
    with pytest.raises(StoreError, match="the database itself"):
        restore_database(database, Path(database.url.database or ""))


@pytest.mark.parametrize("database", SQLITE, indirect=True)
def test_one_process_restores_at_a_time(database: Database, backup: Path):
    with (
        restore_lock(Path(database.url.database or "")),
        pytest.raises(StoreUnavailable, match="another process restores"),
    ):
        restore_database(database, backup)


@pytest.mark.parametrize("database", SQLITE, indirect=True)
def test_a_restore_that_was_killed_after_its_commit_is_finished_by_the_next_opening(database: Database, backup: Path):
    path = Path(database.url.database or "")
    database.close()
    wal = path.with_name("showhow.db-wal")
    for has_database in (True, False):
        shutil.copy(backup, path.with_name("prepared"))
        commit_restored_file(path.with_name("prepared"), path, f"20261122T12000{int(has_database)}")
        if not has_database:
            path.unlink()
        wal.write_bytes(b"of the former database")
        with restore_lock(path), pytest.raises(StoreUnavailable, match="is being restored"):
            Database(database.url)
        opened = Database(database.url)
        assert names(opened) == ["first"]
        opened.close()
    assert len(list(path.parent.glob("showhow-before-restore-*.db-wal"))) == 2


@pytest.mark.parametrize("database", SQLITE, indirect=True)
def test_a_restore_killed_at_any_moment_leaves_a_whole_database(database: Database, backup: Path, tmp_path: Path):
    later = tmp_path / "later"
    back_up_database(database, later)
    database.close()
    script = Path(__file__).with_name("restorer.py")
    url = f"sqlite:///{database.url.database}"
    done = subprocess.run(
        [sys.executable, script, url, backup, later, str(DEATHS)], check=True, capture_output=True, text=True
    )
    states = done.stdout.splitlines()
    assert len(states) == DEATHS
    assert set(states) == {"first", "first,second"}
    restore_database(database, backup)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith((".showhow.db.restor",))] in (
        [],
        [".showhow.db.restore-lock"],
    )


@pytest.mark.parametrize("database", SQLITE, indirect=True)
def test_a_full_disk_replaces_nothing(database: Database, backup: Path, tmp_path: Path):
    folder = tmp_path / "disk"
    folder.mkdir()
    target = folder / "showhow.db"
    shutil.copy(backup, target)
    store = Database(f"sqlite:///{target}")
    add_project(store, "second")
    store.close()
    with full_disk(target.stat().st_size // 2):
        for attempt in (
            lambda: restore_database(store, backup),
            lambda: back_up_database(store, folder / "backup"),
        ):
            with pytest.raises(StoreError):
                attempt()
    assert names(store) == ["first", "second"]
    store.close()
    assert sorted(path.name for path in folder.iterdir()) == [".showhow.db.restore-lock", "showhow.db"]


@pytest.mark.parametrize("database", SQLITE, indirect=True)
def test_what_a_killed_restore_left_is_no_backup_and_is_removed_by_the_next_restore(database: Database, backup: Path):
    database.close()
    left = [backup.with_name(f".showhow.db.restoring{suffix}") for suffix in ("", "-wal")]
    shutil.copy(backup, left[0])
    left[1].write_bytes(b"")
    with pytest.raises(StoreError, match=r"interrupted restore left.*copy it to another name"):
        restore_database(database, left[0])
    assert left[0].read_bytes() == backup.read_bytes()
    restore_database(database, backup)
    assert [file for file in left if file.exists()] == []


def test_what_a_killed_restore_left_is_removed_at_the_next_start(database: Database, backup: Path):
    assert remove_abandoned_copy(database.url) == []
    digest = sha256(str(database.url.database).encode()).hexdigest()[:32]
    if database.is_sqlite:
        left = backup.with_name(".showhow.db.restoring")
        shutil.copy(backup, left)
        with restore_lock(Path(database.url.database or "")):
            assert remove_abandoned_copy(database.url) == []
    else:
        engine = create_engine(database.url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE showhow_restoring_{digest}"))
        engine.dispose()
    (sentence,) = remove_abandoned_copy(database.url)
    assert sentence.startswith("Removed the unfinished copy of a backup")
    assert remove_abandoned_copy(database.url) == []
    assert names(database) == ["first", "second"]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_user_who_may_not_make_databases_is_told_so(database: Database, backup: Path):
    with database.begin() as session:
        session.execute(text("DROP ROLE IF EXISTS limited"))
        session.execute(text("CREATE ROLE limited LOGIN"))
    database.close()
    with pytest.raises(StoreUnavailable, match="CREATEDB"):
        restore_database(Database(database.url.set(username="limited")), backup)
    assert names(database) == ["first", "second"]
    with database.begin() as session:
        session.execute(text("DROP ROLE limited"))


def test_backups_at_once_are_whole_and_only_one_gets_the_name(database: Database, backup: Path, tmp_path: Path):
    outcomes: list[str] = []

    def back_up() -> None:
        try:
            back_up_database(database, tmp_path / "same")
        except StoreError as error:
            outcomes.append(str(error))
        else:
            outcomes.append("done")

    threads = [threading.Thread(target=back_up) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("done") >= 1
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []
    restore_database(database, tmp_path / "same")
    assert names(database) == ["first", "second"]


def test_the_leftover_of_a_killed_backup_is_removed(database: Database, tmp_path: Path):
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    leftover, running = (tmp_path / f".b.{pid}-0a.part" for pid in (child.pid, os.getppid()))
    leftover.touch()
    running.touch()
    back_up_database(database, tmp_path / "b")
    assert (leftover.exists(), running.exists()) == (False, True)
