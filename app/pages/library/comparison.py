"""The difference between two library versions: demonstrations added and removed, and counts side by side."""

from collections.abc import Sequence
from uuid import UUID

import streamlit as st

from app.pages.library.demonstrations import open_demonstration
from app.widgets.library_choice import SelectedLibrary, list_versions
from app.widgets.plain_text import escape_markdown
from app.widgets.table import TableCell, show_table
from db.libraries import Demonstration, LibraryVersion
from fewshot_library.library import LibraryStatistics

MAX_LISTED_CHANGES = 500
"""Maximum demonstrations listed in a table; the rest is counted."""


def show_comparison(library: SelectedLibrary) -> None:
    """Ask for an earlier version, and draw the difference from it to this one."""
    services = library.services
    others = [version for version in list_versions(services.database) if version.id != library.id]
    if not others:
        st.info("There is no other version to compare with. Freeze another one; earlier versions are kept.")
        return
    # The options are plain versions, since Streamlit deep-copies options and services cannot be copied.
    chosen_version = st.selectbox(
        "Compare with",
        others,
        index=_default_earlier_index(library, others),
        format_func=lambda other: SelectedLibrary(services, other).title,
        key=f"compare_{library.reference or 'approved'}",
        width=420,
    )
    earlier = SelectedLibrary(services, chosen_version)
    difference = library.difference(earlier)
    st.markdown(
        f"From {escape_markdown(earlier.title)} to {escape_markdown(library.title)}: "
        f"**{len(difference.added):,} added**, **{len(difference.removed):,} removed**, {difference.kept:,} kept."
    )
    if not difference.added and not difference.removed:
        st.caption("Both contain the same demonstrations.")
    _show_changes("Added", difference.added, "added")
    _show_changes("Removed", difference.removed, "removed")
    st.subheader("Counts", anchor=False)
    rows = _count_rows(earlier.statistics(), library.statistics())
    with st.container(width="content"):
        show_table(("", earlier.title, library.title), rows, key="compare_counts", label="Counts of both versions")
    if chosen_id := st.session_state.pop("compared", None):
        open_demonstration(services.database, UUID(chosen_id))


def _default_earlier_index(library: SelectedLibrary, others: Sequence[LibraryVersion]) -> int:
    """The index of the previous version of this library, else 0."""
    if library.version is None:
        return 0
    name, number = library.version.name, library.version.number
    same_library = (index for index, other in enumerate(others) if other.name == name)
    return next((index for index in same_library if others[index].number < number), 0)


def _show_changes(title: str, demonstrations: Sequence[Demonstration], key: str) -> None:
    if not demonstrations:
        return
    st.subheader(f"{title} ({len(demonstrations):,})", anchor=False)
    rows = [
        [
            TableCell(demonstration.question, go=str(demonstration.trace_id)),
            TableCell(demonstration.project),
            TableCell(demonstration.author or demonstration.reasoner),
            TableCell(f"{len(demonstration.tools)}", number=True),
        ]
        for demonstration in demonstrations[:MAX_LISTED_CHANGES]
    ]
    show_table(("question", "project", "by", "actions"), rows, key=f"compare_{key}", label=title, go=_request_open)
    if len(demonstrations) > MAX_LISTED_CHANGES:
        st.caption(f"and {len(demonstrations) - MAX_LISTED_CHANGES:,} more")


def _request_open(trace: str) -> None:
    st.session_state["compared"] = trace


def _count_rows(before: LibraryStatistics, after: LibraryStatistics) -> list[list[TableCell | None]]:
    counts = {
        "demonstrations": (before.demonstrations, after.demonstrations),
        "different sequences of actions": (before.sequences, after.sequences),
        "by people": (before.people, after.people),
        "by models": (before.models, after.models),
        "unrated": (before.unrated, after.unrated),
        "kinds of questions": (len(before.kinds), len(after.kinds)),
        **{
            f"{tool}, actions": (before.tools.get(tool, 0), after.tools.get(tool, 0))
            for tool in _tool_names(before, after)
        },
    }
    return [
        [TableCell(name), TableCell(f"{old:,}", number=True), TableCell(f"{new:,}", number=True)]
        for name, (old, new) in counts.items()
    ]


def _tool_names(before: LibraryStatistics, after: LibraryStatistics) -> list[str]:
    return list(dict.fromkeys([*before.tools, *after.tools]))
