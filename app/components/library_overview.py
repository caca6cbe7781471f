"""What a set of demonstrations is: its card, its counts, what it lacks, and the map of what is done in it."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import streamlit as st

from app.components.chart import BAR, show_bars
from app.components.plain import plain
from app.components.selected_library import SelectedLibrary, Stamp, all_of
from app.components.table import Entry, show_table
from fewshot_library.kernel import actions
from fewshot_library.map import SequenceMap, sequence_map
from fewshot_library.statistics import Statistics

MOST_DRAWN = 400
"""Sequences of the map, the most used."""
MOST_TOLD = 12
ALL = 0.995
"""A share that people read as all of it."""
NAMES = {"by": "frozen by", "demonstrations": "holds", "authors": "recorded by", "leaks": "gives away"}
"""What people call the entries of a card."""


def show_overview(library: SelectedLibrary) -> None:
    """Draw all of it, or say what to do first."""
    with st.spinner("Counting …"):
        counted = library.statistics()
    if not counted.demonstrations:
        st.info("There is nothing to count yet: approve traces on the Review page first.")
        return
    with st.container(horizontal=True, key="sizes"):
        for name, count in (
            ("demonstrations", counted.demonstrations),
            ("different sequences of actions", counted.sequences),
            ("by people", counted.people),
            ("by models", counted.models),
        ):
            st.metric(name, f"{count:,}", width="content")
    left, right = st.columns([1.2, 1], gap="large") if library.version is not None else (st.container(), st.container())
    if library.version is not None:
        with left:
            _show_card(library.version.card)
    with right:
        _show_gaps(counted)
    _show_counts(counted)
    _show_map(library)


def _show_card(card: Mapping[str, Any]) -> None:
    st.subheader("Card", anchor=False)
    told = {name: _said(value) for name, value in card.items() if value not in ("", [], {}, None)}
    rows = [[Entry(NAMES.get(name, name)), Entry(value)] for name, value in told.items()]
    show_table(("what", "value"), rows, key="card", label="The card of this version")
    if not card.get("licence"):
        st.caption("It names no licence: whoever takes it along does not know what is allowed.")


def _said(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {each}" for name, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _show_gaps(counted: Statistics) -> None:
    st.subheader("What it lacks", anchor=False)
    gaps = []
    if counted.missing_kinds:
        kinds = ", ".join(counted.missing_kinds[:MOST_TOLD]) + ("…" if len(counted.missing_kinds) > MOST_TOLD else "")
        gaps.append(f"Kinds of questions that its projects ask and that no demonstration answers: {kinds}.")
    if counted.unused_tools:
        gaps.append(f"Tools that no demonstration shows: {', '.join(counted.unused_tools)}.")
    if counted.unrated:
        gaps.append(f"{counted.unrated:,} of {counted.demonstrations:,} demonstrations have no stars.")
    if not counted.kinds:
        gaps.append("The kind of no question is known, so that nobody can tell which kinds are missing.")
    if gaps:
        st.markdown("\n".join(f"- {plain(gap)}" for gap in gaps))
    else:
        st.caption("Every tool is shown, every kind of question is answered, every demonstration has stars.")


def _show_counts(counted: Statistics) -> None:
    st.subheader("What it holds", anchor=False)
    charts: list[tuple[str, str, dict[str, int], str]] = [
        ("Length", "actions", {str(length): count for length, count in counted.lengths.items()}, "demonstrations"),
        ("Tools", "tool", counted.tools, "actions"),
        ("Kinds of questions", "kind", counted.kinds, "demonstrations"),
        ("Stars, their mean rounded", "stars", {str(s): c for s, c in counted.ratings.items()}, "demonstrations"),
        ("Worlds", "world", counted.worlds, "demonstrations"),
    ]
    with st.container(horizontal=True, gap="medium"):
        for title, unit, counts, of in charts:
            # Most libraries have one world, which the card names.
            if len(counts) > (1 if title == "Worlds" else 0):
                shown = dict(list(counts.items())[:25])
                show_bars(title, unit, shown, key=title.split()[0].rstrip(",").lower(), of=of)


@lru_cache(maxsize=16)
def _map(stamp: Stamp) -> tuple[SequenceMap, list[dict[str, Any]]]:
    """The map and its most used sequences."""
    sequences = [each.tools for each in all_of(stamp)]
    found = actions(sequences)
    drawn = sequence_map(found)
    used = np.bincount(found.groups.of, minlength=len(found.sequences))
    first = found.groups.order[found.groups.starts]
    return drawn, [
        {
            "x": round(float(drawn.places[place, 0]), 4),
            "y": round(float(drawn.places[place, 1]), 4),
            "demonstrations": int(used[place]),
            "actions": " > ".join(sequences[int(first[place])]) or "no action",
        }
        for place in np.argsort(-used, kind="stable")[:MOST_DRAWN].tolist()
    ]


def _show_map(library: SelectedLibrary) -> None:
    st.subheader("Map of the action sequences", anchor=False)
    drawn, rows = _map(library.stamp())
    if len(rows) == 1:
        st.caption(f"All of them do the very same, so that there is nothing to draw: {plain(rows[0]['actions'])}.")
        return
    rest = "the rest does not fit on paper" if drawn.shown[1] < ALL else "nothing is left out"
    st.caption(
        "Each circle is one sequence of actions; its size says how many demonstrations have it. Near circles do nearly "
        f"the same. The map shows {drawn.shown[1]:.0%} of the distances between them; {rest}."
    )
    with st.container(horizontal=True, gap="medium"):
        st.vega_lite_chart(
            _chart(rows), width=500, key="map", alt="Map of the sequences of actions; the table has them"
        )
        told = [
            [
                Entry(row["actions"]),
                Entry(f"{row['demonstrations']:,}", number=True),
                Entry(f"{row['x']:.2f}", number=True),
                Entry(f"{row['y']:.2f}", number=True),
            ]
            for row in rows
        ]
        with st.container(width=500):
            show_table(("actions", "times", "x", "y"), told, key="map_table", label="Sequences of actions on the map")


def _chart(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "data": {"values": rows},
        "mark": {"type": "circle", "color": BAR, "opacity": 0.6, "stroke": BAR},
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
