"""The strands of a run, and the threads for their work, which are abandoned when the run is stopped or out of time."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, TypeVar

from showhow.db.models import Step
from showhow.llm.types import TextDelta
from showhow.reasoners.base import BranchGenerator, Move

WorkResult = TypeVar("WorkResult")

POLL_SECONDS = 0.2
"""Seconds between two checks for a stop or the time limit."""


class RunStopped(Exception):
    """The run was stopped."""


class RequestNotSent(RunStopped):
    """The run was stopped before a request to its model was sent."""


class PersonAwaited(Exception):
    """The run can go on once a person has written the replies of these steps."""

    def __init__(self, steps: Sequence[Step]) -> None:
        calls = ", ".join(f"{(step.skill or '').partition('/')[0]} at step {step.position}" for step in steps)
        super().__init__(f"it waits for a person to write the reply of {calls}")


class CancellableWorkers:
    """Threads that run blocking work and can be abandoned on cancel or timeout.

    They report through one queue of events: the text that the work emits, and the result of each piece of work.
    """

    def __init__(self, on_text: Callable[[str], None] | None = None) -> None:
        self._on_text = on_text
        self._work_queues: list[SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]] = []
        self._events: SimpleQueue[TextDelta | Future[Any]] = SimpleQueue()
        self._abandoned = Event()

    def emit_text(self, text: str) -> None:
        """Report text from the work; RunStopped once the worker is abandoned, which ends the stream."""
        if self._abandoned.is_set():
            raise RunStopped
        self._events.put(TextDelta(text))

    def run(self, work: Callable[[], WorkResult], check_cancelled: Callable[[], None]) -> WorkResult:
        """Run the work in the first thread; return its result or raise its exception.

        While waiting, `on_text` gets the emitted text, and `check_cancelled` is called at least every POLL_SECONDS; an
        exception of either ends the wait.
        """
        self._start(0, work)
        result: WorkResult = self._wait(check_cancelled).result()
        return result

    def run_all(
        self,
        works: Iterator[Callable[[], WorkResult]],
        concurrency: int,
        check_cancelled: Callable[[], None],
        handle_result: Callable[[int, WorkResult], None],
    ) -> None:
        """Run the works, at most `concurrency` at the same time; `handle_result` gets each number and result.

        A work is taken from the iterator when a thread is free for it. An exception ends the wait, as in `run`.
        """
        free_threads = list(range(concurrency))[::-1]
        running: dict[Future[Any], tuple[int, int]] = {}
        numbered = enumerate(works)
        exhausted = False
        while running or not exhausted:
            while free_threads and not exhausted:
                number, work = next(numbered, (0, None))
                if work is None:
                    exhausted = True
                else:
                    thread = free_threads.pop()
                    running[self._start(thread, work)] = (number, thread)
            if running:
                future = self._wait(check_cancelled)
                number, thread = running.pop(future)
                free_threads.append(thread)
                handle_result(number, future.result())

    def abandon(self, clean_up: Callable[[], None]) -> None:
        """End the threads after their current work, the first also after `clean_up`, without waiting for them."""
        self._abandoned.set()
        self._start(0, clean_up)
        for work_queue in self._work_queues:
            work_queue.put(None)

    def _start(self, thread: int, work: Callable[[], Any]) -> Future[Any]:
        while len(self._work_queues) <= thread:
            work_queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
            self._work_queues.append(work_queue)
            # A thread has the context of its creator, so that spans of its work belong to the span of the run.
            run_thread = partial(copy_context().run, self._run_thread, work_queue)
            Thread(target=run_thread, name="showhow run", daemon=True).start()
        future: Future[Any] = Future()
        self._work_queues[thread].put((future, work))
        return future

    def _wait(self, check_cancelled: Callable[[], None]) -> Future[Any]:
        """Wait for the next piece of work that is done."""
        while True:
            check_cancelled()
            try:
                event = self._events.get(timeout=POLL_SECONDS)
            except Empty:
                continue
            if isinstance(event, Future):
                return event
            if self._on_text is not None:
                self._on_text(event.text)

    def _run_thread(self, work_queue: "SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]") -> None:
        while (piece := work_queue.get()) is not None:
            future, work = piece
            try:
                future.set_result(work())
            # The future hands every exception of this thread to the thread that waits for the work and raises it there;
            # no thread waits for abandoned work.
            except BaseException as error:  # noqa: BLE001
                future.set_exception(error)
            self._events.put(future)


class Strand:
    """One generator of a run: the reasoner's own, or that of a branch."""

    def __init__(self, name: str, moves: BranchGenerator, parent: "Strand | None" = None) -> None:
        self.name = name
        self.moves = moves
        self.parent = parent
        self.received: Any = None
        """What its next move is given: the result of its last one."""
        self.branches: list[Strand] = []
        self.waiting_for: set[str] = set()
        """The names of the other branches that must have ended before it begins."""
        self.has_ended = False
        self.result: Any = None


def next_move(strand: Strand) -> Move | None:
    """The strand's next move; None if it has ended."""
    received, strand.received = strand.received, None
    try:
        return strand.moves.send(received)
    except StopIteration as end:
        strand.has_ended, strand.result = True, end.value
        return None


def list_successors(ended: Strand) -> list[Strand]:
    """The strands that can go on because this one has ended: branches that waited for it, or else its parent."""
    parent = ended.parent
    if parent is None:
        return []
    unblocked = []
    for branch in parent.branches:
        if ended.name in branch.waiting_for:
            branch.waiting_for.discard(ended.name)
            if not branch.waiting_for:
                unblocked.append(branch)
    if unblocked or not all(branch.has_ended for branch in parent.branches):
        return unblocked
    parent.received = [branch.result for branch in parent.branches]
    return [parent]
