"""The connection: accepted addresses, error messages, and failures that change nothing."""

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from showhow.db.database import Conflict, Database, RowNotFound, StoreError, StoreUnavailable
from showhow.db.models import Project, User
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.storage.schema import upgrade
from showhow.db.traces import recording


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


def test_sqlite_writes_survive_a_power_failure(tmp_path):
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
    with pytest.raises(StoreUnavailable, match="does not respond"), store.read() as session:
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
        user = users.register_user(session, "ada")
    with pytest.raises(Conflict, match="contradicts the stored data"), database.begin() as session:
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
        people = [users.register_user(session, f"p{n}").id for n in range(50)]
        traces = {person: recording.start_trace(session, scene.questions[0].id, person).id for person in people}
    failures: list[Exception] = []

    def work(person, trace_id):
        try:
            for number in range(3):
                with scene.database.begin() as session:
                    recording.save_draft(session, trace_id, {"n": number}, by=person)
                with scene.database.begin() as session:
                    recording.begin_step(session, trace_id, recording.NewStep(f"{number}"), seen=number + 1, by=person)
        except StoreError as failed:
            failures.append(failed)

    threads = [threading.Thread(target=work, args=own) for own in traces.items()]
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


def _remove(file: Path) -> None:
    file.unlink()


def _replace_by_a_copy(file: Path) -> None:
    shutil.copy(file, file.with_name("copy"))
    file.with_name("copy").rename(file)


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _remove_folder(file: Path) -> None:
    shutil.rmtree(file.parent)


@pytest.mark.parametrize(
    ("change", "suffix"),
    [
        *((change, suffix) for change in (_remove, _replace_by_a_copy) for suffix in ("", "-wal", "-shm")),
        (_empty, ""),
        (_remove_folder, ""),
    ],
)
def test_no_write_is_acknowledged_after_a_file_of_the_database_is_gone(tmp_path, change, suffix):
    file = tmp_path / "home" / "showhow.db"
    store = Database(f"sqlite:///{file}")
    upgrade(store)
    with store.begin() as session:
        projects.create_project(session, "before", "w")
    change(file.with_name(file.name + suffix))
    for number in range(3):
        with pytest.raises(StoreUnavailable, match=r"removed or replaced .* not stored; .* restart"):
            create_project(store, f"after {number}")
    with store.read() as session:  # what the page shows stays readable
        assert [project.name for project in projects.list_projects(session)] == ["before"]
    assert change is not _remove_folder or not file.parent.exists()
    store.close()


def test_no_write_is_acknowledged_after_the_log_beside_a_linked_database_is_gone(tmp_path):
    (tmp_path / "disk").mkdir()
    link, file = tmp_path / "showhow.db", tmp_path / "disk" / "real.db"
    link.symlink_to(file)
    store = Database(f"sqlite:///{link}")
    upgrade(store)
    create_project(store, "before")
    file.with_name("real.db-wal").unlink()
    with pytest.raises(StoreUnavailable, match="removed or replaced"):
        create_project(store, "after")
    store.close()


def test_no_write_is_acknowledged_after_the_log_was_emptied(tmp_path):
    store = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    upgrade(store)
    create_project(store, "before")
    _empty(tmp_path / "showhow.db-wal")
    for number in range(3):
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            create_project(store, f"after {number}")
    store.close()


def test_a_log_that_another_program_has_emptied_into_the_database_is_no_loss(tmp_path):
    store = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    upgrade(store)
    create_project(store, "before")
    with closing(sqlite3.connect(tmp_path / "showhow.db")) as other:
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    assert (tmp_path / "showhow.db-wal").stat().st_size == 0
    create_project(store, "after")
    with store.read() as session:
        assert [project.name for project in projects.list_projects(session)] == ["before", "after"]
    store.close()


def create_project(store: Database, name: str, during: Callable[[], object] = lambda: None) -> None:
    with store.begin() as session:
        projects.create_project(session, name, "w")
        during()


def test_a_process_keeps_its_locks_on_the_files_after_a_write(tmp_path):
    # POSIX releases every lock of a process on a file as soon as the process closes any descriptor of it.
    store = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    with closing(store):
        upgrade(store)
        create_project(store, "before")
        assert _lock_is_free(tmp_path / "showhow.db-shm", _INDEX_IN_USE) is False
        assert _lock_is_free(tmp_path / "showhow.db", _DATABASE_IN_USE) is False
    assert _lock_is_free(tmp_path / "showhow.db", _DATABASE_IN_USE) is True


