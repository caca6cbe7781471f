"""Runs one program in a sandbox, watches everything that it starts, and ends all of it: `warden.py FD`.

The socket FD brings a plan (guard/confinement.py) as one line of JSON, later other limits, and takes reports. The
program and all that it started are killed when the socket closes, so when Showhow ends however it ends; when the
program ends; and when all its processes together exceed a limit. The warden is outside of the sandbox, which cannot
reach it. Only the standard library is imported, so it starts in milliseconds.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

# Run by its path and without the project's packages: a package in name only, whose rooms lie beside this one.
_PACKAGE = sys.modules["showhow"] = ModuleType("showhow")
_PACKAGE.__path__ = [str(Path(__file__).resolve().parents[1])]
from showhow.guard import linux_sandbox as sandbox  # noqa: E402
from showhow.guard.tree_usage import descendants, disk_bytes, kernel_bytes, memory_bytes  # noqa: E402

_LOOK_SECONDS = 0.1
"""Seconds between two looks at memory and processes."""
_DISK_LOOK_SECONDS = 0.5
_LOOK_SHARE = 20
"""The pause after measuring a large folder or many sockets, as a multiple of the time that it took."""
_GRACE_SECONDS = 1.0
"""Seconds that the program has to end by itself after SIGTERM."""
_SHARED_MEGABYTES = 64
"""The size of /dev/shm, which holds semaphores."""
_MAX_FILES = 1_024
_THREADS_PER_CORE = 32
"""Threads count as processes for the kernel, whose limit is above the warden's by this."""
_NICENESS = 5
"""The program's, so that the warden and Showhow go on however many processes it starts."""
_FAILED_STATUS = 126


class LayerError(Exception):
    """A protection that the plan asks for and that this system does not have."""


