"""The connection to the database: on SQLite one write transaction at a time, and any number of readers.

StoreError
  RowNotFound        there is no such row
  Conflict           the row was changed since the caller read it, or must not be changed any more
  StoreFull          the disk is full; nothing of the change was written
  StoreUnavailable   the database is locked, missing or damaged
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import URL, Engine, create_engine, event, make_url, text
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

from showhow.db import removed_rows  # noqa: F401 - hides removed rows in every session
from showhow.db.sqlite_files import RestoreInProgress, SqliteFiles, find_restored_file, finish_restore, restore_lock
from showhow.db.types import UnstorableValue, dump_json, set_redactor
from showhow.guard.redaction import NOTHING_SECRET, Redactor

BUSY_TIMEOUT_SECONDS = 20
_SCHEMA_LOCK_SECONDS = 1
"""How long a migration waits for a lock; all others wait behind it meanwhile."""
SQLITE_FULL_CODES = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
SQLITE_DAMAGE_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
SQLITE_BUSY_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# SQLSTATE codes or their first characters: disk or memory full; busy or a conflicting transaction; undefined.
POSTGRESQL_FULL_STATES = ("53100", "53200")
POSTGRESQL_BUSY_STATES = ("40", "55P03", "57014", "53300")
POSTGRESQL_UNDEFINED_STATES = ("42P01", "42703")


class StoreError(Exception):
    """A change or query failed; the message says why and what to do next."""


class RowNotFound(StoreError):
    """There is no such row."""


class Conflict(StoreError):
    """The row was changed in the meantime, or must not be changed any more."""


class StoreFull(StoreError):
    """The disk is full."""


class StoreUnavailable(StoreError):
    """The database is locked, missing or damaged."""


class Actor(Protocol):
    """The person whose changes are stored (db/people/users.py)."""

    @property
    def name(self) -> str: ...

    @property
    def is_local(self) -> bool: ...

    def admit(self, session: Session) -> None:
        """Conflict if the person may change nothing at all."""


class Database:
    """An engine for SQLite (`sqlite:///file`) or PostgreSQL (`postgresql://...`), opened on first use.

    What `redactor` returns when a transaction begins removes secrets from every text that the transaction writes.
    """

    actor: Actor | None = None
    """The person whose changes these are; None for the command line of this machine, which may do everything."""

    def __init__(
        self, url: str | URL, redactor: Callable[[], Redactor] = lambda: NOTHING_SECRET, *, is_durable: bool = True
    ) -> None:
        """A SQLite file that is not `is_durable` is only as safe as this process, and faster to write."""
        self.url = _parse_database_url(url)
        self._sqlite_files = (
            SqliteFiles(Path(self.url.database)) if _is_sqlite(self.url) and self.url.database else None
        )
        self._redactor = redactor
        self._json_writer = _JsonWriter()
        self.engine = _build_engine(self.url, self._sqlite_files, self._json_writer)
        if not is_durable:
            event.listen(self.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
        self._read_engine = self.engine.execution_options(reads_only=True)
        # SQLite does not queue writers, so that one may wait for seconds under load; this lock queues the threads.
        self._write_lock = threading.Lock() if self.is_sqlite else None

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a SQLite file."""
        return self.engine.dialect.name == "sqlite"

    @property
    def redactor(self) -> Redactor:
        """What removes secrets from every text that is written now."""
        return self._redactor()

    @property
    def connection_string(self) -> str:
        """The address of a PostgreSQL database with its password, for libpq."""
        return self.url.set(drivername="postgresql").render_as_string(hide_password=False)

    def end_idle_transactions_after(self, seconds: float) -> None:
        """Have a PostgreSQL server undo transactions of this process that wait for their next statement for so long.

        A process that was paused inside a transaction would otherwise block the others with its locks.
        """
        setting = f"SET idle_in_transaction_session_timeout = {round(1000 * seconds)}"

        @event.listens_for(self.engine, "connect")
        def configure(connection: Any, _record: Any) -> None:
            connection.execute(setting)
            connection.commit()

        # Connections that are open already do not have it.
        self.engine.dispose()

    def acting_as(self, actor: Actor) -> "Database":
        """The same database, for the changes of this person: every session has them as `info["actor"]`."""
        acting = copy(self)
        acting.actor = actor
        return acting

    @contextmanager
    def begin(self, *, changes_schema: bool = False) -> Iterator[Session]:
        """Open a write transaction: after the block it is on disk as a whole, or undone and a StoreError is raised.

        Conflict before the block if the person who acts may change nothing. One that changes the schema waits until no
        other is open, a second at most (`is_lock_conflict`), and the others wait for it.
        """
        with translate_errors(), self._write_slot():
            _refuse_changed_files(self._sqlite_files)
            self._renew_redactor()
            with Session(self.engine, expire_on_commit=False, info=self._session_info) as session, session.begin():
                if not self.is_sqlite:
                    _pass_gate(session, changes_schema=changes_schema)
                if self.actor is not None:
                    self.actor.admit(session)
                yield session
            # The file may have been removed during the transaction: what is not on disk must not be acknowledged.
            _refuse_changed_files(self._sqlite_files)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session for reading; its objects stay usable afterwards."""
        # Conditions are compared with texts that were stored without secrets.
        self._renew_redactor()
        with (
            translate_errors(),
            Session(self._read_engine, expire_on_commit=False, info=self._session_info) as session,
        ):
            yield session

    @property
    def _session_info(self) -> dict[Any, Any]:
        return {"actor": self.actor}

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()
        if self._sqlite_files is not None:
            self._sqlite_files.forget()

    def _renew_redactor(self) -> None:
        self._json_writer.redactor = redactor = self.redactor
        set_redactor(self.engine.dialect, redactor)

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


_GATE_ADVISORY_LOCK = 7_203_003


def _pass_gate(session: Session, *, changes_schema: bool) -> None:
    """Have write transactions of PostgreSQL and a migration wait for each other before they have any other lock."""
    if changes_schema:
        session.execute(text(f"SET LOCAL lock_timeout = '{_SCHEMA_LOCK_SECONDS}s'"))
    shared = "" if changes_schema else "_shared"
    session.execute(text(f"SELECT pg_advisory_xact_lock{shared}({_GATE_ADVISORY_LOCK})"))


class _JsonWriter:
    """Writes JSON without secrets; an object, since psycopg takes equal functions of two databases for one."""

    def __init__(self) -> None:
        self.redactor = NOTHING_SECRET

    def __call__(self, value: Any) -> str:
        text = dump_json(value)
        # The text is searched once; each of its values only if there is something to remove.
        return dump_json(self.redactor.redact_json(value)) if self.redactor.finds(text) else text


def _parse_database_url(url: str | URL) -> URL:
    # The address is never part of a message: it may contain a password.
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:  # ValueError: a port that is not a number
        raise StoreUnavailable(
            "SHOWHOW_DATABASE_URL is not a database address; write sqlite:///FILE or postgresql://USER@HOST/NAME"
        ) from error
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise StoreUnavailable(
            f"SHOWHOW_DATABASE_URL names {parsed.drivername}; Showhow supports sqlite:///FILE and postgresql://..."
        )
    if _is_sqlite(parsed):
        _check_sqlite_url(parsed)
    return parsed


def _check_sqlite_url(url: URL) -> None:
    if not url.database or url.database == ":memory:" or url.host:
        raise StoreUnavailable("SHOWHOW_DATABASE_URL names no file; write sqlite:///FILE")
    try:
        path = Path(url.database)
        is_folder, is_special = path.is_dir(), path.exists() and not path.is_file()
    except (OSError, ValueError) as error:
        raise StoreUnavailable(
            f"SHOWHOW_DATABASE_URL names {url.database[:80]!r}, which can be no file ({error}); write sqlite:///FILE"
        ) from error
    if is_folder:
        raise StoreUnavailable(f"SHOWHOW_DATABASE_URL names the folder {url.database}; write sqlite:///FILE")
    if is_special:
        raise StoreUnavailable(f"SHOWHOW_DATABASE_URL names {url.database}, which is no file; write sqlite:///FILE")
    options = set(url.query) - {"timeout"}
    if options or not _is_number(url.query.get("timeout", "0")):
        raise StoreUnavailable(
            f"SHOWHOW_DATABASE_URL has the option {', '.join(sorted(options)) or 'timeout'}, which cannot be used; "
            "write sqlite:///FILE"
        )


def _is_number(text: str | tuple[str, ...]) -> bool:
    return isinstance(text, str) and text.replace(".", "", 1).isdecimal()


def _is_sqlite(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def _build_engine(url: URL, sqlite_files: SqliteFiles | None, serializer: Callable[[Any], str]) -> Engine:
    if sqlite_files is None:
        return create_engine(url, pool_pre_ping=True, pool_size=10, max_overflow=40, json_serializer=serializer)
    try:
        sqlite_files.path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(
            f"the folder of the database cannot be created ({error}); set SHOWHOW_HOME to a writable folder"
        ) from error
    _finish_interrupted_restore(sqlite_files.path)
    engine = create_engine(
        url,
        connect_args={"timeout": BUSY_TIMEOUT_SECONDS},
        pool_size=10,
        max_overflow=30,
        # The connection that was used last has its pages in memory; those of the others are outdated by its changes.
        pool_use_lifo=True,
        json_serializer=serializer,
    )
    # SQLite would create a file that was removed, or open another one in its place.
    event.listen(engine, "do_connect", lambda *_: _refuse_changed_files(sqlite_files))
    event.listen(engine, "connect", _configure_sqlite_connection)
    event.listen(engine, "connect", lambda *_: sqlite_files.register_connection())
    event.listen(engine, "close", lambda *_: sqlite_files.unregister_connection())
    event.listen(engine, "begin", _begin_sqlite_transaction)
    return engine


def _finish_interrupted_restore(linked: Path) -> None:
    path = linked.resolve()
    try:
        if find_restored_file(path) is not None:
            with restore_lock(path):
                finish_restore(path)
    except RestoreInProgress as error:
        raise StoreUnavailable(f"a backup is being restored to {path}; try again in a moment") from error
    except OSError as error:
        raise StoreUnavailable(
            f"the restored database cannot be put in place ({error}); check {path.parent}"
        ) from error


def _refuse_changed_files(sqlite_files: SqliteFiles | None) -> None:
    changed_file = sqlite_files.find_change() if sqlite_files is not None else None
    if changed_file is not None:
        raise StoreUnavailable(
            f"{changed_file} was removed or replaced while Showhow was using it, so this change is not stored; put the "
            "file back, or restart Showhow to use what is there now"
        )


def _configure_sqlite_connection(connection: Any, _record: Any) -> None:
    # The driver would begin transactions too late for BEGIN IMMEDIATE; _begin_sqlite_transaction begins them.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    # An acknowledged step survives a power failure, not only the end of the process.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # Whatever a schema says, it may call nothing that acts outside of the database.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    # 16 MB per connection, so that the lists of a large database are read from memory.
    connection.execute("PRAGMA cache_size = -16000")


def _begin_sqlite_transaction(connection: Any) -> None:
    # A writer that locks at the start waits for the others; one that locks later would fail.
    reads_only = connection.get_execution_options().get("reads_only", False)
    connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise errors of SQLAlchemy as StoreError; a bug of the program stays as it is."""
    try:
        yield
    except SQLAlchemyError as error:
        store_error = _translate_error(error)
        if store_error is None:
            raise
        raise store_error from error
    except UnicodeDecodeError as error:
        # A damaged file, even in the names that its message has.
        raise StoreUnavailable(f"the database is damaged ({error}); stop Showhow and run `showhow db check`") from error


