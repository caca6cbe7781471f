"""The overview of a library: its card, statistics, gaps and map of action sequences, and two versions compared."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
import streamlit as st

from showhow.app.pages.library.demonstrations import open_demonstration
from showhow.app.widgets.choices import LibraryStamp, SelectedLibrary, list_versions, load_demonstrations
from showhow.app.widgets.page_layout import escape_markdown
from showhow.app.widgets.selection_form import format_actions
from showhow.app.widgets.table import BAR_COLOUR, TableCell, show_bar_chart, show_table
from showhow.db.database import Database
from showhow.db.traces.libraries import Demonstration, LibraryVersion
from showhow.fewshot_library.library import LibraryStatistics, list_actions
from showhow.fewshot_library.sequence_similarity import SequenceMap, build_sequence_map, encode_actions
from showhow.tools.registry import tool_title

MAX_DRAWN_SEQUENCES = 400
"""Maximum sequences on the map; the most used are drawn."""
MAX_LISTED_KINDS = 12
NEARLY_ALL = 0.995
"""A share that rounds to 100 %."""
CARD_LABELS = {
    "by": "frozen by",
    "demonstrations": "demonstrations",
    "authors": "recorded by",
    "leaks": "test questions",
}
"""Labels of the entries of a card."""
MAX_LISTED_CHANGES = 500
"""Maximum demonstrations listed in a table; the rest is counted."""


def show_library_overview(library: SelectedLibrary) -> None:
    """Draw the overview, or a hint if there is no demonstration."""
    with st.spinner("Counting …"):
        statistics = library.statistics()
    if not statistics.demonstrations:
        st.info("There is no demonstration yet. Approve traces on the Review page first.")
        return
    with st.container(horizontal=True, key="sizes"):
        for name, count in (
            ("demonstrations", statistics.demonstrations),
            ("different sequences of actions", statistics.sequences),
            ("by people", statistics.people),
            ("by models", statistics.models),
        ):
            st.metric(name, f"{count:,}", width="content")
    left, right = st.columns([1.2, 1], gap="large") if library.version is not None else (st.container(), st.container())
    if library.version is not None:
        with left:
            _show_card(library.version.card)
    with right:
        _show_gaps(statistics)
    _show_counts(statistics)
    _show_map(library)


def _show_card(card: Mapping[str, Any]) -> None:
    st.header("Card", anchor=False)
    shown = dict(card) | {"tools": [tool_title(name) for name in card.get("tools", ())]}
    values = {name: _format_value(value) for name, value in shown.items() if value not in ("", [], {}, None)}
    rows = [[TableCell(CARD_LABELS.get(name, name)), TableCell(value)] for name, value in values.items()]
    show_table(("what", "value"), rows, key="card", label="The card of this version")
    if not card.get("licence"):
        st.caption("The card names no licence, so its terms of use are unknown.")


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {entry}" for name, entry in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _show_gaps(statistics: LibraryStatistics) -> None:
    st.header("Gaps", anchor=False)
    gaps = []
    if statistics.missing_kinds:
        kinds = ", ".join(statistics.missing_kinds[:MAX_LISTED_KINDS]) + (
            "…" if len(statistics.missing_kinds) > MAX_LISTED_KINDS else ""
        )
        gaps.append(f"Kinds of questions in its projects without a demonstration: {kinds}.")
    if statistics.unused_tools:
        gaps.append(f"Tools that no demonstration uses: {', '.join(map(tool_title, statistics.unused_tools))}.")
    if statistics.unrated:
        gaps.append(f"{statistics.unrated:,} of {statistics.demonstrations:,} demonstrations are unrated.")
    if not statistics.kinds:
        gaps.append("No question has a kind, so missing kinds cannot be determined.")
    if gaps:
        st.markdown("\n".join(f"- {escape_markdown(gap)}" for gap in gaps))
    else:
        st.caption("Every tool is used, every kind of question has a demonstration, and every demonstration is rated.")


def _show_counts(statistics: LibraryStatistics) -> None:
    st.header("Contents", anchor=False)
    charts: list[tuple[str, str, dict[str, int], str]] = [
        ("Length", "actions", {str(length): count for length, count in statistics.lengths.items()}, "demonstrations"),
        ("Tools", "tool", {tool_title(name): count for name, count in statistics.tools.items()}, "actions"),
        ("Kinds of questions", "kind", statistics.kinds, "demonstrations"),
        ("Ratings (mean, rounded)", "stars", {str(s): c for s, c in statistics.ratings.items()}, "demonstrations"),
        ("Worlds", "world", statistics.worlds, "demonstrations"),
    ]
    with st.container(horizontal=True, gap="medium"):
        for title, unit, counts, counted_noun in charts:
            # Most libraries have one world, which the card names.
            if len(counts) > (1 if title == "Worlds" else 0):
                top_counts = dict(list(counts.items())[:25])
                show_bar_chart(title, unit, top_counts, key=title.split()[0].rstrip(",").lower(), counted=counted_noun)


@lru_cache(maxsize=16)
def _compute_map(database: Database, stamp: LibraryStamp) -> tuple[SequenceMap, list[dict[str, Any]]]:
    """Compute the map, and the rows of its most used sequences."""
    sequences = [list_actions(demonstration) for demonstration in load_demonstrations(database, stamp)]
    encoded = encode_actions(sequences)
    sequence_map = build_sequence_map(encoded)
    usage_counts = np.bincount(encoded.groups.labels, minlength=len(encoded.sequences))
    first_rows = encoded.groups.order[encoded.groups.starts]
    return sequence_map, [
        {
            "x": round(float(sequence_map.coordinates[index, 0]), 4),
            "y": round(float(sequence_map.coordinates[index, 1]), 4),
            "demonstrations": int(usage_counts[index]),
            "actions": format_actions(sequences[int(first_rows[index])]),
        }
        for index in np.argsort(-usage_counts, kind="stable")[:MAX_DRAWN_SEQUENCES].tolist()
    ]


def _show_map(library: SelectedLibrary) -> None:
    st.header("Map of the action sequences", anchor=False)
    sequence_map, rows = _compute_map(library.services.database, library.stamp())
    if len(rows) == 1:
        st.caption(f"All demonstrations have the same sequence of actions: {escape_markdown(rows[0]['actions'])}.")
        return
    remainder = (
        "two dimensions cannot show the rest"
        if sequence_map.explained_variance[1] < NEARLY_ALL
        else "nothing is left out"
    )
    st.caption(
        "Each circle is one sequence of actions; its area is the number of demonstrations. Close circles are similar "
        f"sequences. The map shows {sequence_map.explained_variance[1]:.0%} of their distances; {remainder}."
    )
    with st.container(horizontal=True, gap="medium"):
        st.vega_lite_chart(
            _map_chart(rows), width=500, key="map", alt="Map of the sequences of actions; the table lists them"
        )
        table = [
            [
                TableCell(row["actions"]),
                TableCell(f"{row['demonstrations']:,}", number=True),
                TableCell(f"{row['x']:.2f}", number=True),
                TableCell(f"{row['y']:.2f}", number=True),
            ]
            for row in rows
        ]
        with st.container(width=500):
            show_table(("actions", "times", "x", "y"), table, key="map_table", label="Sequences of actions on the map")


def _map_chart(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "data": {"values": rows},
        "mark": {"type": "circle", "color": BAR_COLOUR, "opacity": 0.6, "stroke": BAR_COLOUR},
        "height": 360,
        "encoding": {
            "x": {
                "field": "x",
                "type": "quantitative",
                "title": "first axis (distance of actions)",
                "scale": {"padding": 25},
            },
            "y": {"field": "y", "type": "quantitative", "title": "second axis", "scale": {"padding": 25}},
            "size": {
                "field": "demonstrations",
                "type": "quantitative",
                "scale": {"range": [60, 900]},
                "legend": {"orient": "bottom", "tickCount": 3, "tickMinStep": 1},
            },
            "tooltip": [{"field": name} for name in ("actions", "demonstrations")],
        },
    }


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
    st.header("Counts", anchor=False)
    rows = _count_rows(earlier.statistics(), library.statistics())
    with st.container(width="content"):
        show_table(("", earlier.title, library.title), rows, key="compare_counts", label="Counts of both versions")
    if chosen_id := st.session_state.pop("compared", None):
        open_demonstration(services, UUID(chosen_id))


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
    st.header(f"{title} ({len(demonstrations):,})", anchor=False)
    rows = [
        [
            TableCell(demonstration.summary, go=str(demonstration.trace_id)),
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
            f"{tool_title(tool)}, actions": (before.tools.get(tool, 0), after.tools.get(tool, 0))
            for tool in _tool_names(before, after)
        },
    }
    return [
        [TableCell(name), TableCell(f"{old:,}", number=True), TableCell(f"{new:,}", number=True)]
        for name, (old, new) in counts.items()
    ]


def _tool_names(before: LibraryStatistics, after: LibraryStatistics) -> list[str]:
    return list(dict.fromkeys([*before.tools, *after.tools]))
