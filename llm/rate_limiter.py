"""Rate limiter of each model, shared by all threads, and by all processes of one home or of one database.

Processes of one home share an SQLite file and locks on files; machines share what a LimitsBackend gives them.

Servers state their limit in headers, or only by refusing requests (429). From refusals the limiter learns the rate: all
requests that were accepted between two refusals, divided by the time between the moments that the server named. It then
starts requests at even distances slightly below that rate, and looks for a higher one between a rate that held and one
that was refused.
"""

import hashlib
import json
import logging
import sqlite3
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock, Timeout

from showhow.llm.errors import ChatRateLimited, ChatUnavailable
from showhow.llm.rate_limit_headers import RateBudget

_log = logging.getLogger(__name__)
RATE_LIMITS_FILE_NAME = "model_limits.sqlite"
SLOTS_FOLDER = "model_slots"
_SLOT_POLL_SECONDS = 0.02
_SAFETY = 0.96
"""The part of a measured rate that is used, since requests do not arrive at exactly even distances."""
_SHORTEST_GAP = 0.97
"""The shortest distance of two starts, as a part of the even one, where threads woke late."""
_GROWTH = 1.25
_REPLIES_BEFORE_GROWTH = 4
_FULLY_USED = 0.95
_ENOUGH_TO_MEASURE = 20
_CLOSE_TO_REFUSED = 0.92
"""A rate is not raised beyond this part of a rate that was refused."""
_FORGET_REFUSED_SECONDS = 300.0
_IDLE_SECONDS, _IDLE_STARTS = 60.0, 4
"""Without a request for so long, or for so many distances at a known rate, requests are counted anew."""
_UNLIMITED_RATE = 500.0
_MAX_BUDGET_RESET = 120.0
"""Requests are not spread over longer periods, such as a day."""
_MIN_WAIT = 0.01
_INITIAL_BACKOFF, _MAX_BACKOFF = 0.5, 8.0
"""Seconds to wait after refusals that name no time."""
_MAX_SLEEP = 1.0
"""Seconds after which a waiting request looks again, since another process may have learnt something."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The limits that a profile sets for its requests; None for those that are learnt from the server."""

    requests_per_second: float | None = None
    tokens_per_second: float | None = None
    concurrency: int | None = None
    """The most requests under way at the same time; None for no limit."""


NO_LIMITS = RequestLimits()


