"""A session with an MCP server, from its start to its end, and the child process of a local server.

All sessions run in one event loop in a background thread; `submit_coroutine` runs work there. The HTTP client for
remote servers limits the size of a response.

Messages of a child process are lines of JSON on its standard streams. MCP's own client joins a long line piece by
piece, so that one long message blocks every other session for many seconds. Here the size of a message is limited.
"""

import asyncio
import codecs
import os
import shutil
import signal
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_mcp_adapters.interceptors import MCPToolCallRequest, MCPToolCallResult
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import AudioContent, CallToolResult, EmbeddedResource, JSONRPCMessage, TextContent, TextResourceContents
from pydantic import ValidationError

from guard.destinations import SecretTable
from guard.die_with_parent import DIE_WITH_PARENT_SCRIPT
from guard.redaction import NOTHING_SECRET, RedactingStream, Redactor
from tools.arguments import ToolError
from tools.external.config import McpServerConfig
from tools.limits import first_exception, summarize_exception
from worlds.source import ErrorKind

IncomingMessages = MemoryObjectReceiveStream[SessionMessage | Exception]
OutgoingMessages = MemoryObjectSendStream[SessionMessage]
MAX_MESSAGE_BYTES = 8_000_000
"""Maximum size of one message."""
_STDERR_TAIL_CHARACTERS = 4_000
_MAX_STDERR_LINE_CHARACTERS = 300
_SHUTDOWN_TIMEOUT_SECONDS = 2.0
"""Seconds that a server has to exit after its input was closed, and again after SIGTERM."""
ResultT = TypeVar("ResultT")
CONNECT_TIMEOUT_SECONDS = 10.0
"""Seconds to connect and to send; the time limit of the call applies to the response."""
OversizeCallback = Callable[[], None]


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The command of a server; its environment is `environment` and MCP's default variables only."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: Path | None
    redactor: Redactor = NOTHING_SECRET
    """Removes secrets from what it prints."""


class ServerProcess:
    """A running server process."""

    def __init__(self, process: Process, redactor: Redactor) -> None:
        self._process = process
        self._printed = RedactingStream(redactor)
        self._stderr_tail = ""

    @property
    def last_stderr_line(self) -> str:
        """The last line of its standard error, truncated."""
        lines = [line for line in self._stderr_tail.splitlines() if line.strip()]
        return lines[-1].strip()[:_MAX_STDERR_LINE_CHARACTERS] if lines else ""

    async def read_stderr(self) -> None:
        """Read its standard error and store the end of it."""
        assert self._process.stderr is not None  # noqa: S101 - it is piped
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while chunk := await self._process.stderr.read(65_536):
            # Redacted before it is cut, since half a key could not be recognized.
            self._stderr_tail = (self._stderr_tail + self._printed.feed(decoder.decode(chunk)))[
                -_STDERR_TAIL_CHARACTERS:
            ]
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
                try:
                    message = JSONRPCMessage.model_validate_json(line)
                except ValidationError:
                    continue
                await sender.send(SessionMessage(message))

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
                # A process that it started in another group still has the pipe open.
                continue

    async def terminate(self) -> None:
        """Close its input; if it does not exit, send SIGTERM and then SIGKILL to its process group."""
        assert self._process.stdin is not None  # noqa: S101 - it is piped
        self._process.stdin.close()
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            try:
                async with asyncio.timeout(_SHUTDOWN_TIMEOUT_SECONDS):
                    await self._process.wait()
                    return
            except TimeoutError:
                os.killpg(self._process.pid, signal_number)
        await self._process.wait()


@asynccontextmanager
async def run_server_process(
    command: ServerCommand,
) -> AsyncIterator[tuple[ServerProcess, IncomingMessages, OutgoingMessages]]:
    """Start a server and stop it on exit; yields the process and the streams of incoming and outgoing messages."""
    argv = [*command.argv]
    if sys.platform == "linux":
        argv = [sys.executable, "-I", DIE_WITH_PARENT_SCRIPT, *argv]
    environment = {**get_default_environment(), **command.environment}
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=environment,
        cwd=command.folder,
        limit=MAX_MESSAGE_BYTES,
        start_new_session=True,
    )
    server = ServerProcess(process, command.redactor)
    incoming_sender, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_receiver = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks:
            try:
                tasks.start_soon(server.read_stderr)
                tasks.start_soon(server.read_messages, incoming_sender)
                tasks.start_soon(server.write_messages, outgoing_receiver)
                yield server, incoming, outgoing
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