def _translate_error(error: SQLAlchemyError) -> StoreError | None:
    """Convert the error to a StoreError; None for a bug in the program."""
    match error:
        case StaleDataError():
            return Conflict("this was changed elsewhere a moment ago; nothing was overwritten, look at the newer state")
        case NoResultFound():
            return RowNotFound("the requested row is no longer in the database; reload the page")
        case IntegrityError():
            return Conflict(
                f"the change contradicts the stored data ({_driver_message(error)}); look at the newer state"
            )
        case DBAPIError():
            return _translate_driver_error(error)
        case StatementError() if isinstance(error.orig, UnstorableValue):
            return StoreError(str(error.orig))
        case _:
            return _busy_error("too many connections") if isinstance(error, PoolTimeout) else None


def _translate_driver_error(error: DBAPIError) -> StoreError:
    message = _driver_message(error)
    # SQLite's extended result codes contain the primary code in their low byte.
    sqlite_code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    sqlstate = getattr(error.orig, "sqlstate", None) or ""
    if sqlite_code in SQLITE_FULL_CODES or sqlstate in POSTGRESQL_FULL_STATES:
        hint = "free some space and try again; nothing stored is lost"
        return StoreFull(f"the disk is full or cannot be written ({message}); {hint}")
    if sqlite_code in SQLITE_BUSY_CODES or sqlstate.startswith(POSTGRESQL_BUSY_STATES):
        return _busy_error(message)
    if message.startswith(("no such table", "no such column")) or sqlstate in POSTGRESQL_UNDEFINED_STATES:
        hint = "run `showhow db upgrade`"
        return StoreUnavailable(f"the database is not of this program's version ({message}); {hint}")
    if sqlite_code in SQLITE_DAMAGE_CODES:
        return StoreUnavailable(f"the database is damaged ({message}); stop Showhow and run `showhow db check`")
    return StoreUnavailable(
        f"the database does not respond ({message}); check that it exists and is not damaged, then try again"
    )


def is_lock_conflict(error: StoreError) -> bool:
    """Whether PostgreSQL gave up waiting for a lock of another transaction, or ended this one to solve a deadlock."""
    return getattr(getattr(error.__cause__, "orig", None), "sqlstate", None) in ("55P03", "40P01")


def _busy_error(message: str) -> StoreUnavailable:
    return StoreUnavailable(f"the database is busy ({message}); nothing was changed, try again in a moment")


def _driver_message(error: StatementError) -> str:
    """Return the first line of the driver's message."""
    return str(error.orig).strip().partition("\n")[0]
