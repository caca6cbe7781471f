"""Threads that write to a database of a former version on PostgreSQL, as people do, while it is upgraded."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import psycopg
from sqlalchemy import text

from showhow.db.database import Database

TABLES = ("trace", "run", "user")
"""What the writers change, one after the other."""
_STATEMENTS = {
    "trace": "UPDATE trace SET version = version + 1 WHERE id = (SELECT id FROM trace ORDER BY id OFFSET :at LIMIT 1)",
    "run": "UPDATE run SET note = note || 'x' WHERE id = (SELECT id FROM run ORDER BY id OFFSET :at LIMIT 1)",
}


@dataclass(slots=True)
class Writers:
    """Threads that store people and change traces and runs; what was acknowledged, and the longest stall."""

    address: str
    count: int = 20
    acknowledged: list[str] = field(default_factory=list)
    changes: int = 0
    longest: float = 0.0
    """Seconds from the beginning of a write to its acknowledgement."""
    _stopping: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Write while the block runs; each thread has written before it begins."""
        ready = threading.Barrier(self.count + 1)
        threads = [threading.Thread(target=self._work, args=(number, ready)) for number in range(self.count)]
        for thread in threads:
            thread.start()
        ready.wait()
        try:
            yield
        finally:
            self._stopping.set()
            for thread in threads:
                thread.join()

    def _work(self, number: int, ready: threading.Barrier) -> None:
        turn = 0
        with closing(Database(self.address)) as database:
            while not self._stopping.is_set():
                started = time.monotonic()
                name = f"writer {number}, {turn}"
                with database.begin() as session:
                    for statement in _STATEMENTS.values():
                        session.execute(text(statement), {"at": number % 3})
                    insert = text(
                        """INSERT INTO "user" (id, name, roles, created_at) VALUES (:id, :name, '[]', now())"""
                    )
                    session.execute(insert, {"id": uuid4(), "name": name})
                with self._lock:
                    self.acknowledged.append(name)
                    self.changes += 1
                    self.longest = max(self.longest, time.monotonic() - started)
                turn += 1
                if turn == 1:
                    ready.wait()
                self._stopping.wait(0.02)


@contextmanager
def long_transaction(address: str, table: str, seconds: float) -> Iterator[None]:
    """Another program reads the table and leaves its transaction open for so long, from before the block."""
    with psycopg.connect(address) as connection:
        connection.execute(f'SELECT count(*) FROM "{table}"')
        timer = threading.Timer(seconds, connection.rollback)
        timer.start()
        try:
            yield
        finally:
            timer.join()
