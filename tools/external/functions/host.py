"""Starts the process that runs users' functions (functions/process.py), sends it work, and reads its replies.

No module of a user is ever imported in this process. `load_function` makes a tool of a function, or of a LangChain
tool, that the configuration names as module:attribute.
"""

import atexit
import codecs
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from showhow.guard.confinement import ConfinedLaunch
from showhow.guard.environment import list_secrets
from showhow.guard.redaction import RedactingStream, Redactor, redactor_of
from showhow.tools.arguments import ToolError, label_of_name
from showhow.tools.external.adapter import ToolRegistration, adapt_tool
from showhow.tools.external.config import FunctionConfig
from showhow.tools.external.confinement import FunctionGrants
from showhow.tools.external.functions.protocol import (
    LOAD_TIMEOUT_SECONDS,
    MAX_PROCESSES,
    MAX_REPLY_BYTES,
    CallArguments,
    Failure,
    ForkEnd,
    Reply,
    WorkOrder,
)
from showhow.tools.external.output import (
    ToolOutput,
    sanitize_json,
)
from showhow.tools.external.schema import ToolDescription
from showhow.tools.limits import MAX_ERROR_CHARACTERS
from showhow.tools.tool import Tool
from showhow.worlds.source import ErrorKind

DEFAULT_VARIABLES = ("LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""What every program needs of the environment, beside a HOME and a TMPDIR of its own; the rest has to be named."""
_BASE_MEGABYTES = 1_000
"""Memory of the process itself; each tool that it has imported, and each call that runs, adds its own limit."""
MAX_PRINTED_BYTES = 100_000
"""What is passed on of the output that functions print."""
_PATIENCE_SECONDS = 10.0
"""Seconds past a limit after which a process that has not killed its fork is killed itself."""
_CLOSE_TIMEOUT_SECONDS = 2.0
_SEND_TIMEOUT_SECONDS = 5.0
_SOCKET_BYTES = 16_384
"""What every socket holds before anybody reads it."""


class FunctionHost:
    """One process for the functions of one file that get the same environment variables.

    It is started by the first order, and again by the next one after it ended.
    """

    def __init__(
        self,
        folder: Path | None,
        variables: tuple[str, ...],
        environ: Mapping[str, str],
        load_seconds: float = LOAD_TIMEOUT_SECONDS,
        grants: FunctionGrants | None = None,
    ) -> None:
        self.folder = folder
        self._grants = grants or FunctionGrants()
        self._load_seconds = load_seconds
        self._missing = [name for name in variables if name not in environ]
        self._environment = {
            name: environ[name] for name in (*DEFAULT_VARIABLES, *variables) if environ.get(name) is not None
        }
        keys = [*list_secrets(environ), *(environ[name] for name in variables if name in environ)]
        self.redactor = redactor_of(tuple(keys))
        """Removes the values that no text of a function may contain."""
        self._control: socket.socket | None = None
        self._launch: ConfinedLaunch | None = None
        self._imported_megabytes: dict[str, int] = {}
        self._running_megabytes = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper: threading.Thread | None = None
        self._lock = threading.Lock()
        self._last_load = 0.0

    @property
    def pid(self) -> int | None:
        """The id of the process's warden; None while none runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def describe(self, name: str, place: str, megabytes: int) -> Reply:
        """Import the tool and describe it; ToolError if that fails or does not end in time."""
        if self._missing:
            raise ToolError(
                f"The tool {name} cannot be loaded: the environment variable {self._missing[0]} of its configuration "
                "is not set; set it and start Showhow again.",
                ErrorKind.UNAVAILABLE,
            )
        self._last_load = time.monotonic()
        order = WorkOrder(task="describe", name=name, place=place, seconds=self._load_seconds, megabytes=megabytes)
        return self._run(order, b"")

    def call(self, order: WorkOrder, arguments: CallArguments) -> Reply:
        """Call the tool; ToolError if it does not end in time, or ends without a reply."""
        return self._run(order, arguments.model_dump_json().encode("utf-8", "replace") + b"\n")

    def close(self) -> None:
        """End the process and everything that it started."""
        with self._lock:
            control, self._control, keeper = self._control, None, self._keeper
        if control is None or keeper is None:
            return
        control.close()
        keeper.join(_CLOSE_TIMEOUT_SECONDS)
        if self._launch is not None:
            self._launch.close()
        if keeper.is_alive():
            self._kill()
            keeper.join(_CLOSE_TIMEOUT_SECONDS)

    def _run(self, order: WorkOrder, arguments: bytes) -> Reply:
        if order.task == "describe":
            self._imported_megabytes[order.place] = order.megabytes
        self._add_running_megabytes(order.megabytes)
        try:
            return self._run_confined(order, arguments)
        finally:
            self._add_running_megabytes(-order.megabytes)

    def _add_running_megabytes(self, megabytes: int) -> None:
        with self._lock:
            self._running_megabytes += megabytes
            if self._launch is not None:
                self._launch.allow_memory(self._allowed_megabytes())

    def _allowed_megabytes(self) -> int:
        return _BASE_MEGABYTES + sum(self._imported_megabytes.values()) + self._running_megabytes

    def _run_confined(self, order: WorkOrder, arguments: bytes) -> Reply:
        for _ in range(2):
            ours, theirs = socket.socketpair()
            with ours, theirs:
                self._send(order, theirs)
                theirs.close()
                if len(arguments) <= _SOCKET_BYTES:
                    _send_quietly(ours, arguments)
                else:
                    # They are longer than what the socket holds, so they are sent while the fork reads them.
                    threading.Thread(target=_send_quietly, args=(ours, arguments), daemon=True).start()
                if (reply := self._wait(order, ours)) is not None:
                    return reply
        raise self._process_ended(order)

    def _wait(self, order: WorkOrder, ours: socket.socket) -> Reply | None:
        """The reply to an order; None if the process ended before it began."""
        is_begun = False
        for line in self._read_lines(order, ours):
            is_begun = True
            if not line:
                continue
            try:
                reply = Reply.model_validate_json(line)
            except ValidationError:
                # A part of a reply, whose writer ended.
                continue
            if reply.end is not None:
                raise self._describe_end(order, reply.end)
            return reply
        if is_begun:
            raise self._process_ended(order)
        return None

    def _read_lines(self, order: WorkOrder, ours: socket.socket) -> Iterator[bytes]:
        deadline = time.monotonic() + order.seconds + _PATIENCE_SECONDS
        unread, size = b"", 0
        parts: list[bytes] = []
        while True:
            ours.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                part = ours.recv(1 << 20)
            except TimeoutError:
                self._kill_unless_loading()
                raise time_limit_error(order) from None
            except OSError:
                part = b""
            size += len(part)
            if size > MAX_REPLY_BYTES:
                raise ToolError(f"{order.name} sent more than {MAX_REPLY_BYTES:,} bytes; request less.")
            parts.append(part)
            if b"\n" in part or not part:
                *lines, unread = b"".join(parts).split(b"\n")
                parts = [unread]
                yield from lines
            if not part:
                return

    def _process_ended(self, order: WorkOrder) -> ToolError:
        reason = self._launch.end_reason if self._launch is not None else ""
        return ToolError(
            f"The process that runs {order.name} has ended{f': {reason}' if reason else ''}; call it again to start it "
            "anew.",
            ErrorKind.UNAVAILABLE,
        )

    def _describe_end(self, order: WorkOrder, end: ForkEnd) -> ToolError:
        if end.limit == "seconds":
            return time_limit_error(order)
        if end.limit == "processes":
            return ToolError(
                f"{order.name} was ended because it started more than {MAX_PROCESSES} processes; use another tool."
            )
        if end.limit == "memory":
            return ToolError(
                f"{order.name} was ended because it and its processes used more than {order.megabytes:,} MB of memory "
                "together; request less, or use another tool."
            )
        how = f"was ended by signal {-end.status}" if end.status < 0 else f"ended its process with status {end.status}"
        if order.task == "describe":
            return ToolError(
                f"The tool {order.name} cannot be loaded: {order.place} {how}; correct the module.",
                ErrorKind.UNAVAILABLE,
            )
        return ToolError(
            f"{order.name} {how}, without a result; try other arguments, or another tool. It may use "
            f"{order.megabytes:,} MB of memory."
        )

    def _send(self, order: WorkOrder, theirs: socket.socket) -> None:
        """Send the order with its socket; the process is started first if it does not run."""
        line = order.model_dump_json().encode() + b"\n"
        with self._lock:
            for is_retry in (False, True):
                if self._control is None:
                    self._control = self._start()
                try:
                    socket.send_fds(self._control, [line], [theirs.fileno()])
                except OSError as error:
                    self._control.close()
                    self._control = None
                    if is_retry:
                        raise ToolError(
                            f"The process that runs {order.name} cannot be reached ({error}); call it again.",
                            ErrorKind.UNAVAILABLE,
                        ) from error
                else:
                    return

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.settimeout(_SEND_TIMEOUT_SECONDS)
        command = [sys.executable, "-u", "-P", "-m", "showhow.tools.external.functions.process", str(theirs.fileno())]
        command.append(str(self.folder or ""))
        confinement = self._grants.confine(self._environment, self.folder, self._allowed_megabytes())
        if self._launch is None:
            atexit.register(self.close)
        else:
            self._launch.close()
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        launch = self._launch = ConfinedLaunch(command, {**self._environment, "PYTHONPATH": path}, confinement)
        started: Future[subprocess.Popen[bytes]] = Future()
        # The process ends with the thread that started it, so this thread lives as long as the process.
        self._keeper = threading.Thread(target=_keep, args=(launch, theirs, self.redactor, started), daemon=True)
        self._keeper.start()
        self._last_load = time.monotonic()
        try:
            self._process = started.result()
        except ToolError:
            ours.close()
            raise
        finally:
            theirs.close()
            launch.mark_started()
        return ours

    def _kill_unless_loading(self) -> None:
        """Kill a process that ignores orders, unless it may be importing a module, which has a limit of its own."""
        if time.monotonic() - self._last_load > 2 * LOAD_TIMEOUT_SECONDS:
            self._kill()

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            if self._launch is not None and self._launch.descriptors:
                self._launch.end()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)


def time_limit_error(order: WorkOrder) -> ToolError:
    """The error of a tool that was ended at its limit."""
    if order.task == "describe":
        return ToolError(
            f"The tool {order.name} cannot be loaded: importing {order.place} did not end within {order.seconds:g} s; "
            "correct the module.",
            ErrorKind.UNAVAILABLE,
        )
    return ToolError(
        f"{order.name} did not answer within its limit of {order.seconds:g} s; request less, or use another tool.",
        ErrorKind.TIME_LIMIT,
    )


def _send_quietly(ours: socket.socket, arguments: bytes) -> None:
    try:
        ours.sendall(arguments)
    except OSError:
        # The fork has ended, which the reader reports.
        return


def _keep(
    launch: ConfinedLaunch,
    theirs: socket.socket,
    redactor: Redactor,
    started: "Future[subprocess.Popen[bytes]]",
) -> None:
    """Start the process, pass on what it prints, and wait for its end."""
    try:
        process = subprocess.Popen(  # noqa: S603 - our own module, no shell
            launch.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=launch.environment,
            pass_fds=[theirs.fileno(), *launch.descriptors],
            start_new_session=True,
        )
    except OSError as error:
        started.set_exception(
            ToolError(f"The process for functions cannot be started ({error}).", ErrorKind.UNAVAILABLE)
        )
        return
    started.set_result(process)
    with process:
        assert process.stdout is not None  # noqa: S101 - it is piped
        remaining = MAX_PRINTED_BYTES
        # A key may be printed in two parts.
        decoder, stream = codecs.getincrementaldecoder("utf-8")("replace"), RedactingStream(redactor)
        while part := os.read(process.stdout.fileno(), 65_536):
            if remaining > 0:
                sys.stderr.write(stream.feed(decoder.decode(part[:remaining])))
                sys.stderr.flush()
            remaining -= len(part)
        sys.stderr.write(stream.finish())


def load_function(name: str, config: FunctionConfig, host: FunctionHost) -> Tool:
    """Load the tool; ToolError says why it cannot be loaded and what to correct."""
    title = config.title or label_of_name(name)
    registration = ToolRegistration(name, title, config.place, config.limits, host.redactor)
    reply = host.describe(name, config.place, config.megabytes)
    if (description := reply.description) is None:
        raise _to_tool_error(name, reply.failure, host.redactor)
    order = WorkOrder(task="call", name=name, place=config.place, seconds=config.seconds, megabytes=config.megabytes)

    def call(arguments: dict[str, Any]) -> ToolOutput:
        reply = host.call(
            order,
            CallArguments(
                arguments=sanitize_json(arguments),
                argument_schema=description.arguments,
                characters=config.characters,
            ),
        )
        if reply.output is None:
            raise _to_tool_error(name, reply.failure, host.redactor)
        return reply.output

    return adapt_tool(_without_secrets(description, host.redactor), registration, call)


def _to_tool_error(name: str, failure: Failure | None, redactor: Redactor) -> ToolError:
    if failure is None:
        return ToolError(f"{name} gave neither a result nor an error; try another tool.", ErrorKind.OTHER)
    if failure.sentence:
        return ToolError(redactor.redact(failure.sentence), failure.kind)
    exception = (redactor.redact_cut if failure.is_cut else redactor.redact)(failure.exception)
    if len(exception) > MAX_ERROR_CHARACTERS:
        exception = f"{exception[:MAX_ERROR_CHARACTERS]} …"
    if failure.is_denied:
        return ToolError(
            f"{name} failed with {exception}; it may read what is beside tools.toml, where an administrator can name "
            "other folders.",
            failure.kind,
        )
    return ToolError(f"{name} failed with {exception}; try other arguments, or another tool.", failure.kind)


def _without_secrets(description: ToolDescription, redactor: Redactor) -> ToolDescription:
    """The description without secrets; a default value that contains one is left to the function."""
    schema = sanitize_json(description.arguments, redactor)
    for field, original in zip(
        schema["properties"].values(), description.arguments["properties"].values(), strict=True
    ):
        if isinstance(field, dict) and field.get("default") != original.get("default"):
            del field["default"]
    return ToolDescription(description=redactor.redact(description.description), arguments=schema)
