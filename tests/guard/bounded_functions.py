"""Functions that tests of guard/worker.py call in workers."""

import os
import re
import signal
import socket
import time
from pathlib import Path

from showhow.worlds.source import ErrorKind, SourceError


def add(first: int, second: int) -> int:
    """Their sum."""
    return first + second


def backtrack(letters: int) -> None:
    """A regular expression that takes longer than anybody lives, and holds the interpreter."""
    re.match(r"^(\w+\s?)*$", "a" * letters + "!")


def hold_memory(megabytes: int) -> int:
    """Use that much memory."""
    return len(bytearray(megabytes << 20))


def repeat(text: str, times: int) -> str:
    """A long result."""
    return text * times


def nest(depth: int) -> list[object]:
    """A deep result."""
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


def refuse(reason: str) -> None:
    """Raise an error of the project."""
    raise SourceError(reason, ErrorKind.OTHER) if reason.endswith("kind") else ValueError(reason)


def end(number: int) -> None:
    """End the process by a signal."""
    os.kill(os.getpid(), number)


def ignore_signals(seconds: float) -> None:
    """Refuse to be ended politely."""
    for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(seconds)


def list_environment() -> dict[str, str]:
    """What the process gets."""
    return dict(os.environ)


def connect() -> None:
    """Open a connection."""
    socket.create_connection(("127.0.0.1", 9), 1)


def count_descriptors() -> int:
    """The open files of the process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def own_pid() -> int:
    """The process."""
    return os.getpid()
