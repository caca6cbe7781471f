"""Two sets of demonstrations side by side: what came, what went, and how their counts differ."""

from collections.abc import Sequence
from uuid import UUID

import streamlit as st

from app.components.demonstrations import open_demonstration
from app.components.plain import plain
from app.components.selected_library import SelectedLibrary
from app.components.table import Entry, show_table
from app.components.version_list import known_versions
from db.libraries import Demonstration
from fewshot_library.statistics import Statistics

LISTED = 500
"""Demonstrations of a table; more are only counted."""


def show_comparison(library: SelectedLibrary) -> None:
    """Ask for the other one, and draw the difference from it to this one."""
    others = [SelectedLibrary(each) for each in known_versions() if each.id != library.id]
    if not others:
        st.info("There is no other version to compare with. Freeze another one; nothing of the earlier is lost.")
        return
    earlier = st.selectbox(
        "What has changed since",
        others,
        index=_earlier(library, others),
        format_func=lambda each: each.title,
        key=f"compare_{library.reference or 'approved'}",
        width=420,
    )
    changed = library.difference(earlier)
    st.markdown(
        f"From {plain(earlier.title)} to {plain(library.title)}: **{len(changed.added):,} added**, "
        f"**{len(changed.removed):,} removed**, {changed.kept:,} kept."
    )
    if not changed.added and not changed.removed:
        st.caption("Both hold the same demonstrations.")
    _list("Added", changed.added, "added")
    _list("Removed", changed.removed, "removed")
    st.subheader("Counts", anchor=False)
    rows = _rows(earlier.statistics(), library.statistics())
    with st.container(width="content"):
        show_table(("", earlier.title, library.title), rows, key="compare_counts", label="Counts of both")
    if chosen := st.session_state.pop("compared", None):
        open_demonstration(UUID(chosen))


def _earlier(library: SelectedLibrary, others: Sequence[SelectedLibrary]) -> int:
    """The version before this one, else the first."""
    if library.version is None:
        return 0
    name, number = library.version.name, library.version.number
    mine = (place for place, each in enumerate(others) if each.version and each.version.name == name)
    return next((place for place in mine if (others[place].version or library.version).number < number), 0)


def _list(title: str, found: Sequence[Demonstration], key: str) -> None:
    if not found:
        return
    st.subheader(f"{title} ({len(found):,})", anchor=False)
    rows = [
        [
            Entry(each.question, go=str(each.trace_id)),
            Entry(each.project),
            Entry(each.author or each.reasoner),
            Entry(f"{len(each.tools)}", number=True),
        ]
        for each in found[:LISTED]
    ]
    show_table(("question", "project", "by", "actions"), rows, key=f"compare_{key}", label=title, go=_open)
    if len(found) > LISTED:
        st.caption(f"and {len(found) - LISTED:,} more")


def _open(trace: str) -> None:
    st.session_state["compared"] = trace


def _rows(before: Statistics, after: Statistics) -> list[list[Entry | None]]:
    counts = {
        "demonstrations": (before.demonstrations, after.demonstrations),
        "different sequences of actions": (before.sequences, after.sequences),
        "by people": (before.people, after.people),
        "by models": (before.models, after.models),
        "without stars": (before.unrated, after.unrated),
        "kinds of questions": (len(before.kinds), len(after.kinds)),
        **{f"{tool}, actions": (before.tools.get(tool, 0), after.tools.get(tool, 0)) for tool in _tools(before, after)},
    }
    return [
        [Entry(name), Entry(f"{old:,}", number=True), Entry(f"{new:,}", number=True)]
        for name, (old, new) in counts.items()
    ]


def _tools(before: Statistics, after: Statistics) -> list[str]:
    return list(dict.fromkeys([*before.tools, *after.tools]))
