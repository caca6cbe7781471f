"""Which process is at work on something: its host, number and start, so that a killed one is known to be gone."""

import os
import socket
from functools import cache
from pathlib import Path


@cache
def this_worker() -> str:
    """The process that asks."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def is_alive(worker: str) -> bool:
    """Whether that process runs still; one on another machine is taken to be gone, since nobody here can know."""
    host, _, rest = worker.rpartition(":")[0].rpartition(":")
    if host != socket.gethostname() or not rest.isdecimal():
        return False
    return _started(int(rest)) == worker.rpartition(":")[2] != ""


def _started(process: int) -> str:
    """When it was started, as its system counts; "" when it is gone, or the system does not tell."""
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    # The name, in brackets, may hold anything.
    state, *numbers = told.rpartition(")")[2].split()
    return "" if state in "ZX" else numbers[18]
