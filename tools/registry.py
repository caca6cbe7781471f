"""The registry of tools: the built-in ones, and the external ones of the configuration."""

import concurrent.futures
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

from showhow.guard.plugins import Registry
from showhow.llm.errors import ChatError
from showhow.tools.arguments import ToolError, label_of_name
from showhow.tools.entities import (
    get_head_entities,
    get_label,
    get_relations_as_head,
    get_relations_as_tail,
    get_tail_entities,
    get_wikidata_id,
)
from showhow.tools.external.config import ExternalToolsConfig
from showhow.tools.external.confinement import FunctionGrants, ToolPlaces
from showhow.tools.generate_query import generate_query
from showhow.tools.read import read
from showhow.tools.run_query import run_query
from showhow.tools.search import websearch, wikisearch
from showhow.tools.tool import SourceKind, Tool
from showhow.worlds.source import ErrorKind, SourceError, World

if TYPE_CHECKING:
    from showhow.tools.external.functions.host import FunctionHost
    from showhow.tools.external.mcp_server import McpServer

CONFINEMENT_NOTE = "Functions and MCP servers can use the network, also services of this machine."
SERVER_START_TIMEOUT_SECONDS = 15.0
"""Seconds from the start of a server on in which requests for tools wait for it; then they do without it."""

# A new tool needs its file and one line here.
BUILT_IN_TOOLS = Registry(
    "tools",
    Tool,
    (
        Tool.from_function("wikisearch", "Search", wikisearch, SourceKind.TEXT),
        replace(Tool.from_function("read", "Read", read, SourceKind.TEXT), other_source=SourceKind.WEB),
        Tool.from_function("getWikiDataID", "Find id", get_wikidata_id, SourceKind.GRAPH),
        Tool.from_function("generateQuery", "Write query", generate_query, SourceKind.GRAPH, next_tool="runQuery"),
        Tool.from_function("runQuery", "Run query", run_query, SourceKind.GRAPH),
        Tool.from_function("getLabel", "Label", get_label, SourceKind.GRAPH),
        *(
            replace(tool, needs_source=True)
            for tool in (
                Tool.from_function("websearch", "Web", websearch, SourceKind.WEB),
                Tool.from_function(
                    "getRelationsAsHead",
                    "Relations from",
                    get_relations_as_head,
                    SourceKind.GRAPH,
                    next_tool="getTailEntities",
                ),
                Tool.from_function(
                    "getRelationsAsTail",
                    "Relations to",
                    get_relations_as_tail,
                    SourceKind.GRAPH,
                    next_tool="getHeadEntities",
                ),
                Tool.from_function("getTailEntities", "Follow", get_tail_entities, SourceKind.GRAPH),
                Tool.from_function("getHeadEntities", "Follow back", get_head_entities, SourceKind.GRAPH),
            )
        ),
    ),
    raises=(ToolError, SourceError, ChatError),
)


def tool_title(name: str) -> str:
    """The word of pages for a tool in a stored step: its title, or one made of the name of an external tool."""
    return BUILT_IN_TOOLS[name].title if name in BUILT_IN_TOOLS else label_of_name(name)


@cache
def _name_in_text() -> re.Pattern[str]:
    """The names of tools; those that are words of English, as `read` is one, only between backticks."""
    names = [re.escape(name) for name in BUILT_IN_TOOLS]
    plain = [re.escape(tool.name) for tool in BUILT_IN_TOOLS.values() if tool.name != tool.title.casefold()]
    return re.compile(rf"`({'|'.join(names)})`|\b({'|'.join(plain)})\b")


def name_tools_by_title(text: str) -> str:
    """A text that models read too, with the titles of built-in tools in place of their names."""
    return _name_in_text().sub(lambda match: tool_title(match[1] or match[2]), text)


def argument_label(tool: str | None, name: str) -> str:
    """The word of pages for an argument in a stored step: the label of its field in the form of the tool."""
    known = BUILT_IN_TOOLS.get(tool or "")
    parameters = (*known.parameters, *known.not_offered) if known else ()
    return next((parameter.label for parameter in parameters if parameter.name == name), label_of_name(name))


@dataclass(frozen=True, slots=True)
class ToolProviderStatus:
    """The state of one provider of tools: its tools, and the reason if it or some of them are not available."""

    kind: str
    """ours, package, function, server or file."""
    name: str
    origin: str
    tools: tuple[Tool, ...] = ()
    problem: str | None = None

    @property
    def is_installed(self) -> bool:
        """Whether it needs no entry in the file of tools."""
        return self.kind in ("ours", "package")


