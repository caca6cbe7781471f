"""The parts of the program, each built once from the settings, as one value for pages, verbs and workers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
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
from runs.active_runs import ActiveRuns
from settings import Settings
from tools.external.config import load_external_tools_config
from tools.registry import ToolRegistry
from tools.tool import ToolContext
from worlds.embedded.graph import EmbeddedGraph
from worlds.live.http.access import Access
from worlds.open import open_world, read_world_metadata
from worlds.source import World

TOOLS_FILE_NAME = "tools.toml"
_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_MIN_SECRET_CHARACTERS = 8
"""A shorter value, such as "none", is no secret, and its letters may occur in any text."""


@dataclass(frozen=True)
class Services:
    """Settings, store, worlds, model, encoder, tools and libraries; each part is built when it is first used.

    Thread-safe: worlds, tools and libraries are cached under locks; the other parts are built once.
    """

    settings: Settings
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Where API keys and the environment of external tools are read from; never stored or logged."""
    active_runs: ActiveRuns = field(default_factory=ActiveRuns, init=False, repr=False, compare=False)
    """The runs in the background of this process."""
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)
    _worlds: dict[str, World] = field(default_factory=dict, init=False, repr=False, compare=False)
    _libraries: dict[UUID, LoadedLibrary] = field(default_factory=dict, init=False, repr=False, compare=False)
    _registries: dict[tuple[Path, int], ToolRegistry] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """One registry, by the file that it was made from and when that file was written."""

    @cached_property
    def database(self) -> Database:
        """The database, upgraded to the program's schema."""
        database = Database(self.settings.database_url)
        upgrade(database)
        return database

    @property
    def secrets(self) -> list[str]:
        """API keys and other secrets of the environment; they are removed from whatever is stored of a request."""
        names = [name for name in self.environ if _SECRET_NAME.search(name)]
        return [value for name in names if len(value := self.environ[name]) >= _MIN_SECRET_CHARACTERS]

    @cached_property
    def encoder(self) -> SentenceEncoder:
        """The sentence encoder; its model loads when the first text is encoded."""
        return SentenceEncoder(self.settings.encoder)

    @cached_property
    def chat(self) -> ChatClient | None:
        """The client of the configured language model, or None; the model loads with the first request."""
        settings = self.settings
        if settings.model is None:
            return None
        return build_chat_client(
            ModelProfile(
                settings.model,
                settings.model_base_url,
                self.environ.get("OPENAI_API_KEY"),
                settings.model_seconds,
                settings.model_temperature,
                TokenPrice(*settings.model_price) if settings.model_price else None,
            )
        )

    def open_world(self, name: str) -> World:
        """Return the world of that name, opened once and reopened after a rebuild."""
        metadata = read_world_metadata(self.settings.worlds_folder, name)
        with self._lock:
            cached = self._worlds.get(name)
            if cached is None or cached.metadata != metadata:
                self._worlds[name] = open_world(self.settings.worlds_folder, name, self._access(), self.environ)
            world = self._worlds[name]
        if cached is not None and cached is not world and isinstance(cached.graph, EmbeddedGraph):
            # Its worker processes hold a graph that is no longer there.
            cached.graph.close()
        return world

    def tool_context(self, world: str) -> ToolContext:
        """Return what tools work with in that world."""
        return ToolContext(self.open_world(world), self.encoder, self.chat)

    @property
    def tools_path(self) -> Path:
        """The file that declares external tools; it need not exist."""
        return self.settings.tools_file or self.settings.home / TOOLS_FILE_NAME

    def tool_registry(self) -> ToolRegistry:
        """Return the registry of all tools; the file of external tools is read again after it changed."""
        stamp = _file_stamp(self.tools_path)
        with self._lock:
            replaced = [] if stamp in self._registries else [*self._registries.values()]
            if stamp not in self._registries:
                self._registries.clear()
                config = load_external_tools_config(stamp[0]) if stamp[1] or self.settings.tools_file else None
                self._registries[stamp] = ToolRegistry(config, self.environ)
            registry = self._registries[stamp]
        for old in replaced:
            old.close()
        return registry

    def open_library(self, reference: str) -> tuple[Library, LoadedLibrary]:
        """Return the library version NAME or NAME:NUMBER, loaded once and ready to select from."""
        with self.database.read() as session:
            version = find_version(session, reference)
            encoder = self.encoder
            with self._lock:
                if version.id not in self._libraries:
                    path = self.embeddings_path(version.name, version.number)
                    self._libraries[version.id] = LoadedLibrary(load_demonstrations(session, version.id), encoder, path)
                return version, self._libraries[version.id]

    def embeddings_path(self, name: str, number: int) -> Path:
        """Return the file that caches a library version's embeddings."""
        return self.settings.home / "libraries" / name / f"{number}.npz"

    def freeze_version(self, name: str, chosen: DemonstrationFilter, options: FreezeOptions) -> Library:
        """Freeze every approved trace that matches; see `freeze_demonstrations` for errors."""
        with self.database.read() as session:
            demonstrations = list_candidates(session, chosen)
        return self.freeze_demonstrations(name, demonstrations, chosen, options)

    def freeze_demonstrations(
        self, name: str, demonstrations: Sequence[Demonstration], chosen: DemonstrationFilter, options: FreezeOptions
    ) -> Library:
        """Freeze these demonstrations as the next version; Conflict without any, LeakageError unless forced."""
        with self.database.read() as session:
            test_questions = list_split_questions(session, options.test_split)
        # Encoding takes seconds; no transaction is open meanwhile, so that other writers go on.
        card = build_card(demonstrations, chosen, options, find_leaks(demonstrations, test_questions, self.encoder))
        with self.database.begin() as session:
            return store_version(session, name, [demonstration.trace_id for demonstration in demonstrations], card)

    def close(self) -> None:
        """Close the database, the graphs of open worlds and the servers of external tools."""
        with self._lock:
            worlds, registries = [*self._worlds.values()], [*self._registries.values()]
            self._worlds.clear()
            self._registries.clear()
        for world in worlds:
            if isinstance(world.graph, EmbeddedGraph):
                world.graph.close()
        for registry in registries:
            registry.close()
        if "database" in self.__dict__:
            self.database.close()

    def _access(self) -> Access:
        return Access(self.settings.contact, offline=self.settings.offline, as_of=self.settings.as_of)


def _file_stamp(file: Path) -> tuple[Path, int]:
    try:
        return file, file.stat().st_mtime_ns
    except OSError:
        return file, 0
