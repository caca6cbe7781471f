"""Bounded work: `run_bounded` calls a function in a process that is killed at its limits of time and memory.

Whatever is foreign and may cost more than its length (patterns, schemas, scoring of answers, files that expand) runs
there. A few idle processes are kept, so that a call takes about a millisecond. They are started from a clean
interpreter with a clean environment, never by a fork of this one, and the kernel ends them with this process.
"""

import atexit
import contextlib
import json
import os
import pickle
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from showhow.guard import plugins
from showhow.guard.worker_process import HEADER_BYTES, PATIENCE, import_function, is_worker, send_frame

_PROJECT_ROOT = Path(__file__).resolve().parents[1]
_START_SECONDS = 30.0
"""Seconds within which a new process must have imported the function, on a busy machine as well."""
_IDLE_WORKERS = 2
"""Processes that are kept when they have nothing to do."""
_WORKERS_AT_ONCE = max(4, os.cpu_count() or 1)
"""Processes that may work at the same time; a further call waits for one of them, within its own limit."""
_CALLS_OF_ONE_WORKER = 1000
"""Calls after which a process is replaced, so that what it has kept of them goes."""
_INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "PATH", "PYTHONDONTWRITEBYTECODE", "TZ")
"""Variables of the environment that a worker gets; none of them is a secret."""

Limit = Literal["seconds", "megabytes", "reply_bytes"]


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """What one call may use."""

    seconds: float = 5.0
    """Processor time; on a busy machine the call may take PATIENCE times as long."""
    megabytes: int = 512
    """Memory beyond that of the imported modules."""
    reply_bytes: int = 16 << 20
    """Size of the result as JSON."""


class WorkFailed(Exception):
    """Bounded work has no result; the message is one sentence with the reason."""


class WorkLimitExceeded(WorkFailed):
    """The work was ended at one of its limits."""

    def __init__(self, what: Limit, limits: WorkLimits) -> None:
        self.what = what
        super().__init__(
            {
                "seconds": f"it was stopped at its limit of {limits.seconds:g} s",
                "megabytes": f"it was stopped at its limit of {limits.megabytes:,} MB of memory",
                "reply_bytes": f"its result has more than {limits.reply_bytes:,} bytes",
            }[what]
        )


def run_bounded(function: Callable[..., Any] | str, *arguments: Any, limits: WorkLimits | None = None) -> Any:
    """Call a function of a module in a worker and return its result, which is a JSON value (a tuple becomes a list).

    A function that is named as module:name has its module imported by the worker only, before its time begins.
    WorkLimitExceeded if it was ended at a limit; WorkFailed if its process died. An exception of the function is raised
    here with the same class and arguments, as far as these are JSON values. Inside a worker, it is only called.
    """
    limits = limits or WorkLimits()
    if is_worker():
        return (import_function(function) if isinstance(function, str) else function)(*arguments)
    place = function if isinstance(function, str) else f"{function.__module__}:{function.__qualname__}"
    return _POOL.run(place, pickle.dumps(arguments), limits)


