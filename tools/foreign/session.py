"""One session with an MCP server, from its start to its end, in the event loop."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_mcp_adapters.interceptors import MCPToolCallRequest, MCPToolCallResult
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import AudioContent, CallToolResult, EmbeddedResource, TextContent, TextResourceContents

from tools.foreign.bounded import BoundedClients
from tools.foreign.declared import DeclaredServer
from tools.foreign.process import LONGEST, Command, Incoming, Outgoing, ServerProcess, started
from tools.limits import first, reason
from tools.tool_error import ToolError


class SessionEnded(Exception):
    """The server, or the connection to it, ended while it was to answer."""


class Session:
    """What one connection offers while it lasts."""

    def __init__(self, declared: DeclaredServer, environ: Mapping[str, str]) -> None:
        self._declared, self._environ = declared, environ
        self._process: ServerProcess | None = None
        self._end = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._session: ClientSession | None = None
        self.tools: dict[str, BaseTool] = {}
        """The server's tools by their own names."""
        self.failure: BaseException | None = None
        self.ending = ""
        """What went wrong, once it has ended: what a server said last, or the error of the connection."""
        self._life = asyncio.create_task(self._live())

    @property
    def ended(self) -> bool:
        """Whether nothing can be called any more."""
        return self._end.is_set() or self._life.done()

    async def start(self, seconds: float) -> None:
        """Wait until the server has told its tools; ToolError when it does not, or ends."""
        done, _ = await asyncio.wait({self._ready, self._life}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._ready in done:
            return
        late = not done
        await self.close()
        raise ToolError(f"it did not start within {seconds:g} s" if late else self.ending)

    async def close(self) -> None:
        """End the session, and the server if it was started here."""
        self._end.set()
        if not self._ready.done():
            self._life.cancel()
        await asyncio.wait({self._life})

    async def answers(self, seconds: float) -> bool:
        """Whether the server still answers at all."""
        if self.ended or self._session is None:
            return False
        ping = asyncio.create_task(self._session.send_ping())
        await asyncio.wait({ping}, timeout=seconds)
        answered = ping.done() and ping.exception() is None
        ping.cancel()
        return answered

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolMessage:
        """What the tool answers; SessionEnded where the session ends before."""
        call = {"type": "tool_call", "id": "call", "name": tool, "args": arguments}
        answering = asyncio.ensure_future(self.tools[tool].ainvoke(call))
        try:
            await asyncio.wait({answering, self._life}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not answering.done():
                answering.cancel()
        if self._life.done() and (not answering.done() or answering.exception() is not None):
            raise SessionEnded
        answered = await answering
        assert isinstance(answered, ToolMessage)  # noqa: S101 - LangChain's own promise for a call of this form
        return answered

    async def _live(self) -> None:
        """Hold the connection until it is closed from either side; one task opens and closes it, as it must be."""
        try:
            async with AsyncExitStack() as stack:
                incoming, outgoing = await stack.enter_async_context(self._connection())
                watched = await stack.enter_async_context(self._watched(incoming))
                session = await stack.enter_async_context(ClientSession(watched, outgoing))
                await session.initialize()
                self.tools = {tool.name: tool for tool in await load_mcp_tools(session, tool_interceptors=[name_parts])}
                self._session = session
                self._ready.set_result(None)
                await self._end.wait()
        except Exception as failed:  # noqa: BLE001 - servers and connections fail in every way; where it matters it is told
            self.failure = self.failure or first(failed)
        finally:
            self._end.set()
            self.ending = self._ended_with()

    def _overrun(self) -> None:
        self.failure = ToolError(f"it sent more than {LONGEST:,} bytes at once; ask it for less")
        self._end.set()

    def _ended_with(self) -> str:
        if isinstance(self.failure, ToolError):
            return str(self.failure)
        if self._process is not None and self._process.last_words:
            return f"it ended, and the last that it said was: {self._process.last_words}"
        return f"it ended with {reason(self.failure)}" if self.failure else "it ended without a word"

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[tuple[Incoming, Outgoing]]:
        declared = self._declared
        if declared.command is not None:
            async with started(self._command(declared.command)) as (self._process, incoming, outgoing):
                yield incoming, outgoing
            return
        async with AsyncExitStack() as stack:
            url, clients = str(declared.url), BoundedClients(self._overrun)
            if declared.transport == "sse":
                # MCP's client leaves its streams open where there is nobody to connect to.
                async with clients(self._headers()) as http, http.stream("GET", url) as answer:
                    answer.raise_for_status()
                client = sse_client(url, self._headers(), declared.seconds, httpx_client_factory=clients)
                yield await stack.enter_async_context(client)
                return
            http = await stack.enter_async_context(clients(self._headers()))
            incoming, outgoing, _ = await stack.enter_async_context(streamable_http_client(url, http_client=http))
            yield incoming, outgoing

    def _command(self, command: str) -> Command:
        if (program := shutil.which(command, path=self._environ.get("PATH", os.defpath))) is None:
            raise ToolError(f"there is no program {command} here; install it, or correct the command")
        given = {name: self._variable(name) for name in self._declared.environment}
        return Command((program, *self._declared.args), given, self._declared.folder)

    def _headers(self) -> dict[str, str]:
        token = self._declared.token
        return {"Authorization": f"Bearer {self._variable(token)}"} if token else {}

    def _variable(self, name: str) -> str:
        if name not in self._environ:
            raise ToolError(f"the variable {name} that it is to be given is not set; set it and start Showhow again")
        return self._environ[name]

    @asynccontextmanager
    async def _watched(self, incoming: Incoming) -> AsyncIterator[Incoming]:
        """The same messages, and a note when there are no more: a server that ended is known before it is called."""
        send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def pass_on() -> None:
            async with send:
                async for message in incoming:
                    await send.send(message)
            self._end.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pass_on)
            try:
                yield receive
            finally:
                tasks.cancel_scope.cancel()
                for stream in (send, receive, incoming):
                    stream.close()


async def name_parts(
    request: MCPToolCallRequest, handler: Callable[[MCPToolCallRequest], Awaitable[MCPToolCallResult]]
) -> MCPToolCallResult:
    """Name the parts of an answer that LangChain has no form for, so that the rest of it is not lost."""
    found = await handler(request)
    if isinstance(found, CallToolResult):
        found.content = [_named(part) for part in found.content]
    return found


def _named(part: Any) -> Any:
    if isinstance(part, AudioContent):
        size = len(part.data) * 3 // 4
        return TextContent(type="text", text=f"[audio, {part.mimeType}, of {size:,} bytes; not shown]")
    if isinstance(part, EmbeddedResource) and isinstance(part.resource, TextResourceContents):
        return TextContent(type="text", text=f"[{part.resource.uri}]\n{part.resource.text}")
    return part
