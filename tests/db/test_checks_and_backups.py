"""Checks and backups of a database."""

import hashlib
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from showhow.db.database import Database, StoreError
from showhow.db.storage.backup import back_up_database
from showhow.db.storage.schema import check_database, latest_revision
from showhow.db.traces import recording


def test_the_check_of_an_empty_database_says_to_upgrade(empty_database):
    (finding,) = check_database(empty_database)
    assert "run `showhow db upgrade`" in finding


def test_the_check_finds_each_kind_of_damage(scene):
    with scene.database.begin() as session:
        trace = recording.start_trace(session, scene.questions[0].id, scene.ada.id)
        recording.begin_step(session, trace.id, recording.NewStep("one"), seen=trace.version, by=trace.author_id)
    with scene.database.begin() as session:
        session.execute(text("UPDATE step SET position = 3"))
        session.execute(text("UPDATE question SET completed = 2 WHERE position = 1"))
    problems = check_database(scene.database)
    assert any("numbered from 3 to 3" in finding for finding in problems)
    assert any("0 people completed it, but the stored count is 2" in problem for problem in problems)
    with scene.database.begin() as session:
        session.execute(text("UPDATE step SET position = 1"))
        session.execute(text("UPDATE question SET completed = 0"))


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_check_finds_a_reference_to_a_missing_row(tmp_path, scene):
    copy = tmp_path / "copy.db"
    back_up_database(scene.database, copy)
    with sqlite3.connect(copy) as raw:
        raw.execute("UPDATE question SET project_id = 'x'")
    raw.close()
    store = Database(f"sqlite:///{copy}")
    assert any("refers to a missing project" in finding for finding in check_database(store))
    store.close()


def test_a_backup_is_a_complete_database_and_overwrites_no_file(tmp_path, scene, monkeypatch):
    programs = max(map(str, Path("/usr/lib/postgresql").glob("*/bin")), default="")
    monkeypatch.setenv("PATH", programs, prepend=":")
    target = tmp_path / "backup"
    back_up_database(scene.database, target)
    with pytest.raises(StoreError, match="already exists"):
        back_up_database(scene.database, target)
    with pytest.raises(StoreError, match="there is no folder"):
        back_up_database(scene.database, tmp_path / "nowhere" / "backup")
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []
    if scene.database.is_sqlite:
        copy = Database(f"sqlite:///{target}")
        assert check_database(copy) == []
        with copy.read() as session:
            assert session.execute(text("SELECT count(*) FROM question")).scalar() == 3
        copy.close()
    else:
        listed = subprocess.run([shutil.which("pg_restore"), "-l", target], check=True, capture_output=True, text=True)
        assert "TABLE DATA public question" in listed.stdout


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_backup_without_pg_dump_says_what_to_install(tmp_path, scene, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreError, match="install PostgreSQL's client programs"):
        back_up_database(scene.database, tmp_path / "backup")


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_the_programs_of_postgresql_get_no_secrets_of_others(tmp_path, scene, monkeypatch):
    (tmp_path / "pg_dump").write_text(f"#!/bin/sh\nenv > {tmp_path}/seen\necho $0 $* >> {tmp_path}/seen\nexit 1\n")
    (tmp_path / "pg_dump").chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-another")
    monkeypatch.setenv("PGSSLMODE", "prefer")
    store = Database(scene.database.url.set(password="word"))  # noqa: S106 - of no server
    with pytest.raises(StoreError, match="pg_dump failed"):
        back_up_database(store, tmp_path / "backup")
    seen = (tmp_path / "seen").read_text()
    assert "key-of-another" not in seen
    assert "PGPASSWORD=word\n" in seen
    assert "PGSSLMODE=prefer\n" in seen
    assert seen.count("word") == 1
    store.close()


def test_the_check_of_a_newer_database_says_to_update_the_program(database):
    with database.begin() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    (finding,) = check_database(database)
    assert "revision 9999" in finding
    assert finding.endswith("update the program")
    with database.begin() as session:
        session.execute(text("UPDATE alembic_version SET version_num = :at"), {"at": latest_revision()})


@pytest.fixture(params=["all pages", "some pages"])
def foreign_log(request: pytest.FixtureRequest, tmp_path: Path) -> bytes:
    """The -wal of another database."""
    path = tmp_path / "foreign.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE x (y)")
        if request.param == "some pages":
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        other.executemany("INSERT INTO x VALUES (?)", [("z" * 500,)] * 500)
        other.commit()
        return path.with_name("foreign.db-wal").read_bytes()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_check_names_a_log_of_another_database_and_changes_nothing(tmp_path, scene, foreign_log):
    copy, wal = tmp_path / "copy.db", tmp_path / "copy.db-wal"
    back_up_database(scene.database, copy)
    with closing(sqlite3.connect(copy)) as raw:
        raw.execute("PRAGMA journal_mode = WAL")
    wal.write_bytes(foreign_log)
    before = [hashlib.sha256(file.read_bytes()).digest() for file in (copy, wal)]
    store = Database(f"sqlite:///{copy}")
    for _ in range(2):
        (finding,) = check_database(store)
        assert "copy.db is sound, but copy.db-wal beside it belongs to another database" in finding
        assert "move copy.db-wal and copy.db-shm away, or restore a backup with `showhow db restore FILE`" in finding
    assert [hashlib.sha256(file.read_bytes()).digest() for file in (copy, wal)] == before
    wal.unlink()
    tmp_path.joinpath("copy.db-shm").unlink(missing_ok=True)
    assert check_database(store) == []
    store.close()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("damage", ["cut", "overwritten", "a letter"])
def test_the_check_of_a_damaged_file_says_to_restore_a_backup(tmp_path, scene, damage):
    copy = tmp_path / "copy.db"
    back_up_database(scene.database, copy)
    content = copy.read_bytes()
    middle = len(content) // 2
    copy.write_bytes(
        {
            "cut": content[:middle],
            "overwritten": content[:8192] + b"\xff" * 16384 + content[24576:],
            "a letter": b"Dear Ada, " * 1000,
        }[damage]
    )
    store = Database(f"sqlite:///{copy}")
    (finding,) = check_database(store)
    assert "is damaged or not a database" in finding
    assert "restore a backup with `showhow db restore FILE`" in finding
    assert "\n" not in finding
    store.close()
