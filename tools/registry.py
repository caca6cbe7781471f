"""Every tool by its name: ours, and those of others that are declared."""

import concurrent.futures
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

from tools.errors import ToolError
from tools.external.config import ExternalToolsConfig
from tools.generate_query import generate_query
from tools.get_label import get_label
from tools.get_wikidata_id import get_wikidata_id
from tools.read import read
from tools.run_query import run_query
from tools.tool import Tool
from tools.websearch import websearch
from tools.wikisearch import wikisearch
from worlds.source import ErrorKind, World

if TYPE_CHECKING:
    from tools.external.mcp_server import McpServer

SERVER_START_TIMEOUT_SECONDS = 15.0
"""Seconds that a look waits for servers that have not started yet."""

BUILT_IN_TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool.from_function("wikisearch", "Search", wikisearch),
        Tool.from_function("read", "Read", read),
        Tool.from_function("getWikiDataID", "Id", get_wikidata_id),
        Tool.from_function("generateQuery", "Write query", generate_query),
        Tool.from_function("runQuery", "Run query", run_query),
        Tool.from_function("getLabel", "Label", get_label),
        Tool.from_function("websearch", "Web", websearch, web=True),
    )
}


@dataclass(frozen=True, slots=True)
class ToolProviderStatus:
    """How a place that tools come from stands: which tools it gives, and what keeps it, or some of them, away."""

    kind: str
    """ours, function, server or file."""
    name: str
    origin: str
    tools: tuple[Tool, ...] = ()
    problem: str | None = None


