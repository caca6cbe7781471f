"""Rate limiter of each host, shared by all threads: concurrent requests, requests a minute, and Retry-After."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from worlds.live.http.access import RequestPolicy
from worlds.source import SourceTimeout, SourceUnavailable


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
        # No date, or one beyond all calendars.
        return None


_WINDOW_SECONDS = 60.0
MAX_RETRY_AFTER = 3600.0
"""Whoever asks for more is asked again after an hour, to hear it once more."""


class RateLimiter:
    """Lets callers in to one host; each brings the policy of its own world, all are counted together."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._changed = threading.Condition()
        self._inside = 0
        self._starts: deque[float] = deque()
        self._closed_until = 0.0

    @contextmanager
    def acquire(self, policy: RequestPolicy, ends: float) -> Iterator[float]:
        """Hold a slot; yields the seconds waited, at most until `ends` (of time.monotonic)."""
        came = time.monotonic()
        self._wait_for_slot(policy, ends)
        try:
            yield time.monotonic() - came
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Start no request for so many seconds."""
        with self._changed:
            self._closed_until = max(self._closed_until, time.monotonic() + min(seconds, MAX_RETRY_AFTER))

    def _wait_for_slot(self, policy: RequestPolicy, ends: float) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                closed = max(self._closed_until, self._next_start_time(policy.max_per_minute, now)) - now
                if closed <= 0 and self._inside < policy.max_concurrent:
                    break
                if closed > 0 and now + closed > ends:
                    raise SourceUnavailable(self._rate_limit_message(closed, policy))
                if now >= ends:
                    raise SourceTimeout(
                        f"{self._host} was not asked: for {policy.timeout_seconds:g} s "
                        f"all {policy.max_concurrent} places there were taken by other requests; try again in a minute."
                    )
                self._changed.wait(closed if closed > 0 else ends - now)
            self._inside += 1
            self._starts.append(now)

    def _next_start_time(self, per_minute: int, now: float) -> float:
        while self._starts and self._starts[0] <= now - _WINDOW_SECONDS:
            self._starts.popleft()
        return self._starts[-per_minute] + _WINDOW_SECONDS if len(self._starts) >= per_minute else now

    def _rate_limit_message(self, seconds: float, policy: RequestPolicy) -> str:
        moment = (datetime.now(UTC) + timedelta(seconds=seconds + 1)).strftime("%H:%M:%S UTC")
        if self._closed_until > time.monotonic():
            return f"{self._host} asks to be left in peace for {seconds:.0f} s; try again after {moment}."
        return f"{self._host} is asked at most {policy.max_per_minute} times a minute; try again after {moment}."


_RATE_LIMITERS: dict[str, RateLimiter] = {}
_RATE_LIMITERS_LOCK = threading.Lock()


def get_rate_limiter(host: str) -> RateLimiter:
    """The one gate of a host in this process."""
    with _RATE_LIMITERS_LOCK:
        return _RATE_LIMITERS.setdefault(host, RateLimiter(host))
