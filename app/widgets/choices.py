"""Choices: of a library, of a project's tools, of the place of a question, of a comparison with gold."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

import streamlit as st
from pydantic import ValidationError

from showhow.app.widgets.page_layout import escape_markdown, format_sentence
from showhow.app.widgets.table import TableCell, show_table
from showhow.app.widgets.url_state import APPROVED, go_to_library
from showhow.db.database import Database, StoreError
from showhow.db.models import Project
from showhow.db.people.gold_visibility import is_gold_of_world_visible
from showhow.db.people.users import ADMIN, has_acting_role
from showhow.db.questions.projects import ASKED_IN, list_projects, set_tools
from showhow.db.questions.question_list import list_question_kinds
from showhow.db.traces import libraries
from showhow.db.traces.libraries import Demonstration, DemonstrationFacets, DemonstrationFilter, LibraryVersion
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.comparison.gold_comparison import (
    can_compare,
    compare_with_gold,
    find_gold_reasoning,
    summarize_verdicts,
)
from showhow.evaluation.value_format import format_count
from showhow.fewshot_library.library import LibraryDifference, LibraryStatistics, compare_versions, compute_statistics
from showhow.fiction.generator.world_files import FACT_SOURCES_FILE
from showhow.folder_names import is_safe_name
from showhow.oracles.reasoning import GoldReasoning
from showhow.runs.services import Services
from showhow.settings import DEFAULT_LIBRARY
from showhow.tools.registry import ToolRegistry, name_tools_by_title
from showhow.worlds.folder import list_world_names
from showhow.worlds.open import NO_WORLD, read_world_metadata

LibraryStamp = tuple[UUID | None, tuple[int, UUID | None]]
"""Cache key: the id of the version, and a fingerprint of the approved traces."""
LARGE_LIBRARY_SIZE = 20_000
"""From this many approved traces on, the cache is refreshed once per thousand approvals, not after each."""
AWAITED_EVERY_SECONDS = 2.0
_FROZEN_STAMP: tuple[int, UUID | None] = (0, None)


@dataclass(frozen=True, slots=True)
class SelectedLibrary:
    """A library version, or all approved traces if `version` is None."""

    services: Services
    version: LibraryVersion | None

    @property
    def reference(self) -> str:
        """NAME:NUMBER, as in URLs and on the command line; empty for all approved traces."""
        return f"{self.version.name}:{self.version.number}" if self.version is not None else ""

    @property
    def title(self) -> str:
        """Its title on the page."""
        return f"{self.version.name}, version {self.version.number}" if self.version else "All approved demonstrations"

    @property
    def id(self) -> UUID | None:
        """The id of the version."""
        return self.version.id if self.version is not None else None

    def stamp(self) -> LibraryStamp:
        """A cache key that changes when the demonstrations may have changed."""
        if self.version is not None:
            return self.version.id, _FROZEN_STAMP
        approved, latest = self._approved_stamp()
        return None, ((approved, latest) if approved < LARGE_LIBRARY_SIZE else (approved // 1000 * 1000, None))

    def _approved_stamp(self) -> tuple[int, UUID | None]:
        with self.services.database.read() as session:
            return libraries.approval_fingerprint(session)

    def count(self, conditions: DemonstrationFilter) -> int:
        """Count the matching demonstrations."""
        if conditions == DemonstrationFilter():
            return self.version.demonstrations if self.version is not None else self._approved_stamp()[0]
        if conditions.repeats is not None:
            # Trying a demonstration changes no version.
            with self.services.database.read() as session:
                return libraries.count_demonstrations(session, conditions, self.id)
        return _cached_count(self.services.database, self.stamp(), conditions)

    def page(
        self, conditions: DemonstrationFilter, start: int, limit: int, *, first_project: str | None = None
    ) -> list[Demonstration]:
        """Return up to `limit` matching demonstrations from the offset `start`, those of a project first."""
        with self.services.database.read() as session:
            return libraries.list_demonstrations(
                session, conditions, version_id=self.id, start=start, limit=limit, first_project=first_project
            )

    def choices(self) -> DemonstrationFacets:
        """The projects and kinds to filter by."""
        return _cached_choices(self.services.database, self.stamp())

    def statistics(self) -> LibraryStatistics:
        """Counts, and the gaps compared with the questions of the projects."""
        return _cached_statistics(self.services.database, self.services.tool_registry(), self.stamp())

    def difference(self, earlier: "SelectedLibrary") -> LibraryDifference:
        """The demonstrations added and removed since the earlier selection."""
        return _cached_difference(self.services.database, earlier.stamp(), self.stamp())


@lru_cache(maxsize=256)
def _cached_count(database: Database, stamp: LibraryStamp, conditions: DemonstrationFilter) -> int:
    with database.read() as session:
        return libraries.count_demonstrations(session, conditions, stamp[0])


@lru_cache(maxsize=64)
def _cached_choices(database: Database, stamp: LibraryStamp) -> DemonstrationFacets:
    with database.read() as session:
        return libraries.list_facets(session, stamp[0])


@lru_cache(maxsize=64)
def _cached_statistics(database: Database, registry: ToolRegistry, stamp: LibraryStamp) -> LibraryStatistics:
    with database.read() as session:
        kinds = list_question_kinds(session, libraries.list_facets(session, stamp[0]).projects)
    return compute_statistics(load_demonstrations(database, stamp), tools=registry.all_tools(), kinds=kinds)


@lru_cache(maxsize=16)
def _cached_difference(database: Database, earlier: LibraryStamp, later: LibraryStamp) -> LibraryDifference:
    return compare_versions(load_demonstrations(database, earlier), load_demonstrations(database, later))


def load_demonstrations(database: Database, stamp: LibraryStamp) -> list[Demonstration]:
    """Load all demonstrations, uncached."""
    with database.read() as session:
        if stamp[0] is None:
            return libraries.list_candidates(session, DemonstrationFilter())
        return libraries.load_demonstrations(session, stamp[0])


RECENT_VERSIONS, MAX_OLDER_VERSIONS = 3, 50
"""Versions of a library that are always shown, and the maximum number of older ones that are listed."""


def list_versions(database: Database) -> list[LibraryVersion]:
    """Return every version by name, the latest version of each library first."""
    with database.read() as session:
        return _cached_versions(database, libraries.list_version_names(session))


@lru_cache(maxsize=2)
def _cached_versions(database: Database, _count: int) -> list[LibraryVersion]:
    with database.read() as session:
        return libraries.list_versions(session)


def choose_library(services: Services) -> SelectedLibrary:
    """Draw the list of libraries; returns the one in the link, else all approved traces."""
    versions = list_versions(services.database)
    choices = [SelectedLibrary(services, None), *(SelectedLibrary(services, version) for version in versions)]
    reference = str(st.query_params.get("library", APPROVED))
    chosen = next(
        (library for library in choices if reference in (library.reference, _name_if_latest(library, choices))), None
    )
    if chosen is None and reference != APPROVED:
        st.warning(escape_markdown(f"There is no library {reference!r}. Choose one from the list."))
    chosen = chosen or choices[0]
    older = [library for library in _older_versions(choices) if library is not chosen]
    for library in choices:
        if library not in older:
            _show_row(library, chosen=library is chosen)
    if older:
        with st.expander(format_count(len(older), "older version")):
            for library in older[:MAX_OLDER_VERSIONS]:
                _show_row(library, chosen=False)
            if len(older) > MAX_OLDER_VERSIONS:
                st.caption("`showhow library list` lists all of them; a link can open any of them.")
    if len(choices) == 1:
        st.caption("No version is frozen yet. Freeze one, since reasoners use the demonstrations of a version.")
    return chosen


def _name_if_latest(library: SelectedLibrary, choices: list[SelectedLibrary]) -> str | None:
    """The library's name without number, if this is its latest version; the name alone is a reference to it."""
    if library.version is None:
        return APPROVED
    name = library.version.name
    latest = next(other for other in choices if other.version is not None and other.version.name == name)
    return name if latest is library else None


