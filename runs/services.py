"""The parts of the program, each built once from the settings, as one value for pages, verbs and workers."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import UUID

from showhow.guard.destinations import (
    DESTINATIONS_FILE_NAME,
    DestinationError,
    Grant,
    InvalidOrigin,
    SecretTable,
    parse_origin,
)
from showhow.guard.environment import list_secrets
from showhow.guard.redaction import Redactor, redactor_of
from showhow.llm.limitations import LIMITATIONS_FILE_NAME, ServerLimitations
from showhow.llm.profiles import PROFILES_FILE_NAME, ProfileError, ProfileFile, with_known_limits
from showhow.llm.providers import KEY_OWNERS, find_address, find_provider
from showhow.llm.types import DEFAULT_PROFILE_NAME, ModelProfile
from showhow.llm.usage import TokenPrice
from showhow.runs.active_runs import ActiveRuns
from showhow.settings import Settings
from showhow.worlds.embedded.graph import EmbeddedGraph
from showhow.worlds.live.http.request import Access
from showhow.worlds.open import open_world, read_world_metadata
from showhow.worlds.source import World

# Each method imports what its part needs, so that a verb loads only the parts that it uses: SQLAlchemy and Alembic take
# 0.7 s, the tools 0.4 s, the encoder and the libraries, which need NumPy, 0.3 s.
if TYPE_CHECKING:
    from showhow.db.database import Actor, Database
    from showhow.db.models import Library
    from showhow.db.traces.libraries import Demonstration, DemonstrationFilter
    from showhow.fewshot_library.encoder import SentenceEncoder
    from showhow.fewshot_library.library import FreezeOptions, Leak, LoadedLibrary
    from showhow.llm.client import ChatClient
    from showhow.llm.connection_check import ConnectionReport
    from showhow.llm.rate_limiter import LimitsBackend
    from showhow.llm.telemetry import Telemetry
    from showhow.llm.types import ChatModel
    from showhow.reasoners.skills.skill import Skill
    from showhow.tools.registry import ToolRegistry
    from showhow.tools.tool import ToolContext

TOOLS_FILE_NAME = "tools.toml"


@dataclass(frozen=True)
class Services:
    """Settings, store, worlds, model, encoder, tools and libraries; each part is built when it is first used.

    Thread-safe: worlds, tools and libraries are cached under locks; the other parts are built once.
    """

    settings: Settings
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All variables of the process, also those that are no longer in its environment; never stored or logged."""
    active_runs: ActiveRuns = field(default_factory=ActiveRuns, init=False, repr=False, compare=False)
    """The background runs of this process."""
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)
    _worlds: dict[str, World] = field(default_factory=dict, init=False, repr=False, compare=False)
    _libraries: "dict[UUID, LoadedLibrary]" = field(default_factory=dict, init=False, repr=False, compare=False)
    _plan_libraries: "dict[tuple[UUID, str], LoadedLibrary]" = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _registries: "dict[tuple[Path, int], ToolRegistry]" = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The registry by its file and the file's modification time; holds one entry."""
    _chats: "dict[str, tuple[ModelProfile, ChatClient]]" = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The client of each profile, with the profile that it was built from."""
    _lent_models: "dict[str, tuple[ModelProfile, ChatModel]]" = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The models that the program lends, by the names of their profiles, which are stored nowhere."""

    _redactors: dict[tuple[tuple[Path, int], ...], Redactor] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The redactor by the files that name variables of keys, and their modification times; holds one entry."""

    @cached_property
    def database(self) -> "Database":
        """The database, upgraded to the program's schema."""
        from showhow.db.database import Database  # noqa: PLC0415
        from showhow.db.storage.schema import upgrade  # noqa: PLC0415

        database = Database(self.settings.database_url, lambda: self.redactor)
        upgrade(database)
        return database

    def acting_as(self, actor: "Actor") -> "Services":
        """The same parts with a database that stores the changes of this person, who needs a role for them."""
        # What is built when it is first used is built once for all people.
        _ = self.database, self.encoder, self.telemetry, self._limits_place
        acting = copy(self)
        acting.__dict__["database"] = self.database.acting_as(actor)
        return acting

    @cached_property
    def library_database(self) -> "Database":
        """The database of all that was recorded before, whichever one runs are recorded in."""
        return self.database

    def recording_in(self, store: "Database") -> "Services":
        """The same parts with another database for runs; what was recorded before stays where it is."""
        _ = self.library_database, self.encoder, self.telemetry, self._limits_place
        recording = copy(self)
        recording.__dict__["database"] = store
        return recording

    @property
    def actor(self) -> "Actor | None":
        """The person whose changes are stored; None on the command line. It does not open the database."""
        database: Database | None = self.__dict__.get("database")
        return None if database is None else database.actor

    @property
    def profile_file(self) -> ProfileFile:
        """The stored profiles of language models."""
        return ProfileFile(self.settings.home / PROFILES_FILE_NAME)

    def model_profiles(self) -> dict[str, ModelProfile]:
        """All profiles by name, without keys; the first is the default: that of the environment, else the oldest."""
        settings = self.settings
        stored = self.profile_file.load()
        if settings.model is None:
            return stored
        default = ModelProfile(
            settings.model,
            settings.model_base_url,
            seconds=settings.model_seconds,
            temperature=settings.model_temperature,
            price=TokenPrice(*settings.model_price) if settings.model_price else None,
            key_variable=settings.model_key_variable,
        )
        return {DEFAULT_PROFILE_NAME: default, **stored}

    def model_profile(self, name: str | None = None) -> ModelProfile | None:
        """The profile of this name, by default the first, with its limits and its key; None if there is none at all.

        One that the program lends is never the default. ProfileError if there is no profile of this name.
        """
        if name in self._lent_models:
            return self.complete_profile(self._lent_models[name][0])
        profiles = self.model_profiles()
        if name is not None and name not in profiles:
            known = f"there are {', '.join(profiles)}" if profiles else "there is none"
            raise ProfileError(f"There is no model profile {name!r}; {known}. `showhow models list` lists them.")
        if not profiles:
            return None
        return self.complete_profile(profiles[name or next(iter(profiles))])

    def complete_profile(self, profile: ModelProfile) -> ModelProfile:
        """The profile with its limits, and its key or why the key may not be sent to its server, as it is used."""
        profile = replace(with_known_limits(profile), proxy=self.settings.proxy)
        variable, address = profile.key_variable or self._find_own_variable(profile), find_address(profile)
        if variable is None or address is None:
            return replace(profile, api_key=None)
        advice = f"an administrator can allow it on the Settings page, or with `showhow models allow {profile.name}`"
        refusal = self.secret_table.find_refusal(variable, address, advice)
        key = None if refusal else self.environ.get(variable)
        return replace(profile, key_variable=variable, api_key=key, key_refusal=refusal)

    def _find_own_variable(self, profile: ModelProfile) -> str | None:
        """The usual variable of the provider, if the requests go there; other servers get what their profile names."""
        provider = find_provider(profile)
        variables = provider.key_variables if provider else ()
        if profile.base_url is not None:
            variables = tuple(name for name in variables if self.secret_table.is_owner(name, profile.base_url))
        return next((name for name in variables if self.environ.get(name)), variables[0] if variables else None)

    def find_grant(self, profile: ModelProfile) -> Grant | None:
        """What an administrator has to allow before this profile can be used; None if there is nothing to allow."""
        completed, address = self.complete_profile(profile), find_address(profile)
        variable = completed.key_variable
        if completed.key_refusal is None or variable is None or address is None:
            return None
        is_unsafe = self.secret_table.find_unsafe(variable, address) is not None
        return None if is_unsafe else Grant(variable, str(parse_origin(address)))

    @cached_property
    def secret_table(self) -> SecretTable:
        """The secrets and their destinations; what the settings say about the default model is allowed."""
        settings, stated = self.settings, []
        if settings.model is not None and settings.model_key_variable is not None:
            address = find_address(ModelProfile(settings.model, settings.model_base_url))
            with suppress(InvalidOrigin):
                stated += [Grant(settings.model_key_variable, str(parse_origin(address)))] if address else []
        file = settings.home / DESTINATIONS_FILE_NAME
        return SecretTable(self.environ, file, owners=KEY_OWNERS, stated=stated)

    @property
    def secrets(self) -> list[str]:
        """API keys and other secrets of the environment, which are removed from what is stored, shown and logged."""
        named: set[str] = set()
        # Whoever uses a model is told what is wrong with the file; the names of variables still say which are secret.
        with suppress(ProfileError):
            named |= {profile.key_variable for profile in self.model_profiles().values() if profile.key_variable}
        # A damaged table allows nothing, so that what only it names is not sent either.
        with suppress(DestinationError):
            named |= {grant.variable for grant in self.secret_table.list_grants()}
        return list_secrets(self.environ, named | self._tool_variables())

    def _tool_variables(self) -> set[str]:
        """The variables that the file of external tools names."""
        if not self.tools_path.is_file():
            return set()
        from showhow.tools.external.config import load_external_tools_config  # noqa: PLC0415

        config = load_external_tools_config(self.tools_path)
        entries = [*config.functions.values(), *config.servers.values()]
        tokens = {server.token for server in config.servers.values() if server.token}
        return tokens | {name for entry in entries for name in entry.environment}

    @cached_property
    def _files_of_variables(self) -> tuple[Path, ...]:
        return self.profile_file.path, self.settings.home / DESTINATIONS_FILE_NAME, self.tools_path

    @property
    def redactor(self) -> Redactor:
        """What removes these secrets from every text that is stored, shown or logged."""
        stamp = tuple(map(_file_stamp, self._files_of_variables))
        redactor = self._redactors.get(stamp)
        if redactor is None:
            self._redactors.clear()
            redactor = self._redactors[stamp] = redactor_of(tuple(self.secrets))
        return redactor

    @cached_property
    def encoder(self) -> "SentenceEncoder":
        """The sentence encoder; its model loads when the first text is encoded."""
        from showhow.fewshot_library.encoder import SentenceEncoder  # noqa: PLC0415

        return SentenceEncoder(self.settings.encoder)

    def chat_client(self, profile_name: str | None = None) -> "ChatClient | None":
        """The client of a profile, by default the first; None without profiles; the model loads with its first request.

        ProfileError if there is no profile of this name.
        """
        from showhow.llm.client import build_chat_client  # noqa: PLC0415

        profile = self.model_profile(profile_name)
        if profile is None:
            return None
        with self._lock:
            built = self._chats.get(profile.name)
            if built is None or built[0] != profile or built[1].redactor is not self.redactor:
                file = self.settings.home / LIMITATIONS_FILE_NAME
                lent = self._lent_models.get(profile.name)
                chat = build_chat_client(
                    profile, self._limits_place, self.redactor, None if lent else file, lent and lent[1]
                )
                built = self._chats[profile.name] = profile, chat.tracing(self.telemetry)
            return built[1]

    def lend_model(self, model: Any) -> str:
        """Offer a chat model of LangChain, or a function, while these services last; returns its profile's name."""
        from showhow.llm.lent_models import lend_model  # noqa: PLC0415

        profile, lent = lend_model(model)
        with self._lock:
            self._chats.pop(profile.name, None)
            self._lent_models[profile.name] = profile, lent
        return profile.name

    def check_model(self, profile: ModelProfile) -> "ConnectionReport":
        """Test the connection to a model; what was learnt is forgotten, since its server may be another one now."""
        from showhow.llm.connection_check import check_connection  # noqa: PLC0415

        ServerLimitations(profile, self.settings.home / LIMITATIONS_FILE_NAME).forget()
        with self._lock:
            self._chats.pop(profile.name, None)
        return check_connection(self.complete_profile(profile))

    @cached_property
    def _limits_place(self) -> "Path | LimitsBackend":
        """Where the rate limits of models are shared: in the home, or in a database of several machines."""
        if self.settings.database_url.startswith("sqlite"):
            return self.settings.home
        from showhow.db.rate_limits import DatabaseLimits  # noqa: PLC0415

        return DatabaseLimits(self.database)

    @cached_property
    def telemetry(self) -> "Telemetry | None":
        """The writer of OpenTelemetry spans; None unless the settings turn it on."""
        if self.settings.telemetry == "off":
            return None
        from showhow.llm.telemetry import start_telemetry  # noqa: PLC0415

        with_content = self.settings.telemetry == "content"
        return start_telemetry(
            with_content=with_content, redactor=self.redactor, environ=self.environ, proxy=self.settings.proxy
        )

    def open_world(self, name: str) -> World:
        """Return the world of this name, opened once and reopened after a rebuild."""
        metadata = read_world_metadata(self.settings.worlds_folder, name)
        with self._lock:
            cached = self._worlds.get(name)
            if cached is None or cached.metadata != metadata:
                self._worlds[name] = open_world(self.settings.worlds_folder, name, self._access(), self.secret_table)
            world = self._worlds[name]
        if cached is not None and cached is not world and isinstance(cached.graph, EmbeddedGraph):
            # Its worker processes hold the replaced graph.
            cached.graph.close()
        return world

    def count_articles(self, world: str) -> int | None:
        """The number of articles of a world on this machine; None if it is not here, or cannot tell."""
        count = read_world_metadata(self.settings.worlds_folder, world).get("articles")
        return count if isinstance(count, int) else None

    def tool_context(self, world: str, profile_name: str | None = None) -> "ToolContext":
        """Return the context of tools in this world: the world, the encoder and the model of a profile."""
        from showhow.tools.tool import ToolContext  # noqa: PLC0415

        chat = self.chat_client(profile_name)
        return ToolContext(self.open_world(world), self.encoder, chat, self.telemetry, self.redactor)

    @property
    def tools_path(self) -> Path:
        """The file that declares external tools; it may be missing."""
        return self.settings.tools_file or self.settings.home / TOOLS_FILE_NAME

    def tool_registry(self) -> "ToolRegistry":
        """Return the registry of all tools; the file of external tools is read again after it changed."""
        from showhow.tools.external.config import load_external_tools_config  # noqa: PLC0415
        from showhow.tools.external.confinement import ToolPlaces  # noqa: PLC0415
        from showhow.tools.registry import ToolRegistry  # noqa: PLC0415

        stamp = _file_stamp(self.tools_path)
        with self._lock:
            replaced = [] if stamp in self._registries else [*self._registries.values()]
            if stamp not in self._registries:
                self._registries.clear()
                config = load_external_tools_config(stamp[0]) if stamp[1] or self.settings.tools_file else None
                private = tuple(self.settings.list_private_paths())
                places = ToolPlaces(self.settings.tool_homes_folder, private, proxy=self.settings.proxy)
                self._registries[stamp] = ToolRegistry(config, self.environ, places=places)
            registry = self._registries[stamp]
        for old in replaced:
            old.close()
        return registry

    def open_library(self, reference: str) -> "tuple[Library, LoadedLibrary]":
        """Return the library version NAME or NAME:NUMBER, loaded once and ready to select from."""
        from showhow.db.traces.libraries import find_version, load_demonstrations  # noqa: PLC0415
        from showhow.fewshot_library.library import LoadedLibrary  # noqa: PLC0415

        with self.library_database.read() as session:
            version = find_version(session, reference)
            encoder = self.encoder
            with self._lock:
                if version.id not in self._libraries:
                    path = self.embeddings_path(version.id)
                    self._libraries[version.id] = LoadedLibrary.load(
                        load_demonstrations(session, version.id), encoder, path, self._read_demonstrations
                    )
                return version, self._libraries[version.id]

    def _read_demonstrations(self, ids: "Sequence[UUID]") -> list[str]:
        """All that the traces show in prompts: question, steps and answer."""
        from showhow.db.traces.traces import load_traces  # noqa: PLC0415
        from showhow.reasoners.withheld import write_shown_text  # noqa: PLC0415

        with self.library_database.read() as session:
            return [write_shown_text(record) for record in load_traces(session, ids)]

    def open_demonstrations(self, reference: str, planning_skill: "Skill[Any, Any] | None") -> "LoadedLibrary":
        """The demonstrations of a version for one kind of reasoner.

        A reasoner that plans is shown plans: replies to its planning skill, which are as diverse as their shapes. Other
        reasoners imitate tool calls, so traces of skills are left out.
        """
        from showhow.db.traces.libraries import load_skill_steps  # noqa: PLC0415
        from showhow.fewshot_library.library import list_actions  # noqa: PLC0415
        from showhow.reasoners.skills.skill import read_shot  # noqa: PLC0415

        version, library = self.open_library(reference)
        if planning_skill is None or planning_skill.shape is None:
            entries = [entry for entry in library.demonstrations if not entry.skills]
            if len(entries) == len(library.demonstrations):
                return library
            return library.narrow({entry.trace_id: list_actions(entry) for entry in entries})
        key = version.id, planning_skill.reference
        if key not in self._plan_libraries:
            with self.library_database.read() as session:
                steps = load_skill_steps(session, version.id, planning_skill.name)
            first_steps = {step.trace_id: step for step in reversed(steps)}
            shots = {trace: read_shot(planning_skill, step) for trace, step in first_steps.items()}
            shapes = {trace: planning_skill.shape(shot.reply) for trace, shot in shots.items() if shot is not None}
            self._plan_libraries[key] = library.narrow(shapes)
        return self._plan_libraries[key]

    def library_folder(self, version_id: UUID) -> Path:
        """Return the folder of what is derived from a library version; named by id, since a name may be any text."""
        return self.settings.home / "libraries" / str(version_id)

    def embeddings_path(self, version_id: UUID) -> Path:
        """Return the file that caches a library version's embeddings."""
        return self.library_folder(version_id) / "embeddings.npz"

    def freeze_version(self, name: str, chosen: "DemonstrationFilter", options: "FreezeOptions") -> "Library":
        """Freeze every approved trace that matches; see `freeze_demonstrations` for errors."""
        from showhow.db.traces.libraries import list_candidates  # noqa: PLC0415

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
        from showhow.db.traces.libraries import check_library_name, store_version  # noqa: PLC0415
        from showhow.fewshot_library.library import build_card  # noqa: PLC0415

        with self.database.read() as session:
            check_library_name(session, name)
        card = build_card(demonstrations, chosen, options, self.find_leaks(demonstrations, options.test_split))
        with self.database.begin() as session:
            trace_ids = [demonstration.trace_id for demonstration in demonstrations]
            return store_version(session, name, trace_ids, card, by=options.person_id)

    def find_leaks(self, demonstrations: "Sequence[Demonstration]", test_split: str) -> "list[Leak]":
        """Those whose question is, or nearly is, one of the test split."""
        from showhow.db.traces.libraries import list_split_questions  # noqa: PLC0415
        from showhow.fewshot_library.library import find_leaks  # noqa: PLC0415

        with self.database.read() as session:
            test_questions = list_split_questions(session, test_split)
        # Encoding takes seconds, so no transaction is open meanwhile, and nothing is encoded without a test split.
        return find_leaks(demonstrations, test_questions, self.encoder) if test_questions else []

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
        shared_limits = self.__dict__.get("_limits_place")
        if shared_limits is not None and not isinstance(shared_limits, Path):
            shared_limits.close()
        if "database" in self.__dict__:
            self.database.close()

    def _access(self) -> Access:
        return Access(
            self.settings.contact, offline=self.settings.offline, as_of=self.settings.as_of, proxy=self.settings.proxy
        )


def _file_stamp(file: Path) -> tuple[Path, int]:
    try:
        return file, file.stat().st_mtime_ns
    except OSError:
        return file, 0
