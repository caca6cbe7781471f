"""Open worlds by name and read their metadata."""

import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worlds.embedded.graph import EmbeddedGraph
from worlds.embedded.text import EmbeddedText
from worlds.embedded.web import EmbeddedWeb
from worlds.folder import (
    GRAPH_FOLDER,
    LIVE_KIND,
    TEXT_FOLDER,
    WEB_FOLDER,
    WORLD_FILE,
    WorldError,
    WorldNotFound,
    list_world_names,
    world_folder,
)
from worlds.live.http.access import Access
from worlds.source import World

if TYPE_CHECKING:
    from worlds.live.description import LiveWorldConfig

_NO_CONTACT = Access()


def open_world(
    worlds: Path, name: str, access: Access = _NO_CONTACT, environ: Mapping[str, str] | None = None
) -> World:
    """Open the world with this name; WorldNotFound lists the existing ones.

    `access` applies to live worlds; `environ` contains the variables that their headers name.
    """
    folder = world_folder(worlds, name)
    metadata = read_world_metadata(worlds, name)
    if metadata.get("kind") == LIVE_KIND:
        # Imported here, because the HTTP and SPARQL clients take 0.4 s that other worlds do not need.
        from worlds.live.world import open_live_world  # noqa: PLC0415

        return open_live_world(
            folder,
            _parse_description(_read_world_file(folder / WORLD_FILE), WORLD_FILE),
            access,
            environ or {},
            metadata,
        )
    text = EmbeddedText(folder / TEXT_FOLDER) if (folder / TEXT_FOLDER).is_dir() else None
    graph = EmbeddedGraph(folder, text) if (folder / GRAPH_FOLDER).is_dir() else None
    web = EmbeddedWeb(folder / WEB_FOLDER) if (folder / WEB_FOLDER).is_dir() else None
    return World(name, text=text, graph=graph, web=web, metadata=metadata)


def read_world_metadata(worlds: Path, name: str) -> dict[str, Any]:
    """Metadata from world.toml: kind, sizes, hash, seed, licence; for a live world also its hosts."""
    file = world_folder(worlds, name) / WORLD_FILE
    if not file.is_file():
        names = ", ".join(list_world_names(worlds)) or "none yet"
        raise WorldNotFound(f"There is no world {name!r}; there are: {names}. `showhow world import` makes one.")
    toml = _read_world_file(file)
    try:
        metadata = tomllib.loads(toml)
    except ValueError as error:
        raise WorldError(f"{file} cannot be read ({error}); import the world again with --replace.") from error
    if metadata.get("kind") != LIVE_KIND:
        return metadata
    built = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")
    return {"name": name, **_parse_description(toml, str(file)).metadata, "built": built}


def list_worlds(worlds: Path) -> list[dict[str, Any]]:
    """Metadata of all worlds, sorted by name."""
    return [read_world_metadata(worlds, name) for name in list_world_names(worlds)]


def _parse_description(toml: str, origin: str) -> "LiveWorldConfig":
    # Imported here, because pydantic and its models take 0.15 s that other worlds do not need.
    from worlds.live.description import parse_live_config  # noqa: PLC0415

    return parse_live_config(toml, origin)


def _read_world_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise WorldError(f"{file} cannot be read ({error}); import the world again with --replace.") from error
