"""The active runs of this process, in threads in the background, by trace."""

import logging
from threading import Lock, Thread
from typing import Protocol
from uuid import UUID

logger = logging.getLogger(__name__)


class BackgroundRun(Protocol):
    """One run of a reasoner on one trace (runs/ask.py)."""

    trace_id: UUID
    phase: str
    """What the run does before its first step; "" from then on."""
    streamed_text: str
    """The text that the model has streamed since the last step."""

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the run was started or resumed."""

    @property
    def stop_requested(self) -> bool:
        """Whether `stop` was called."""

    def stop(self) -> None:
        """Stop the run as soon as possible."""

    def execute(self) -> object:
        """Run to the end; the outcome is stored in the trace."""


class ActiveRuns:
    """Starts runs in threads and finds them by trace; thread-safe."""

    def __init__(self) -> None:
        self._runs: dict[UUID, BackgroundRun] = {}
        self._lock = Lock()

    def get(self, trace_id: UUID) -> BackgroundRun | None:
        """Return the active run of this trace, or None."""
        return self._runs.get(trace_id)

    def start(self, run: BackgroundRun) -> UUID:
        """Start the run in a thread; an active run of the same trace is stopped."""
        with self._lock:
            previous = self._runs.get(run.trace_id)
            self._runs[run.trace_id] = run
        if previous is not None:
            previous.stop()
        Thread(target=self._execute, args=(run,), name=f"run {run.trace_id}", daemon=True).start()
        return run.trace_id

    def _execute(self, run: BackgroundRun) -> None:
        from showhow.db.database import StoreError  # noqa: PLC0415 - SQLAlchemy takes 0.4 s to import

        try:
            run.execute()
        except StoreError as error:
            # The trace is left unchanged: another run took it over, or the database cannot be written.
            logger.warning("the run of trace %s ended without an ending: %s", run.trace_id, error)
        finally:
            with self._lock:
                # A later run of the same trace may have replaced this one.
                if self._runs.get(run.trace_id) is run:
                    del self._runs[run.trace_id]
