"""What a former version wrote, in the folder former/: the dump of its database, and its exports."""

import io
import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnClause, Insert, Text, column, delete, insert, inspect, select, table

from showhow.db.database import Database
from showhow.db.storage.schema import upgrade
from showhow.db.traces import traces
from showhow.db.types import Base, ExactJson
from showhow.fewshot_library.formats import FORMATS
from showhow.fewshot_library.formats.format import TraceExport

FORMER = Path(__file__).with_name("former")
FORMER_JSON = ("configuration", "options", "tools")
"""Columns with JSON that tables had and do not have any more."""

Rows = dict[str, list[dict[str, Any]]]


def _column(current: Any, name: str) -> ColumnClause[Any]:
    """A column that a table has or had."""
    known = current.c.get(name)
    return column(name, (ExactJson() if name in FORMER_JSON else Text()) if known is None else known.type)


def read_rows(database: Database) -> Rows:
    """Every row of every table, with the columns that the database has."""
    with database.read() as session:
        connection = session.connection()
        shape = inspect(connection)
        names = {name: [column["name"] for column in shape.get_columns(name)] for name in shape.get_table_names()}
        rows: Rows = {}
        for current in Base.metadata.sorted_tables:
            if current.name in names:
                columns = [_column(current, name) for name in names[current.name]]
                selected = connection.execute(select(*columns).select_from(table(current.name))).mappings()
                rows[current.name] = sorted((dict(row) for row in selected), key=repr)
        return rows


def load_rows(folder: Path, revision: str) -> Rows:
    """The rows of the database that the version of that revision wrote."""
    path = folder / f"{revision}.db"
    connection = sqlite3.connect(path)
    connection.executescript((FORMER / f"revision_{revision}.sql").read_text(encoding="utf-8"))
    connection.close()
    store = Database(f"sqlite:///{path}")
    rows = read_rows(store)
    store.close()
    return rows


def fill(database: Database, revision: str, rows: Rows) -> Database:
    """Make the empty database one of that revision, with these rows."""
    upgrade(database, revision)
    with database.begin() as session:
        for current in Base.metadata.sorted_tables:
            if stored := rows.get(current.name):
                # Migrations make some rows, too.
                session.execute(delete(table(current.name)))
                session.execute(insert_into(current.name, stored[0]), stored)
    return database


def insert_into(name: str, row: dict[str, Any]) -> Insert:
    """Insert rows with the columns of this one; today's table would add the defaults of columns that came later."""
    current = Base.metadata.tables[name]
    return insert(table(name, *(_column(current, column_name) for column_name in row)))


def export(database: Database, name: str) -> bytes:
    """All traces in that format."""
    stream = io.BytesIO()
    write = FORMATS[name].write
    assert write is not None
    with database.read() as session:
        write(TraceExport(list(traces.iterate_traces(session))), stream)
    return stream.getvalue()
