"""Rate limiter of each operator: concurrent requests, requests per minute, and the Retry-After of its hosts.

The sites of the Wikimedia Foundation are limited together, for each user; other sites by their host. All threads share
a limiter and, where the policy names a folder, all processes that use the folder.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

from worlds.live.http.access import RequestPolicy
from worlds.live.http.shared_limits import MAX_RETRY_AFTER, WINDOW_SECONDS, get_shared_limits
from worlds.source import SourceTimeout, SourceUnavailable

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


def parse_retry_after(header: str | None) -> float | None:
    """Seconds of a Retry-After header, a number or a date; None if it is missing or invalid."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        # Not a date, or one out of range.
        return None


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
