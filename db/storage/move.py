"""Move a database between SQLite and PostgreSQL: every row as it is stored, in one transaction of the target.

The rows of both are compared before it is committed: a move that fails or is killed leaves the target empty. The source
is only read, as it is at one moment.
"""

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import Column, Connection, Table, Text, bindparam, delete, func, insert, inspect, select, type_coerce
from sqlalchemy import cast as as_type
from sqlalchemy.exc import DBAPIError

from showhow.db.database import Database, StoreError, StoreUnavailable
from showhow.db.models import Attempt
from showhow.db.runs.runs import list_unfinished_traces
from showhow.db.storage.schema import MIGRATIONS_TABLE, apply_migrations, require_current_revision, require_sound_schema
from showhow.db.types import Base, ExactJson, ExactText, TagList

if TYPE_CHECKING:
    import psycopg

_ROWS_AT_ONCE = 1_000
_DIGEST_BITS = 256


@dataclass(frozen=True, slots=True)
class TableContents:
    """The number of rows of a table, and the sum of their digests, which no order of rows changes."""

    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class MovedDatabase:
    """What was moved, by table, and findings about work that goes on in the source."""

    tables: dict[str, TableContents]
    findings: list[str]

    @property
    def rows(self) -> int:
        """The number of all rows."""
        return sum(contents.rows for contents in self.tables.values())


def move_database(source: Database, target: Database) -> MovedDatabase:
    """Copy every row into the empty target; StoreError, and the target is as before, if that is not possible."""
    require_sound_schema(source)
    require_current_revision(source)
    require_sound_schema(target)
    with source.read() as reading:
        # All tables as they are at one moment; SQLite knows no other way.
        options = {} if source.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        stored = reading.connection(execution_options=options)
        findings = _list_work(reading)
        with target.begin() as session:
            connection = session.connection()
            _require_empty(connection)
            apply_migrations(connection, "head")
            if target.is_sqlite:
                # A step may come before the step that it belongs to.
                connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
            moved = {table.name: _copy_table(stored, connection, table) for table in Base.metadata.sorted_tables}
            for table in Base.metadata.sorted_tables:
                if digest_table(connection, table) != moved[table.name]:
                    raise StoreUnavailable(
                        f"the table {table.name} is not the same in both databases; nothing was moved, run `showhow db "
                        "check` on the former one"
                    )
    return MovedDatabase(moved, findings)


def digest_table(connection: Connection, table: Table) -> TableContents:
    """Count and digest the rows, in the same way on every kind of database."""
    contents = _Digest()
    for row in _read_rows(connection, table):
        contents.add(row)
    return contents.result()


class _Digest:
    def __init__(self) -> None:
        self._rows = self._sum = 0

    def add(self, row: Sequence[Any]) -> None:
        self._rows += 1
        self._sum += int.from_bytes(sha256(repr(row).encode()).digest())

    def result(self) -> TableContents:
        return TableContents(self._rows, f"{self._sum % 2**_DIGEST_BITS:064x}")


def _list_work(session: Any) -> list[str]:
    """Sentences about work whose further results stay in the source."""
    leased = session.scalar(select(func.count()).select_from(Attempt).where(Attempt.state == "leased"))
    counts = {"runs that have not ended": len(list_unfinished_traces(session)), "attempts that workers have": leased}
    return [
        f"{count} {noun}: what they store from now on stays in the former database; continue them in the new one"
        for noun, count in counts.items()
        if count
    ]


def _require_empty(connection: Connection) -> None:
    names = {MIGRATIONS_TABLE, *Base.metadata.tables}
    if used := sorted(names.intersection(inspect(connection).get_table_names())):
        raise StoreError(
            f"the target is not empty (it has the table {used[0]}); name a new file, or a database that was just made"
        )


def _copy_table(source: Connection, target: Connection, table: Table) -> TableContents:
    contents = _Digest()

    def rows() -> Iterator[tuple[Any, ...]]:
        for row in stored:
            contents.add(row)
            yield row

    # What a migration stored.
    target.execute(delete(table))
    write = _write_sqlite if target.dialect.name == "sqlite" else _write_postgresql
    # After a failure, SQLite would keep the state that an open query reads.
    with closing(_read_rows(source, table)) as stored:
        write(target, table, rows())
    return contents.result()


def _read_rows(connection: Connection, table: Table) -> Generator[tuple[Any, ...], None, None]:
    """The values of the rows as stored, JSON as text: parsing it could change it."""
    # On SQLite, a cast would take digits from a number; without one, psycopg would parse it.
    read_text = type_coerce if connection.dialect.name == "sqlite" else as_type
    columns = [read_text(column, Text) if _is_text(column) else column for column in table.c]
    places = [place for place, column in enumerate(table.c) if isinstance(column.type, ExactJson)]
    with connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(select(*columns)) as result:
        for row in result:
            values = list(row)
            for place in places:
                values[place] = _read_number(values[place])
            yield tuple(values)


def _is_text(column: Column[Any]) -> bool:
    return isinstance(column.type, ExactText | ExactJson | TagList)


def _read_number(value: Any) -> Any:
    """A JSON number alone as a number, a whole one as an integer, as SQLite keeps it; other JSON as its text."""
    if isinstance(value, str) and value[:1] in "-0123456789":
        value = json.loads(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _write_sqlite(connection: Connection, table: Table, rows: Iterator[tuple[Any, ...]]) -> None:
    names = [column.name for column in table.c]
    values = {column.name: bindparam(column.name, type_=Text()) for column in table.c if _is_text(column)}
    statement = insert(table).values({name: bindparam(name) for name in names} | values)
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(dict(zip(names, row, strict=True)))
        if len(batch) == _ROWS_AT_ONCE:
            connection.execute(statement, batch)
            batch = []
    if batch:
        connection.execute(statement, batch)


def _write_postgresql(connection: Connection, table: Table, rows: Iterator[tuple[Any, ...]]) -> None:
    """Send the rows by one COPY, after which references are checked: a step may come before the one it belongs to."""
    import psycopg  # noqa: PLC0415 - only PostgreSQL needs its driver

    driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
    name = psycopg.sql.Identifier
    statement = psycopg.sql.SQL("COPY {} ({}) FROM STDIN").format(
        name(table.name), psycopg.sql.SQL(", ").join(name(column.name) for column in table.c)
    )
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    except psycopg.Error as error:
        raise DBAPIError.instance(None, None, error, psycopg.Error) from error
