"""Open worlds by name and read their metadata."""

import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from worlds.embedded.graph import EmbeddedGraph
from worlds.embedded.text import EmbeddedText
from worlds.embedded.web import EmbeddedWeb
from worlds.folder import (
    GRAPH_FOLDER,
    TEXT_FOLDER,
    WEB_FOLDER,
    WORLD_FILE,
    WorldError,
    WorldNotFound,
    list_world_names,
    world_folder,
)
from worlds.live.description import LIVE_KIND, parse_live_config
from worlds.live.http.access import Access
from worlds.source import World

_NO_CONTACT = Access()


def open_world(
    worlds: Path, name: str, access: Access = _NO_CONTACT, environ: Mapping[str, str] | None = None
) -> World:
    """Open the world of that name; WorldNotFound lists the existing ones.

    `access` applies to live worlds; `environ` has the values of the headers that the description names.
    """
    folder = world_folder(worlds, name)
    about = read_world_metadata(worlds, name)
    if about.get("kind") == LIVE_KIND:
        # What speaks HTTP and SPARQL takes a tenth of a second that no other world needs.
        from worlds.live.world import open_live_world  # noqa: PLC0415

        return open_live_world(
            folder, parse_live_config(_read_world_file(folder / WORLD_FILE), WORLD_FILE), access, environ or {}, about
        )
    text = EmbeddedText(folder / TEXT_FOLDER) if (folder / TEXT_FOLDER).is_dir() else None
    graph = EmbeddedGraph(folder, text) if (folder / GRAPH_FOLDER).is_dir() else None
    web = EmbeddedWeb(folder / WEB_FOLDER) if (folder / WEB_FOLDER).is_dir() else None
    return World(name, text=text, graph=graph, web=web, metadata=about)


def read_world_metadata(worlds: Path, name: str) -> dict[str, Any]:
    """Metadata from world.toml: kind, sizes, hash, seed, licence; of a live world also its hosts."""
    file = world_folder(worlds, name) / WORLD_FILE
    if not file.is_file():
        names = ", ".join(list_world_names(worlds)) or "none yet"
        raise WorldNotFound(f"There is no world {name!r}; there are: {names}. `showhow world import` makes one.")
    written = _read_world_file(file)
    try:
        about = tomllib.loads(written)
    except ValueError as wrong:
        raise WorldError(f"{file} cannot be read ({wrong}); import the world again with --replace.") from wrong
    if about.get("kind") != LIVE_KIND:
        return about
    built = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")
    return {"name": name, **parse_live_config(written, str(file)).metadata, "built": built}


def list_worlds(worlds: Path) -> list[dict[str, Any]]:
    """Metadata of all worlds, sorted by name."""
    return [read_world_metadata(worlds, name) for name in list_world_names(worlds)]


def _read_world_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as wrong:
        raise WorldError(f"{file} cannot be read ({wrong}); import the world again with --replace.") from wrong
