"""An upgrade of PostgreSQL while people write: no acknowledged write is lost, and nobody waits behind its locks."""

import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from showhow.db.database import Database
from showhow.db.storage.schema import check_database, current_revision, latest_revision, upgrade
from tests.db.former_versions import fill, load_rows
from tests.servers.postgresql import PostgresqlServer
from tests.servers.writers import TABLES, Writers, long_transaction

pytestmark = pytest.mark.long


@pytest.fixture
def former(postgresql_server: PostgresqlServer, tmp_path: Path) -> Iterator[Database]:
    """A database of revision 0012 with its rows."""
    store = Database(postgresql_server.create_database(f"u{uuid4().hex}"))
    yield fill(store, "0012", load_rows(tmp_path, "0012"))
    store.close()


def read_sums(database: Database) -> tuple[int, int]:
    """The versions of all traces and the lengths of all notes of runs."""
    with psycopg.connect(database.connection_string) as connection:
        row = connection.execute(
            "SELECT (SELECT sum(version) FROM trace), (SELECT sum(length(note)) FROM run)"
        ).fetchone()
    assert row is not None
    return row[0], row[1]


def test_no_acknowledged_write_is_lost_while_twenty_people_write_and_another_program_holds_a_table(former: Database):
    before = read_sums(former)
    writers = Writers(former.connection_string)
    with long_transaction(former.connection_string, TABLES[0], 5.0), writers.at_work():
        assert upgrade(former)
    assert current_revision(former) == latest_revision()
    with psycopg.connect(former.connection_string) as connection:
        stored = {name for (name,) in connection.execute("""SELECT name FROM "user" WHERE name LIKE 'writer%'""")}
    assert stored == set(writers.acknowledged)
    assert read_sums(former) == (before[0] + writers.changes, before[1] + writers.changes)
    assert check_database(former) == []


def test_processes_that_upgrade_at_once_upgrade_once_while_a_table_is_held(former: Database):
    stores = [Database(former.connection_string) for _ in range(3)]
    failures: list[Exception] = []

    def start(store: Database) -> None:
        try:
            upgrade(store)
        except Exception as failed:  # noqa: BLE001 - a thread's failure is the test's
            failures.append(failed)

    threads = [threading.Thread(target=start, args=(store,)) for store in stores]
    with long_transaction(former.connection_string, "run", 3.0):
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert {current_revision(store) for store in stores} == {latest_revision()}
    for store in stores:
        store.close()
