"""Libraries from the store: freezing a version, and opening one with its embeddings, once in a process.

The composition root: builds the parts from the settings, each once in a process.
The tools that there are here: ours, and those of others that the user's file declares.
"""

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from uuid import UUID

from db.database import Database
from db.libraries import (
    Demonstration,
    DemonstrationFilter,
    find_version,
    list_candidates,
    list_split_questions,
    load_demonstrations,
    store_version,
)
from db.models import Library
from db.schema import upgrade
from fewshot_library.card import FreezeOptions, build_card, find_leaks
from fewshot_library.encoder import SentenceEncoder
from fewshot_library.library import LoadedLibrary
from llm.client import ChatClient, build_chat_client
from llm.types import ModelProfile
from llm.usage import TokenPrice
from settings import Settings
from tools.external.config import load_external_tools_config
from tools.registry import ToolRegistry
from tools.tool import ToolContext
from worlds.embedded.graph import EmbeddedGraph
from worlds.live.http.access import Access
from worlds.open import open_world as open_world_in
from worlds.open import read_world_metadata
from worlds.source import World

_open_worlds: dict[str, World] = {}
_worlds_lock = Lock()


@cache
def settings() -> Settings:
    """The settings of this process."""
    return Settings.from_env(os.environ, Path.cwd() / ".env")


@cache
def database() -> Database:
    """The store, brought to the program's own schema."""
    found = Database(settings().database_url)
    upgrade(found)
    return found


@cache
def encoder() -> SentenceEncoder:
    """The encoder of texts; its model loads when the first text is encoded."""
    return SentenceEncoder(settings().encoder)


@cache
def chat() -> ChatClient | None:
    """The language model that is set up, which loads when it is first asked; None where none is."""
    found = settings()
    if found.model is None:
        return None
    return build_chat_client(
        ModelProfile(
            found.model,
            found.model_base_url,
            os.environ.get("OPENAI_API_KEY"),
            found.model_seconds,
            found.model_temperature,
            TokenPrice(*found.model_price) if found.model_price else None,
        )
    )


def _build_access() -> Access:
    found = settings()
    return Access(found.contact, offline=found.offline, as_of=found.as_of)


def open_world(name: str) -> World:
    """The world of that name, opened once, and again after it was built anew."""
    about = read_world_metadata(settings().worlds_folder, name)
    with _worlds_lock:
        known = _open_worlds.get(name)
        if known is None or known.metadata != about:
            _open_worlds[name] = open_world_in(settings().worlds_folder, name, _build_access(), os.environ)
        found = _open_worlds[name]
    if known is not None and known is not found and isinstance(known.graph, EmbeddedGraph):
        # Its processes hold a graph that is no longer there.
        known.graph.close()
    return found


def tool_context(world: str) -> ToolContext:
    """What the tools work with in that world."""
    return ToolContext(open_world(world), encoder(), chat())


TOOLS_FILE_NAME = "tools.toml"
_registries: dict[tuple[Path, int], ToolRegistry] = {}
"""One, by the file that it was made from and when that was written."""
_registry_lock = Lock()


def tool_registry() -> ToolRegistry:
    """Every tool, behind one door; the file is read again when it was changed."""
    stamp = _file_stamp(tools_path())
    with _registry_lock:
        former = [] if stamp in _registries else [*_registries.values()]
        if stamp not in _registries:
            _registries.clear()
            declared = load_external_tools_config(stamp[0]) if stamp[1] or settings().tools_file else None
            _registries[stamp] = ToolRegistry(declared, os.environ)
        found = _registries[stamp]
    for each in former:
        each.close()
    return found


def tools_path() -> Path:
    """The file that declares tools of others; it need not be there."""
    return settings().tools_file or settings().home / TOOLS_FILE_NAME


def _file_stamp(file: Path) -> tuple[Path, int]:
    try:
        return file, file.stat().st_mtime_ns
    except OSError:
        return file, 0


_open_libraries: dict[UUID, LoadedLibrary] = {}
_libraries_lock = Lock()


def freeze_version(name: str, wanted: DemonstrationFilter, terms: FreezeOptions) -> Library:
    """The library's next version with every approved trace that fits; Leaking unless forced, Conflict without any."""
    with database().read() as session:
        chosen = list_candidates(session, wanted)
    return freeze_demonstrations(name, chosen, wanted, terms)


def freeze_demonstrations(
    name: str, chosen: Sequence[Demonstration], wanted: DemonstrationFilter, terms: FreezeOptions
) -> Library:
    """The library's next version with exactly these; Leaking unless forced, Conflict without any."""
    with database().read() as session:
        tested = list_split_questions(session, terms.test_split)
    # Encoding takes seconds, in which others go on writing.
    told = build_card(chosen, wanted, terms, find_leaks(chosen, tested, encoder()))
    with database().begin() as session:
        return store_version(session, name, [each.trace_id for each in chosen], told)


def open_library(reference: str) -> tuple[Library, LoadedLibrary]:
    """The version that NAME or NAME:NUMBER names, ready to choose from."""
    with database().read() as session:
        found = find_version(session, reference)
        with _libraries_lock:
            if found.id not in _open_libraries:
                kept = embeddings_path(found.name, found.number)
                _open_libraries[found.id] = LoadedLibrary(load_demonstrations(session, found.id), encoder(), kept)
            return found, _open_libraries[found.id]


def embeddings_path(name: str, number: int) -> Path:
    """Where a version's embeddings are kept once they are computed."""
    return settings().home / "libraries" / name / f"{number}.npz"