@dataclass(slots=True)
class LimitState:
    """What is known about one limit, as stored; moments are seconds since 1970."""

    started: int = 0
    """The number of requests started so far; the serial number of the last one."""
    last_start: float = 0.0
    next_start: float = 0.0
    paused_until: float = 0.0
    rate: float | None = None
    """Requests per second; None if no limit is known."""
    rate_serial: int = 0
    """Requests up to this one were started at an earlier rate."""
    held_rate: float = 0.0
    refused_rate: float | None = None
    refused_at: float = 0.0
    counted_from: float = 0.0
    counted_rate: float | None = None
    """The rate at `counted_from`; None if requests were started more slowly since then."""
    accepted: int = 0
    """The requests started since `counted_from`, without refused ones."""
    futile_waits: int = 0
    """Successive refusals without an accepted request between them."""
    replies: int = 0
    """The replies at the present rate."""
    refusal_serial: int = 0
    """Refusals of requests up to this one belong to the last refusal."""
    refusal_accepted: int = 0
    refusal_span: float = 1.0
    refusal_rate: float | None = None
    budget_serial: int = 0
    budget_spacing: float = 0.0
    budget_next: float = 0.0
    budget_until: float = 0.0
    tokens_until: float = 0.0
    """The moment until which the tokens that were used fill the profile's limit of tokens."""

    def try_start(self, now: float, limits: RequestLimits = NO_LIMITS, tokens: int = 0) -> float:
        """Start a request and return 0, or return the seconds until one can be started."""
        budgeted = now < self.budget_until
        earliest = max(self.paused_until, self.next_start, self.budget_next if budgeted else 0.0)
        if limits.tokens_per_second is not None:
            earliest = max(earliest, self.tokens_until)
        if now < earliest:
            return earliest - now
        self.use_tokens(now, limits, tokens)
        stated = limits.requests_per_second
        rates = [rate for rate in (self.rate, stated and _SAFETY * stated) if rate is not None]
        spacing = 1 / min(rates) if rates else 0.0
        idle_limit = _IDLE_SECONDS if self.rate is None else max(1.0, _IDLE_STARTS * spacing)
        if now - max(self.last_start, earliest) > idle_limit:
            self.counted_from, self.accepted, self.counted_rate = now, 0, None
        # Threads that wake a little late do not slow down those behind them.
        is_paced = now - earliest < spacing
        self.next_start = max(earliest + spacing, now + _SHORTEST_GAP * spacing) if is_paced else now + spacing
        self.budget_next = max(self.budget_next, now - self.budget_spacing) + self.budget_spacing
        self.started += 1
        self.accepted += 1
        self.last_start = now
        if not is_paced:
            # Demand is below the rate, so replies say nothing about it.
            self.replies, self.rate_serial, self.counted_rate = 0, self.started, None
        return 0.0

    def use_tokens(self, now: float, limits: RequestLimits, tokens: int) -> None:
        """Count tokens against the profile's limit; negative ones were estimated, but not used."""
        if limits.tokens_per_second is not None:
            self.tokens_until = max(self.tokens_until, now) + tokens / limits.tokens_per_second

    def refuse(self, serial: int, now: float, wait: float | None) -> None:
        """Learn from the refusal of a request; `wait` are the seconds that the server names, None if it names none."""
        if serial <= self.refusal_serial:
            self.refusal_accepted -= 1
        else:
            is_futile = self.accepted <= 1 and self.rate is not None
            self.futile_waits = self.futile_waits + 1 if is_futile else 0
            wait = self._backoff() if wait is None else max(wait, _MIN_WAIT)
            span = max(now + wait - self.counted_from, _MIN_WAIT)
            if is_futile:
                # The wait before was too short.
                self.refusal_span += span
            else:
                self._note_refused_rate(now)
                self.refusal_accepted, self.refusal_span = self.accepted - 1, span
                self.refusal_rate = self.counted_rate
            self.refusal_serial = self.started
            self.accepted, self.counted_from = 0, now + wait
        self.paused_until = max(self.paused_until, now + (wait or 0.0))
        self.rate = self.counted_rate = self._estimate_rate()
        self.replies, self.rate_serial = 0, self.started

    def _backoff(self) -> float:
        return min(_MAX_BACKOFF, _INITIAL_BACKOFF * 2.0**self.futile_waits)

    def _note_refused_rate(self, now: float) -> None:
        if self.rate is not None:
            self.refused_rate, self.refused_at = self.rate, now
            # A large budget accepts too high a rate for a while.
            self.held_rate = self.held_rate if self.held_rate < self.rate else 0.0

    def _estimate_rate(self) -> float:
        measured = max(self.refusal_accepted, 1) / self.refusal_span
        if self.refusal_accepted >= _ENOUGH_TO_MEASURE and measured <= (self.refusal_rate or 0.0) / _FULLY_USED:
            # All that the server allowed was used all the time, so the measured rate is its limit.
            self.refused_rate = min(self.refused_rate or measured / _SAFETY, measured / _SAFETY)
            self.held_rate = min(self.held_rate, _SAFETY * measured)
        rate = max(_SAFETY * measured, self.held_rate)
        return rate if self.refused_rate is None else min(rate, _SAFETY * self.refused_rate)

    def confirm(self, serial: int, now: float) -> None:
        """Learn from a request that was accepted."""
        if self.rate is None or serial <= self.rate_serial:
            return
        self.replies += 1
        if self.replies < _REPLIES_BEFORE_GROWTH:
            return
        self.held_rate = max(self.held_rate, self.rate)
        if self.refused_rate is not None and now - self.refused_at > _FORGET_REFUSED_SECONDS:
            self.refused_rate = None
        if self.refused_rate is None:
            self.rate *= _GROWTH
        elif self.rate < _CLOSE_TO_REFUSED * self.refused_rate:
            self.rate = min(_GROWTH * self.rate, (self.rate + self.refused_rate) / 2)
        self.rate = self.rate if self.rate < _UNLIMITED_RATE else None
        self.replies, self.rate_serial = 0, self.started

    def observe_budgets(self, request: "StartedRequest", budgets: Sequence[RateBudget], now: float) -> None:
        """Spread requests evenly over what is left of the server's budgets."""
        if request.serial < self.budget_serial:
            return
        spacings = [
            budget.reset_seconds
            / ((budget.remaining / request.tokens if budget.counts_tokens else budget.remaining) + 1)
            for budget in budgets
            if budget.reset_seconds <= _MAX_BUDGET_RESET
        ]
        self.budget_serial = request.serial
        self.budget_spacing = max(spacings, default=0.0)
        # Requests started since then have used their share.
        self.budget_next = request.started_at + self.budget_spacing * (self.started - request.serial + 1)
        self.budget_until = now + _MAX_BUDGET_RESET