def _older_versions(choices: list[SelectedLibrary]) -> list[SelectedLibrary]:
    """All but the latest few versions of each library."""
    version_counts: Counter[str] = Counter()
    older = []
    for library in choices:
        if library.version is not None:
            version_counts[library.version.name] += 1
            if version_counts[library.version.name] > RECENT_VERSIONS:
                older.append(library)
    return older


def _show_row(library: SelectedLibrary, *, chosen: bool) -> None:
    version = library.version
    reference = library.reference or APPROVED
    with st.container(key=f"library_{version.id.hex if version else APPROVED}", gap=None):
        st.button(
            escape_markdown(library.reference) or "All approved",
            key=f"open_library_{reference}",
            type="primary" if chosen else "tertiary",
            width="stretch",
            on_click=go_to_library,
            args=(reference,),
        )
        st.caption(
            escape_markdown(_format_caption(version))
            if version
            else f"{format_count(library.count(DemonstrationFilter()), 'trace')}, not frozen"
        )


def _format_caption(version: LibraryVersion) -> str:
    parts = [
        format_count(version.demonstrations, "demonstration"),
        f"{version.frozen_at:%d %b %Y} by {version.card.get('by', 'unknown')}",
    ]
    licence = str(version.card.get("licence", ""))
    parts += [licence] if licence else []
    parts += ["includes test questions"] if version.card.get("leaks") else []
    return " · ".join(parts)


