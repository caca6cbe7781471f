"""An MCP server and its tools: started when its tools are first needed, restarted at the next call after it exited."""

import asyncio
import atexit
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import anyio
import httpx
from langchain_core.messages import ToolMessage
from mcp import McpError
from mcp.types import CONNECTION_CLOSED

from showhow.guard.redaction import Redactor, redactor_of
from showhow.tools.arguments import ToolError, label_of_name
from showhow.tools.external.adapter import ToolInvoker, ToolRegistration, adapt_tool
from showhow.tools.external.config import TOOL_NAME_PATTERN, McpServerConfig
from showhow.tools.external.confinement import ToolPlaces
from showhow.tools.external.langchain_tool import describe_langchain_tool
from showhow.tools.external.mcp_session import McpSession, McpSessionEnded, SessionLoop
from showhow.tools.external.output import ToolOutput, read_message
from showhow.tools.external.schema import check_arguments
from showhow.tools.limits import summarize_exception
from showhow.tools.tool import Tool, to_single_line
from showhow.worlds.source import ErrorKind

RETRY_INTERVAL_SECONDS = 30.0
"""Seconds after which a failed start is tried again."""
_SESSION_TERMINATED = 32600
_PING_TIMEOUT_SECONDS = 2.0
_CLOSE_TIMEOUT_SECONDS = 8.0
_TIMEOUT_MARGIN_SECONDS = 1.0
"""Seconds that a call waits beyond its limit, so that ToolLimits reports the timeout."""


