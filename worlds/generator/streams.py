"""What a generator yields in a process of its own, taken up here one by one."""

import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from worlds.folder import WorldError

_ITEM, _FAILURE, _END = range(3)

Item = TypeVar("Item")


@contextmanager
def started(work: Callable[..., Iterator[Item]], *arguments: Any) -> Iterator[Iterator[Item]]:
    """What `work(*arguments)` yields in a process that ends with the block; its OSError or WorldError is raised here.

    It is ahead by no more than fits into a pipe, so that nothing piles up in memory.
    """
    # A forked process would have the locks of our threads, but not the threads that open them.
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_send_all, args=(theirs, work, arguments), daemon=True)
    resource_tracker.ensure_running()
    # Ctrl+C reaches every process of a terminal; this one alone says what becomes of it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    theirs.close()
    try:
        with closing(ours):
            yield _received(ours)
    finally:
        process.terminate()
        process.join()


def _received(pipe: "Connection[Any, Any]") -> Iterator[Any]:
    while True:
        try:
            kind, value = pipe.recv()
        except EOFError:
            raise WorldError("A process that was making the world was ended from outside; make it again.") from None
        if kind == _END:
            return
        if kind == _FAILURE:
            raise value
        yield value


def _send_all(pipe: "Connection[Any, Any]", work: Callable[..., Iterator[Any]], arguments: tuple[Any, ...]) -> None:
    with closing(pipe):
        try:
            for item in work(*arguments):
                pipe.send((_ITEM, item))
            pipe.send((_END, None))
        except BrokenPipeError:
            # Whoever wanted it is gone.
            return
        except (OSError, WorldError) as failed:
            pipe.send((_FAILURE, failed))
