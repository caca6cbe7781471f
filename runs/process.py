"""Worker processes: their identity (host, process id and creation time), their leases, and the locks of a home."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType

import psutil
from filelock import FileLock, Timeout

from showhow.db.database import Conflict, Database, StoreError, StoreUnavailable
from showhow.db.runs import leases
from showhow.db.runs.leases import Lease, Taker

CREATION_TOLERANCE_SECONDS = 0.02
"""Creation times are counted in hundredths of a second."""


@cache
def current_worker_id() -> str:
    """The id of this process."""
    return worker_id_of(psutil.Process(os.getpid()))


def worker_id_of(process: psutil.Process) -> str:
    """The id of a process of this host."""
    return f"{socket.gethostname()}:{process.pid}:{_seconds_after_boot(process):.2f}"


def is_worker_alive(worker: str) -> bool:
    """Whether the process still runs; a process on another host counts as gone, since it cannot be checked."""
    host_and_pid, _, created = worker.rpartition(":")
    _, _, pid = host_and_pid.rpartition(":")
    if not is_worker_local(worker) or not pid.isdecimal():
        return False
    try:
        process = psutil.Process(int(pid))
        is_same = abs(_seconds_after_boot(process) - float(created)) <= CREATION_TOLERANCE_SECONDS
        return is_same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError):
        return False


def is_worker_local(worker: str) -> bool:
    """Whether the process is or was one of this host."""
    return worker.rpartition(":")[0].rpartition(":")[0] == socket.gethostname()


def _seconds_after_boot(process: psutil.Process) -> float:
    """The creation time as counted by the kernel; the time of day would move when the clock is set."""
    return process.create_time() - psutil.boot_time()


class StopSignal(Event):
    """An event that is also set while its parent is."""

    def __init__(self, parent: Event) -> None:
        super().__init__()
        self._parent = parent

    def is_set(self) -> bool:
        """Whether it or its parent is set."""
        return super().is_set() or self._parent.is_set()


class LeaseKeeper:
    """Extends the leases of this process in a thread of its own while the block runs; thread-safe.

    Work whose lease is lost is stopped: the process was paused, or the database did not answer, for too long.
    """

    def __init__(self, database: Database, seconds: float = leases.LEASE_SECONDS, *, for_workers: bool = False) -> None:
        self.taker = Taker(current_worker_id(), seconds, is_worker_gone, for_workers)
        self._database = database
        self._lock = Lock()
        self._held: dict[Lease, Event] = {}
        self._to_release: dict[Lease, float] = {}
        """Leases of work that the database ended by an error, with the seconds of delay."""
        self._ending = Event()
        self._thread = Thread(target=self._renew_repeatedly, name="showhow leases", daemon=True)

    def __enter__(self) -> "LeaseKeeper":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()

    @contextmanager
    def hold(self, lease: Lease, stop: Event) -> Iterator[StopSignal]:
        """Extend the lease during the block; the signal is set once it is lost, or with `stop`.

        A StoreError leaves the attempt unfinished: it is released for other workers once the database answers.
        """
        signal = StopSignal(stop)
        with self._lock:
            self._held[lease] = signal
        try:
            yield signal
        except StoreError:
            self.release_later(lease)
            raise
        finally:
            with self._lock:
                del self._held[lease]

    def has_lost(self, lease: Lease) -> bool:
        """Whether another worker has taken the attempt, or it has ended."""
        with self._database.begin() as session:
            return lease.attempt_id not in leases.renew_leases(session, [lease], self.taker.seconds)

    def release_later(self, lease: Lease, delay: float = 0.0) -> None:
        """Let others take the unfinished attempt after so many seconds, as soon as the database answers."""
        with self._lock:
            self._to_release[lease] = delay

    @property
    def count(self) -> int:
        """The number of leases that are extended."""
        return len(self._held)

    def renew(self) -> None:
        """Extend the leases once, and release those of work that an error ended; StoreError without the database."""
        with self._lock:
            held, to_release = dict(self._held), dict(self._to_release)
        if not held and not to_release:
            return
        with self._database.begin() as session:
            for lease, delay in to_release.items():
                leases.release_attempt(session, lease, delay)
            renewed = leases.renew_leases(session, held, self.taker.seconds)
        with self._lock:
            for lease in to_release:
                self._to_release.pop(lease, None)
        for lease, signal in held.items():
            if lease.attempt_id not in renewed:
                signal.set()

    def _renew_repeatedly(self) -> None:
        while not self._ending.wait(self.taker.seconds / 4):
            self._renew_if_possible()
        self._renew_if_possible()

    def _renew_if_possible(self) -> None:
        try:
            self.renew()
        except StoreUnavailable:
            # The next turn tries again; writes of this process fail meanwhile, and say why.
            return


def is_worker_gone(worker: str) -> bool:
    """Whether the worker was a process of this host that has ended; of other hosts that cannot be known."""
    return is_worker_local(worker) and not is_worker_alive(worker)


@contextmanager
def hold_run_lock(home: Path, name: str, busy: str) -> Iterator[None]:
    """Let one process of this home work under a name; Conflict with the sentence `busy` while another one does."""
    folder = home / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    # The operating system releases the lock when the process ends, even if it is killed.
    lock = FileLock(folder / f"{name}.lock")
    try:
        with lock.acquire(timeout=0):
            yield
    except Timeout:
        raise Conflict(busy) from None