@cache
def _background_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="sessions with tools", daemon=True).start()
    return loop


def submit_coroutine(work: Coroutine[Any, Any, ResultT]) -> Future[ResultT]:
    """Run a coroutine in the background loop; cancelling the returned future cancels it there."""
    return asyncio.run_coroutine_threadsafe(work, _background_loop())


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, notify: OversizeCallback) -> None:
        self._stream, self._notify = stream, notify

    async def __aiter__(self) -> AsyncIterator[bytes]:
        remaining_bytes = MAX_MESSAGE_BYTES
        async for chunk in self._stream:
            remaining_bytes -= len(chunk)
            if remaining_bytes < 0:
                # The session must be notified, because MCP's client would reopen a stream that ends.
                self._notify()
                return
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _BoundedTransport(httpx.AsyncHTTPTransport):
    def __init__(self, notify: OversizeCallback) -> None:
        super().__init__()
        self._notify = notify

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        if isinstance(response.stream, httpx.AsyncByteStream):
            response.stream = _BoundedStream(response.stream, self._notify)
        return response


@dataclass(frozen=True, slots=True)
class BoundedClientFactory:
    """Makes HTTP clients that reject responses over the size limit and report them."""

    on_oversize: OversizeCallback

    def __call__(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx.Timeout | None = None,
        auth: httpx.Auth | None = None,
    ) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            headers=headers,
            timeout=timeout or httpx.Timeout(CONNECT_TIMEOUT_SECONDS, read=None),
            auth=auth,
            transport=_BoundedTransport(self.on_oversize),
            trust_env=False,
        )


class McpSessionEnded(Exception):
    """The server or the connection ended during a call."""