class BoundedWorker:
    """One process that calls functions, for one caller at a time; `start_worker` starts it."""

    def __init__(self, connection: socket.socket, process: "subprocess.Popen[bytes]") -> None:
        self._connection = connection
        self._process = process
        self._calls = 0
        self._processor_limit = 0.0

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def is_usable(self) -> bool:
        """Whether it can take another call."""
        return self._calls < _CALLS_OF_ONE_WORKER and self._process.poll() is None

    def call(self, function: str, arguments: bytes, limits: WorkLimits) -> Any:
        """The result of the function module:name; if there is none within the limits, the process has been killed."""
        self._calls += 1
        request = {"function": function, "seconds": limits.seconds, "megabytes": limits.megabytes}
        try:
            self._connection.settimeout(_START_SECONDS)
            try:
                send_frame(
                    self._connection, json.dumps(request | {"reply_bytes": limits.reply_bytes}).encode(), arguments
                )
                self._receive(limits, time.monotonic() + _START_SECONDS)
                self._processor_limit = self._processor_seconds() + limits.seconds
                reply = self._receive(limits, time.monotonic() + limits.seconds, (PATIENCE - 1) * limits.seconds)
            except TimeoutError:
                raise WorkLimitExceeded("seconds", limits) from None
            except OSError:
                raise self._describe_end(limits) from None
        # After every exception, also KeyboardInterrupt: a late reply must never be read as that to another call.
        except BaseException:
            self.close()
            raise
        if "limit" in reply:
            # What is left of the memory is in pieces.
            self.close()
            raise WorkLimitExceeded(reply["limit"], limits)
        if "error" in reply:
            raise _decode_error(reply)
        return reply["value"]

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _processor_seconds(self) -> float:
        try:
            times = psutil.Process(self._process.pid).cpu_times()
        except psutil.Error:
            return float("inf")
        return float(times.user + times.system)

    def _receive(self, limits: WorkLimits, deadline: float, patience: float = 0.0) -> dict[str, Any]:
        try:
            size = int.from_bytes(self._read(HEADER_BYTES, deadline))
        except TimeoutError:
            if not patience or self._processor_seconds() >= self._processor_limit:
                raise
            # The machine is busy, and the worker had too little of it.
            return self._receive(limits, deadline + min(patience, limits.seconds), max(0.0, patience - limits.seconds))
        # An error or a limit needs little room; a worker that sends more than it may is not read.
        if size > max(limits.reply_bytes, 1 << 16):
            raise WorkLimitExceeded("reply_bytes", limits)
        try:
            reply: dict[str, Any] = json.loads(self._read(size, deadline))
        except (ValueError, RecursionError) as error:
            raise WorkFailed(f"its result cannot be read ({error})") from error
        return reply

    def _read(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._connection.settimeout(max(0.001, deadline - time.monotonic()))
            part = self._connection.recv(min(size - len(data), 1 << 20))
            if not part:
                raise ConnectionResetError
            data += part
        return bytes(data)

    def _describe_end(self, limits: WorkLimits) -> WorkFailed:
        try:
            status = self._process.wait(_START_SECONDS)
        except subprocess.TimeoutExpired:
            return WorkFailed("its process does not answer")
        if -status in _SIGNALS_OF_TIME:
            return WorkLimitExceeded("seconds", limits)
        if -status in _SIGNALS_OF_MEMORY:
            return WorkLimitExceeded("megabytes", limits)
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return WorkFailed(f"its process {how}")


_SIGNALS_OF_TIME = (14, 24)
"""SIGALRM and SIGXCPU, which the process has asked for."""
_SIGNALS_OF_MEMORY = (6,)
"""SIGABRT: libraries in C and Rust have no other word for a lack of memory."""


def _decode_error(reply: dict[str, Any]) -> Exception:
    module, _, name = str(reply["error"]).partition(":")
    kind = getattr(sys.modules.get(module), name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        with contextlib.suppress(TypeError, ValueError, AttributeError):
            return kind(*reply["arguments"])
    return WorkFailed(f"it failed with {name}: {reply['text']}")


class _Starter:
    """Starts processes from a thread that lives as long as this process: the kernel ends them with their thread."""

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def submit(self, modules: str) -> "Future[BoundedWorker]":
        """A worker that imports these modules first; OSError if the system starts no process."""
        started: Future[BoundedWorker] = Future()

        def order() -> None:
            try:
                started.set_result(_start_process(modules))
            except OSError as error:
                started.set_exception(error)

        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="guard-starter", daemon=True)
                self._thread.start()
        self._orders.put(order)
        return started

    def _work(self) -> None:
        while True:
            self._orders.get()()


def start_worker(modules: str = "") -> BoundedWorker:
    """A process of its own that imports these modules first; WorkFailed if the system starts none."""
    try:
        return _STARTER.submit(modules).result()
    except OSError as error:
        raise WorkFailed(f"the process for it cannot be started ({error})") from error


def _start_process(modules: str) -> BoundedWorker:
    ours, theirs = socket.socketpair()
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environment[plugins.SETTING] = str(int(plugins.are_on()))
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    command = [
        sys.executable,
        "-P",
        "-m",
        "showhow.guard.worker_process",
        str(theirs.fileno()),
        str(os.getpid()),
        modules,
    ]
    with theirs:
        try:
            process = subprocess.Popen(  # noqa: S603 - our own module, no shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=_PROJECT_ROOT,
                env={**environment, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                pass_fds=[theirs.fileno()],
                # An interrupt at the terminal is for this process, which ends the worker itself.
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
    return BoundedWorker(ours, process)


class _Pool:
    """The workers of this process; a call takes an idle one, or starts one."""

    def __init__(self) -> None:
        self._idle: list[BoundedWorker] = []
        self._modules: dict[str, None] = {}
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(_WORKERS_AT_ONCE)

    def run(self, function: str, arguments: bytes, limits: WorkLimits) -> Any:
        """The result of the function in an idle worker."""
        if not self._slots.acquire(timeout=limits.seconds):
            raise WorkFailed(f"all {_WORKERS_AT_ONCE} processes for such work are busy; try again later")
        try:
            worker = self._take(function.partition(":")[0])
            try:
                return worker.call(function, arguments, limits)
            except WorkFailed:
                # The next call then waits for no start.
                self._start_spare()
                raise
            finally:
                self._put_back(worker)
        finally:
            self._slots.release()

    def close(self) -> None:
        """End the idle workers."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()

    def _take(self, module: str) -> BoundedWorker:
        with self._lock:
            self._modules[module] = None
            worker = self._idle.pop() if self._idle else None
            modules = " ".join(self._modules)
        if worker is not None and worker.is_usable:
            return worker
        if worker is not None:
            worker.close()
        return start_worker(modules)

    def _start_spare(self) -> None:
        def keep(started: "Future[BoundedWorker]") -> None:
            if started.exception() is None:
                self._put_back(started.result())

        with self._lock:
            modules = " ".join(self._modules)
        _STARTER.submit(modules).add_done_callback(keep)

    def _put_back(self, worker: BoundedWorker) -> None:
        if worker.is_usable:
            with self._lock:
                if len(self._idle) < _IDLE_WORKERS:
                    self._idle.append(worker)
                    return
        worker.close()


_STARTER = _Starter()
_POOL = _Pool()


def _forget_parent() -> None:
    """In a fork, the workers are those of the parent, and the thread that starts them is gone."""
    global _STARTER, _POOL
    _STARTER, _POOL = _Starter(), _Pool()


def _close_pool() -> None:
    """Of this process, which may be a fork."""
    _POOL.close()


os.register_at_fork(after_in_child=_forget_parent)
atexit.register(_close_pool)
