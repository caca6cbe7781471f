"""Build a world's folder: written to a temporary folder beside it and renamed once complete."""

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from worlds.embedded.graph import Fingerprint, GraphWriter
from worlds.embedded.text import TextWriter
from worlds.folder import TEXT_FOLDER, WORLD_FILE, WorldError, WorldExists, world_folder
from worlds.source import Article


def dump_toml(table: Mapping[str, Any]) -> str:
    """The table as TOML: texts, numbers, truth values and lists of them; what is None is left out."""
    return "".join(f"{key} = {_format_value(value)}\n" for key, value in table.items() if value is not None)


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # A JSON string is a TOML basic string, but for the delete character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, list | tuple):
        return f"[{', '.join(_format_value(item) for item in value)}]"
    raise TypeError(f"a {type(value).__name__} has no place in world.toml")


_BUILD_PREFIX = ".building-"
_REPLACED_INFIX = "-former-"
_NAME_TAKEN_MESSAGE = "There is a world {!r} already; choose another name, or replace it with --replace."


@dataclass(frozen=True, slots=True)
class WorldContents:
    """What a world is built from; `about` goes into world.toml as it is."""

    articles: Iterable[Article] | None = None
    graph: Path | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    """What else lies in the folder: what writes it, by its name."""


def build_world(worlds: Path, name: str, sources: WorldContents, *, replace: bool = False) -> dict[str, Any]:
    """Build the world and return the metadata of its world.toml; a failure or a kill leaves no partial world."""
    with create_world_folder(worlds, name, replace=replace) as folder:
        return _write_world(folder, name, sources)


@contextmanager
def create_world_folder(worlds: Path, name: str, *, replace: bool = False) -> Iterator[Path]:
    """A folder to fill, which is the world of that name from the end of the block on, and gone if the block fails."""
    target = world_folder(worlds, name)
    if target.exists() and not replace:
        raise WorldExists(_NAME_TAKEN_MESSAGE.format(name))
    try:
        worlds.mkdir(parents=True, exist_ok=True)
        _remove_stale_builds(worlds)
        partial = Path(tempfile.mkdtemp(prefix=f"{_BUILD_PREFIX}{os.getpid()}-", dir=worlds))
        try:
            yield partial
            _publish_folder(partial, target, replace=replace)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    except OSError as failed:
        raise WorldError(
            f"The world {name} cannot be written to {worlds} ({failed}); see that there is room and that you may write."
        ) from failed


def _write_world(folder: Path, name: str, sources: WorldContents) -> dict[str, Any]:
    fingerprint = Fingerprint()
    titles: list[tuple[str, str]] = []
    count = _write_articles(folder, sources.articles, titles, fingerprint) if sources.articles is not None else 0
    about: dict[str, Any] = {
        "name": name,
        "kind": "imported",
        **sources.metadata,
        "articles": count,
        "triples": 0,
        "entities": 0,
    }
    if sources.graph is not None:
        graph = GraphWriter(folder)
        graph.load(sources.graph)
        graph.finish(titles, fingerprint)
        about |= {"triples": graph.triples, "entities": len(graph.entities), "relations": len(graph.relations)}
    for file, write in sources.files.items():
        write(folder / file)
    if not count and not about["triples"]:
        raise WorldError("The world would be empty: there is no article and no triple in what was given.")
    about |= {"hash": fingerprint.hexdigest(), "built": datetime.now(UTC).isoformat(timespec="seconds")}
    (folder / WORLD_FILE).write_text(dump_toml(about), encoding="utf-8")
    return about


def _write_articles(folder: Path, articles: Iterable[Article], titles: list[tuple[str, str]], seen: Fingerprint) -> int:
    """Index the articles; duplicates count once, two texts under one title are two articles."""
    seen_hashes: set[int] = set()
    # Closed also when a file is malformed: its threads must not write into a folder that is being removed.
    with closing(TextWriter(folder / TEXT_FOLDER)) as writer:
        for article in articles:
            identity = hash((article.title, article.sentences, article.entity))
            if identity in seen_hashes:
                continue
            seen_hashes.add(identity)
            writer.add(article)
            seen.add("\x1f".join((article.title, article.entity or "", *article.sentences)))
            if article.entity is not None:
                titles.append((article.title, article.entity))
    return len(seen_hashes)


def _publish_folder(partial: Path, target: Path, *, replace: bool) -> None:
    for path in partial.rglob("*"):
        if path.is_file():
            _fsync_path(path)
    former = None
    if replace and target.exists():
        former = partial.with_name(f"{partial.name}{_REPLACED_INFIX}{target.name}")
        target.rename(former)
    try:
        partial.rename(target)
    except OSError as failed:
        if failed.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        # Somebody else built a world of that name meanwhile.
        raise WorldExists(_NAME_TAKEN_MESSAGE.format(target.name)) from failed
    _fsync_path(target.parent)
    if former is not None:
        shutil.rmtree(former)


def _fsync_path(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_stale_builds(worlds: Path) -> None:
    """Remove what builds that were killed have left; a world that was set aside and not yet replaced comes back."""
    for partial in worlds.glob(f"{_BUILD_PREFIX}*"):
        owner = partial.name.removeprefix(_BUILD_PREFIX).split("-")[0]
        if owner.isdecimal() and not _is_process_alive(int(owner)):
            _, _, name = partial.name.partition(_REPLACED_INFIX)
            if name and not (worlds / name).exists():
                partial.rename(worlds / name)
            shutil.rmtree(partial, ignore_errors=True)


def _is_process_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
