"""One folder a world: text/ (articles), web/ (pages), graph/ (triples), names/ (of entities), relations, world.toml."""

import re
from pathlib import Path

WORLD_FILE = "world.toml"
TEXT_FOLDER = "text"
WEB_FOLDER = "web"
GRAPH_FOLDER = "graph"
NAMES_FOLDER = "names"
RELATIONS_FILE = "relations.json"

_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


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
    if not _NAME_PATTERN.fullmatch(name):
        raise InvalidWorldName(
            f"{name!r} cannot name a world: use up to 64 letters, digits, - and _, beginning with a letter or digit."
        )
    return worlds / name


def list_world_names(worlds: Path) -> list[str]:
    """The names of the complete worlds of that folder, sorted."""
    if not worlds.is_dir():
        return []
    return sorted(
        path.parent.name for path in worlds.glob(f"*/{WORLD_FILE}") if _NAME_PATTERN.fullmatch(path.parent.name)
    )
