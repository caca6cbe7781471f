"""The parts of the program, each built once from the settings, as one value for pages, verbs and workers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import UUID

from llm.types import ModelProfile
from llm.usage import TokenPrice
from runs.active_runs import ActiveRuns
from settings import Settings
from worlds.embedded.graph import EmbeddedGraph
from worlds.live.http.access import Access
from worlds.open import open_world, read_world_metadata
from worlds.source import World

# Each method imports what its part needs, so that a verb loads only the parts that it uses: SQLAlchemy and Alembic take
# 0.7 s, the tools 0.4 s, the encoder and the libraries, which need NumPy, 0.3 s.
if TYPE_CHECKING:
    from db.database import Database
    from db.libraries import Demonstration, DemonstrationFilter
    from db.models import Library
    from fewshot_library.encoder import SentenceEncoder
    from fewshot_library.library import FreezeOptions, LoadedLibrary
    from llm.client import ChatClient
    from tools.registry import ToolRegistry
    from tools.tool import ToolContext

TOOLS_FILE_NAME = "tools.toml"
_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_MIN_SECRET_CHARACTERS = 8
"""Shorter values, such as "none", are not secrets and may occur in any text."""


@dataclass(frozen=True)
class Services:
    """Settings, store, worlds, model, encoder, tools and libraries; each part is built when it is first used.

    Thread-safe: worlds, tools and libraries are cached under locks; the other parts are built once.
    """

    settings: Settings
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The source of API keys and of the environment of external tools; never stored or logged."""
    active_runs: ActiveRuns = field(default_factory=ActiveRuns, init=False, repr=False, compare=False)
    """The background runs of this process."""
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)
    _worlds: dict[str, World] = field(default_factory=dict, init=False, repr=False, compare=False)
    _libraries: "dict[UUID, LoadedLibrary]" = field(default_factory=dict, init=False, repr=False, compare=False)
    _registries: "dict[tuple[Path, int], ToolRegistry]" = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The registry by its file and the file's modification time; holds one entry."""

    @cached_property
    def database(self) -> "Database":
        """The database, upgraded to the program's schema."""
        from db.database import Database  # noqa: PLC0415
        from db.schema import upgrade  # noqa: PLC0415

        database = Database(self.settings.database_url)
        upgrade(database)
        return database

    @property
    def _model_key_variable(self) -> str | None:
        """The variable of the model's key; a key of OpenAI is sent to no other host unless the settings name it."""
        base_url = self.settings.model_base_url
        is_openai = base_url is not None and (urlsplit(base_url).hostname or "").endswith(".openai.com")
        return self.settings.model_key_variable or ("OPENAI_API_KEY" if is_openai else None)

    @property
    def secrets(self) -> list[str]:
        """API keys and other secrets of the environment, which are removed from stored requests."""
        key = self.settings.model_key_variable
        names = [name for name in self.environ if name == key or _SECRET_NAME.search(name)]
        return [value for name in names if len(value := self.environ[name]) >= _MIN_SECRET_CHARACTERS]

    @cached_property
    def encoder(self) -> "SentenceEncoder":
        """The sentence encoder; its model loads when the first text is encoded."""
        from fewshot_library.encoder import SentenceEncoder  # noqa: PLC0415

        return SentenceEncoder(self.settings.encoder)

    @cached_property
    def chat(self) -> "ChatClient | None":
        """The client of the configured language model, or None; the model loads with the first request."""
        from llm.client import build_chat_client  # noqa: PLC0415

        settings = self.settings
        if settings.model is None:
            return None
        return build_chat_client(
            ModelProfile(
                settings.model,
                settings.model_base_url,
                self.environ.get(self._model_key_variable or ""),
                settings.model_seconds,
                settings.model_temperature,
                TokenPrice(*settings.model_price) if settings.model_price else None,
                key_variable=self._model_key_variable,
            ),
            settings.home,
        )

    def open_world(self, name: str) -> World:
        """Return the world of this name, opened once and reopened after a rebuild."""
        metadata = read_world_metadata(self.settings.worlds_folder, name)
        with self._lock:
            cached = self._worlds.get(name)
            if cached is None or cached.metadata != metadata:
                self._worlds[name] = open_world(self.settings.worlds_folder, name, self._access(), self.environ)
            world = self._worlds[name]
        if cached is not None and cached is not world and isinstance(cached.graph, EmbeddedGraph):
            # Its worker processes hold the replaced graph.
            cached.graph.close()
        return world

    def tool_context(self, world: str) -> "ToolContext":
        """Return the context of tools in this world: the world, the encoder and the model."""
        from tools.tool import ToolContext  # noqa: PLC0415

        return ToolContext(self.open_world(world), self.encoder, self.chat)

    @property
    def tools_path(self) -> Path:
        """The file that declares external tools; it may be missing."""
        return self.settings.tools_file or self.settings.home / TOOLS_FILE_NAME

    def tool_registry(self) -> "ToolRegistry":
        """Return the registry of all tools; the file of external tools is read again after it changed."""
        from tools.external.config import load_external_tools_config  # noqa: PLC0415
        from tools.registry import ToolRegistry  # noqa: PLC0415

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

    def open_library(self, reference: str) -> "tuple[Library, LoadedLibrary]":
        """Return the library version NAME or NAME:NUMBER, loaded once and ready to select from."""
        from db.libraries import find_version, load_demonstrations  # noqa: PLC0415
        from fewshot_library.library import LoadedLibrary  # noqa: PLC0415

        with self.database.read() as session:
            version = find_version(session, reference)
            encoder = self.encoder
            with self._lock:
                if version.id not in self._libraries:
                    path = self.embeddings_path(version.id)
                    self._libraries[version.id] = LoadedLibrary(load_demonstrations(session, version.id), encoder, path)
                return version, self._libraries[version.id]

    def library_folder(self, version_id: UUID) -> Path:
        """Return the folder of what is derived from a library version; named by id, since a name may be any text."""
        return self.settings.home / "libraries" / str(version_id)

    def embeddings_path(self, version_id: UUID) -> Path:
        """Return the file that caches a library version's embeddings."""
        return self.library_folder(version_id) / "embeddings.npz"

    def freeze_version(self, name: str, chosen: "DemonstrationFilter", options: "FreezeOptions") -> "Library":
        """Freeze every approved trace that matches; see `freeze_demonstrations` for errors."""
        from db.libraries import list_candidates  # noqa: PLC0415

        with self.database.read() as session:
            demonstrations = list_candidates(session, chosen)
        return self.freeze_demonstrations(name, demonstrations, chosen, options)

    def freeze_demonstrations(
        self,
        name: str,
        demonstrations: "Sequence[Demonstration]",
        chosen: "DemonstrationFilter",
        options: "FreezeOptions",
    ) -> "Library":
        """Freeze these demonstrations as the next version; Conflict without any, LeakageError unless forced."""
        from db.libraries import check_library_name, list_split_questions, store_version  # noqa: PLC0415
        from fewshot_library.leakage import find_leaks  # noqa: PLC0415
        from fewshot_library.library import build_card  # noqa: PLC0415

        with self.database.read() as session:
            check_library_name(session, name)
            test_questions = list_split_questions(session, options.test_split)
        # Encoding takes seconds, so no transaction is open meanwhile.
        card = build_card(demonstrations, chosen, options, find_leaks(demonstrations, test_questions, self.encoder))
        with self.database.begin() as session:
            trace_ids = [demonstration.trace_id for demonstration in demonstrations]
            return store_version(session, name, trace_ids, card, by=options.person_id)

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
