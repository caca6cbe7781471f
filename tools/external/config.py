"""The configuration of external tools: one TOML file.

[functions.wordcount]                 the tool's name
place = "my_tools:count_words"        a LangChain tool or a typed function; my_tools.py may be in the folder of the file
seconds = 10                          time limit of a call
characters = 5000                     length limit of its result
megabytes = 500                       memory that a call may use
disk_megabytes = 500                  files that it may write in its home
environment = ["COUNT_KEY"]           the names of the environment variables passed to it
folders = ["/data/texts"]             folders that it may read and write, beside its home

[servers.weather]                     an MCP server that Showhow starts ...
command = "uvx"
args = ["weather-mcp"]
environment = ["WEATHER_KEY"]         the names of the environment variables passed to it
folders = ["/data/maps"]              folders that it may read and write, beside its home
megabytes = 4000                      memory that it and what it starts may use together
disk_megabytes = 4000                 files that it may keep in its home
prefix = "weather_"                   put before the names of its tools; by default the server's name and "_"

[servers.library]                     ... or one that runs elsewhere
url = "https://tools.example/mcp"
transport = "http"                    or "sse"
token = "LIBRARY_TOKEN"               the name of the variable that holds the bearer token
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from showhow.tools.limits import DEFAULT_CHARACTERS, DEFAULT_SECONDS, ToolLimits

ConfigEntryT = TypeVar("ConfigEntryT", bound=BaseModel)
TOOL_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The tool names that language models accept."""
VARIABLE_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*"
DEFAULT_MEGABYTES = 1_000
DEFAULT_DISK_MEGABYTES = 500
DEFAULT_SERVER_MEGABYTES = 4_000
"""Memory of a server, and the files in its home, where programs such as npx and uvx keep what they downloaded."""
_FIELD_HINTS = {
    "place": 'it must be module:function, such as "my_tools:count_words"',
    "token": "it must name the environment variable that holds the token, never the token itself",
    "environment": "it must be a list of names of environment variables, never their values",
    "folders": 'it must be a list of full paths, such as ["/data/texts"]',
    "args": 'it must be a list of texts, such as ["--quiet"]',
    "prefix": "it must be at most 40 of A-Z, a-z, 0-9, _ and -",
    "url": "it must be an address such as https://tools.example/mcp",
}
"""The expected value of a field, for errors that pydantic describes as patterns."""


class _ExternalToolConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    seconds: float = Field(DEFAULT_SECONDS, gt=0, le=3600)
    characters: int = Field(DEFAULT_CHARACTERS, ge=100, le=1_000_000)
    environment: tuple[Annotated[str, Field(pattern=f"^{VARIABLE_PATTERN}$")], ...] = ()
    folders: tuple[Path, ...] = ()

    @field_validator("folders")
    @classmethod
    def _check_folders(cls, folders: tuple[Path, ...]) -> tuple[Path, ...]:
        folders = tuple(folder.expanduser() for folder in folders)
        if not all(folder.is_absolute() for folder in folders):
            raise ValueError("not a full path")
        return folders

    @property
    def limits(self) -> ToolLimits:
        """The limits of a call."""
        return ToolLimits(self.seconds, self.characters)


class FunctionConfig(_ExternalToolConfig):
    """A LangChain tool or a typed function, named as `module:attribute`."""

    place: str = Field(pattern=r"^[\w.]+:[\w.]+$")
    title: str | None = None
    megabytes: int = Field(DEFAULT_MEGABYTES, ge=10, le=1_000_000)
    disk_megabytes: int = Field(DEFAULT_DISK_MEGABYTES, ge=1, le=1_000_000)


class McpServerConfig(_ExternalToolConfig):
    """An MCP server: a command that starts it, or the address where it runs."""

    command: str | None = Field(None, min_length=1)
    args: tuple[str, ...] = ()
    folder: Path | None = None
    url: str | None = Field(None, pattern=r"^https?://\S+$")
    transport: Literal["http", "sse"] = "http"
    token: str | None = Field(None, pattern=f"^{VARIABLE_PATTERN}$")
    prefix: str | None = Field(None, pattern=r"^[A-Za-z0-9_-]{0,40}$")
    megabytes: int = Field(DEFAULT_SERVER_MEGABYTES, ge=10, le=1_000_000)
    disk_megabytes: int = Field(DEFAULT_SERVER_MEGABYTES, ge=1, le=1_000_000)

    @model_validator(mode="after")
    def _check_command_or_url(self) -> "McpServerConfig":
        if (self.command is None) == (self.url is None):
            raise ValueError("a server has either a command, which starts it, or a url, where it runs")
        return self

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str | None) -> str | None:
        try:
            parts = urlsplit(url or "http://none")
            is_valid = bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_valid = False
        if not is_valid:
            raise ValueError("not an address")
        return url


@dataclass(frozen=True, slots=True)
class ExternalToolsConfig:
    """The valid entries of the file; `errors` has a message per invalid entry, and under "" for the file itself."""

    functions: Mapping[str, FunctionConfig] = field(default_factory=dict)
    servers: Mapping[str, McpServerConfig] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    """The folder of the file, from which modules are imported."""


def load_external_tools_config(file: Path) -> ExternalToolsConfig:
    """Read the file; an invalid entry becomes an error that says what to correct, and the others are used."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        return ExternalToolsConfig(errors={"": f"{file} cannot be read: {error.strerror or error}."})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return ExternalToolsConfig(errors={"": f"{file} is not valid TOML: {error}; correct it there."})
    errors = {}
    if unknown_tables := sorted(content.keys() - {"functions", "servers"}):
        errors[""] = f"{file} has {unknown_tables[0]!r}, but only the tables functions and servers are read; remove it."
    functions = _parse_entries(content.get("functions", {}), FunctionConfig, f"{file}, [functions.", errors)
    servers = _parse_entries(content.get("servers", {}), McpServerConfig, f"{file}, [servers.", errors)
    for name in functions.keys() & servers.keys():
        errors[name] = f"{file} has both a function and a server called {name}; rename one of them."
        del functions[name], servers[name]
    return ExternalToolsConfig(functions, servers, errors, file.resolve().parent)


def _parse_entries(
    table: Any, entry_type: type[ConfigEntryT], heading: str, errors: dict[str, str]
) -> dict[str, ConfigEntryT]:
    if not isinstance(table, dict):
        errors[""] = f"{heading.rstrip('.').replace('[', '')} is not a table; write a table per entry: {heading}NAME]."
        return {}
    entries: dict[str, ConfigEntryT] = {}
    for name, entry in table.items():
        if not TOOL_NAME_PATTERN.fullmatch(name):
            errors[name] = (
                f"{heading}{name}] has a name that models cannot use; use at most 64 of A-Z, a-z, 0-9, _ and -."
            )
            continue
        try:
            entries[name] = entry_type.model_validate(entry)
        except ValidationError as error:
            errors[name] = f"{heading}{name}]: {_describe_validation_error(error, entry_type)}; correct it there."
    return entries


def _describe_validation_error(error: ValidationError, entry_type: type[BaseModel]) -> str:
    """The first validation error as part of a sentence."""
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if not name:
        problem = "it is not a table of fields" if first["type"] == "model_type" else first["msg"]
        return f"the entry: {problem.removeprefix('Value error, ')}"
    if first["type"] == "extra_forbidden":
        return f"{name} is not a known field; the fields are {', '.join(entry_type.model_fields)}"
    message = first["msg"].removeprefix("Value error, ")
    return f"{name}: {_FIELD_HINTS.get(name) or message[:1].lower() + message[1:]}"