class McpSession:
    """One connection to a server, and the tools it offers."""

    def __init__(self, config: McpServerConfig, environ: Mapping[str, str], redactor: Redactor) -> None:
        self._config, self._environ, self._redactor = config, environ, redactor
        self._process: ServerProcess | None = None
        self._end_event = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._session: ClientSession | None = None
        self.tools: dict[str, BaseTool] = {}
        """The tools by their names at the server."""
        self.failure: BaseException | None = None
        self.end_reason = ""
        """Why it ended: the server's last line of output, or the error of the connection; "" while it is open."""
        self._connection_task = asyncio.create_task(self._hold_connection())

    @property
    def ended(self) -> bool:
        """Whether the session has ended."""
        return self._end_event.is_set() or self._connection_task.done()

    async def wait_until_ready(self, seconds: float) -> None:
        """Wait until the server has listed its tools; ToolError if it ends or takes longer."""
        done, _ = await asyncio.wait(
            {self._ready, self._connection_task}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if self._ready in done:
            return
        timed_out = not done
        await self.close()
        raise ToolError(
            f"it did not start within {seconds:g} s" if timed_out else self.end_reason, ErrorKind.UNAVAILABLE
        )

    async def close(self) -> None:
        """End the session, and stop the server if this process started it."""
        self._end_event.set()
        if not self._ready.done():
            self._connection_task.cancel()
        await asyncio.wait({self._connection_task})

    async def is_responsive(self, seconds: float) -> bool:
        """Whether the server answers a ping."""
        if self.ended or self._session is None:
            return False
        ping = asyncio.create_task(self._session.send_ping())
        await asyncio.wait({ping}, timeout=seconds)
        is_answered = ping.done() and ping.exception() is None
        ping.cancel()
        return is_answered

    async def call_tool(self, tool: str, arguments: dict[str, Any]) -> ToolMessage:
        """Call a tool and return its result; McpSessionEnded if the session ends first."""
        call = {"type": "tool_call", "id": "call", "name": tool, "args": arguments}
        call_task = asyncio.ensure_future(self.tools[tool].ainvoke(call))
        try:
            await asyncio.wait({call_task, self._connection_task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not call_task.done():
                call_task.cancel()
        if self._connection_task.done() and (not call_task.done() or call_task.exception() is not None):
            raise McpSessionEnded
        message = await call_task
        assert isinstance(message, ToolMessage)  # noqa: S101 - LangChain guarantees it for a call of this form
        return message

    async def _hold_connection(self) -> None:
        """Hold the connection open until either side closes it, since the task that opens it must close it."""
        try:
            async with AsyncExitStack() as stack:
                incoming, outgoing = await stack.enter_async_context(self._open_connection())
                messages = await stack.enter_async_context(self._watch_incoming(incoming))
                session = await stack.enter_async_context(ClientSession(messages, outgoing))
                await session.initialize()
                self.tools = {
                    tool.name: tool
                    for tool in await load_mcp_tools(session, tool_interceptors=[describe_unsupported_parts])
                }
                self._session = session
                self._ready.set_result(None)
                await self._end_event.wait()
        # MCP's client and the server may raise any exception, which ends the session and is reported by end_reason.
        except Exception as error:  # noqa: BLE001
            self.failure = self.failure or first_exception(error)
        finally:
            self._end_event.set()
            self.end_reason = self._describe_end()

    def _end_after_oversize(self) -> None:
        self.failure = ToolError(
            f"it sent more than {MAX_MESSAGE_BYTES:,} bytes at once; request less", ErrorKind.UNAVAILABLE
        )
        self._end_event.set()

    def _describe_end(self) -> str:
        if isinstance(self.failure, ToolError):
            return str(self.failure)
        if self._process is not None and self._process.last_stderr_line:
            return f"it ended; its last line of output was: {self._process.last_stderr_line}"
        return f"it ended with {summarize_exception(self.failure)}" if self.failure else "it ended without any output"

    @asynccontextmanager
    async def _open_connection(self) -> AsyncIterator[tuple[IncomingMessages, OutgoingMessages]]:
        config = self._config
        if config.command is not None:
            async with run_server_process(self._build_command(config.command)) as (self._process, incoming, outgoing):
                yield incoming, outgoing
            return
        async with AsyncExitStack() as stack:
            url, clients = str(config.url), BoundedClientFactory(self._end_after_oversize)
            if config.transport == "sse":
                # MCP's client leaks its streams if the connection fails, so the connection is tried here first.
                async with clients(self._headers()) as http, http.stream("GET", url) as response:
                    response.raise_for_status()
                client = sse_client(url, self._headers(), config.seconds, httpx_client_factory=clients)
                yield await stack.enter_async_context(client)
                return
            http = await stack.enter_async_context(clients(self._headers()))
            incoming, outgoing, _ = await stack.enter_async_context(streamable_http_client(url, http_client=http))
            yield incoming, outgoing

    def _build_command(self, command: str) -> ServerCommand:
        if (program := shutil.which(command, path=self._environ.get("PATH", os.defpath))) is None:
            raise ToolError(
                f"there is no program {command} here; install it, or correct the command", ErrorKind.UNAVAILABLE
            )
        variables = {name: self._read_variable(name) for name in self._config.environment}
        return ServerCommand((program, *self._config.args), variables, self._config.folder, self._redactor)

    def _headers(self) -> dict[str, str]:
        if (token := self._config.token) is None:
            return {}
        # The file that names the server and the variable is the operator's word that the one may go to the other.
        if unsafe := SecretTable.find_unsafe(token, str(self._config.url)):
            raise ToolError(unsafe.rstrip("."), ErrorKind.UNAVAILABLE)
        return {"Authorization": f"Bearer {self._read_variable(token)}"}

    def _read_variable(self, name: str) -> str:
        if name not in self._environ:
            raise ToolError(
                f"the environment variable {name} of its configuration is not set; set it and start Showhow again",
                ErrorKind.UNAVAILABLE,
            )
        return self._environ[name]

    @asynccontextmanager
    async def _watch_incoming(self, incoming: IncomingMessages) -> AsyncIterator[IncomingMessages]:
        """Forward messages; the end of the stream ends the session, so that no call is sent to a closed server."""
        send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def forward_messages() -> None:
            async with send:
                async for message in incoming:
                    await send.send(message)
            self._end_event.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(forward_messages)
            try:
                yield receive
            finally:
                tasks.cancel_scope.cancel()
                for stream in (send, receive, incoming):
                    stream.close()


async def describe_unsupported_parts(
    request: MCPToolCallRequest, handler: Callable[[MCPToolCallRequest], Awaitable[MCPToolCallResult]]
) -> MCPToolCallResult:
    """Replace the parts of a result that LangChain cannot represent by a description."""
    result = await handler(request)
    if isinstance(result, CallToolResult):
        result.content = [_describe_part(part) for part in result.content]
    return result


def _describe_part(part: Any) -> Any:
    if isinstance(part, AudioContent):
        size = len(part.data) * 3 // 4
        return TextContent(type="text", text=f"[audio, {part.mimeType}, of {size:,} bytes; not shown]")
    if isinstance(part, EmbeddedResource) and isinstance(part.resource, TextResourceContents):
        return TextContent(type="text", text=f"[{part.resource.uri}]\n{part.resource.text}")
    return part