class Warden:
    """The process that starts the program, watches it, and outlives it until everything that it started has ended."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._unread = b""
        self._plan: dict[str, Any] = json.loads(self._read_line())
        self._without: set[str] = set(self._plan["without"])
        self._megabytes: int = self._plan["megabytes"]
        self._program = 0
        self._deadline: float | None = None
        self._next_disk_look = 0.0
        self._next_kernel_look = 0.0
        self._kernel_bytes = 0

    def run(self) -> NoReturn:
        """Start the program and stay until everything has ended."""
        signal.signal(signal.SIGTERM, self._ask_to_end)
        sandbox.become_subreaper()
        # This process ends when the thread that started it does; the socket tells the same of its process.
        sandbox.die_with_parent(signal.SIGTERM)
        try:
            if "processes" not in self._without:
                with _layer("processes"):
                    sandbox.unshare_processes()
        except LayerError as error:
            self._report(failed_layer=str(error))
            os._exit(_FAILED_STATUS)
        self._program = os.fork()
        if self._program == 0:
            self._run_child()
        sandbox.close_memory()
        _close_descriptors(self._control.fileno())
        os._exit(self._watch())

    def _run_child(self) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            sandbox.die_with_parent(signal.SIGKILL)
            if "processes" not in self._without:
                with _layer("processes"):
                    sandbox.mount_clean_proc(_SHARED_MEGABYTES)
                program = os.fork()
                if program != 0:
                    self._serve_as_first_process(program)
            self._exec()
        except LayerError as error:
            self._report(failed_layer=str(error))
        except OSError as error:
            self._report(failed=f"{self._plan['argv'][0]} cannot be started: {error.strerror or error}")
        finally:
            os._exit(_FAILED_STATUS)

    def _serve_as_first_process(self, program: int) -> NoReturn:
        """Be the first process of the namespace: the parent of orphans, whose end ends all others."""
        signal.signal(signal.SIGTERM, lambda _signal, _frame: os.kill(program, signal.SIGTERM))
        sandbox.close_memory()
        _close_descriptors()
        while True:
            ended, status = os.wait()
            if ended == program:
                os._exit(_exit_status(status))

    def _exec(self) -> NoReturn:
        """Enter the sandbox and become the program."""
        plan, user = self._plan, self._plan["user"]
        layers = [] if "processes" in self._without else ["processes"]
        has_own_count = bool(layers) or user is not None
        processes = plan["processes"] + _THREADS_PER_CORE * (os.cpu_count() or 1) if has_own_count else None
        os.nice(_NICENESS)
        sandbox.limit_process(file_megabytes=plan["disk_megabytes"], files=_MAX_FILES, processes=processes)
        sandbox.forbid_new_privileges()
        rules = None
        if "files" not in self._without:
            with _layer("files"):
                rules = sandbox.FileRules()
                rules.allow_reading(plan["readable"])
                rules.allow_listing(plan["listable"])
                rules.allow_writing(plan["writable"])
                rules.allow_devices(plan["devices"])
        with _layer("user"):
            if user is not None and rules is not None and "user" not in self._without:
                sandbox.become_user(user)
                layers.append("user")
            else:
                sandbox.drop_capabilities()
        # A change of user has made it forget.
        sandbox.die_with_parent(signal.SIGKILL)
        if rules is not None:
            with _layer("files"):
                rules.enforce()
            layers.append("files")
            layers += ["signals"] if sandbox.has_landlock_scopes() else []
        if "calls" not in self._without:
            with _layer("calls"):
                sandbox.forbid_calls(unix_sockets=plan["unix_sockets"])
            layers.append("calls")
        self._report(layers=layers)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        # Python ignores it, which the program would inherit.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execv(plan["argv"][0], plan["argv"])  # noqa: S606 - the command that the user configured

    # --- Watching ---

    def _watch(self) -> int:
        """Watch until the program has ended, and return its status; nothing that it started is left then."""
        end = os.pidfd_open(self._program)
        readers = [self._control.fileno(), end]
        while True:
            ready = select.select(readers, [], [], _LOOK_SECONDS)[0]
            if end in ready:
                break
            if self._control.fileno() in ready and not self._read_limits():
                self._kill_all()
                break
            if self._deadline is not None and time.monotonic() > self._deadline:
                self._kill_all()
                break
            if (limit := self._exceeded_limit()) is not None:
                self._report(exceeded=limit)
                self._kill_all()
                break
        status = self._reap_program()
        self._kill_all()
        return status

    def _reap_program(self) -> int:
        try:
            return _exit_status(os.waitpid(self._program, 0)[1])
        except ChildProcessError:
            return 128 + signal.SIGKILL

    def _exceeded_limit(self) -> str | None:
        processes = descendants(os.getpid())
        if len(processes) > self._plan["processes"]:
            return f"{self._plan['processes']:,} processes"
        if time.monotonic() > self._next_kernel_look:
            started = time.monotonic()
            self._kernel_bytes = kernel_bytes(processes)
            self._next_kernel_look = time.monotonic() + _LOOK_SHARE * (time.monotonic() - started)
        left = (self._megabytes << 20) - self._kernel_bytes
        if memory_bytes(processes, left) > left:
            return f"{self._megabytes:,} MB of memory"
        if time.monotonic() > self._next_disk_look:
            started = time.monotonic()
            used = disk_bytes(self._plan["home"], processes)
            pause = max(_DISK_LOOK_SECONDS, _LOOK_SHARE * (time.monotonic() - started))
            self._next_disk_look = time.monotonic() + pause
            if used > self._plan["disk_megabytes"] << 20:
                return f"{self._plan['disk_megabytes']:,} MB of files"
        return None

    def _kill_all(self) -> None:
        """Kill the program and everything that it started, also what is being started meanwhile."""
        stopped: set[int] = set()
        while True:
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    continue
            processes = descendants(os.getpid())
            if not processes:
                return
            # What is stopped starts nothing more; killed once nobody is new, all of them end.
            number = signal.SIGKILL if processes <= stopped else signal.SIGSTOP
            if "processes" not in self._without:
                # The first process of a namespace takes the others with it.
                processes, number = {self._program}, signal.SIGKILL
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, number)
            stopped |= processes
            if number == signal.SIGKILL:
                time.sleep(0.002)

    # --- The socket ---

    def _ask_to_end(self, _signal: int, _frame: object) -> None:
        if self._deadline is None:
            self._deadline = time.monotonic() + _GRACE_SECONDS
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._program, signal.SIGTERM)

    def _report(self, **report: object) -> None:
        with contextlib.suppress(OSError):
            self._control.sendall(json.dumps(report).encode() + b"\n")

    def _read_line(self) -> bytes:
        while b"\n" not in self._unread:
            part = self._control.recv(65_536)
            if not part:
                os._exit(0)
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _read_limits(self) -> bool:
        """Take the limits of memory that were sent; False if the socket has closed."""
        try:
            part = self._control.recv(65_536)
        except OSError:
            return False
        *lines, self._unread = (self._unread + part).split(b"\n")
        for line in lines:
            self._megabytes = json.loads(line)["megabytes"]
        return bool(part)


@contextlib.contextmanager
def _layer(name: str):  # type: ignore[no-untyped-def]
    """Name the protection that the system does not allow."""
    try:
        yield
    except OSError as error:
        raise LayerError(name) from error


def _exit_status(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _close_descriptors(but: int = -1) -> None:
    """Close the program's pipes and sockets here, so that their other ends see when the program closes them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names only
        if int(name) > 2 and int(name) != but:
            with contextlib.suppress(OSError):
                os.close(int(name))


if __name__ == "__main__":
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - its only form
    Warden(socket.socket(fileno=descriptor)).run()
