"""Every text that is written to a database is without secrets: columns of all tables, JSON, updates, conditions."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Column, MetaData, Table, select, text, update

from showhow.db.database import Database
from showhow.db.models import User
from showhow.db.people import users
from showhow.db.serialization import insert_rows
from showhow.db.storage.schema import check_database
from showhow.db.storage.stored_secrets import remove_secrets
from showhow.db.types import Base, ExactJson, ExactText, TagList, UtcDateTime, ValueJson
from showhow.guard.redaction import REMOVED, redactor_of

KEY = 'sk-planted"0123ü'
TABLES = sorted(Base.metadata.tables)


@pytest.fixture
def guarded(empty_database: Database) -> Iterator[Database]:
    """The tables without their constraints, in a database that gets a secret."""
    store = Database(empty_database.url, lambda: redactor_of((KEY,)))
    yield store
    store.close()


def bare_table(name: str) -> Table:
    """The table with its columns only, so that a row may hold anything."""
    columns = [Column(column.name, column.type) for column in Base.metadata.tables[name].columns]
    return Table(name, MetaData(), *columns)


def planted_value(column: Any) -> Any:
    if isinstance(column.type, ExactText):
        return f"text with {KEY}"
    nested = {f"key {KEY}": ["nested", {"text": KEY, "number": 7}]}
    if isinstance(column.type, ValueJson):
        return column.type.kind(details=nested)
    if isinstance(column.type, ExactJson):
        return nested
    if isinstance(column.type, TagList):
        return [f"tag {KEY}"]
    kind = column.type.python_type
    values: dict[Any, Any] = {UUID: uuid4(), bool: True, int: 3, float: 0.5, datetime: datetime.now(UTC)}
    return values[kind] if not isinstance(column.type, UtcDateTime) else values[datetime]


@pytest.mark.parametrize("name", TABLES)
def test_every_column_of_every_table_is_stored_without_secrets(guarded: Database, name: str) -> None:
    table = bare_table(name)
    with guarded.begin() as session:
        table.create(session.connection())
        row = {column.name: planted_value(column) for column in table.columns}
        session.execute(table.insert(), [row, row])
        session.execute(table.insert().values(**row))
        session.execute(update(table).values(**row))
    with guarded.read() as session:
        # Past the column types.
        stored = session.execute(text(f'SELECT * FROM "{name}"')).all()
    assert len(stored) == 3
    assert "sk-planted" not in repr(stored)
    texts = [column for column in table.columns if isinstance(column.type, ExactText | ExactJson | ValueJson | TagList)]
    assert repr(stored).count(REMOVED) >= 3 * len(texts)


def test_no_column_takes_texts_in_another_way() -> None:
    kinds = {type(column.type) for table in Base.metadata.tables.values() for column in table.columns}
    numbers = {"Integer", "BigInteger", "Float", "Double", "Boolean", "Uuid", "UtcDateTime"}
    assert {kind.__name__ for kind in kinds} <= {"ExactText", "ExactJson", "ValueJson", "TagList", *numbers}


def test_rows_of_the_session_conditions_and_bulk_inserts_are_redacted(database: Database) -> None:
    guarded = Database(database.url, lambda: redactor_of((KEY,)))
    with guarded.begin() as session:
        ada = users.register_user(session, f"ada {KEY}")
        insert_rows(
            session, User, [{"id": uuid4(), "name": f"ben {KEY}", "roles": ["annotator"], "created_at": ada.created_at}]
        )
    with guarded.read() as session:
        assert session.scalars(select(User.name).where(User.name == f"ada {KEY}")).all() == [f"ada {REMOVED}"]
        assert session.scalars(select(User.roles).where(User.name == f"ben {KEY}")).all() == [["annotator"]]
    guarded.close()


def test_a_secret_that_is_known_later_is_removed_from_then_on(database: Database) -> None:
    secrets: list[str] = []
    guarded = Database(database.url, lambda: redactor_of(tuple(secrets)))
    with guarded.begin() as session:
        users.register_user(session, f"ada {KEY}")
    secrets.append(KEY)
    with guarded.begin() as session:
        users.register_user(session, f"ben {KEY}")
    with guarded.read() as session:
        assert sorted(session.scalars(select(User.name))) == [f"ada {KEY}", f"ben {REMOVED}"]
    guarded.close()


def test_a_secret_from_before_is_named_by_the_check_and_removed_also_from_the_file(database: Database) -> None:
    with database.begin() as session:
        ada = users.register_user(session, f"ada {KEY}")
    guarded = Database(database.url, lambda: redactor_of((KEY,)))
    (finding,) = check_database(guarded)
    assert "1 rows hold a key of the environment" in finding
    assert KEY not in finding
    assert remove_secrets(guarded) == 1
    assert check_database(guarded) == []
    assert remove_secrets(guarded) == 0
    with guarded.read() as session:
        assert session.get_one(User, ada.id).name == f"ada {REMOVED}"
    guarded.close()
    if database.is_sqlite:
        folder = Path(str(database.url.database)).parent
        assert [path for path in folder.iterdir() if b"sk-planted" in path.read_bytes()] == []
