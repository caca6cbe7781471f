"""Waiting for a state of the machine, and for the end of processes."""

import time
from collections.abc import Callable
from pathlib import Path

from tests.servers.weather_started import PATIENCE


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until the condition holds; AssertionError after PATIENCE."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def processes_with(word: str) -> list[int]:
    """The processes whose command line contains the word."""
    processes = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and word.encode() in (entry / "cmdline").read_bytes():
                processes.append(int(entry.name))
        except OSError:
            continue
    return processes
