"""The connection to the store: one write transaction at a time on SQLite, any number of readers.

StoreError
  Missing            there is no such row
  Conflict           the row has moved on since the caller saw it, or may not be changed any more
  StoreFull          the disk is full; nothing of the change was written
  StoreUnavailable   the database is locked, gone or broken
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, StatementError
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError

from db.types import UnstorableText

BUSY_SECONDS = 20


class StoreError(Exception):
    """The store did not do what it was asked; the message says why and what to do next."""


class Missing(StoreError):
    """There is no such row."""


class Conflict(StoreError):
    """What was to be changed has been changed by somebody else, or may not be changed any more."""


class StoreFull(StoreError):
    """There is no room left on the disk."""


class StoreUnavailable(StoreError):
    """The database is locked, gone or broken."""


class Database:
    """An engine for SQLite (`sqlite:///file`) or PostgreSQL (`postgresql://...`), opened at the first use."""

    def __init__(self, url: str) -> None:
        self.url = _known_driver(url)
        self.engine = _engine(self.url)

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a file of SQLite's."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """One write transaction: all of it is on disk when the block ends, or none of it and a StoreError."""
        with _explained(), Session(self.engine, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session for reading; what it gives are plain objects afterwards."""
        with _explained(), Session(self.engine.execution_options(reads_only=True), expire_on_commit=False) as session:
            yield session

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def _known_driver(url: str) -> URL:
    parsed = make_url(url)
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise StoreUnavailable(
            f"SHOWHOW_DATABASE_URL names {parsed.drivername}; Showhow stores in sqlite:///FILE or postgresql://..."
        )
    return parsed


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "postgresql":
        return create_engine(url, pool_pre_ping=True, pool_size=10, max_overflow=40)
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS}, pool_size=10, max_overflow=90)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    # The driver's own transactions begin too late to be immediate; ours are begun below.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    # An acknowledged step survives a loss of power, not only the end of the process.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: Any) -> None:
    # A writer that asks for the lock at once waits its turn; one that asks in the middle would fail.
    reads_only = connection.get_execution_options().get("reads_only", False)
    connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except StaleDataError as stale:
        raise Conflict(
            "this was changed elsewhere a moment ago; what you typed is kept, look at the newer state"
        ) from stale
    except IntegrityError as refused:
        raise Conflict(f"the change does not fit what is stored: {refused.orig}") from refused
    except OperationalError as failed:
        raise _operational(str(failed.orig)) from failed
    except DBAPIError as failed:
        raise StoreUnavailable(f"the database refused the change: {failed.orig}") from failed
    except StatementError as failed:
        if isinstance(failed.orig, UnstorableText):
            raise StoreError(str(failed.orig)) from failed
        raise


def _operational(said: str) -> StoreError:
    lowered = said.lower()
    if "full" in lowered or "no space" in lowered or "disk i/o" in lowered:
        return StoreFull(
            f"the disk is full or cannot be written ({said}); free some space and do it again, nothing is lost"
        )
    if "locked" in lowered:
        return StoreUnavailable(f"the database was busy for {BUSY_SECONDS} s ({said}); do it again")
    if "no such table" in lowered or "no such column" in lowered:
        return StoreUnavailable(f"the database is older than the program ({said}); run `showhow db upgrade`")
    return StoreUnavailable(f"the database does not answer ({said}); see that it runs and do it again")
