"""The connection to the database: one write transaction at a time on SQLite, any number of readers.

StoreError
  RowNotFound        there is no such row
  Conflict           the row was changed since the caller read it, or may not be changed any more
  StoreFull          the disk is full; nothing of the change was written
  StoreUnavailable   the database is locked, missing or damaged
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    NoResultFound,
    SQLAlchemyError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError

from db.types import UnstorableValue, dump_json

BUSY_TIMEOUT_SECONDS = 20
SQLITE_FULL_CODES = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
SQLITE_BUSY_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# Classes of SQLSTATE, by their first characters: no room, and another transaction in the way.
POSTGRESQL_FULL_STATES = ("53100", "53200")
POSTGRESQL_BUSY_STATES = ("40", "55P03", "57014", "53300")
POSTGRESQL_UNDEFINED_STATES = ("42P01", "42703")


class StoreError(Exception):
    """A change or query failed; the message says why and what to do next."""


class RowNotFound(StoreError):
    """There is no such row."""


class Conflict(StoreError):
    """The row was changed meanwhile, or may not be changed any more."""


class StoreFull(StoreError):
    """The disk is full."""


class StoreUnavailable(StoreError):
    """The database is locked, missing or damaged."""


class Database:
    """An engine for SQLite (`sqlite:///file`) or PostgreSQL (`postgresql://...`), opened on first use."""

    def __init__(self, url: str) -> None:
        self.url = _parse_database_url(url)
        self.engine = _build_engine(self.url)
        self._read_engine = self.engine.execution_options(reads_only=True)
        # SQLite does not queue writers: under load one may wait for seconds. Threads take turns here.
        self._write_lock = threading.Lock() if self.is_sqlite else None

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a SQLite file."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """Open a write transaction: after the block all of it is on disk, or none and a StoreError is raised."""
        with (
            _translate_errors(),
            self._write_slot(),
            Session(self.engine, expire_on_commit=False) as session,
            session.begin(),
        ):
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session for reading; its objects stay usable afterwards."""
        with _translate_errors(), Session(self._read_engine, expire_on_commit=False) as session:
            yield session

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    @contextmanager
    def _write_slot(self) -> Iterator[None]:
        if self._write_lock is None:
            yield
            return
        if not self._write_lock.acquire(timeout=BUSY_TIMEOUT_SECONDS):
            raise _busy_error("another change is still being written")
        try:
            yield
        finally:
            self._write_lock.release()


def _parse_database_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as wrong:
        raise StoreUnavailable(
            "SHOWHOW_DATABASE_URL is no address of a database; write sqlite:///FILE or postgresql://USER@HOST/NAME"
        ) from wrong
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise StoreUnavailable(
            f"SHOWHOW_DATABASE_URL names {parsed.drivername}; Showhow stores in sqlite:///FILE or postgresql://..."
        )
    return parsed


def _build_engine(url: URL) -> Engine:
    if url.get_backend_name() == "postgresql":
        return create_engine(url, pool_pre_ping=True, pool_size=10, max_overflow=40, json_serializer=dump_json)
    if not url.database or url.database == ":memory:":
        raise StoreUnavailable("SHOWHOW_DATABASE_URL names no file; write sqlite:///FILE")
    try:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    except OSError as refused:
        raise StoreUnavailable(
            f"the folder of the database cannot be made ({refused}); set SHOWHOW_HOME to one that can"
        ) from refused
    engine = create_engine(
        url, connect_args={"timeout": BUSY_TIMEOUT_SECONDS}, pool_size=10, max_overflow=90, json_serializer=dump_json
    )
    event.listen(engine, "connect", _configure_sqlite_connection)
    event.listen(engine, "begin", _begin_sqlite_transaction)
    return engine


def _configure_sqlite_connection(connection: Any, _record: Any) -> None:
    # The driver would begin transactions too late for BEGIN IMMEDIATE; _begin_sqlite_transaction does.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    # An acknowledged step survives a loss of power, not only the end of the process.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # 16 MB per connection, so that the lists of a large database are read from memory.
    connection.execute("PRAGMA cache_size = -16000")


def _begin_sqlite_transaction(connection: Any) -> None:
    # A writer that takes the lock at the start waits its turn; one that takes it later would fail.
    reads_only = connection.get_execution_options().get("reads_only", False)
    connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as failed:
        explained = _translate_error(failed)
        if explained is None:
            raise
        raise explained from failed


def _translate_error(failed: SQLAlchemyError) -> StoreError | None:
    """Convert the error to a StoreError; None for a bug in the program."""
    match failed:
        case StaleDataError():
            return Conflict("this was changed elsewhere a moment ago; nothing was overwritten, look at the newer state")
        case NoResultFound():
            return RowNotFound("what was asked for is no longer in the database; reload the page")
        case IntegrityError():
            return Conflict(
                f"the change does not fit what is stored ({_driver_message(failed)}); look at the newer state"
            )
        case DBAPIError():
            return _translate_driver_error(failed)
        case StatementError() if isinstance(failed.orig, UnstorableValue):
            return StoreError(str(failed.orig))
        case _:
            return _busy_error("too many people at once") if isinstance(failed, PoolTimeout) else None


def _translate_driver_error(failed: DBAPIError) -> StoreError:
    message = _driver_message(failed)
    # SQLite's extended codes carry the plain one in their low byte.
    sqlite = getattr(failed.orig, "sqlite_errorcode", 0) & 0xFF
    state = getattr(failed.orig, "sqlstate", None) or ""
    if sqlite in SQLITE_FULL_CODES or state in POSTGRESQL_FULL_STATES:
        hint = "free some space and do it again, nothing stored is lost"
        return StoreFull(f"the disk is full or cannot be written ({message}); {hint}")
    if sqlite in SQLITE_BUSY_CODES or state.startswith(POSTGRESQL_BUSY_STATES):
        return _busy_error(message)
    if message.startswith(("no such table", "no such column")) or state in POSTGRESQL_UNDEFINED_STATES:
        hint = "run `showhow db upgrade`"
        return StoreUnavailable(f"the database is not of this program's version ({message}); {hint}")
    return StoreUnavailable(
        f"the database does not answer ({message}); see that it is there and sound, and do it again"
    )


def _busy_error(message: str) -> StoreUnavailable:
    return StoreUnavailable(f"the database is busy ({message}); nothing was changed, do it again in a moment")


def _driver_message(failed: StatementError) -> str:
    """Return the first line of the driver's message."""
    return str(failed.orig).strip().partition("\n")[0]
