"""Work in a thread of its own that can be left behind: nobody waits for it, and nobody hears what comes of it."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

Found = TypeVar("Found")

BEAT = 0.2
"""Seconds between two looks at whether the work is still wanted; with many at work, each look costs the others."""


class Aside:
    """A thread that does one piece of work after the other."""

    def __init__(self) -> None:
        self._pieces: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        Thread(target=self._work, name="showhow-aside", daemon=True).start()

    def do(self, work: Callable[[], Found], wanted: Callable[[], None]) -> Found:
        """What the work gives or raises; `wanted` is called all along, and what it raises ends the waiting."""
        found: Future[Found] = Future()
        self._pieces.put((found, work))
        while not found.done():
            wanted()
            # What the work itself has raised is only told here, and raised below.
            with suppress(TimeoutError):
                found.exception(BEAT)
        return found.result()

    def leave(self, last: Callable[[], None]) -> None:
        """Have the thread end when its work does, with one last piece that nobody waits for."""
        self._pieces.put((Future(), last))
        self._pieces.put(None)

    def _work(self) -> None:
        while (piece := self._pieces.get()) is not None:
            found, work = piece
            try:
                found.set_result(work())
            except BaseException as failed:  # noqa: BLE001 - it is raised in the thread that waits for it
                found.set_exception(failed)