def choose_tools(services: Services, project: Project) -> None:
    """Draw the choice of the project's tools; every change is saved immediately."""
    registry = services.tool_registry()
    tools = registry.all_tools()
    # A tool that cannot be loaded stays selected until a person removes it.
    options = [*tools, *(name for name in project.tools if name not in tools)]
    key = f"tools_{project.id.hex}"

    def save() -> None:
        chosen = [name for name in options if name in st.session_state[key]]
        try:
            with services.database.begin() as session:
                set_tools(session, project.name, chosen)
        except StoreError as error:
            st.session_state["notice"] = str(error)
            st.session_state[key] = list(project.tools)

    with services.database.read() as session:
        is_refused = not has_acting_role(session, ADMIN)
    st.multiselect(
        "Tools",
        options,
        default=project.tools,
        key=key,
        disabled=is_refused,
        on_change=save,
        format_func=lambda name: tools[name].title if name in tools else f"{name} (not available)",
        placeholder="All built-in tools",
        help="The tools offered to annotators and agents, in this order. "
        + ("If none is selected, all built-in tools." if project.world else "At least one, as there is no world."),
    )
    if is_refused:
        st.caption("An administrator can change the tools of a project.")
    st.caption(
        f"Tools of others (LangChain, functions, MCP servers) are declared in "
        f"{escape_markdown(str(services.tools_path))}. `showhow tools check` checks them."
    )
    offered = [tools[name] for name in project.tools or tools if name in tools]
    rows = [
        [
            TableCell(tool.title, whole=True),
            TableCell(name_tools_by_title(tool.description.split("\n", maxsplit=1)[0])),
            TableCell(tool.name, hint=tool.origin or ""),
        ]
        for tool in offered
    ]
    columns = ("tool", "what it does", "name in traces")
    show_table(columns, rows, key=f"offered_{project.id.hex}", label="Tools of the project")
    show_missing_tools(registry, project.tools, tools)


def show_missing_tools(registry: ToolRegistry, names: Sequence[str], offered: Collection[str]) -> None:
    """Show why any of these tools cannot be called, and how those come that are not offered."""
    problems = dict.fromkeys(problem for name in names if (problem := registry.problem(name)) is not None)
    for problem in problems:
        st.warning(format_sentence(problem), icon=":material/power_off:")
    missing = [name for name in names if name not in offered]
    if problems or missing:
        show_retry(registry, missing)


