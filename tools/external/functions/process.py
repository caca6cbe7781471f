"""The process that imports users' modules and runs their functions: `functions/process.py FD FOLDER`.

It gets a WorkOrder a line on the socket FD, each with a socket for the arguments and the reply. Modules are imported
once; every description and every call runs in a fork of its own, so that an endless loop, a slow regular expression,
memory, threads, processes and os._exit of one call never concern another. A fork is killed at its limit, with all
processes that it started.
"""

import contextlib
import ctypes
import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NoReturn

from showhow.guard.limits import limit_memory
from showhow.guard.tree_usage import children, descendants, memory_bytes, resident_bytes
from showhow.guard.worker_process import become_worker
from showhow.tools.external.functions.protocol import (
    LOAD_TIMEOUT_SECONDS,
    MAX_PROCESSES,
    Failure,
    ForkEnd,
    Reply,
    WorkOrder,
)
from showhow.tools.external.functions.work import call_tool, describe_tool
from showhow.worlds.source import ErrorKind

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.02
"""Seconds between two looks at the forks that run."""
_COUNT_SECONDS = 0.1
"""Seconds between two counts of the processes of each fork and of their memory."""
_DESCRIBED_STATUS = 17
"""The exit status of a fork that has described its tool; its module can be imported."""
_KILL_ROUNDS = 100
"""Rounds of killing what a call left behind; one round leaves only what was started during it."""


@dataclass(slots=True)
class _Fork:
    order: WorkOrder
    reply: socket.socket
    deadline: float
    memory_bytes: int
    """What it and the processes that it starts may use together, with what they share with this process."""
    limit: Literal["seconds", "processes", "memory"] | None = None
    """The limit for which it was killed."""


