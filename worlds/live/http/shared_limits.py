"""Limits of requests shared by the processes of one home: slots, starts within a minute, and pauses, in one folder.

A slot is a lock on a file, which the operating system frees when its process ends, also after a kill -9.
"""

import functools
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from worlds.live.http.access import RequestPolicy
from worlds.source import SourceUnavailable

WINDOW_SECONDS = 60.0
MAX_RETRY_AFTER = 3600.0
"""Longer Retry-After delays are cut to this; the host is then requested again."""
_POLL_SECONDS = 0.01
_STARTS_FILE = "starts.sqlite"
_SCHEMA = """
create table if not exists starts (operator text not null, moment real not null);
create index if not exists starts_of_operator on starts (operator, moment);
create table if not exists pauses (host text primary key, until real not null);
"""


class SharedLimits:
    """Counts the requests of all processes that use this folder; safe for threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                folder / _STARTS_FILE, timeout=20, isolation_level=None, check_same_thread=False
            )
            # No -wal: while one process switches a new file to it, the others get an error at once and do not wait.
            # What a power failure loses is counted anew.
            self._connection.execute("pragma synchronous = off")
            self._connection.executescript(f"begin immediate; {_SCHEMA} commit;")
        except (OSError, sqlite3.Error) as error:
            raise self._folder_error(error) from error

    def take_slot(self, operator: str, slots: int, deadline: float) -> FileLock | None:
        """One of the operator's slots, to be released; None if none is free by `deadline` (of time.monotonic)."""
        try:
            return self._wait_for_slot(operator, slots, deadline)
        except Timeout:
            return None
        except OSError as error:
            raise self._folder_error(error) from error

    def _wait_for_slot(self, operator: str, slots: int, deadline: float) -> FileLock | None:
        # One caller waits for a slot, the others for their turn, so that a busy process does not take every slot that
        # it has just freed itself.
        name = operator.replace(":", "_")
        turn = FileLock(self._folder / f"{name}.turn", poll_interval=_POLL_SECONDS)
        with turn.acquire(timeout=max(0.0, deadline - time.monotonic())):
            while True:
                for number in range(slots):
                    slot = FileLock(self._folder / f"{name}.{number}")
                    try:
                        slot.acquire(blocking=False)
                    except Timeout:
                        continue
                    return slot
                if time.monotonic() >= deadline:
                    return None
                time.sleep(_POLL_SECONDS)

    def reserve_start(self, operator: str, host: str, policy: RequestPolicy) -> tuple[float, bool]:
        """Count a request that starts now; else the seconds until one may start, and whether the host is paused."""
        try:
            with self._lock, self._transaction():
                now = time.time()
                if (delay := self._seconds_paused(host, now)) > 0:
                    return delay, True
                if (delay := self._seconds_until_start(operator, policy.max_per_minute, now)) > 0:
                    return delay, False
                self._connection.execute("insert into starts values (?, ?)", (operator, now))
        except sqlite3.Error as error:
            raise self._folder_error(error) from error
        return 0.0, False

    def pause(self, host: str, seconds: float) -> None:
        """Start no request to this host for so many seconds."""
        try:
            with self._lock, self._transaction():
                now = time.time()
                until = now + max(min(seconds, MAX_RETRY_AFTER), self._seconds_paused(host, now))
                self._connection.execute("insert or replace into pauses values (?, ?)", (host, until))
        except sqlite3.Error as error:
            raise self._folder_error(error) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("begin immediate")
        try:
            yield
        # After every exception, also KeyboardInterrupt, the lock on the file is released.
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")

    def _seconds_paused(self, host: str, now: float) -> float:
        row = self._connection.execute("select until from pauses where host = ?", (host,)).fetchone()
        # A pause that is longer than any was stored before the clock was set back.
        return row[0] - now if row is not None and row[0] - now <= MAX_RETRY_AFTER else 0.0

    def _seconds_until_start(self, operator: str, per_minute: int, now: float) -> float:
        self._connection.execute("delete from starts where moment <= ? or moment > ?", (now - WINDOW_SECONDS, now))
        row = self._connection.execute(
            "select moment from starts where operator = ? order by moment desc limit 1 offset ?",
            (operator, per_minute - 1),
        ).fetchone()
        return row[0] + WINDOW_SECONDS - now if row is not None else 0.0

    def _folder_error(self, error: Exception) -> SourceUnavailable:
        return SourceUnavailable(
            f"The folder {self._folder}, in which live sources count their requests, cannot be used ({error}); "
            "check the disk and its permissions, or remove the folder."
        )


@functools.cache
def get_shared_limits(folder: Path) -> SharedLimits:
    """The limits that are shared through this folder."""
    return SharedLimits(folder)
