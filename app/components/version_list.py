"""The libraries of this store, version by version, and all approved traces; one of them chosen."""

from functools import lru_cache

import streamlit as st

from app.components.library_places import APPROVED, go_to_library
from app.components.plain import plain
from app.components.selected_library import SelectedLibrary
from app.resources import database
from db import libraries
from db.libraries import Version, Wanted


def known_versions() -> list[Version]:
    """Every version, by name, the latest of each first."""
    with database().read() as session:
        return _versions(libraries.version_count(session))


@lru_cache(maxsize=2)
def _versions(_count: int) -> list[Version]:
    with database().read() as session:
        return libraries.versions(session)


def choose_library() -> SelectedLibrary:
    """Draw the list; what the address names, else all approved traces."""
    every = [SelectedLibrary(None), *(SelectedLibrary(each) for each in known_versions())]
    named = str(st.query_params.get("library", APPROVED))
    chosen = next((each for each in every if named in (each.reference, _latest_of(each, every))), None)
    if chosen is None and named != APPROVED:
        st.warning(plain(f"There is no library {named!r}; choose one from the list."))
    chosen = chosen or every[0]
    for each in every:
        _row(each, chosen=each is chosen)
    if len(every) == 1:
        st.caption("No version is frozen yet. Freeze one: questions are answered with the demonstrations of a version.")
    return chosen


def _latest_of(library: SelectedLibrary, every: list[SelectedLibrary]) -> str | None:
    """The bare name, which stands for the latest version of it."""
    if library.version is None:
        return APPROVED
    name = library.version.name
    latest = next(each for each in every if each.version is not None and each.version.name == name)
    return name if latest is library else None


def _row(library: SelectedLibrary, *, chosen: bool) -> None:
    version = library.version
    reference = library.reference or APPROVED
    with st.container(key=f"library_{version.id.hex if version else APPROVED}", gap=None):
        st.button(
            plain(library.reference) or "All approved",
            key=f"open_library_{reference}",
            type="primary" if chosen else "tertiary",
            width="stretch",
            on_click=go_to_library,
            args=(reference,),
        )
        st.caption(plain(_note(version)) if version else f"{library.count(Wanted()):,} traces, not frozen")


def _note(version: Version) -> str:
    parts = [
        f"{version.demonstrations:,} demonstrations",
        f"{version.frozen_at:%d %b %Y} by {version.card.get('by', 'nobody known')}",
    ]
    licence = str(version.card.get("licence", ""))
    parts += [licence] if licence else []
    parts += ["gives away tested questions"] if version.card.get("leaks") else []
    return " · ".join(parts)
