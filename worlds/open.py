"""Opening worlds by name."""

import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from worlds.folder import ABOUT, GRAPH, TEXT, WEB, UnknownWorld, WorldError, world_folder, world_names
from worlds.graph import EmbeddedGraph
from worlds.live.access import Access
from worlds.live.description import LIVE, read_description
from worlds.source import World
from worlds.text import EmbeddedText
from worlds.web import EmbeddedWeb

_NOBODY = Access()


def open_world(worlds: Path, name: str, access: Access = _NOBODY, environ: Mapping[str, str] | None = None) -> World:
    """The world of that name with the sources that it has; UnknownWorld lists the ones there are.

    A live world is asked on behalf of `access`; `environ` holds the values of the headers that its description names.
    """
    folder = world_folder(worlds, name)
    about = about_world(worlds, name)
    if about.get("kind") == LIVE:
        # What speaks HTTP and SPARQL takes a tenth of a second that no other world needs.
        from worlds.live.world import open_live  # noqa: PLC0415

        return open_live(folder, read_description(_written(folder / ABOUT), ABOUT), access, environ or {}, about)
    text = EmbeddedText(folder / TEXT) if (folder / TEXT).is_dir() else None
    graph = EmbeddedGraph(folder, text) if (folder / GRAPH).is_dir() else None
    web = EmbeddedWeb(folder / WEB) if (folder / WEB).is_dir() else None
    return World(name, text=text, graph=graph, web=web, about=about)


def about_world(worlds: Path, name: str) -> dict[str, Any]:
    """What world.toml says of the world: kind, sizes, hash, seed, licence; of a live one, whom it asks."""
    file = world_folder(worlds, name) / ABOUT
    if not file.is_file():
        known = ", ".join(world_names(worlds)) or "none yet"
        raise UnknownWorld(f"There is no world {name!r}; there are: {known}. `showhow world import` makes one.")
    written = _written(file)
    try:
        about = tomllib.loads(written)
    except ValueError as wrong:
        raise WorldError(f"{file} cannot be read ({wrong}); import the world again with --replace.") from wrong
    if about.get("kind") != LIVE:
        return about
    built = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")
    return {"name": name, **read_description(written, str(file)).about, "built": built}


def list_worlds(worlds: Path) -> list[dict[str, Any]]:
    """What every world's world.toml says, by name."""
    return [about_world(worlds, name) for name in world_names(worlds)]


def _written(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as wrong:
        raise WorldError(f"{file} cannot be read ({wrong}); import the world again with --replace.") from wrong
