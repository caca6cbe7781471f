"""Threads that write to a database of a former version on PostgreSQL, as people do, while it is upgraded."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import psycopg

TABLES = ("trace", "run", "user")
"""What the writers change, one after the other."""
_STATEMENTS = {
    "trace": "UPDATE trace SET version = version + 1 WHERE id = (SELECT id FROM trace ORDER BY id OFFSET %s LIMIT 1)",
    "run": "UPDATE run SET note = note || 'x' WHERE id = (SELECT id FROM run ORDER BY id OFFSET %s LIMIT 1)",
}


@dataclass(slots=True)
class Writers:
    """Threads that store people and change traces and runs; what was acknowledged, and the longest stall."""

    address: str
    count: int = 20
    acknowledged: list[str] = field(default_factory=list)
    changes: int = 0
    longest: float = 0.0
    """Seconds from the beginning of a write to its acknowledgement, tries that failed included."""
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
        with psycopg.connect(self.address, autocommit=True) as connection:
            while not self._stopping.is_set():
                self._write(connection, number, f"writer {number}, {turn}")
                turn += 1
                if turn == 1:
                    ready.wait()
                self._stopping.wait(0.02)

    def _write(self, connection: "psycopg.Connection", number: int, name: str) -> None:
        started = time.monotonic()
        while True:
            try:
                with connection.transaction():
                    for statement in _STATEMENTS.values():
                        connection.execute(statement, [number % 3])
                    insert = 'INSERT INTO "user" (id, name, roles, created_at) VALUES (%s, %s, %s, now())'
                    connection.execute(insert, [uuid4(), name, "[]"])
                break
            except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable):
                # Nothing was acknowledged; a page would try again, too.
                continue
        with self._lock:
            self.acknowledged.append(name)
            self.changes += 1
            self.longest = max(self.longest, time.monotonic() - started)


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
