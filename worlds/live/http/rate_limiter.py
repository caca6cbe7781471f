"""Rate limiter of each operator: concurrent requests, requests per minute, and the Retry-After of its hosts.

The sites of the Wikimedia Foundation are limited together, for each user; other sites by their host. All threads share
a limiter and, where the policy names a folder, all processes that use the folder.
"""

import functools
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

from filelock import FileLock, Timeout

from showhow.worlds.live.http.request import RequestPolicy
from showhow.worlds.source import SourceTimeout, SourceUnavailable

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

WIKIMEDIA = "wikimedia.org"
_WIKIMEDIA_DOMAINS = (
    "wikipedia.org",
    "wikidata.org",
    "wikimedia.org",
    "wiktionary.org",
    "wikibooks.org",
    "wikinews.org",
    "wikiquote.org",
    "wikisource.org",
    "wikiversity.org",
    "wikivoyage.org",
    "wikifunctions.org",
    "mediawiki.org",
)


def find_operator(host: str) -> str:
    """Who limits the requests to a host: WIKIMEDIA for all of its sites together, else the host itself."""
    name = host.partition(":")[0]
    is_wikimedia = any(name == domain or name.endswith(f".{domain}") for domain in _WIKIMEDIA_DOMAINS)
    return WIKIMEDIA if is_wikimedia else host


_MAX_DIGITS = 9


def parse_retry_after(header: str | None) -> float | None:
    """Seconds of a Retry-After header, a number or a date; None if it is missing or invalid."""
    if header is None:
        return None
    if header.strip().isdecimal():
        # A longer number is no time that anybody waits.
        return float(header) if len(header) <= _MAX_DIGITS else None
    try:
        moment = parsedate_to_datetime(header)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        # Not a date, or one out of range.
        return None


