"""Building a world's folder: in a temporary one beside it, renamed when it is whole."""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from worlds.fingerprint import Fingerprint
from worlds.folder import ABOUT, TEXT, WorldError, WorldExists, world_folder
from worlds.graph_index import GraphWriter
from worlds.source import Article
from worlds.text import TextWriter
from worlds.toml import dump

_PARTIAL = ".building-"
_FORMER = "-former-"
_TAKEN = "There is a world {!r} already; choose another name, or replace it with --replace."


@dataclass(frozen=True, slots=True)
class Sources:
    """What a world is built from; `about` goes into world.toml as it is."""

    articles: Iterable[Article] | None = None
    graph: Path | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    """What else lies in the folder: what writes it, by its name."""


def build_world(worlds: Path, name: str, sources: Sources, *, replace: bool = False) -> dict[str, Any]:
    """Build the world and give what its world.toml says; a failure or a kill leaves no half world behind."""
    with new_world(worlds, name, replace=replace) as folder:
        return _write(folder, name, sources)


@contextmanager
def new_world(worlds: Path, name: str, *, replace: bool = False) -> Iterator[Path]:
    """A folder to fill, which is the world of that name from the end of the block on, and gone if the block fails."""
    target = world_folder(worlds, name)
    if target.exists() and not replace:
        raise WorldExists(_TAKEN.format(name))
    try:
        worlds.mkdir(parents=True, exist_ok=True)
        _sweep(worlds)
        partial = Path(tempfile.mkdtemp(prefix=f"{_PARTIAL}{os.getpid()}-", dir=worlds))
        try:
            yield partial
            _put_in_place(partial, target, replace=replace)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    except OSError as failed:
        raise WorldError(
            f"The world {name} cannot be written to {worlds} ({failed}); see that there is room and that you may write."
        ) from failed


def _write(folder: Path, name: str, sources: Sources) -> dict[str, Any]:
    fingerprint = Fingerprint()
    titles: list[tuple[str, str]] = []
    count = _write_articles(folder, sources.articles, titles, fingerprint) if sources.articles is not None else 0
    about: dict[str, Any] = {
        "name": name,
        "kind": "imported",
        **sources.about,
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
    about |= {"hash": fingerprint.digest(), "built": datetime.now(UTC).isoformat(timespec="seconds")}
    (folder / ABOUT).write_text(dump(about), encoding="utf-8")
    return about


def _write_articles(folder: Path, articles: Iterable[Article], titles: list[tuple[str, str]], seen: Fingerprint) -> int:
    """Index the articles; one that is given twice counts once, two texts under one title are two articles."""
    known: set[int] = set()
    # Closed also when a file is malformed: its threads must not write into a folder that is being removed.
    with closing(TextWriter(folder / TEXT)) as writer:
        for article in articles:
            identity = hash((article.title, article.sentences, article.entity))
            if identity in known:
                continue
            known.add(identity)
            writer.add(article)
            seen.add("\x1f".join((article.title, article.entity or "", *article.sentences)))
            if article.entity is not None:
                titles.append((article.title, article.entity))
    return len(known)


def _put_in_place(partial: Path, target: Path, *, replace: bool) -> None:
    for path in partial.rglob("*"):
        if path.is_file():
            _sync(path)
    former = None
    if replace and target.exists():
        former = partial.with_name(f"{partial.name}{_FORMER}{target.name}")
        target.rename(former)
    try:
        partial.rename(target)
    except OSError as failed:
        if failed.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        # Somebody else built a world of that name meanwhile.
        raise WorldExists(_TAKEN.format(target.name)) from failed
    _sync(target.parent)
    if former is not None:
        shutil.rmtree(former)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sweep(worlds: Path) -> None:
    """Remove what builds that were killed have left; a world that was set aside and not yet replaced comes back."""
    for partial in worlds.glob(f"{_PARTIAL}*"):
        owner = partial.name.removeprefix(_PARTIAL).split("-")[0]
        if owner.isdecimal() and not _alive(int(owner)):
            _, _, name = partial.name.partition(_FORMER)
            if name and not (worlds / name).exists():
                partial.rename(worlds / name)
            shutil.rmtree(partial, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
