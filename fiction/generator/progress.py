"""How far the making of a world is."""

import time
from collections.abc import Callable
from dataclasses import dataclass

_REPORT_INTERVAL = 0.1
"""Seconds between two reports of one stage."""


@dataclass(frozen=True, slots=True)
class StageProgress:
    """How much of a stage is done, and how long that took; `total` is 0 while nobody knows it."""

    stage: str
    done: int
    total: int
    seconds: float
    finished: bool = False

    @property
    def rate(self) -> float:
        """How many were done in a second."""
        return self.done / self.seconds if self.seconds else 0.0

    @property
    def remaining_seconds(self) -> float | None:
        """The seconds that the rest of the stage will take at this rate; None until a hundredth of it tells."""
        return (self.total - self.done) / self.rate if self.rate and 0 < self.total <= 100 * self.done else None


ProgressCallback = Callable[[StageProgress], None]


def ignore_progress(progress: StageProgress) -> None:
    """Nobody looks."""


class ProgressStage:
    """One stage of the work, told to whoever watches when it begins, some times a second, and when it ends."""

    def __init__(self, name: str, total: int, watch: ProgressCallback) -> None:
        self._name, self._total, self._watch = name, total, watch
        self._began = self._told = time.monotonic()
        self._done = 0
        watch(StageProgress(name, 0, total, 0.0))

    def advance(self, count: int) -> None:
        """So many more are done."""
        self._done += count
        now = time.monotonic()
        if now - self._told >= _REPORT_INTERVAL:
            self._told = now
            self._watch(StageProgress(self._name, self._done, self._total, now - self._began))

    def finish(self) -> None:
        """All is done."""
        taken = time.monotonic() - self._began
        self._watch(StageProgress(self._name, self._done, self._done, taken, finished=True))
