"""The process of an MCP server that Showhow starts: confined, and ended with everything that it started.

Messages are lines of JSON on its standard streams. MCP's own client joins a long line piece by piece, so that one long
message takes many seconds. Here the size of a message is limited.
"""

import asyncio
import codecs
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from showhow.guard.confinement import ConfinedLaunch, Confinement
from showhow.guard.redaction import RedactingStream, Redactor
from showhow.tools.arguments import ToolError
from showhow.tools.external.message_bounds import MAX_MESSAGE_BYTES, MessageBounds
from showhow.worlds.source import ErrorKind

IncomingMessages = MemoryObjectReceiveStream[SessionMessage | Exception]
OutgoingMessages = MemoryObjectSendStream[SessionMessage]
_STDERR_TAIL_CHARACTERS = 4_000
_MAX_STDERR_LINE_CHARACTERS = 300
_STDERR_PAUSE_SECONDS = 0.01
"""Pause after each part of the standard error; a server that writes more waits."""
_SHUTDOWN_TIMEOUT_SECONDS = 2.0
"""Seconds that a server has to exit after its input was closed, and again after SIGTERM."""


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The command of a server; its environment is `environment` and MCP's default variables only."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: Path | None
    confinement: Confinement
    redactor: Redactor
    """Removes secrets from what it prints."""


class ServerProcess:
    """A running server process."""

    def __init__(self, process: Process, launch: ConfinedLaunch, bounds: MessageBounds, redactor: Redactor) -> None:
        self._process, self._launch, self._bounds = process, launch, bounds
        self._printed = RedactingStream(redactor)
        self._stderr_tail = ""
        self._kill_reason = ""

    @property
    def end_reason(self) -> str:
        """Why its warden ended it, else the last line of its standard error, truncated; as the end of a sentence."""
        if reason := self._kill_reason:
            return reason
        lines = [line for line in self._stderr_tail.splitlines() if line.strip()]
        last = lines[-1].strip()[:_MAX_STDERR_LINE_CHARACTERS] if lines else ""
        return f"it ended; its last line of output was: {last}" if last else ""

    async def read_stderr(self) -> None:
        """Read its standard error and store the end of it."""
        assert self._process.stderr is not None  # noqa: S101 - it is piped
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while chunk := await self._process.stderr.read(65_536):
            # Redacted before it is cut, since half a key could not be recognized.
            printed = self._printed.feed(decoder.decode(chunk))
            self._stderr_tail = (self._stderr_tail + printed)[-_STDERR_TAIL_CHARACTERS:]
            await asyncio.sleep(_STDERR_PAUSE_SECONDS)
        self._stderr_tail += self._printed.finish()

    async def read_messages(self, sender: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Send its messages to the stream until it exits; lines that are not messages are ignored."""
        assert self._process.stdout is not None  # noqa: S101 - it is piped
        async with sender:
            while True:
                try:
                    line = await self._process.stdout.readline()
                except ValueError:
                    raise ToolError(
                        f"it sent more than {MAX_MESSAGE_BYTES:,} bytes at once; request less", ErrorKind.UNAVAILABLE
                    ) from None
                if not line:
                    return
                if (message := self._bounds.parse(line)) is not None:
                    await sender.send(message)

    async def write_messages(self, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write messages to its standard input until the stream ends."""
        assert self._process.stdin is not None  # noqa: S101 - it is piped
        async with messages:
            async for outgoing in messages:
                line = outgoing.message.model_dump_json(by_alias=True, exclude_none=True)
                self._process.stdin.write(line.encode() + b"\n")
                await self._process.stdin.drain()

    async def drain_pipes(self) -> None:
        """Read the rest of the pipes of a server that has exited; they would stay open otherwise."""
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None  # noqa: S101 - it is piped
            try:
                async with asyncio.timeout(_SHUTDOWN_TIMEOUT_SECONDS):
                    while await stream.read(65_536):
                        continue
            except TimeoutError:
                # Without a warden, a process that it started in another group still has the pipe open.
                continue

    async def terminate(self) -> None:
        """Close its input; if it does not exit, send SIGTERM, and then kill it and what it started."""
        assert self._process.stdin is not None  # noqa: S101 - it is piped
        self._process.stdin.close()
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            try:
                async with asyncio.timeout(_SHUTDOWN_TIMEOUT_SECONDS):
                    await self._process.wait()
                    break
            except TimeoutError:
                os.killpg(self._process.pid, signal_number)
        await self._process.wait()
        self._kill_reason = self._launch.end_reason


@asynccontextmanager
async def run_server_process(
    command: ServerCommand, bounds: MessageBounds
) -> AsyncIterator[tuple[ServerProcess, IncomingMessages, OutgoingMessages]]:
    """Start a server and stop it on exit; yields the process and the streams of incoming and outgoing messages."""
    environment = {**get_default_environment(), **command.environment}
    launch = ConfinedLaunch(command.argv, environment, command.confinement)
    try:
        process = await asyncio.create_subprocess_exec(
            *launch.argv,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=launch.environment,
            pass_fds=launch.descriptors,
            cwd=command.folder,
            limit=MAX_MESSAGE_BYTES,
            start_new_session=True,
        )
        launch.mark_started()
        server = ServerProcess(process, launch, bounds, command.redactor)
        async with _exchange_messages(server) as (incoming, outgoing):
            yield server, incoming, outgoing
    finally:
        launch.close()


@asynccontextmanager
async def _exchange_messages(server: ServerProcess) -> AsyncIterator[tuple[IncomingMessages, OutgoingMessages]]:
    incoming_sender, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_receiver = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks:
            try:
                tasks.start_soon(server.read_stderr)
                tasks.start_soon(server.read_messages, incoming_sender)
                tasks.start_soon(server.write_messages, outgoing_receiver)
                yield incoming, outgoing
            finally:
                # Shielded, so that the server is stopped in order even if the session is cancelled.
                with anyio.CancelScope(shield=True):
                    await server.terminate()
                tasks.cancel_scope.cancel()
    finally:
        for stream in (incoming_sender, incoming, outgoing, outgoing_receiver):
            stream.close()
        with anyio.CancelScope(shield=True):
            await server.drain_pipes()
