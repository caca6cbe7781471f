"""What functions and MCP servers may open and use: their confinements, made from the configuration."""

import os
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from showhow.guard.confinement import (
    Confinement,
    Protection,
    TreeLimits,
    describe_gaps,
    missing_protections,
)
from showhow.guard.proxy import HttpProxy
from showhow.tools.external.config import DEFAULT_DISK_MEGABYTES, McpServerConfig

_MAX_FUNCTION_PROCESSES = 300
"""Processes of all calls together; one call may have fewer (functions/protocol.py)."""
_SYSTEM_FOLDERS = frozenset(map(Path, ("/", "/home", "/root", "/etc", "/var", "/tmp", "/run")))  # noqa: S108 - not used


@dataclass(frozen=True, slots=True)
class ToolPlaces:
    """Where tools have their homes, and what of Showhow stays closed to them."""

    homes: Path | None = None
    """The folder of the homes; temporary ones without it."""
    private: tuple[Path, ...] = ()
    without: frozenset[Protection] | None = None
    """Protections that are not used; by default those that the system does not allow."""
    proxy: HttpProxy | None = None
    """The proxy through which servers elsewhere are reached; programs here get none."""
    _temporary: list[Path] = field(default_factory=list, compare=False)

    def confine_server(
        self, name: str, program: str, config: McpServerConfig, variables: Mapping[str, str]
    ) -> Confinement:
        """The confinement of an MCP server, which reads what its arguments and its variables name."""
        arguments = _named_paths([program, *config.args], relative_to=config.folder or Path.cwd())
        readable = [*arguments, *_named_paths(variables.values())]
        readable += [config.folder] if config.folder else []
        limits = TreeLimits(config.megabytes, disk_megabytes=config.disk_megabytes)
        return self.confine(name, limits, readable, config.folders)

    def confine(self, name: str, limits: TreeLimits, readable: Sequence[Path], folders: Sequence[Path]) -> Confinement:
        without = missing_protections() if self.without is None else self.without
        home = self._home(name)
        return Confinement(home, limits, tuple(readable), tuple(folders), self.private, without)

    def _home(self, name: str) -> Path:
        if self.homes is not None:
            return self.homes / name
        if not self._temporary:
            self._temporary.append(Path(tempfile.mkdtemp(prefix="showhow-tools-")))
        return self._temporary[0] / name

    def describe_gaps(self) -> list[str]:
        """What tools can do here because protections are missing, in one sentence each."""
        missing = missing_protections() if self.without is None else self.without
        return describe_gaps(missing, is_root=os.geteuid() == 0)

    def close(self) -> None:
        """Remove temporary homes."""
        while self._temporary:
            shutil.rmtree(self._temporary.pop(), ignore_errors=True)


@dataclass(frozen=True, slots=True)
class FunctionGrants:
    """What the functions of one process may use beside their tools.toml's folder and their variables."""

    places: ToolPlaces = field(default_factory=ToolPlaces)
    folders: tuple[Path, ...] = ()
    disk_megabytes: int = DEFAULT_DISK_MEGABYTES

    def confine(self, variables: Mapping[str, str], tools_folder: Path | None, megabytes: int) -> Confinement:
        """The confinement of a process of functions, which reads the folder of its tools.toml."""
        key = zlib.crc32("\0".join([*variables, *map(str, self.folders)]).encode())
        readable = [*([tools_folder] if tools_folder else []), *_named_paths(variables.values())]
        limits = TreeLimits(megabytes, _MAX_FUNCTION_PROCESSES, self.disk_megabytes)
        return self.places.confine(f"functions@{key:08x}", limits, readable, self.folders)


def _named_paths(values: Iterable[str], relative_to: Path | None = None) -> list[Path]:
    """The files and folders that the operator named in a command or a variable; of a script, its folder."""
    paths = []
    for value in values:
        path = Path(value) if relative_to is None else relative_to / value
        if not value or not (path.is_absolute() or relative_to) or not _exists(path):
            continue
        folder = path.resolve().parent
        is_script = path.suffix in (".py", ".js", ".mjs", ".cjs", ".ts") and folder not in {
            *_SYSTEM_FOLDERS,
            Path.home(),
        }
        if path.resolve() not in _SYSTEM_FOLDERS:
            paths.append(folder if is_script else path)
    return paths


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        # A text that is too long for a name.
        return False