class FunctionProcess:
    """Forks a process for each order and watches it until it ends."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._forks: dict[int, _Fork] = {}
        self._module_processes: frozenset[int] = frozenset()
        """Processes that a module started when it was imported; they stay."""
        self._next_count = 0.0

    def serve(self) -> None:
        """Run orders until Showhow closes the control socket or ends."""
        # Also if Showhow was killed, nothing that a call started goes on.
        signal.signal(signal.SIGTERM, lambda _signal, _frame: self._end())
        # Without it, the first collection of garbage in a fork would copy all of the memory that forks share.
        gc.freeze()
        unread = b""
        sockets: list[socket.socket] = []
        while True:
            if select.select([self._control], [], [], _POLL_SECONDS if self._forks else None)[0]:
                received, descriptors, _, _ = socket.recv_fds(self._control, 65_536, 64)
                sockets += [socket.socket(fileno=descriptor) for descriptor in descriptors]
                if not received:
                    self._end()
                *lines, unread = (unread + received).split(b"\n")
                for line in lines:
                    self._start(WorkOrder.model_validate_json(line), sockets.pop(0))
            self._reap()

    def _start(self, order: WorkOrder, reply: socket.socket) -> None:
        if order.task == "call":
            self._import_module(order.place)
        if _is_closed(reply):
            # The caller waited for an import until its limit.
            reply.close()
            return
        with contextlib.suppress(OSError):
            # From here on the order may have had effects, so it is never sent again.
            reply.sendall(b"\n")
        try:
            process = os.fork()
        except OSError as error:
            sentence = (
                f"{order.name} cannot be started: the system allows no more processes ({error}); try again later."
            )
            with reply, contextlib.suppress(OSError):
                reply.sendall(_encode(Reply(failure=Failure(sentence=sentence, kind=ErrorKind.UNAVAILABLE))))
            return
        if process == 0:
            self._run_fork(order, reply)
        self._forks[process] = _Fork(
            order, reply, time.monotonic() + order.seconds, resident_bytes(os.getpid()) + (order.megabytes << 20)
        )

    def _run_fork(self, order: WorkOrder, reply: socket.socket) -> NoReturn:
        """Do the work in this fork, and end it."""
        own, status = os.getpid(), 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setsid()
            _set_process_option(_PR_SET_PDEATHSIG, signal.SIGKILL)
            _set_process_option(_PR_SET_CHILD_SUBREAPER, 1)
            self._control.close()
            for fork in self._forks.values():
                fork.reply.close()
            limit_memory(order.megabytes)
            become_worker()
            answer = describe_tool(order) if order.task == "describe" else call_tool(order, reply)
            # A function that forked returns here in its own child as well.
            if os.getpid() == own:
                reply.sendall(_encode(answer))
                status = 0 if answer.description is None else _DESCRIBED_STATUS
        finally:
            # Threads that the call left behind end here.
            os._exit(status)

    def _reap(self) -> None:
        """Kill forks at their limit, finish those that have ended, and kill what they left behind."""
        self._enforce_limits()
        has_ended = False
        for process, status in _ended_children():
            if (fork := self._forks.pop(process, None)) is not None:
                has_ended = True
                self._report_end(fork, status)
        if has_ended:
            self._kill_orphans()

    def _enforce_limits(self) -> None:
        now = time.monotonic()
        for process, fork in self._forks.items():
            if now > fork.deadline:
                fork.limit = fork.limit or "seconds"
                _kill_group(process)
        if self._forks and now > self._next_count:
            for process, fork in self._forks.items():
                started = descendants(process)
                if len(started) > MAX_PROCESSES:
                    fork.limit = fork.limit or "processes"
                elif memory_bytes({process, *started}, fork.memory_bytes) > fork.memory_bytes:
                    fork.limit = fork.limit or "memory"
                else:
                    continue
                _kill_group(process)
            # What has left the tree of its call is an orphan here.
            self._kill_orphans()
            self._next_count = time.monotonic() + _COUNT_SECONDS

    def _report_end(self, fork: _Fork, status: int) -> None:
        end = Reply(end=ForkEnd(limit=fork.limit, status=os.waitstatus_to_exitcode(status)))
        with fork.reply, contextlib.suppress(OSError):
            # The fork may have written a part of its reply; nobody reads a second one.
            fork.reply.settimeout(0)
            fork.reply.sendall(b"\n" + _encode(end))
        if os.waitstatus_to_exitcode(status) == _DESCRIBED_STATUS:
            self._import_module(fork.order.place)

    def _kill_orphans(self) -> None:
        """Kill processes whose parents have ended; as their subreaper, this process is their parent now."""
        for _ in range(_KILL_ROUNDS):
            try:
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            orphans = _children() - self._forks.keys() - self._module_processes
            if not orphans:
                return
            for process in orphans:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process, 0)

    def _import_module(self, place: str) -> None:
        """Import the module here, after a fork could: the next forks have it then."""
        module = place.partition(":")[0]
        if module in sys.modules:
            return
        # The default action of the alarm ends this process, even if the module never returns.
        signal.setitimer(signal.ITIMER_REAL, LOAD_TIMEOUT_SECONDS)
        try:
            with _muted_output():
                importlib.invalidate_caches()
                importlib.import_module(module)
        # A module may raise anything when it is imported a second time; the fork of each call then reports it.
        except BaseException:  # noqa: BLE001
            return
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._module_processes = frozenset(_children() - self._forks.keys())
            gc.freeze()

    def _end(self) -> NoReturn:
        self._forks.clear()
        self._module_processes = frozenset()
        self._kill_orphans()
        os._exit(0)


def _encode(reply: Reply) -> bytes:
    return reply.model_dump_json(exclude_none=True).encode() + b"\n"


def _is_closed(reply: socket.socket) -> bool:
    """Whether the caller has gone."""
    poller = select.poll()
    poller.register(reply, select.POLLHUP)
    return bool(poller.poll(0))


def _set_process_option(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _kill_group(process: int) -> None:
    """Kill a fork and the processes of its group."""
    for kill in (os.killpg, os.kill):
        # It may not have made its group yet, or may have ended.
        with contextlib.suppress(ProcessLookupError):
            kill(process, signal.SIGKILL)


def _ended_children() -> Iterator[tuple[int, int]]:
    """The children that have ended, with their status."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended


def _children() -> set[int]:
    """The processes whose parent is this one."""
    return set(children(os.getpid()))


@contextlib.contextmanager
def _muted_output() -> Iterator[None]:
    """Drop what is printed, since the fork that imported the same module has printed it."""
    kept = [os.dup(1), os.dup(2)]
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    try:
        yield
    finally:
        sys.stdout.flush()
        for stream, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, stream)
        for descriptor in (nothing, *kept):
            os.close(descriptor)


def main(descriptor: int, folder: str) -> None:
    """Serve orders from this socket; modules may be in that folder."""
    # Of the environment, the tools get what their configuration names.
    os.environ.pop("PYTHONPATH", None)
    if folder and folder not in sys.path:
        sys.path.append(folder)
    _set_process_option(_PR_SET_CHILD_SUBREAPER, 1)
    FunctionProcess(socket.socket(fileno=descriptor)).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
