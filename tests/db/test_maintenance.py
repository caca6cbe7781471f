"""Checks and backups of a database."""

import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import text

from db import recording
from db.database import Database, StoreError
from db.maintenance import back_up_database, check_database

POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))


def test_the_check_of_an_empty_database_says_to_upgrade(empty_database):
    (finding,) = check_database(empty_database)
    assert "run `showhow db upgrade`" in finding


def test_the_check_finds_each_kind_of_damage(scene):
    with scene.database.begin() as session:
        trace = recording.start_trace(session, scene.questions[0].id, scene.ada.id)
        recording.begin_step(session, trace.id, recording.NewStep("one"), seen=trace.version)
    with scene.database.begin() as session:
        session.execute(text("UPDATE step SET position = 3"))
        session.execute(text("UPDATE question SET completed = 2 WHERE position = 1"))
    problems = check_database(scene.database)
    assert any("numbered from 3 to 3" in finding for finding in problems)
    assert any("0 people's traces of it stand, but 2 are counted" in finding for finding in problems)
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
    with pytest.raises(StoreError, match="is there already"):
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


@pytest.mark.parametrize("database", [POSTGRESQL], indirect=True)
def test_a_backup_without_pg_dump_says_what_to_install(tmp_path, scene, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreError, match="install PostgreSQL's client programs"):
        back_up_database(scene.database, tmp_path / "backup")