class ToolRegistry:
    """All tools by name, for pages, agents and verbs; external tools are loaded when they are first used.

    `built_in` are the tools that need no configuration; every list of tools begins with them.
    """

    def __init__(
        self,
        config: ExternalToolsConfig | None = None,
        environ: Mapping[str, str] | None = None,
        built_in: Mapping[str, Tool] = BUILT_IN_TOOLS,
        places: ToolPlaces | None = None,
    ) -> None:
        self._places = places or ToolPlaces()
        self.built_in = built_in
        self.config = _without_built_in_names(config or ExternalToolsConfig(), built_in)
        self._environ = environ or {}
        self._load_lock = Lock()
        self._functions: dict[str, Tool | ToolError] = {}
        self._function_hosts: dict[tuple[tuple[str, ...], FunctionGrants], FunctionHost] = {}
        self._servers: dict[str, McpServer] | None = None

    def available_tools(
        self, world: World | None, names: Iterable[str] = (), *, waits_for_servers: bool = True
    ) -> list[Tool]:
        """Return the named tools that are available in the world, or all built-in ones of them.

        Tools that need a source are available only in worlds that have it. Servers have started or failed, unless they
        are not waited for beyond SERVER_START_TIMEOUT_SECONDS.
        """
        tools = self.find_all(names, waits_for_servers=waits_for_servers).values() if names else self.built_in.values()
        return [tool for tool in tools if tool.is_available_in(world)]

    def offered_tools(self, world: World | None, names: Sequence[str], *, waits_for_servers: bool = True) -> list[Tool]:
        """Return the tools that a project offers to annotators and agents, as `available_tools` does.

        ToolError if names are given and none of these tools is available; built-in tools do not replace them.
        """
        tools = self.available_tools(world, names, waits_for_servers=waits_for_servers)
        if not tools:
            problems = dict.fromkeys(
                self.problem(name) or self.built_in[name].missing_source_message() for name in dict.fromkeys(names)
            )
            raise ToolError(
                f"None of the tools that this project offers is available. {' '.join(problems)} Make them available "
                "again, or choose other tools for the project.",
                ErrorKind.UNAVAILABLE,
            )
        return tools

    def find_all(self, names: Iterable[str | None], *, waits_for_servers: bool = False) -> dict[str, Tool]:
        """Return the named tools that are available at one moment, so that none comes while others are looked up."""
        named = [name for name in dict.fromkeys(names) if name is not None]
        is_own = all(name in self.built_in or name in self.config.functions for name in named)
        servers = [] if is_own else self._started_servers(waits=waits_for_servers)
        tools = {name: self._find(name, servers) for name in named}
        return {name: tool for name, tool in tools.items() if tool is not None}

    def is_declared(self, name: str) -> bool:
        """Whether a function with this name is configured, or a server that is not available may offer it."""
        return name in self.config.functions or self._server_problem(name) is not None

    def get_tool(self, name: str) -> Tool:
        """Return the tool with this name; ToolError if it is not available."""
        tool = self.find_all([name], waits_for_servers=True).get(name)
        if tool is None:
            raise ToolError(self.problem(name) or self._unknown_name_message(name), ErrorKind.UNAVAILABLE)
        return tool

    def find(self, name: str) -> Tool | None:
        """Return the tool with this name, or None if it is not available."""
        return self.find_all([name]).get(name)

    def _find(self, name: str, servers: Sequence["McpServer"]) -> Tool | None:
        if name in self.built_in:
            return self.built_in[name]
        if name in self.config.functions:
            tool = self._load_function(name)
            return tool if isinstance(tool, Tool) else None
        return next((server.tools[name] for server in servers if name in server.tools), None)

    def problem(self, name: str) -> str | None:
        """Return one sentence on why the tool with this name is not available; None if it is."""
        if name in self.built_in:
            return None
        if name in self.config.functions:
            tool = self._load_function(name)
            return str(tool) if isinstance(tool, ToolError) else None
        problem = self.config.errors.get(name) or self._server_problem(name)
        if problem is not None or self.find(name) is not None:
            return problem
        return self._unknown_name_message(name)

    def _unknown_name_message(self, name: str) -> str:
        server_tools = (tool for server in self._started_servers() for tool in server.tools)
        names = [*self.built_in, *self.config.functions, *server_tools]
        return f"There is no tool {name!r}; there are {', '.join(names)}."

    def _server_problem(self, name: str) -> str | None:
        for server in self._started_servers():
            if server.is_starting and name.startswith(server.prefix):
                return f"The server {server.name} is still starting; its tools are offered once it has started."
            if name in server.rejected_tools:
                return server.rejected_tools[name]
            if server.problem and (name in server.tools or (server.prefix and name.startswith(server.prefix))):
                return f"The server {server.name}, which {name} comes from, is not available: {server.problem}."
        return None

    def all_tools(self) -> dict[str, Tool]:
        """Return every available tool by name."""
        return {tool.name: tool for status in self.provider_statuses() for tool in status.tools}

    def provider_statuses(self) -> list[ToolProviderStatus]:
        """Return the status of the built-in tools, each function, each server and each error of the configuration.

        Servers that were not started yet are started.
        """
        packages = BUILT_IN_TOOLS.packages
        ours = tuple(tool for name, tool in self.built_in.items() if name not in packages)
        statuses = [ToolProviderStatus("ours", "Showhow", "comes with Showhow", ours)]
        for package in dict.fromkeys(packages.values()):
            added = tuple(BUILT_IN_TOOLS[name] for name, owner in packages.items() if owner == package)
            statuses.append(ToolProviderStatus("package", package, "an installed package", added))
        for name, function in self.config.functions.items():
            loaded = self._load_function(name)
            tools, problem = ((loaded,), None) if isinstance(loaded, Tool) else ((), str(loaded))
            statuses.append(ToolProviderStatus("function", name, function.place, tools, problem))
        statuses += self._server_statuses()
        return statuses + [
            ToolProviderStatus("file", name or "the file", "the file of tools", (), error)
            for name, error in self.config.errors.items()
        ]

    def _server_statuses(self) -> Iterator[ToolProviderStatus]:
        owners: dict[str, str] = {}
        for server in self._started_servers():
            problems = [f"The server {server.name} is not available: {server.problem}."] if server.problem else []
            problems += [
                f"The server {owners[name]} has a tool {name} as well; give the server {server.name} another prefix."
                for name in server.tools
                if name in owners
            ]
            problem = " ".join([*problems, *server.rejected_tools.values()]) or None
            tools = tuple(tool for name, tool in server.tools.items() if name not in owners)
            owners |= dict.fromkeys((tool.name for tool in tools), server.name)
            yield ToolProviderStatus("server", server.name, server.location, tools, problem)

    @property
    def is_starting(self) -> bool:
        """Whether a server that was asked for still starts."""
        return any(server.is_starting for server in (self._servers or {}).values())

    def confinement_notes(self) -> list[str]:
        """What the configured functions and servers can do on this system, in one sentence each."""
        if not self.config.functions and not any(server.command for server in self.config.servers.values()):
            return []
        return [CONFINEMENT_NOTE, *self._places.describe_gaps()]

    def reload_failed(self) -> None:
        """Load the functions that failed to load again, and restart the servers that are not available."""
        if any(isinstance(tool, ToolError) for tool in self._functions.values()):
            # The sandbox of a running process may not open modules that were written later.
            for host in self._function_hosts.values():
                host.close()
        with self._load_lock:
            self._functions = {name: tool for name, tool in self._functions.items() if isinstance(tool, Tool)}
        for server in self._started_servers():
            if server.problem is not None:
                server.restart()

    def close(self) -> None:
        """Stop the servers and the processes of functions that were started."""
        for host in self._function_hosts.values():
            host.close()
        for server in (self._servers or {}).values():
            server.close()
        self._places.close()

    def _load_function(self, name: str) -> Tool | ToolError:
        # Imported here, since few configurations have functions.
        from showhow.tools.external.functions.host import FunctionHost, load_function  # noqa: PLC0415

        with self._load_lock:
            if name not in self._functions:
                function = self.config.functions[name]
                variables = tuple(sorted(function.environment))
                grants = FunctionGrants(self._places, tuple(sorted(function.folders)), function.disk_megabytes)
                if (variables, grants) not in self._function_hosts:
                    host = FunctionHost(self.config.folder, variables, self._environ, grants=grants)
                    self._function_hosts[variables, grants] = host
                try:
                    self._functions[name] = load_function(name, function, self._function_hosts[variables, grants])
                except ToolError as error:
                    self._functions[name] = error
            return self._functions[name]

    def _started_servers(self, *, waits: bool = False) -> list["McpServer"]:
        """The servers, after each has started or failed; SERVER_START_TIMEOUT_SECONDS from its start on at the latest.

        With `waits` each has started or failed: its configuration limits that.
        """
        if not self.config.servers:
            return []
        # Imported here, because MCP takes a second to import.
        from showhow.tools.external.mcp_server import McpServer  # noqa: PLC0415

        with self._load_lock:
            if self._servers is None:
                reserved = frozenset({*self.built_in, *self.config.functions})
                servers_config = self.config.servers.items()
                self._servers = {
                    name: McpServer(name, config, self._environ, reserved, self._places)
                    for name, config in servers_config
                }
            servers = list(self._servers.values())
        starts = [server.ensure_started() for server in servers]
        end = max(server.start_began for server in servers) + SERVER_START_TIMEOUT_SECONDS
        concurrent.futures.wait(starts, None if waits else max(0.0, end - time.monotonic()))
        return servers


def _without_built_in_names(config: ExternalToolsConfig, built_in: Mapping[str, Tool]) -> ExternalToolsConfig:
    """The configuration without functions named as a built-in tool; each of them becomes an error."""
    clashes = {
        name: f"The function {name} ({config.functions[name].place}) has the name of a built-in tool; "
        "choose another one."
        for name in config.functions
        if name in built_in
    }
    functions = {name: function for name, function in config.functions.items() if name not in clashes}
    return replace(config, functions=functions, errors={**config.errors, **clashes})


BUILT_IN_REGISTRY = ToolRegistry()
get_tool = BUILT_IN_REGISTRY.get_tool
available_tools = BUILT_IN_REGISTRY.available_tools
