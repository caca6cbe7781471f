"""One folder a world: text/ (articles), web/ (pages), graph/ (triples), names/ (of entities), relations, world.toml."""

from pathlib import Path

from folder_names import NAME_RULE, explain_refused_name, is_safe_name, shorten_name

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
