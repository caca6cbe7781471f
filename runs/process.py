"""Which process is at work on something: its host, number and start, so that a killed one is known to be gone."""

import os
import socket
from functools import cache
from pathlib import Path


@cache
def current_worker_id() -> str:
    """The process that asks."""
    return f"{socket.gethostname()}:{os.getpid()}:{_process_start_time(os.getpid())}"


def is_worker_alive(worker: str) -> bool:
    """Whether that process runs still; one on another machine is taken to be gone, since nobody here can know."""
    host, _, rest = worker.rpartition(":")[0].rpartition(":")
    if host != socket.gethostname() or not rest.isdecimal():
        return False
    return _process_start_time(int(rest)) == worker.rpartition(":")[2] != ""


def _process_start_time(process: int) -> str:
    """When it was started, as its system counts; "" when it is gone, or the system does not tell."""
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    # The name, in brackets, may hold anything.
    state, *numbers = told.rpartition(")")[2].split()
    return "" if state in "ZX" else numbers[18]