@dataclass(frozen=True, slots=True)
class StartedRequest:
    """A request that the limiter allowed: its number, its start, and its estimated tokens."""

    serial: int
    started_at: float
    tokens: int


class Slot(Protocol):
    """A place for a request, which is free again once it is released or its process has ended."""

    def release(self) -> object:
        """Free the place."""


class LimitsBackend(Protocol):
    """What machines share about limits, for example in a database (db/rate_limits.py); thread-safe.

    An exception of a method ends the request with it.
    """

    def now(self) -> float:
        """Seconds since 1970 by a clock that all machines share."""

    def update(self, name: str) -> AbstractContextManager[dict[str, Any]]:
        """The stored values of a limit, at first none; changes are stored, and nobody changes them meanwhile."""

    def try_slot(self, name: str, slots: int) -> Slot | None:
        """One of the places of a limit; None if none is free."""

    def close(self) -> None:
        """Free what this process holds."""


class LimitStore:
    """The states of all limits: in a file that the processes of a home share, or in memory. Thread-safe."""

    def __init__(self, file: Path | None) -> None:
        self._lock = threading.Lock()
        self._name = str(file or ":memory:")
        with self._convert_errors():
            self._temporary = tempfile.TemporaryDirectory(prefix="showhow-slots-") if file is None else None
            self._slots = Path(self._temporary.name) if self._temporary else Path(self._name).parent / SLOTS_FOLDER
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self._name, timeout=30, check_same_thread=False, isolation_level=None)
            # The file may be lost in a power failure: limits are then learnt again. No -wal: while one process switches
            # a new file to it, the others get an error at once instead of waiting.
            self._connection.execute("PRAGMA synchronous = OFF")
            self._connection.executescript(
                "BEGIN IMMEDIATE; "
                "CREATE TABLE IF NOT EXISTS model_limit (name TEXT PRIMARY KEY, state TEXT NOT NULL); "
                "COMMIT;"
            )

    @contextmanager
    def update(self, name: str) -> Iterator[LimitState]:
        """Change the state of a limit; no other thread or process changes it meanwhile."""
        # The connection commits, or undoes the change after any exception, so that the lock on the file is released.
        with self._lock, self._convert_errors(), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            row = self._connection.execute("SELECT state FROM model_limit WHERE name = ?", (name,)).fetchone()
            state = _read_state(json.loads(row[0])) if row else LimitState()
            yield state
            written = json.dumps(asdict(state))
            self._connection.execute("INSERT OR REPLACE INTO model_limit VALUES (?, ?)", (name, written))

    @staticmethod
    def now() -> float:
        """Seconds since 1970."""
        return time.time()

    def try_slot(self, name: str, slots: int) -> Slot | None:
        """One of the places of a limit, to be released by its thread; None if none is free.

        A place is a lock on a file, which the operating system frees when its process ends, also after a kill -9.
        """
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        with self._convert_errors():
            self._slots.mkdir(parents=True, exist_ok=True)
            for number in range(slots):
                slot = FileLock(self._slots / f"{digest}.{number}")
                with suppress(Timeout):
                    slot.acquire(blocking=False)
                    return slot
        return None

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise ChatUnavailable(
                f"The limits of models cannot be shared in {self._name} ({error}); make it writable, or delete it."
            ) from error


class SharedLimitStore:
    """The states of all limits, as machines share them. Thread-safe."""

    def __init__(self, shared: LimitsBackend) -> None:
        self._shared = shared
        self.now = shared.now
        self.try_slot = shared.try_slot

    @contextmanager
    def update(self, name: str) -> Iterator[LimitState]:
        """Change the state of a limit; no other thread or machine changes it meanwhile."""
        with self._shared.update(name) as values:
            state = _read_state(values)
            yield state
            values.update(asdict(state))


def _read_state(values: Mapping[str, Any]) -> LimitState:
    """The state of stored values; other versions of the program may store other fields."""
    names = {field.name for field in fields(LimitState)}
    return LimitState(**{name: value for name, value in values.items() if name in names})


