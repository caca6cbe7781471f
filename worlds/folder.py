"""One folder a world: text/, web/, graph/, names/, relations, world.toml; and temporary folders of a process."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from showhow.folder_names import NAME_RULE, explain_refused_name, is_safe_name, shorten_name

WORLD_FILE = "world.toml"
TEXT_FOLDER = "text"
WEB_FOLDER = "web"
GRAPH_FOLDER = "graph"
NAMES_FOLDER = "names"
RELATIONS_FILE = "relations.json"
LIVE_KIND = "live"
"""The kind, in world.toml, of a world that asks servers."""


class WorldError(Exception):
    """A world cannot be opened, built or imported; the message says why and what to do."""


class InvalidWorldName(WorldError):
    """The name cannot be a folder's name on every system."""


class WorldNotFound(WorldError):
    """There is no world of that name."""


class WorldExists(WorldError):
    """There is a world of that name already."""


def world_folder(worlds: Path, name: str) -> Path:
    """The folder of the world of that name, which need not exist; InvalidWorldName for an unsafe name."""
    if not is_safe_name(name):
        raise InvalidWorldName(f"{shorten_name(name)} cannot name a world: {NAME_RULE}.")
    return worlds / name


def new_world_folder(worlds: Path, name: str) -> Path:
    """The folder for a world to be made or replaced; InvalidWorldName also for a reserved or confusing name."""
    if reason := explain_refused_name(name, list_world_names(worlds)):
        raise InvalidWorldName(f"{shorten_name(name)} cannot name a world: {reason}.")
    return worlds / name


def list_world_names(worlds: Path) -> list[str]:
    """The names of the complete worlds of that folder, sorted."""
    if not worlds.is_dir():
        return []
    return sorted(path.parent.name for path in worlds.glob(f"*/{WORLD_FILE}") if is_safe_name(path.parent.name))


_LOCK_SUFFIX = ".lock"


class ScratchFolder:
    """A new folder in `parent`, named by the prefix, a random token and the name, with a lock until `remove`."""

    def __init__(self, parent: Path, prefix: str, name: str) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        descriptor = None
        while descriptor is None:
            # Another process that cleans up may take the file between its creation and its lock; a new name is free.
            self._stem = f"{prefix}{uuid4().hex[:12]}"
            self._lock = parent / f"{self._stem}{_LOCK_SUFFIX}"
            descriptor = _try_lock(self._lock)
        self.descriptor = descriptor
        """A child process that inherits it keeps the folder in use after this process has ended."""
        self.path = self.sibling(name)
        try:
            self.path.mkdir(mode=0o700)
        except OSError:
            self.remove()
            raise

    def sibling(self, name: str) -> Path:
        """The path of a further folder under the same lock."""
        return self._lock.with_name(f"{self._stem}-{name}")

    def remove(self) -> None:
        """Remove the folder, if it is still here, and end the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.unlink(missing_ok=True)
        os.close(self.descriptor)


def claim_abandoned_folders(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield each folder with that prefix which no process uses; afterwards it is removed, unless it was moved away."""
    stems = {path.name.removeprefix(prefix).split("-")[0].split(".")[0] for path in parent.glob(f"{prefix}*")}
    for stem in sorted(stems):
        lock = parent / f"{prefix}{stem}{_LOCK_SUFFIX}"
        descriptor = _try_lock(lock)
        if descriptor is None:
            continue
        try:
            for folder in sorted(parent.glob(f"{prefix}{stem}-*")):
                yield folder
                shutil.rmtree(folder, ignore_errors=True)
            lock.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def _try_lock(file: Path) -> int | None:
    """Lock the file, which is made if it is missing, and return its descriptor; None if another process has it."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its owner may have removed the file after it was opened here; the lock is then on no name.
        if os.fstat(descriptor).st_nlink:
            return descriptor
    os.close(descriptor)
    return None
