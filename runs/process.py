"""The identity of a worker process (host, process id and creation time), by which a killed worker is recognized."""

import os
import socket
from functools import cache

import psutil

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