def show_retry(registry: ToolRegistry, names: Sequence[str]) -> None:
    """Have the tools of servers that still start come by themselves; draw a button that loads others again."""
    if registry.is_starting or registry.find_all(names):
        _await_tools(registry, names)
    else:
        st.button("Try again", key="try_tools_again", on_click=registry.reload_failed)


@st.fragment(run_every=AWAITED_EVERY_SECONDS)
def _await_tools(registry: ToolRegistry, names: Sequence[str]) -> None:
    """Draw the whole page anew once one of the tools is there, or none is still to come."""
    if not registry.is_starting or registry.find_all(names):
        st.rerun()


_PROJECT_PLACE = "project:"


def list_places_to_ask(services: Services) -> dict[str, str]:
    """What a question can be asked of: worlds, and projects that have none; titles by the value of a choice."""
    with services.database.read() as session:
        without_world = [project.name for project in list_projects(session) if project.world == NO_WORLD]
    names = [name for name in without_world if not name.startswith(ASKED_IN)]
    worlds = {name: name for name in list_world_names(services.settings.worlds_folder)}
    return worlds | {f"{_PROJECT_PLACE}{name}": f"Project {name}" for name in names}


def place_to_ask(project: Project) -> str:
    """The value of the choice for questions of this project, or of one that collects what is asked in another."""
    name = project.name.removeprefix(ASKED_IN)
    return project.world or f"{_PROJECT_PLACE}{name}"


def parse_place(place: str) -> tuple[str, str | None]:
    """The world of a choice, or NO_WORLD and the name of its project."""
    return (NO_WORLD, place.removeprefix(_PROJECT_PLACE)) if place.startswith(_PROJECT_PLACE) else (place, None)


def list_library_references(database: Database, place: str) -> list[str]:
    """NAME:NUMBER of all versions, those with demonstrations of the place first, then the default library."""
    world, project = parse_place(place)

    def rank(version: LibraryVersion) -> tuple[bool, bool]:
        shown = version.card.get("projects" if project else "worlds", ())
        return (project or world) not in shown, version.name != DEFAULT_LIBRARY

    return [f"{version.name}:{version.number}" for version in sorted(list_versions(database), key=rank)]


MAX_GOLD_PEOPLE = 200_000
"""Largest world whose runs are compared with gold reasoning on a page; it reads all facts."""


def compare_on_request(services: Services, record: TraceRecord) -> dict[str, Any] | None:
    """Draw the switch "Compare with gold" for a run that can be compared; returns the comparison if it is on."""
    trace, world = record.trace, record.project.world
    worlds = services.settings.worlds_folder
    is_generated = is_safe_name(world) and (worlds / world / FACT_SOURCES_FILE).is_file()
    with services.database.read() as session:
        shows_gold = is_gold_of_world_visible(session, world)
    if not is_generated or not can_compare(trace.reasoner) or not shows_gold:
        return None
    if not st.toggle("Compare with gold", key=f"gold_{trace.id.hex}", help="Marks the first part that went wrong."):
        return None
    about = read_world_metadata(worlds, world)
    if int(about.get("people", 0)) > MAX_GOLD_PEOPLE:
        st.caption(f"The world {escape_markdown(world)} is too large to read all its facts for a comparison.")
        return None
    gold = _load_gold_reasoning(services, world, record.question.text, f"{worlds} {about.get('hash')}")
    if gold is None:
        st.caption("The question is not one of the generated questions of this world, so there is no gold reasoning.")
        return None
    try:
        return summarize_verdicts(compare_with_gold(trace.reasoner, record.steps, gold))
    except (ValidationError, LookupError):
        st.caption("The stored replies do not have the form that this method has now, so they cannot be compared.")
        return None


@st.cache_resource(max_entries=2, show_spinner="Reading the facts of the world …")
def _load_gold_reasoning(
    _services: Services,
    world: str,
    question: str,
    build: str,  # noqa: ARG001 - a part of the cache's key: another build has other facts
) -> GoldReasoning | None:
    return find_gold_reasoning(_services, world, question)
