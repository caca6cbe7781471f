"""The identity of a worker process: host, process id and creation time, so that a killed worker is known to be gone."""

import os
import socket
from functools import cache

import psutil

CLOCK_TOLERANCE_SECONDS = 2.0
"""The creation time of a process moves by this much when the system's clock is adjusted."""


@cache
def current_worker_id() -> str:
    """The id of this process."""
    return f"{socket.gethostname()}:{os.getpid()}:{psutil.Process().create_time():.2f}"


def is_worker_alive(worker: str) -> bool:
    """Whether that process still runs; one on another host counts as gone, since this host cannot know."""
    host_and_pid, _, created = worker.rpartition(":")
    host, _, pid = host_and_pid.rpartition(":")
    if host != socket.gethostname() or not pid.isdecimal():
        return False
    try:
        process = psutil.Process(int(pid))
        is_same = abs(process.create_time() - float(created)) <= CLOCK_TOLERANCE_SECONDS
        return is_same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError):
        return False
