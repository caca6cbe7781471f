"""The list of library versions and of all approved traces, one of which is open."""

from collections import Counter
from functools import lru_cache

import streamlit as st

from app.widgets.plain_text import escape_markdown
from app.widgets.selected_library import SelectedLibrary
from app.widgets.url_state import APPROVED, go_to_library
from db import libraries
from db.database import Database
from db.libraries import DemonstrationFilter, LibraryVersion
from runs.services import Services

RECENT_VERSIONS, MAX_OLDER_VERSIONS = 3, 50
"""Versions of a library that are always shown, and the most older ones that are listed."""


def list_versions(database: Database) -> list[LibraryVersion]:
    """Every version, by name, the latest version of each library first."""
    with database.read() as session:
        return _cached_versions(database, libraries.count_versions(session))


@lru_cache(maxsize=2)
def _cached_versions(database: Database, _count: int) -> list[LibraryVersion]:
    with database.read() as session:
        return libraries.list_versions(session)


def choose_library(services: Services) -> SelectedLibrary:
    """Draw the list of libraries; gives the one that the link names, else all approved traces."""
    versions = list_versions(services.database)
    every = [SelectedLibrary(services, None), *(SelectedLibrary(services, version) for version in versions)]
    named = str(st.query_params.get("library", APPROVED))
    chosen = next((library for library in every if named in (library.reference, _name_if_latest(library, every))), None)
    if chosen is None and named != APPROVED:
        st.warning(escape_markdown(f"There is no library {named!r}; choose one from the list."))
    chosen = chosen or every[0]
    older = [library for library in _older_versions(every) if library is not chosen]
    for library in every:
        if library not in older:
            _show_row(library, chosen=library is chosen)
    if older:
        with st.expander(pluralize(len(older), "older version")):
            for library in older[:MAX_OLDER_VERSIONS]:
                _show_row(library, chosen=False)
            if len(older) > MAX_OLDER_VERSIONS:
                st.caption("`showhow library list` names all; a link can name any of them.")
    if len(every) == 1:
        st.caption("No version is frozen yet. Freeze one: questions are answered with the demonstrations of a version.")
    return chosen


def _name_if_latest(library: SelectedLibrary, every: list[SelectedLibrary]) -> str | None:
    """The bare name, which stands for the latest version of it."""
    if library.version is None:
        return APPROVED
    name = library.version.name
    latest = next(other for other in every if other.version is not None and other.version.name == name)
    return name if latest is library else None


def _older_versions(every: list[SelectedLibrary]) -> list[SelectedLibrary]:
    """All but the latest few versions of each library."""
    seen: Counter[str] = Counter()
    older = []
    for library in every:
        if library.version is not None:
            seen[library.version.name] += 1
            if seen[library.version.name] > RECENT_VERSIONS:
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
            else f"{pluralize(library.count(DemonstrationFilter()), 'trace')}, not frozen"
        )


def _format_caption(version: LibraryVersion) -> str:
    parts = [
        pluralize(version.demonstrations, "demonstration"),
        f"{version.frozen_at:%d %b %Y} by {version.card.get('by', 'unknown')}",
    ]
    licence = str(version.card.get("licence", ""))
    parts += [licence] if licence else []
    parts += ["includes test questions"] if version.card.get("leaks") else []
    return " · ".join(parts)


def pluralize(count: int, noun: str) -> str:
    """The count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
