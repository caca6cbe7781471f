"""Opening worlds by name."""

import tomllib
from pathlib import Path
from typing import Any

from worlds.folder import ABOUT, GRAPH, TEXT, WEB, UnknownWorld, WorldError, world_folder, world_names
from worlds.graph import EmbeddedGraph
from worlds.source import World
from worlds.text import EmbeddedText
from worlds.web import EmbeddedWeb


def open_world(worlds: Path, name: str) -> World:
    """The world of that name with the sources that it has; UnknownWorld lists the ones there are."""
    folder = world_folder(worlds, name)
    about = about_world(worlds, name)
    text = EmbeddedText(folder / TEXT) if (folder / TEXT).is_dir() else None
    graph = EmbeddedGraph(folder, text) if (folder / GRAPH).is_dir() else None
    web = EmbeddedWeb(folder / WEB) if (folder / WEB).is_dir() else None
    return World(name, text=text, graph=graph, web=web, about=about)


def about_world(worlds: Path, name: str) -> dict[str, Any]:
    """What world.toml says of the world: kind, sizes, hash, seed, licence."""
    file = world_folder(worlds, name) / ABOUT
    if not file.is_file():
        known = ", ".join(world_names(worlds)) or "none yet"
        raise UnknownWorld(f"There is no world {name!r}; there are: {known}. `showhow world import` makes one.")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as wrong:
        raise WorldError(f"{file} cannot be read ({wrong}); import the world again with --replace.") from wrong


def list_worlds(worlds: Path) -> list[dict[str, Any]]:
    """What every world's world.toml says, by name."""
    return [about_world(worlds, name) for name in world_names(worlds)]
