"""Build a world's folder: written to a temporary folder beside it and renamed once complete."""

import errno
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from showhow.guard.files import flush_to_disk
from showhow.worlds.embedded.graph import Fingerprint, GraphWriter
from showhow.worlds.embedded.text import TextWriter
from showhow.worlds.folder import (
    TEXT_FOLDER,
    WORLD_FILE,
    ScratchFolder,
    WorldError,
    WorldExists,
    claim_abandoned_folders,
    new_world_folder,
)
from showhow.worlds.source import Article


def dump_toml(table: Mapping[str, Any]) -> str:
    """The table as TOML: strings, numbers, booleans and lists of them. Keys with the value None are omitted."""
    return "".join(f"{key} = {_format_value(value)}\n" for key, value in table.items() if value is not None)


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # A JSON string is a TOML basic string, except for the delete character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, list | tuple):
        return f"[{', '.join(_format_value(item) for item in value)}]"
    raise TypeError(f"a value of type {type(value).__name__} cannot be written to world.toml")


_BUILD_PREFIX = ".building-"
_NEW_SUFFIX, _FORMER_SUFFIX = ".new", ".former"
"""Endings of the folders of a world that is being built, and of the world that it replaces; no name has a dot."""
_NAME_TAKEN_MESSAGE = "There is a world {!r} already; choose another name, or replace it with --replace."


@dataclass(frozen=True, slots=True)
class WorldContents:
    """The contents of a new world; `metadata` is written to world.toml unchanged."""

    articles: Iterable[Article] | None = None
    graph: Path | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    """Functions that write further files of the folder, by file name."""


def build_world(worlds: Path, name: str, contents: WorldContents, *, replace: bool = False) -> dict[str, Any]:
    """Build the world and return the metadata of its world.toml; a failure or a kill leaves no partial world."""
    with create_world_folder(worlds, name, replace=replace) as folder:
        return write_world(folder, name, contents)


@contextmanager
def create_world_folder(worlds: Path, name: str, *, replace: bool = False) -> Iterator[Path]:
    """A temporary folder to fill; renamed to the world of that name when the block ends, removed if the block fails."""
    target = new_world_folder(worlds, name)
    if target.exists() and not replace:
        raise WorldExists(_NAME_TAKEN_MESSAGE.format(name))
    try:
        remove_half_built_worlds(worlds)
        scratch = ScratchFolder(worlds, _BUILD_PREFIX, f"{name}{_NEW_SUFFIX}")
        try:
            yield scratch.path
            _publish_folder(scratch.path, target, scratch.sibling(f"{name}{_FORMER_SUFFIX}") if replace else None)
        finally:
            # Also after an exception or an interrupt; a published world is no longer at this path.
            scratch.remove()
    except OSError as error:
        raise WorldError(
            f"The world {name} cannot be written to {worlds} ({error}); check free space and write permission."
        ) from error


def write_world(folder: Path, name: str, contents: WorldContents) -> dict[str, Any]:
    """Write the files of a world to its temporary folder, and return the metadata of its world.toml."""
    fingerprint = Fingerprint()
    titles: list[tuple[str, str]] = []
    count = _write_articles(folder, contents.articles, titles, fingerprint) if contents.articles is not None else 0
    metadata: dict[str, Any] = {
        "name": name,
        "kind": "imported",
        **{key: value for key, value in contents.metadata.items() if (key, value) != ("left_out", [])},
        "articles": count,
        "triples": 0,
        "entities": 0,
    }
    if contents.graph is not None:
        graph = GraphWriter(folder)
        graph.load(contents.graph)
        graph.finish(titles, fingerprint)
        metadata |= {"triples": graph.triples, "entities": len(graph.entities), "relations": len(graph.relations)}
    for file, write in contents.files.items():
        write(folder / file)
    if not count and not metadata["triples"]:
        raise WorldError("The world would be empty: the files contain neither an article nor a triple.")
    metadata |= {"hash": fingerprint.hexdigest(), "built": datetime.now(UTC).isoformat(timespec="seconds")}
    (folder / WORLD_FILE).write_text(dump_toml(metadata), encoding="utf-8")
    return metadata


def _write_articles(
    folder: Path, articles: Iterable[Article], titles: list[tuple[str, str]], fingerprint: Fingerprint
) -> int:
    """Index the articles and count them. Duplicates count once; two texts with one title are two articles."""
    seen_hashes: set[int] = set()
    # Closed also if a file is malformed: the writer's threads must not write into a folder that is being removed.
    with closing(TextWriter(folder / TEXT_FOLDER)) as writer:
        for article in articles:
            identity = hash((article.title, article.sentences, article.entity))
            if identity in seen_hashes:
                continue
            seen_hashes.add(identity)
            writer.add(article)
            fingerprint.add("\x1f".join((article.title, article.entity or "", *article.sentences)))
            if article.entity is not None:
                titles.append((article.title, article.entity))
    return len(seen_hashes)


def _publish_folder(partial: Path, target: Path, former: Path | None) -> None:
    """Rename the folder to its target; an existing world is first renamed to `former`, then removed."""
    for path in partial.rglob("*"):
        if path.is_file():
            flush_to_disk(path)
    is_replaced = former is not None and target.exists()
    if former is not None and is_replaced:
        target.rename(former)
    try:
        partial.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        # Another process built a world of that name in the meantime.
        raise WorldExists(_NAME_TAKEN_MESSAGE.format(target.name)) from error
    flush_to_disk(target.parent)
    if former is not None and is_replaced:
        shutil.rmtree(former)


def remove_half_built_worlds(worlds: Path) -> list[str]:
    """Remove what killed processes left of their builds, and return a sentence about each.

    A world that was moved aside to be replaced is moved back. Builds of processes that still run are left alone.
    """
    return [_clean_up(folder, worlds) for folder in claim_abandoned_folders(worlds, _BUILD_PREFIX)]


def _clean_up(folder: Path, worlds: Path) -> str:
    if folder.suffix == _FORMER_SUFFIX:
        name = folder.stem.split("-", 2)[2]
        if not (worlds / name).exists():
            folder.rename(worlds / name)
            return f"The world {name} is as it was: a process was killed while it replaced the world."
        return f"Removed the former world {name}: the process that replaced it was killed before it could."
    name = folder.stem.split("-", 2)[-1]
    return f"Removed the half-built world {name}: the process that built it was killed."
