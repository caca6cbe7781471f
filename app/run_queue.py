"""The runs of pages: how many compute at once, and whose turn is next.

All runs share one interpreter, so a page takes as many times longer as runs compute beside its own. A visitor may have
VISITOR_COMPUTING of them, all visitors together COMPUTING. Who has computed least recently goes first. A run that waits
for a tool or a model computes nothing and is in nobody's way.
"""

import asyncio
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from uuid import UUID

from showhow.app.visitors import DecayingSum, Visitor

COMPUTING = 3
VISITOR_COMPUTING = 2
MAX_RUNS = 16
"""Runs of one visitor that may be at work at once, waiting ones included."""
CHECK_SECONDS = 0.05
"""The time after which it is checked anew which runs compute, while others wait."""
COMPUTING_SHARE = 0.05
"""The share of that time for which the thread of a run computes; a lower one is that of a run that waits."""
MAX_WAIT = 0.4
"""Seconds after which one visitor more is let in, if it has recently computed less than LITTLE_USE seconds."""
LITTLE_USE = 0.3
MUCH_USE = 3.0
"""Recent seconds of CPU time from which a visitor waits while others are there: two fifths of a core for long."""
PRESENT_SECONDS = 5.0
"""How long after its last run a visitor counts as there."""


@dataclass(eq=False, slots=True)
class Seat:
    """An open connection of a page: whose it is, its session once that has begun, and the bytes of its widgets."""

    visitor: Visitor
    person: UUID | None = None
    """Who is logged in there."""
    session_id: str | None = None
    widget_bytes: int = 0
    admitted: "PageRun | None" = None
    """A run that was let in and has not begun."""
    computed: DecayingSum = field(default_factory=DecayingSum)
    """Recent seconds of CPU time of its runs; of all seconds, a page open for hours would always come last."""


current_seat: ContextVar[Seat | None] = ContextVar("current_seat", default=None)
"""The seat whose messages this task handles."""


@dataclass(eq=False, slots=True)
class PageRun:
    """One run of a page, from its admission to the end of its thread."""

    seat: Seat
    clock: int | None = None
    """The clock of its thread's CPU time; None before the thread has begun, and where the system has no such clock."""
    is_computing: bool = True
    computed: float = 0.0
    """Seconds of CPU time that were counted."""
    checked_at: float = field(default_factory=time.monotonic)

    def enter_thread(self) -> None:
        """Note that this thread is the run's."""
        if hasattr(time, "pthread_getcpuclockid"):
            self.clock = time.pthread_getcpuclockid(threading.get_ident())

    def check(self) -> None:
        """Count the CPU time since the last check, and note whether the run computes."""
        now = time.monotonic()
        elapsed = now - self.checked_at
        if self.clock is None or elapsed < CHECK_SECONDS:
            return
        try:
            computed = time.clock_gettime(self.clock)
        except OSError:
            # The thread has just ended.
            return
        self.is_computing = computed - self.computed >= COMPUTING_SHARE * elapsed
        self.checked_at = now
        self.count(computed)

    def count(self, computed: float) -> None:
        """Count the CPU time of the thread so far."""
        used = max(0.0, computed - self.computed)
        self.seat.visitor.add_computed(used)
        self.seat.computed.add(used)
        self.computed = computed


@dataclass(eq=False, slots=True)
class _Waiting:
    seat: Seat
    turn: asyncio.Future[None]
    since: float = field(default_factory=time.monotonic)

    @property
    def order(self) -> tuple[float, float, float]:
        return round(self.seat.visitor.recent_use, 1), round(self.seat.computed.value(), 1), self.since


class RunQueue:
    """Lets runs in, on the event loop."""

    def __init__(self) -> None:
        self._runs: set[PageRun] = set()
        self._waiting: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._came_at: dict[str, float] = {}
        """When each visitor last asked for a run."""

    async def admit(self, seat: Seat) -> None:
        """Wait until a run of the seat may begin; it is then `admitted` until it begins or is released."""
        waiting = _Waiting(seat, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._came_at[seat.visitor.key] = waiting.since
        self._let_in()
        try:
            await waiting.turn
        except asyncio.CancelledError:
            self.release(seat)
            raise
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    def release(self, seat: Seat) -> None:
        """Give an admission back that no run has used: the message joined a run, or began none."""
        if seat.admitted is not None:
            self.end(seat.admitted, seat.admitted.computed)
            seat.admitted = None

    def begin(self, seat: Seat) -> PageRun:
        """Begin the admitted run, or one that needed no admission."""
        run = seat.admitted or self._add(seat)
        seat.admitted = None
        return run

    def end(self, run: PageRun, computed: float) -> None:
        """Note that the run has ended, after these seconds of CPU time."""
        run.count(computed)
        self._runs.discard(run)
        self._let_in()

    def _add(self, seat: Seat) -> PageRun:
        run = PageRun(seat)
        self._runs.add(run)
        return run

    def _let_in(self) -> None:
        """Let in whose turn it is, and check again soon if others wait."""
        if not self._waiting:
            return
        for run in self._runs:
            run.check()
        for waiting in sorted(self._waiting, key=lambda one: one.order):
            if self._may_enter(waiting):
                self._waiting.remove(waiting)
                if not waiting.turn.done():
                    waiting.seat.admitted = self._add(waiting.seat)
                    waiting.turn.set_result(None)
        if self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CHECK_SECONDS, self._check_again)

    def _check_again(self) -> None:
        self._timer = None
        self._let_in()

    def _may_enter(self, waiting: _Waiting) -> bool:
        key = waiting.seat.visitor.key
        own = [run for run in self._runs if run.seat.visitor.key == key]
        own_computing = sum(run.is_computing for run in own)
        if len(own) >= MAX_RUNS or own_computing >= VISITOR_COMPUTING:
            return False
        if waiting.seat.visitor.own.computed.value() > MUCH_USE and self._are_others_there(key):
            return False
        computing = sum(run.is_computing for run in self._runs)
        if computing == COMPUTING and not own_computing and waiting.seat.visitor.recent_use < LITTLE_USE:
            return time.monotonic() - waiting.since >= MAX_WAIT
        return computing < COMPUTING

    def _are_others_there(self, key: str) -> bool:
        earliest = time.monotonic() - PRESENT_SECONDS
        self._came_at = {other: at for other, at in self._came_at.items() if at >= earliest}
        return any(other != key for other in self._came_at)
