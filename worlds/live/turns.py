"""Who asks the same thing at the same moment asks it once: the others wait and find the answer in the record."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from worlds.live.wire import Late


@dataclass(slots=True)
class _Turn:
    lock: threading.Lock = field(default_factory=threading.Lock)
    callers: int = 0


class Turns:
    """One turn a key; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: dict[str, _Turn] = {}

    @contextmanager
    def taken(self, key: str, ends: float) -> Iterator[None]:
        """Be the only one with that key; Late when others had it until `ends` (of time.monotonic)."""
        with self._lock:
            turn = self._turns.setdefault(key, _Turn())
            turn.callers += 1
        try:
            if not turn.lock.acquire(timeout=max(0.0, ends - time.monotonic())):
                raise Late
            try:
                yield
            finally:
                turn.lock.release()
        finally:
            with self._lock:
                turn.callers -= 1
                if not turn.callers:
                    del self._turns[key]
