"""A session with an MCP server, from its start to its end.

The sessions of each server run in an event loop in a thread of its own. The HTTP client for remote servers limits the
size of a response; what a server sends is checked before MCP's client sees it (message_bounds.py).
"""

import asyncio
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_mcp_adapters.interceptors import MCPToolCallRequest, MCPToolCallResult
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import AudioContent, CallToolResult, EmbeddedResource, TextContent, TextResourceContents

from showhow.guard.destinations import SecretTable
from showhow.guard.proxy import HttpProxy, choose_proxy
from showhow.guard.redaction import Redactor
from showhow.tools.arguments import ToolError
from showhow.tools.external.config import McpServerConfig
from showhow.tools.external.confinement import ToolPlaces
from showhow.tools.external.mcp_process import (
    IncomingMessages,
    OutgoingMessages,
    ServerCommand,
    ServerProcess,
    run_server_process,
)
from showhow.tools.external.message_bounds import MAX_MARKS, MAX_MESSAGE_BYTES, MessageBounds, count_marks
from showhow.tools.limits import first_exception, summarize_exception
from showhow.worlds.source import ErrorKind

ResultT = TypeVar("ResultT")
CONNECT_TIMEOUT_SECONDS = 10.0
"""Seconds to connect and to send; the time limit of the call applies to the response."""
OversizeCallback = Callable[[], None]


class SessionLoop:
    """An event loop in a thread of its own, started by the first work, so that no session delays another."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def submit(self, work: Coroutine[Any, Any, ResultT]) -> Future[ResultT]:
        """Run a coroutine in the loop; cancelling the returned future cancels it there."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="session with tools", daemon=True).start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, notify: OversizeCallback) -> None:
        self._stream, self._notify = stream, notify

    async def __aiter__(self) -> AsyncIterator[bytes]:
        remaining_bytes, remaining_marks = MAX_MESSAGE_BYTES, MAX_MARKS
        async for chunk in self._stream:
            remaining_bytes -= len(chunk)
            remaining_marks -= count_marks(chunk)
            if remaining_bytes < 0 or remaining_marks < 0:
                # The session must be notified, because MCP's client would reopen a stream that ends.
                self._notify()
                return
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _BoundedTransport(httpx.AsyncHTTPTransport):
    def __init__(self, notify: OversizeCallback, proxy: HttpProxy | None) -> None:
        super().__init__(proxy=proxy.url if proxy else None)
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
    proxy: HttpProxy | None = None

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
            transport=_BoundedTransport(self.on_oversize, self.proxy),
            trust_env=False,
        )


class McpSessionEnded(Exception):
    """The server or the connection ended during a call."""


class McpSession:
    """One connection to a server, and the tools it offers."""

    def __init__(
        self, name: str, config: McpServerConfig, environ: Mapping[str, str], places: ToolPlaces, redactor: Redactor
    ) -> None:
        self._name, self._config, self._environ, self._places = name, config, environ, places
        self._redactor = redactor
        self._bounds = MessageBounds()
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
        if self._process is not None and (reason := self._process.end_reason):
            return reason
        return f"it ended with {summarize_exception(self.failure)}" if self.failure else "it ended without any output"

    @asynccontextmanager
    async def _open_connection(self) -> AsyncIterator[tuple[IncomingMessages, OutgoingMessages]]:
        config = self._config
        if config.command is not None:
            command = self._build_command(config.command)
            async with run_server_process(command, self._bounds) as (self._process, incoming, outgoing):
                yield incoming, outgoing
            return
        async with AsyncExitStack() as stack:
            url = str(config.url)
            clients = BoundedClientFactory(self._end_after_oversize, choose_proxy(self._places.proxy, url))
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
        # As in Showhow's activated environment: its `python` has the packages that Showhow has, which few others have.
        path = f"{Path(sys.executable).parent}{os.pathsep}{self._environ.get('PATH', os.defpath)}"
        if (program := shutil.which(command, path=path)) is None:
            raise ToolError(
                f"there is no program {command} here; install it, or correct the command", ErrorKind.UNAVAILABLE
            )
        variables = {name: self._read_variable(name) for name in self._config.environment}
        confinement = self._places.confine_server(self._name, program, self._config, variables)
        return ServerCommand((program, *self._config.args), variables, self._config.folder, confinement, self._redactor)

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
                    try:
                        if isinstance(message, SessionMessage):
                            self._bounds.check(message)
                    except ToolError as error:
                        self.failure = error
                        break
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