class McpServer:
    """One server of the configuration; each of its failures is a ToolError or the value of `problem`."""

    def __init__(
        self,
        name: str,
        config: McpServerConfig,
        environ: Mapping[str, str],
        reserved_names: frozenset[str],
        places: ToolPlaces,
    ) -> None:
        self._places = places
        self._loop = SessionLoop()
        self.name, self._config, self._environ, self._reserved_names = name, config, environ, reserved_names
        self.prefix = f"{name}_" if config.prefix is None else config.prefix
        self.tools: dict[str, Tool] = {}
        """The tools that it listed at its last start, by their names in the registry."""
        self.rejected_tools: dict[str, str] = {}
        """Its tools that cannot be used, each with the reason."""
        self._session: McpSession | None = None
        self._last_failure: tuple[float, str] | None = None
        self._start_future: Future[None] | None = None
        self.start_began = 0.0
        """When its last start began, on the monotonic clock."""
        self._start_lock = asyncio.Lock()
        self._calls_in_flight = 0

    @property
    def location(self) -> str:
        """The command that starts it, or its address, without keys."""
        config = self._config
        if config.command is not None:
            return " ".join([config.command, *config.args])
        # The user information and the query of an address may contain keys.
        parts = urlsplit(str(config.url))
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    @property
    def is_starting(self) -> bool:
        """Whether its first start goes on."""
        is_running = self._start_future is not None and not self._start_future.done()
        return is_running and self._session is None and self._last_failure is None

    @property
    def problem(self) -> str | None:
        """Why its tools cannot be called now, as the end of a sentence; None if they can."""
        if self._last_failure is not None:
            return self._last_failure[1]
        if self._session is not None and self._session.ended:
            return f"{self._session.end_reason or 'it ended'}; it is started again at the next call"
        return None if self._session is not None else "it is still starting"

    def ensure_started(self) -> Future[None]:
        """Start it unless it runs or failed within RETRY_INTERVAL_SECONDS; the future is done after the start."""
        is_starting = self._start_future is not None and not self._start_future.done()
        is_due = self._last_failure is None or time.monotonic() - self._last_failure[0] > RETRY_INTERVAL_SECONDS
        if self._start_future is None or (not is_starting and self._last_failure is not None and is_due):
            self.start_began = time.monotonic()
            self._start_future = self._loop.submit(self._start_quietly())
        return self._start_future

    def restart(self) -> None:
        """Stop it, start it again and list its tools; a failure is available as `problem`."""
        self.close()
        self._loop.submit(self._start_quietly()).result()

    def close(self) -> None:
        """End the session, and stop the server if it was started here."""
        if self._session is not None:
            self._loop.submit(self._session.close()).result(_CLOSE_TIMEOUT_SECONDS)

    async def _start_quietly(self) -> None:
        try:
            await self._ensure_session()
        except ToolError:
            # `problem` reports it.
            return

    async def _ensure_session(self) -> McpSession:
        """Return the open session, or start a new one; ToolError if the server is not available."""
        async with self._start_lock:
            if self._session is None:
                atexit.register(self.close)
            if self._session is None or self._session.ended:
                session = McpSession(self.name, self._config, self._environ, self._places, self._redactor)
                try:
                    await session.wait_until_ready(self._config.seconds)
                except ToolError as error:
                    self._last_failure = (time.monotonic(), self._redactor.redact(str(error)))
                    raise ToolError(
                        f"The server {self.name} is not available: {self._last_failure[1]}.", ErrorKind.UNAVAILABLE
                    ) from error
                self._last_failure, self._session = None, session
                self._register_tools(session.tools.values())
            return self._session

    def _register_tools(self, tools: Any) -> None:
        self.tools, self.rejected_tools = {}, {}
        for tool in tools:
            name = _sanitize_name(f"{self.prefix}{tool.name}")
            if name in self._reserved_names:
                name = _sanitize_name(f"{self.name}_{tool.name}")
            try:
                self._check_name(name, tool.name)
                registration = self._build_registration(name)
                description = describe_langchain_tool(tool, f"The tool {name} of {registration.origin}")
                call = self._make_invoker(name, tool.name, description.arguments)
                self.tools[name] = adapt_tool(description, registration, call)
            # A description of others may have any form, and takes no other tool along.
            except Exception as error:  # noqa: BLE001
                reason = str(error) if isinstance(error, ToolError) else f"{name}: {summarize_exception(error)}"
                self.rejected_tools[name] = to_single_line(self._redactor.redact(reason))

    def _check_name(self, name: str, server_tool_name: str) -> None:
        if not TOOL_NAME_PATTERN.fullmatch(name):
            raise ToolError(
                f"The tool {server_tool_name[:80]} of the server {self.name} has a name of {len(name)} characters, and "
                "models accept at most 64; give the server a shorter prefix.",
                ErrorKind.UNAVAILABLE,
            )
        if name in self.tools or name in self._reserved_names:
            raise ToolError(
                f"The tool {server_tool_name} of the server {self.name} would be called {name}, the name of another "
                "tool; give the server another prefix.",
                ErrorKind.UNAVAILABLE,
            )

    def _build_registration(self, name: str) -> ToolRegistration:
        # Made of the name alone, which a stored step has: one name on all pages, also without the server.
        return ToolRegistration(
            name, label_of_name(name), f"the server {self.name}", self._config.limits, self._redactor
        )

    @property
    def _redactor(self) -> Redactor:
        names = (*self._config.environment, *([self._config.token] if self._config.token else []))
        variables = [self._environ[name] for name in names if self._environ.get(name)]
        parts = urlsplit(self._config.url or "")
        query_values = dict(parse_qsl(parts.query)).values()
        url_parts = [parts.query, parts.netloc.rpartition("@")[0], parts.password, *query_values]
        return redactor_of((*variables, *filter(None, url_parts)))

    def _make_invoker(self, name: str, tool: str, schema: dict[str, Any]) -> ToolInvoker:
        def call(arguments: dict[str, Any]) -> ToolOutput:
            check_arguments(name, schema, arguments)
            future = self._loop.submit(self._call_tool(tool, arguments))
            try:
                return read_message(future.result(self._config.seconds + _TIMEOUT_MARGIN_SECONDS))
            except TimeoutError:
                future.cancel()
                self._loop.submit(self._close_if_unresponsive())
                raise

        return call

    async def _call_tool(self, tool: str, arguments: dict[str, Any]) -> ToolMessage:
        """Call the tool; a call that never reached the server is retried once."""
        for is_retry in (False, True):
            session = await self._ensure_session()
            if tool not in session.tools:
                raise ToolError(
                    f"The server {self.name} has no tool {tool} any more; use another one.", ErrorKind.UNAVAILABLE
                )
            self._calls_in_flight += 1
            try:
                return await session.call_tool(tool, arguments)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                unsent = True
            except McpSessionEnded:
                unsent = isinstance(session.failure, httpx.ConnectError)
            except McpError as error:
                if error.error.code not in (CONNECTION_CLOSED, _SESSION_TERMINATED):
                    raise ToolError(
                        self._redactor.redact(f"The server {self.name} refused {tool}: {error}."), ErrorKind.UNAVAILABLE
                    ) from error
                unsent = error.error.code == _SESSION_TERMINATED
            finally:
                self._calls_in_flight -= 1
            await session.close()
            if is_retry or not unsent:
                reason = self._redactor.redact(session.end_reason or "it ended")
                raise ToolError(
                    f"The server {self.name} failed while {tool} ran: {reason}; call it again to restart it.",
                    ErrorKind.UNAVAILABLE,
                )
        raise AssertionError("unreachable")

    async def _close_if_unresponsive(self) -> None:
        """End the session if the server does not answer a ping and no other call is running."""
        session = self._session
        if (
            session is not None
            and not await session.is_responsive(_PING_TIMEOUT_SECONDS)
            and self._calls_in_flight == 0
        ):
            await session.close()


def _sanitize_name(name: str) -> str:
    return "".join(c if TOOL_NAME_PATTERN.fullmatch(c) else "_" for c in name)
