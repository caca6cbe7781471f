"""Progress of world generation, reported as typed values through a callback.

`generate_world(..., progress=callback)` calls `callback(StageProgress)` when a stage begins, at most ten times a
second while it runs, and when it ends. The caller turns the values into text or JSON lines (`asdict(progress)`).
An exception that the callback raises stops the generation, and the unfinished world is removed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

_REPORT_INTERVAL = 0.1
"""Minimum seconds between two reports of one stage."""


@dataclass(frozen=True, slots=True)
class StageProgress:
    """Progress of one stage: units done, total units, and seconds since the stage began."""

    stage: str
    """people, articles, pages, questions, graph or names; the stages run in this order."""
    done: int
    total: int
    """Expected number of units; 0 while it is unknown. The last report of a stage has `total == done`."""
    seconds: float
    finished: bool = False

    @property
    def rate(self) -> float:
        """Units per second; 0.0 before any time has passed."""
        return self.done / self.seconds if self.seconds else 0.0

    @property
    def remaining_seconds(self) -> float | None:
        """Estimated seconds left in this stage; None if `total` is unknown or less than 1 % is done."""
        return (self.total - self.done) / self.rate if self.rate and 0 < self.total <= 100 * self.done else None


ProgressCallback = Callable[[StageProgress], None]


def ignore_progress(progress: StageProgress) -> None:
    """A callback that does nothing."""


class ProgressStage:
    """Measures one stage and reports it to a callback; the first report is made on construction."""

    def __init__(self, name: str, total: int, on_progress: ProgressCallback) -> None:
        self._name, self._total, self._on_progress = name, total, on_progress
        self._started = self._last_report = time.monotonic()
        self._done = 0
        on_progress(StageProgress(name, 0, total, 0.0))

    def advance(self, count: int) -> None:
        """Count this many more units as done; reports if the last report is old enough."""
        self._done += count
        now = time.monotonic()
        if now - self._last_report >= _REPORT_INTERVAL:
            self._last_report = now
            self._on_progress(StageProgress(self._name, self._done, self._total, now - self._started))

    def finish(self) -> None:
        """Report the end of the stage."""
        seconds = time.monotonic() - self._started
        self._on_progress(StageProgress(self._name, self._done, self._done, seconds, finished=True))
