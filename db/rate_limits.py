"""The rate limits of models that the machines with one PostgreSQL database share: states in rows, places as locks."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Double, cast, func, select, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Mapped, mapped_column

from showhow.db.database import Database, translate_errors
from showhow.db.types import Base

_FREE_SLOT = text(
    # Without the CTE the server might lock a place that this connection has, which would succeed.
    "WITH free AS MATERIALIZED (SELECT n FROM generate_series(0, :slots - 1) AS n WHERE n <> ALL(:held)) "
    "SELECT n FROM free WHERE pg_try_advisory_lock(:key, n) LIMIT 1"
)


class RateLimit(Base):
    """What is known about the rate limit of a model; the values are those of llm/rate_limiter.py."""

    __tablename__ = "rate_limit"

    name: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[dict[str, Any]]


class DatabaseLimits:
    """The LimitsBackend of a PostgreSQL database; thread-safe. Its methods raise StoreError."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock_offset = 0.0
        """The server's clock less that of this machine, in seconds."""
        self._lock = Lock()
        self._connection: Connection | None = None
        self._held: dict[int, set[int]] = {}
        """The places that this process has, by the key of their limit."""

    def now(self) -> float:
        """Seconds since 1970 by the clock of the server, as known since the last update."""
        return time.time() + self._clock_offset

    @contextmanager
    def update(self, name: str) -> Iterator[dict[str, Any]]:
        """Change the values of a limit; no other thread or machine changes them meanwhile."""
        with self._database.begin() as session:
            session.execute(text("SET LOCAL synchronous_commit = off"))
            session.execute(postgresql.insert(RateLimit).values(name=name, state={}).on_conflict_do_nothing())
            limit = session.get_one(RateLimit, name, with_for_update=True)
            now = session.execute(select(cast(func.extract("epoch", func.clock_timestamp()), Double))).scalar_one()
            self._clock_offset = now - time.time()
            values = dict(limit.state)
            yield values
            limit.state = values

    def try_slot(self, name: str, slots: int) -> "DatabaseSlot | None":
        """One of the places of a limit; None if none is free."""
        key = int.from_bytes(sha256(name.encode()).digest()[:4], signed=True)
        with self._lock, translate_errors():
            connection = self._open_connection()
            parameters = {"slots": slots, "held": sorted(self._held.get(key, ())), "key": key}
            number = connection.execute(_FREE_SLOT, parameters).scalar()
            if number is None:
                return None
            self._held.setdefault(key, set()).add(number)
            return DatabaseSlot(self, connection, key, number)

    def release(self, connection: Connection, key: int, number: int) -> None:
        """Free a place that was taken through this connection."""
        with self._lock:
            if connection is not self._connection:
                # It was lost, and its places with it.
                return
            self._held[key].discard(number)
            unlock = text("SELECT pg_advisory_unlock(:key, :number)")
            try:
                connection.execute(unlock, {"key": key, "number": number})
            except SQLAlchemyError:
                self._close_connection()

    def close(self) -> None:
        """Close the connection that holds places."""
        with self._lock:
            self._close_connection()

    def _open_connection(self) -> Connection:
        if self._connection is not None and self._connection.invalidated:
            self._close_connection()
        if self._connection is None:
            engine = self._database.engine.execution_options(isolation_level="AUTOCOMMIT")
            self._connection = engine.connect()
        return self._connection

    def _close_connection(self) -> None:
        """Close the connection, which frees its places; also those of requests under way."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._held.clear()


class DatabaseSlot:
    """A place for a request."""

    def __init__(self, limits: DatabaseLimits, connection: Connection, key: int, number: int) -> None:
        self._limits = limits
        self._connection = connection
        self._key = key
        self._number = number

    def release(self) -> None:
        """Free the place."""
        self._limits.release(self._connection, self._key, self._number)