class ToolRegistry:
    """The one door to the tools for pages, agents and verbs; tools of others are loaded when they are asked for."""

    def __init__(self, declared: ExternalToolsConfig | None = None, environ: Mapping[str, str] | None = None) -> None:
        self.config = _without_built_in_names(declared or ExternalToolsConfig())
        self._environ = environ or {}
        self._load_lock = Lock()
        self._functions: dict[str, Tool | ToolError] = {}
        self._servers: dict[str, McpServer] | None = None

    def available_tools(self, world: World | None, names: Iterable[str] = ()) -> list[Tool]:
        """The tools of these names that are here, or all of ours; those for web pages only where the world has some."""
        has_web = world is not None and world.web is not None
        found = [self.find(name) for name in dict.fromkeys(names) or BUILT_IN_TOOLS]
        return [tool for tool in found if tool is not None and (has_web or not tool.needs_web)]

    def find_all(self, names: Iterable[str | None]) -> dict[str, Tool]:
        """Those of the named tools that are here."""
        found = {name: self.find(name) for name in names if name is not None}
        return {name: tool for name, tool in found.items() if tool is not None}

    def is_declared(self, name: str) -> bool:
        """Whether a tool of that name is declared, or may come from a server that is not available now."""
        return name in self.config.functions or self._server_problem(name) is not None

    def get_tool(self, name: str) -> Tool:
        """The tool of that name; a ToolError that says why there is none."""
        found = self.find(name)
        if found is None:
            raise ToolError(
                self.problem(name) or f"There is no tool {name!r}; there are {', '.join(BUILT_IN_TOOLS)}.",
                ErrorKind.UNAVAILABLE,
            )
        return found

    def find(self, name: str) -> Tool | None:
        """The tool of that name, if it is here."""
        if name in BUILT_IN_TOOLS:
            return BUILT_IN_TOOLS[name]
        if name in self.config.functions:
            loaded = self._load_function(name)
            return loaded if isinstance(loaded, Tool) else None
        servers = self._started_servers()
        return next((server.tools[name] for server in servers if name in server.tools), None)

    def problem(self, name: str) -> str | None:
        """Why the tool of that name cannot be called now, in a sentence; None when it can."""
        if name in BUILT_IN_TOOLS:
            return None
        if name in self.config.functions:
            loaded = self._load_function(name)
            return str(loaded) if isinstance(loaded, ToolError) else None
        told = self.config.errors.get(name) or self._server_problem(name)
        if told is not None or self.find(name) is not None:
            return told
        known = [
            *BUILT_IN_TOOLS,
            *self.config.functions,
            *(name for server in self._started_servers() for name in server.tools),
        ]
        return f"There is no tool {name!r}; there are {', '.join(known)}."

    def _server_problem(self, name: str) -> str | None:
        for server in self._started_servers():
            if name in server.rejected_tools:
                return server.rejected_tools[name]
            if server.problem and (name in server.tools or (server.prefix and name.startswith(server.prefix))):
                return f"The server {server.name}, which {name} comes from, is not available: {server.problem}."
        return None

    def all_tools(self) -> dict[str, Tool]:
        """Every tool that is here."""
        return {tool.name: tool for state in self.provider_statuses() for tool in state.tools}

    def provider_statuses(self) -> list[ToolProviderStatus]:
        """How ours, each function, each server and what is refused stand; servers that were not started yet are."""
        found = [ToolProviderStatus("ours", "Showhow", "comes with Showhow", tuple(BUILT_IN_TOOLS.values()))]
        for name, declared in self.config.functions.items():
            loaded = self._load_function(name)
            tools, problem = ((loaded,), None) if isinstance(loaded, Tool) else ((), str(loaded))
            found.append(ToolProviderStatus("function", name, declared.place, tools, problem))
        taken: dict[str, str] = {}
        for server in self._started_servers():
            problems = [f"The server {server.name} is not available: {server.problem}."] if server.problem else []
            problems += [
                f"The server {taken[name]} has a tool {name} as well; give the server {server.name} another prefix."
                for name in server.tools
                if name in taken
            ]
            problem = " ".join([*problems, *server.rejected_tools.values()]) or None
            own = tuple(tool for name, tool in server.tools.items() if name not in taken)
            taken |= dict.fromkeys((tool.name for tool in own), server.name)
            found.append(ToolProviderStatus("server", server.name, server.location, own, problem))
        refused = self.config.errors.items()
        return found + [
            ToolProviderStatus("file", name or "the file", "the file of tools", (), why) for name, why in refused
        ]

    def reload_failed(self) -> None:
        """Load anew what could not be loaded, and start the servers that are not available."""
        with self._load_lock:
            self._functions = {name: kept for name, kept in self._functions.items() if isinstance(kept, Tool)}
        for server in self._started_servers():
            if server.problem is not None:
                server.restart()

    def close(self) -> None:
        """End what was started."""
        for server in (self._servers or {}).values():
            server.close()

    def _load_function(self, name: str) -> Tool | ToolError:
        # LangChain stays off the start-up path of those who use no tools of others.
        from tools.external.python_function import load_function  # noqa: PLC0415

        with self._load_lock:
            if name not in self._functions:
                try:
                    self._functions[name] = load_function(name, self.config.functions[name], self.config.folder)
                except ToolError as failed:
                    self._functions[name] = failed
            return self._functions[name]

    def _started_servers(self) -> list["McpServer"]:
        """The servers, all of them started or given up for now, or as far as that is within a look's patience."""
        if not self.config.servers:
            return []
        # As above; MCP brings a second of imports.
        from tools.external.mcp_server import McpServer  # noqa: PLC0415

        with self._load_lock:
            if self._servers is None:
                taken = frozenset({*BUILT_IN_TOOLS, *self.config.functions})
                declared = self.config.servers.items()
                self._servers = {name: McpServer(name, told, self._environ, taken) for name, told in declared}
            servers = list(self._servers.values())
        concurrent.futures.wait([server.ensure_started() for server in servers], SERVER_START_TIMEOUT_SECONDS)
        return servers


def _without_built_in_names(declared: ExternalToolsConfig) -> ExternalToolsConfig:
    """What is declared, without functions that have the name of one of our tools."""
    clashes = {
        name: f"The function {name} ({told.place}) has the name of one of Showhow's own tools; choose another one."
        for name, told in declared.functions.items()
        if name in BUILT_IN_TOOLS
    }
    functions = {name: told for name, told in declared.functions.items() if name not in clashes}
    return replace(declared, functions=functions, errors={**declared.errors, **clashes})


BUILT_IN_REGISTRY = ToolRegistry()
get_tool = BUILT_IN_REGISTRY.get_tool
available_tools = BUILT_IN_REGISTRY.available_tools
