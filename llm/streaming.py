"""Streamed text up to the first stop sequence, from a request in a thread that its caller can abandon."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from llm.errors import ChatTimeout

ResultT = TypeVar("ResultT")


def truncate_at_stop(text: str, stop: Sequence[str]) -> str:
    """The text before the stop sequence that is completed first, for servers that ignore stop sequences."""
    matches = [(start + len(sequence), start) for sequence in stop if sequence and (start := text.find(sequence)) >= 0]
    return text[: min(matches)[1]] if matches else text


class StopSequenceFilter:
    """Emits streamed text as soon as it is certain not to begin a stop sequence."""

    def __init__(self, on_text: Callable[[str], None], stop: Sequence[str]) -> None:
        self._on_text = on_text
        self._stop = [sequence for sequence in stop if sequence]
        self._text = ""
        self._emitted_length = 0

    def feed(self, piece: str) -> None:
        """Add the next piece of the reply."""
        self._text += piece
        visible = truncate_at_stop(self._text, self._stop)
        held_back = 0 if len(visible) < len(self._text) else self._partial_stop_length()
        self._emit_until(len(visible) - held_back)

    def _partial_stop_length(self) -> int:
        longest = max(map(len, self._stop), default=1) - 1
        lengths = range(min(longest, len(self._text)), 0, -1)
        return next((n for n in lengths if any(stop.startswith(self._text[-n:]) for stop in self._stop)), 0)

    def _emit_until(self, end: int) -> None:
        if end > self._emitted_length:
            start, self._emitted_length = self._emitted_length, end
            self._on_text(self._text[start:end])


class BackgroundCall(Generic[ResultT]):
    """Runs blocking work in its own thread, which the caller abandons at its deadline.

    `work` is called with this object: it streams text with `emit_text` and stops early once `abandoned` is true.
    """

    def __init__(self, work: Callable[["BackgroundCall[ResultT]"], ResultT]) -> None:
        self._work = work
        self._queue: queue.SimpleQueue[str | Future[ResultT]] = queue.SimpleQueue()
        self._abandoned = threading.Event()

    @property
    def abandoned(self) -> bool:
        """Whether the caller no longer waits."""
        return self._abandoned.is_set()

    def emit_text(self, text: str) -> None:
        """Pass text to the caller."""
        self._queue.put(text)

    def result(self, seconds: float, on_text: Callable[[str], None], timeout_message: str) -> ResultT:
        """Run the work and return its result; raises its exception, or ChatTimeout after `seconds`."""
        threading.Thread(target=self._run_in_thread, daemon=True, name="language model").start()
        deadline = time.monotonic() + seconds
        try:
            while True:
                event = self._next_event(deadline, timeout_message)
                if isinstance(event, Future):
                    return event.result()
                on_text(event)
        finally:
            self._abandoned.set()

    def _next_event(self, deadline: float, timeout_message: str) -> str | Future[ResultT]:
        try:
            return self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            pass
        raise ChatTimeout(timeout_message)

    def _run_in_thread(self) -> None:
        future: Future[ResultT] = Future()
        try:
            future.set_result(self._work(self))
        # The future hands every exception of this thread to the caller's thread, where result() raises it.
        except BaseException as error:  # noqa: BLE001
            future.set_exception(error)
        self._queue.put(future)
