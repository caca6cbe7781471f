"""Migrations: they create exactly the tables of the models, go down and up again, and refuse a newer database."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from showhow.db.database import Database, StoreUnavailable
from showhow.db.questions import projects
from showhow.db.storage.foreign_objects import digest_schema
from showhow.db.storage.schema import (
    SQLITE_AT_HEAD,
    current_revision,
    downgrade,
    expected_sqlite,
    latest_revision,
    upgrade,
)
from showhow.db.types import Base


def test_the_migrations_create_exactly_the_tables_of_the_models(empty_database):
    assert current_revision(empty_database) is None
    assert upgrade(empty_database) is True
    assert current_revision(empty_database) == latest_revision()
    with empty_database.read() as session:
        context = MigrationContext.configure(session.connection(), opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
        indexes = {i["name"] for t in Base.metadata.tables for i in inspect(session.connection()).get_indexes(t)}
    assert {"ux_step_position", "ix_step_trace", "ix_trace_parent", "ix_question_queue"} <= indexes


def test_upgrading_a_current_database_does_nothing(database):
    assert upgrade(database) is False


def test_a_database_works_after_a_complete_downgrade_and_upgrade(scene):
    downgrade(scene.database, "base")
    with scene.database.read() as session:
        assert set(inspect(session.connection()).get_table_names()) == {"alembic_version"}
    upgrade(scene.database)
    with scene.database.begin() as session:
        projects.create_project(session, "again", "w")


def test_a_database_of_a_newer_program_is_not_changed(database):
    with database.begin() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreUnavailable, match=r"revision 9999.*update the program"):
        upgrade(database)
    with database.begin() as session:
        session.execute(text("UPDATE alembic_version SET version_num = :at"), {"at": latest_revision()})


def test_programs_that_start_at_once_upgrade_once(tmp_path):
    stores = [Database(f"sqlite:///{tmp_path / 'showhow.db'}") for _ in range(4)]
    failures: list[Exception] = []

    def start(store: Database) -> None:
        try:
            upgrade(store)
        except Exception as failed:  # noqa: BLE001 - a thread's failure is the test's
            failures.append(failed)

    threads = [threading.Thread(target=start, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert {current_revision(store) for store in stores} == {latest_revision()}
    for store in stores:
        store.close()


def test_the_upgrade_works_in_any_folder_and_loads_no_heavy_libraries(tmp_path):
    script = (
        "import sys; from showhow.db.database import Database; from showhow.db.storage.schema import upgrade;"
        f"upgrade(Database('sqlite:///{tmp_path / 'x.db'}'));"
        "heavy = {'torch', 'langchain_core', 'numpy', 'tantivy', 'streamlit'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], cwd=Path("/"), check=True, timeout=60)


def test_the_schema_that_a_start_takes_for_known_is_what_the_migrations_make():
    head = latest_revision()
    assert (head, digest_schema(expected_sqlite(head))) == SQLITE_AT_HEAD