class _WaitingLine:
    """Admits one thread at a time, in the order of arrival."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._tickets: deque[object] = deque()

    @contextmanager
    def turn(self, deadline: float) -> Iterator[bool]:
        """Yield whether this thread is first in line before the deadline (of time.monotonic)."""
        ticket = object()
        with self._changed:
            self._tickets.append(ticket)
        try:
            with self._changed:
                seconds = max(0.0, deadline - time.monotonic())
                is_first = self._changed.wait_for(lambda: self._tickets[0] is ticket, seconds)
            yield is_first
        finally:
            with self._changed:
                self._tickets.remove(ticket)
                self._changed.notify_all()


class ModelRateLimiter:
    """Limits the requests to one model of one provider or address. Thread-safe."""

    def __init__(self, model: str, store: LimitStore | SharedLimitStore) -> None:
        self._model = model
        self._store = store
        self._line = _WaitingLine()
        self._slot_line = _WaitingLine()

    def acquire(self, tokens: int, limits: RequestLimits, deadline: float) -> StartedRequest:
        """Wait until a request can be started; ChatRateLimited if that is after the deadline (of time.monotonic)."""
        announced = 0.0
        with self._line.turn(deadline) as is_first:
            while is_first:
                with self._store.update(self._model) as state:
                    now = self._store.now()
                    delay = state.try_start(now, limits, tokens)
                    serial = state.started
                if not delay:
                    return StartedRequest(serial, now, max(tokens, 1))
                if time.monotonic() + delay > deadline:
                    raise ChatRateLimited(
                        f"{self._model} accepts no requests for another {delay:.0f} s; try again then."
                    )
                if delay >= _MAX_SLEEP and now + delay > announced + _MAX_SLEEP:
                    announced = now + delay
                    _log.info("%s is asked in %.0f s, when its rate limit allows.", self._model, delay)
                time.sleep(min(delay, _MAX_SLEEP))
        raise ChatRateLimited(f"{self._model} accepts fewer requests than are waiting; ask for fewer at once.")

    @contextmanager
    def slot(self, limits: RequestLimits, deadline: float) -> Iterator[None]:
        """Hold one of the places of the profile's concurrency; ChatRateLimited if none is free by the deadline."""
        if limits.concurrency is None:
            yield
            return
        # One thread of this process waits for a place, which another process may hold; the others wait for their turn.
        slot: Slot | None = None
        announced = False
        with self._slot_line.turn(deadline) as is_first:
            while is_first and slot is None:
                slot = self._store.try_slot(self._model, limits.concurrency)
                if slot is None and time.monotonic() >= deadline:
                    break
                if slot is None and not announced:
                    announced = True
                    _log.info("%s is asked once one of its %d requests at once ends.", self._model, limits.concurrency)
                time.sleep(0.0 if slot else _SLOT_POLL_SECONDS)
        if slot is None:
            raise ChatRateLimited(
                f"{self._model} is busy with {limits.concurrency} requests at once, the limit of its profile; ask for "
                "fewer at once, or raise the limit."
            )
        try:
            yield
        finally:
            slot.release()

    def confirm(self, request: StartedRequest, limits: RequestLimits, used_tokens: int | None) -> None:
        """Report that the server accepted the request, and the tokens that it used; None if they are unknown."""
        with self._store.update(self._model) as state:
            state.confirm(request.serial, self._store.now())
            if used_tokens is not None:
                state.use_tokens(self._store.now(), limits, used_tokens - request.tokens)

    def refuse(self, request: StartedRequest, wait: float | None) -> None:
        """Report that the server refused the request because of its limit, and the seconds to wait that it names."""
        with self._store.update(self._model) as state:
            state.refuse(request.serial, self._store.now(), wait)

    def observe_budgets(self, request: StartedRequest, budgets: Sequence[RateBudget]) -> None:
        """Report what the server says is left of its budgets."""
        if budgets:
            with self._store.update(self._model) as state:
                state.observe_budgets(request, budgets, self._store.now())


_LIMITERS: dict[tuple[Path | LimitsBackend | None, str], ModelRateLimiter] = {}
_STORES: dict[Path | LimitsBackend | None, LimitStore | SharedLimitStore] = {}
_REGISTRY_LOCK = threading.Lock()


def get_rate_limiter_of_model(model: str, place: Path | LimitsBackend | None) -> ModelRateLimiter:
    """The limiter of a model in this process; processes with the same home, or database, share what it knows."""
    with _REGISTRY_LOCK:
        if place not in _STORES:
            if place is None or isinstance(place, Path):
                _STORES[place] = LimitStore(place and place / RATE_LIMITS_FILE_NAME)
            else:
                _STORES[place] = SharedLimitStore(place)
        if (place, model) not in _LIMITERS:
            _LIMITERS[place, model] = ModelRateLimiter(model, _STORES[place])
        return _LIMITERS[place, model]