def test_processes_that_open_and_close_the_database_do_not_disturb_one_that_keeps_it_open(tmp_path):
    address = f"sqlite:///{tmp_path / 'showhow.db'}"
    store = Database(address)
    upgrade(store)
    store.close()
    words = (sys.executable, "-c", _WRITER, address)
    lasting = subprocess.Popen([*words, "lasting", "300", "1"])
    opening = subprocess.Popen([*words, "opening", "1", "100"])
    assert (lasting.wait(240), opening.wait(240)) == (0, 0)
    with closing(sqlite3.connect(tmp_path / "showhow.db")) as stored:
        assert stored.execute("SELECT count(*) FROM project").fetchone() == (400,)
        assert stored.execute("PRAGMA integrity_check").fetchone() == ("ok",)


_INDEX_IN_USE, _DATABASE_IN_USE = 128, 0x40000002
"""The bytes that SQLite locks in the -shm and in the database for as long as it is open."""

_LOCK_TRIAL = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(sys.argv[2]))
    except BlockingIOError:
        print("taken")
    else:
        print("free")
"""

_WRITER = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from showhow.db.database import Database
from showhow.db.questions.projects import create_project
address, name, writes, openings = *sys.argv[1:3], *map(int, sys.argv[3:])
for opening in range(openings):
    store = Database(address)
    for write in range(writes):
        with store.begin() as session:
            create_project(session, f"{{name}} {{opening}} {{write}}", "w")
    store.close()
"""


def _lock_is_free(file: Path, place: int) -> bool:
    """Whether another process can lock the byte of the file."""
    words = [sys.executable, "-c", _LOCK_TRIAL, str(file), str(place)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip() == "free"


def test_a_write_during_which_the_file_is_removed_is_not_acknowledged(tmp_path):
    file = tmp_path / "showhow.db"
    store = Database(f"sqlite:///{file}")
    upgrade(store)
    with pytest.raises(StoreUnavailable, match="removed or replaced"):
        create_project(store, "lost", file.unlink)
    assert not file.exists()
    store.close()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_no_write_is_acknowledged_while_the_server_of_the_database_is_gone(database, postgresql):
    create_project(database, "before")
    with psycopg.connect(f"{postgresql}/postgres", autocommit=True) as administrator:

        def take_away() -> None:
            administrator.execute(f"ALTER DATABASE {database.url.database} ALLOW_CONNECTIONS false")
            administrator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [database.url.database]
            )

        for during in (take_away, lambda: None):
            with pytest.raises(StoreUnavailable):
                create_project(database, "lost", during)
        administrator.execute(f"ALTER DATABASE {database.url.database} ALLOW_CONNECTIONS true")
    create_project(database, "after")
    with database.read() as session:
        assert [project.name for project in projects.list_projects(session)] == ["before", "after"]


def test_writing_continues_once_a_moved_file_is_back(tmp_path):
    file = tmp_path / "showhow.db"
    store = Database(f"sqlite:///{file}")
    upgrade(store)
    file.rename(tmp_path / "moved")
    with pytest.raises(StoreUnavailable, match="put the file back"):
        create_project(store, "refused")
    (tmp_path / "moved").rename(file)
    create_project(store, "stored")
    store.close()
    with store.read() as session:
        assert [project.name for project in projects.list_projects(session)] == ["stored"]
    store.close()


def test_a_new_connection_makes_no_new_file_in_place_of_a_removed_one(tmp_path):
    file = tmp_path / "showhow.db"
    store = Database(f"sqlite:///{file}")
    upgrade(store)
    file.unlink()
    with store.read() as first:
        projects.list_projects(first)  # holds the pooled connection
        with pytest.raises(StoreUnavailable, match="removed or replaced"), store.read() as second:
            projects.list_projects(second)
    assert not file.exists()
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@here:port/x",
        "sqlite+aiosqlite:///x.db",
        "postgresql+asyncpg://me@here/x",
        "sqlite:///x.db?mode=memory",
        "sqlite:///x.db?timeout=long",
        "sqlite://host/x.db",
        "sqlite:////",
    ],
)
def test_an_address_that_no_driver_can_open_is_refused_without_its_password(url):
    with pytest.raises(StoreUnavailable, match="SHOWHOW_DATABASE_URL") as refused:
        Database(url.replace("me@", "me:secret-word@"))
    assert "secret-word" not in str(refused.value)
