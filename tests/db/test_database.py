"""The connection: accepted addresses, error messages, and failures that change nothing."""

import sqlite3
import threading
from pathlib import Path

import pytest

from db import drafts, projects, recording
from db.database import Conflict, Database, RowNotFound, StoreError, StoreUnavailable
from db.models import Project, User


@pytest.mark.parametrize("url", ["nonsense", "mysql://me@here/x", "sqlite://", "sqlite:///:memory:"])
def test_an_invalid_database_address_is_refused_in_one_sentence(url):
    with pytest.raises(StoreUnavailable, match="SHOWHOW_DATABASE_URL"):
        Database(url)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_usual_scheme_of_postgresql_is_accepted(scheme):
    assert Database(f"{scheme}://me@here/x").url.drivername == "postgresql+psycopg"


def test_the_folder_of_the_file_is_created(tmp_path):
    Database(f"sqlite:///{tmp_path / 'a' / 'b' / 'showhow.db'}")
    assert (tmp_path / "a" / "b").is_dir()


def test_the_error_names_a_folder_that_cannot_be_created(tmp_path):
    (tmp_path / "a").write_text("a file")
    with pytest.raises(StoreUnavailable, match="set SHOWHOW_HOME"):
        Database(f"sqlite:///{tmp_path / 'a' / 'showhow.db'}")


def test_sqlite_writes_survive_a_loss_of_power(tmp_path):
    store = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    with store.begin() as session:
        connection = session.connection()
        messages = {
            n: connection.exec_driver_sql(f"PRAGMA {n}").scalar()
            for n in ("journal_mode", "synchronous", "foreign_keys")
        }
    store.close()
    assert messages == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_a_file_that_is_not_a_database_is_reported(tmp_path):
    (tmp_path / "x.db").write_text("this is a letter, not a database, and it is long enough to be read as a page" * 20)
    store = Database(f"sqlite:///{tmp_path / 'x.db'}")
    with pytest.raises(StoreUnavailable, match="not a database"), store.read() as session:
        projects.list_projects(session)
    store.close()


def test_the_error_of_a_database_without_tables_says_to_upgrade(empty_database):
    with pytest.raises(StoreUnavailable, match="showhow db upgrade"), empty_database.read() as session:
        projects.list_projects(session)


def test_a_server_that_does_not_answer_is_reported():
    store = Database("postgresql://nobody@127.0.0.1:1/none?connect_timeout=2")
    with pytest.raises(StoreUnavailable, match="does not answer"), store.read() as session:
        projects.list_projects(session)
    store.close()


def test_a_change_that_fails_leaves_nothing_behind(database):
    def change() -> None:
        with database.begin() as session:
            projects.create_project(session, "kept?", "w")
            projects.create_project(session, "not \x00 storable", "w")

    with pytest.raises(StoreError, match=r"U\+0000"):
        change()
    with database.read() as session:
        assert projects.list_projects(session) == []


def test_a_violated_constraint_is_a_conflict_and_a_missing_row_is_not_found(database):
    with database.begin() as session:
        user = projects.get_or_create_user(session, "ada")
    with pytest.raises(Conflict, match="does not fit"), database.begin() as session:
        session.add(User(name="ada"))
    with pytest.raises(RowNotFound), database.read() as session:
        session.get_one(Project, user.id)


def test_a_database_that_another_program_holds_is_busy_and_nothing_changes(tmp_path):
    path = tmp_path / "showhow.db"
    sqlite3.connect(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    store = Database(f"sqlite:///{path}?timeout=0.1")
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="busy"), store.begin() as session:
        session.connection()
    holder.execute("ROLLBACK")
    holder.close()
    with store.begin() as session:
        session.connection()
    store.close()


def test_objects_stay_usable_after_their_transaction(database):
    with database.begin() as session:
        project = projects.create_project(session, "p", "w")
    assert (project.name, project.tools, project.overlap) == ("p", [], 1)


def test_fifty_people_write_at_once_and_nothing_is_lost(scene):
    with scene.database.begin() as session:
        people = [projects.get_or_create_user(session, f"p{n}").id for n in range(50)]
        traces = [recording.start_trace(session, scene.questions[0].id, person).id for person in people]
    failures: list[Exception] = []

    def work(trace_id):
        try:
            for number in range(3):
                with scene.database.begin() as session:
                    drafts.save_draft(session, trace_id, {"n": number})
                with scene.database.begin() as session:
                    recording.begin_step(session, trace_id, recording.NewStep(f"{number}"), seen=number + 1)
        except StoreError as failed:
            failures.append(failed)

    threads = [threading.Thread(target=work, args=(trace_id,)) for trace_id in traces]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with scene.database.read() as session:
        assert session.query(recording.Step).count() == 150


def test_the_database_file_is_at_the_address_of_the_settings(tmp_path):
    store = Database(f"sqlite:///{tmp_path / 'name with spaces & ümläuts.db'}")
    with store.begin() as session:
        session.connection().exec_driver_sql("CREATE TABLE x (y)")
    store.close()
    assert Path(tmp_path / "name with spaces & ümläuts.db").stat().st_size > 0