class SharedLimits:
    """Counts the requests of all processes that use this folder: slots, starts within a minute, pauses; thread-safe.

    A slot is a lock on a file, which the operating system frees when its process ends, also after a kill -9.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._file_locks: dict[str, FileLock] = {}
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
        with self._get_file_lock(f"{name}.turn").acquire(timeout=max(0.0, deadline - time.monotonic())):
            while True:
                for number in range(slots):
                    slot = self._get_file_lock(f"{name}.{number}")
                    try:
                        slot.acquire(blocking=False)
                    except Timeout:
                        continue
                    return slot
                if time.monotonic() >= deadline:
                    return None
                time.sleep(_POLL_SECONDS)

    def _get_file_lock(self, name: str) -> FileLock:
        """The lock on a file, made once, since that takes as long as to lock it; each thread holds it for itself."""
        lock = self._file_locks.get(name)
        return lock or self._file_locks.setdefault(name, FileLock(self._folder / name, poll_interval=_POLL_SECONDS))

    def reserve_start(self, operator: str, host: str, policy: RequestPolicy) -> tuple[float, bool]:
        """Count a request that starts now; else the seconds until one may start, and whether the host is paused."""
        with self._transaction():
            now = time.time()
            if (delay := self._seconds_paused(host, now)) > 0:
                return delay, True
            if (delay := self._seconds_until_start(operator, policy.max_per_minute, now)) > 0:
                return delay, False
            self._connection.execute("insert into starts values (?, ?)", (operator, now))
        return 0.0, False

    def pause(self, host: str, seconds: float) -> None:
        """Start no request to this host for so many seconds."""
        with self._transaction():
            now = time.time()
            until = now + max(min(seconds, MAX_RETRY_AFTER), self._seconds_paused(host, now))
            self._connection.execute("insert or replace into pauses values (?, ?)", (host, until))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            # The connection commits, or undoes after any exception, so that the lock on the file is released.
            with self._lock, self._connection:
                self._connection.execute("begin immediate")
                yield
        except sqlite3.Error as error:
            raise self._folder_error(error) from error

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


class RateLimiter:
    """Limits the requests to one operator; each caller passes the policy of its world, all requests count together."""

    def __init__(self, operator: str) -> None:
        self._operator = operator
        self._changed = threading.Condition()
        self._active = 0
        self._starts: deque[float] = deque()
        self._paused_until: dict[str, float] = {}

    @contextmanager
    def acquire(self, host: str, policy: RequestPolicy, deadline: float) -> Iterator[float]:
        """Hold a slot; yields the seconds waited for it. SourceError if none is free by `deadline` (time.monotonic)."""
        started = time.monotonic()
        self._wait_for_slot(host, policy, deadline)
        folder = policy.limits_folder
        try:
            with nullcontext() if folder is None else self._hold_shared_slot(folder, host, policy, deadline):
                yield time.monotonic() - started
        finally:
            with self._changed:
                self._active -= 1
                self._changed.notify_all()

    def pause(self, host: str, policy: RequestPolicy, seconds: float) -> None:
        """Start no request to this host for so many seconds, at most MAX_RETRY_AFTER."""
        with self._changed:
            until = time.monotonic() + min(seconds, MAX_RETRY_AFTER)
            self._paused_until[host] = max(self._paused_until.get(host, until), until)
        if policy.limits_folder is not None:
            get_shared_limits(policy.limits_folder).pause(host, seconds)

    def _wait_for_slot(self, host: str, policy: RequestPolicy, deadline: float) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                paused_until = self._paused_until.get(host, now)
                delay = max(paused_until, self._next_start_time(policy.max_per_minute, now)) - now
                if delay <= 0 and self._active < policy.max_concurrent:
                    break
                if delay > 0 and now + delay > deadline:
                    raise _rate_limited(host, delay, policy, paused=paused_until > now)
                if now >= deadline:
                    raise _all_slots_used(host, policy)
                self._changed.wait(delay if delay > 0 else deadline - now)
            self._active += 1
            self._starts.append(now)

    @contextmanager
    def _hold_shared_slot(self, folder: Path, host: str, policy: RequestPolicy, deadline: float) -> Iterator[None]:
        limits = get_shared_limits(folder)
        while True:
            slot = limits.take_slot(self._operator, policy.max_concurrent, deadline)
            if slot is None:
                raise _all_slots_used(host, policy)
            try:
                delay, paused = limits.reserve_start(self._operator, host, policy)
                if delay <= 0:
                    yield
                    return
            finally:
                slot.release()
            if time.monotonic() + delay > deadline:
                raise _rate_limited(host, delay, policy, paused=paused)
            time.sleep(delay)

    def _next_start_time(self, per_minute: int, now: float) -> float:
        while self._starts and self._starts[0] <= now - WINDOW_SECONDS:
            self._starts.popleft()
        return self._starts[-per_minute] + WINDOW_SECONDS if len(self._starts) >= per_minute else now


def _all_slots_used(host: str, policy: RequestPolicy) -> SourceTimeout:
    return SourceTimeout(
        f"No request was sent to {host}: other requests used all {policy.max_concurrent} connections for "
        f"{policy.timeout_seconds:g} s; try again in a minute."
    )


def _rate_limited(host: str, seconds: float, policy: RequestPolicy, *, paused: bool) -> SourceUnavailable:
    moment = (datetime.now(UTC) + timedelta(seconds=seconds + 1)).strftime("%H:%M:%S UTC")
    if paused:
        return SourceUnavailable(f"{host} asked for a pause of {seconds:.0f} s; try again after {moment}.")
    return SourceUnavailable(
        f"The limit of {policy.max_per_minute} requests per minute to {host} is reached; try again after {moment}."
    )


_RATE_LIMITERS: dict[str, RateLimiter] = {}
_RATE_LIMITERS_LOCK = threading.Lock()


def get_rate_limiter(host: str) -> RateLimiter:
    """The rate limiter of the host's operator in this process."""
    operator = find_operator(host)
    with _RATE_LIMITERS_LOCK:
        return _RATE_LIMITERS.setdefault(operator, RateLimiter(operator))
