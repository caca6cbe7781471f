"""Take over the rows of a SQLite file that was brought in, without running anything of its schema."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from alembic.util import CommandError

from showhow.db.database import StoreError, StoreUnavailable
from showhow.db.storage.foreign_objects import LEFT_OUT, SQLITE_SCHEMA, Schema, describe_sqlite, list_foreign
from showhow.db.storage.schema import MIGRATIONS_TABLE, expected_sqlite, require_known_revision

_MIN_SECONDS = 15.0
_BYTES_PER_SECOND = 1024 * 1024
"""A damaged file can lead in circles: reading ends after the least time, and a second more for so many bytes."""
_MAX_VALUE_BYTES = 128 * 1024 * 1024
_OPERATIONS_BETWEEN_CHECKS = 10_000
_MAX_OBJECTS = 10_000


@dataclass(frozen=True, slots=True)
class SqliteContents:
    """A SQLite backup: its revision, and findings about what of it is left out."""

    path: Path
    revision: str
    findings: list[str]


def read_sqlite_contents(path: Path) -> SqliteContents:
    """Compare the backup's schema with Showhow's; StoreError if it lacks a table or column, or is none of Showhow."""
    with _reading(path), closing(sqlite3.connect(_address(path), uri=True)) as connection:
        _bound(connection, path)
        rows = connection.execute(SQLITE_SCHEMA).fetchmany(_MAX_OBJECTS)
        actual = describe_sqlite(rows)
        if ("table", MIGRATIONS_TABLE) not in actual:
            raise StoreError(f"{path} is no database of Showhow; name a file that `showhow db backup` made")
        _require_plain_table(path, actual, MIGRATIONS_TABLE)
        revisions = connection.execute(f"SELECT version_num FROM {MIGRATIONS_TABLE}").fetchmany(2)  # noqa: S608 - our name
        if len(revisions) != 1 or not isinstance(revisions[0][0], str):
            raise StoreError(f"{path} does not name the one revision of its tables; restore another backup")
        revision = revisions[0][0]
        require_known_revision(revision)
        expected = expected_sqlite(revision)
        for kind, name in expected:
            if kind == "table":
                _require_plain_table(path, actual, name)
    foreign = list_foreign(actual, expected)
    findings = [f"{LEFT_OUT}: {'; '.join(foreign)}"]
    return SqliteContents(path, revision, findings if foreign else [])


def _require_plain_table(path: Path, actual: Schema, name: str) -> None:
    """A view or a virtual table is a program; only rows of a table are read."""
    definition = actual.get(("table", name))
    if not isinstance(definition, tuple) or definition[0] != ("CREATE", "TABLE", name):
        raise StoreError(f"{path} has no table {name}, or something else of that name; restore another backup")


def copy_sqlite_rows(contents: SqliteContents, target: Path) -> None:
    """Copy all rows into a database that has the empty tables of the same revision."""
    with (
        _reading(contents.path),
        closing(sqlite3.connect(target.absolute().as_uri(), isolation_level=None, uri=True)) as connection,
    ):
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA foreign_keys = OFF")  # rows come in any order; the check afterwards names gaps
        connection.execute("ATTACH ? AS brought", [_address(contents.path)])
        _bound(connection, contents.path)
        connection.execute("PRAGMA synchronous = OFF")  # the finished file is flushed as a whole
        connection.execute("BEGIN")
        tables = [name for kind, name in expected_sqlite(contents.revision) if kind == "table"]
        for name in tables:
            if name != MIGRATIONS_TABLE:
                _copy_table(connection, contents.path, name)
        connection.execute("COMMIT")


def _copy_table(connection: sqlite3.Connection, path: Path, name: str) -> None:
    columns = [row[1] for row in connection.execute("SELECT * FROM pragma_table_info(?, 'main')", [name])]
    # Of a generated column, the value would be computed by the backup.
    stored = {
        row[1] for row in connection.execute("SELECT * FROM pragma_table_xinfo(?, 'brought')", [name]) if not row[6]
    }
    if missing := [column for column in columns if column not in stored]:
        raise StoreError(f"{path} has no column {missing[0]} in its table {name}; restore another backup")
    # Before the rows are read: a page that is its own parent would be read for ever. The backup's own conditions are
    # not evaluated; those of the new tables are.
    connection.execute("PRAGMA ignore_check_constraints = ON")
    (damage,) = connection.execute(f'PRAGMA brought.quick_check("{name}")').fetchone()
    connection.execute("PRAGMA ignore_check_constraints = OFF")
    if damage != "ok":
        raise StoreUnavailable(f"{path} is damaged ({' '.join(damage.split())}); restore another backup")
    connection.execute(f'DELETE FROM main."{name}"')  # noqa: S608 - what a migration stored
    listed = ", ".join(f'"{column}"' for column in columns)
    connection.execute(f'INSERT INTO main."{name}" ({listed}) SELECT {listed} FROM brought."{name}"')  # noqa: S608 - names of our own schema


def _address(path: Path) -> str:
    """Without a -wal, nobody has the file open, and nothing is written beside it."""
    has_wal = path.with_name(f"{path.name}-wal").exists()
    return f"{path.absolute().as_uri()}?{'mode=ro' if has_wal else 'immutable=1'}"


def _bound(connection: sqlite3.Connection, path: Path) -> None:
    """End what takes longer than reading the file can take, and values that are larger than any that is stored."""
    end = time.monotonic() + _MIN_SECONDS + path.stat().st_size / _BYTES_PER_SECOND
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    connection.set_progress_handler(lambda: int(time.monotonic() > end), _OPERATIONS_BETWEEN_CHECKS)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeError, CommandError) as error:
        raise StoreUnavailable(f"{path} is damaged or cannot be read ({error}); restore another backup") from error
