"""The identity of a worker process (host, process id and creation time), and the end of the runs of killed ones."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from db import runs
from db.database import Conflict
from db.model_calls import mark_lost_model_calls
from db.runs import ASK_RUN_NAME, RunOutcome, UnfinishedTrace
from db.trace_configuration import TraceConfiguration
from db.types import utc_now
from runs.services import Services

CREATION_TOLERANCE_SECONDS = 0.02
"""Creation times are counted in hundredths of a second."""
IDLE_TIME = timedelta(days=1)
"""A process of another host cannot be seen; its run is ended once it has written nothing for as long."""
_SHOWN_CHARACTERS = 80


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


def end_interrupted_runs(services: Services) -> list[str]:
    """End the runs on which no process works any more, and return a sentence about each; they can be continued.

    Runs of living processes stay as they are, whichever process calls this.
    """
    with services.database.read() as session:
        unfinished = runs.list_unfinished_traces(session)
    ended = [trace for trace in unfinished if _is_abandoned(trace) and _end_run(services, trace)]
    with services.database.begin() as session:
        runs.finish_runs_without_drafts(session, ASK_RUN_NAME)
    return [
        f"Ended the run on {_shorten(trace.question)!r}, whose process was killed; continue it "
        + ("on the Ask page." if trace.run_name == ASK_RUN_NAME else "with `showhow verify`.")
        for trace in ended
    ]


def _is_abandoned(trace: UnfinishedTrace) -> bool:
    worker = TraceConfiguration.from_json(trace.configuration).worker
    if is_worker_local(worker):
        return not is_worker_alive(worker)
    return utc_now() - trace.last_written_at > IDLE_TIME


def _end_run(services: Services, trace: UnfinishedTrace) -> bool:
    """End the run, unless another process has changed it since it was listed."""
    outcome = RunOutcome("interrupted", usage=trace.cost)
    try:
        with services.database.begin() as session:
            runs.finish_run_trace(session, trace.trace_id, outcome, seen=trace.version)
            mark_lost_model_calls(session, trace.trace_id)
    except Conflict:
        return False
    return True


def _shorten(question: str) -> str:
    return question if len(question) <= _SHOWN_CHARACTERS else f"{question[:_SHOWN_CHARACTERS]}…"


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
