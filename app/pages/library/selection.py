"""The selection console: a question, and which demonstrations would be put before it, with the reasons, drawn.

A choice, drawn: every candidate by what it does and how near its question is, and how like the best ones are.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
import streamlit as st

from app.pages.library.demonstrations import open_demonstration
from app.widgets.pick_reasons import render_pick_reasons
from app.widgets.plain_text import escape_markdown
from app.widgets.selected_library import SelectedLibrary
from app.widgets.selection_options import SelectionOptions, ask_selection_options
from app.widgets.table import TableCell, show_table
from db.database import Database, StoreError
from db.libraries import DemonstrationFilter
from fewshot_library.dpp import FloatArray, likelihood_matrix, similarity_matrix
from fewshot_library.library import LoadedLibrary, SelectedDemonstrations
from fewshot_library.map import SequenceMap, build_sequence_map
from fewshot_library.selection import SelectionError
from worlds.source import SourceError

MAX_POINTS = 400
"""Candidates that are drawn as points, the most relevant."""
HEAT_MAP_CANDIDATES = 24
"""Candidates of the heat map."""
PICK_COLOUR, CANDIDATE_COLOUR = "#b3261e", "#8a8f98"


def rank_candidates(chosen: SelectedDemonstrations, count: int) -> list[int]:
    """The picks in their order and, up to `count` together, the most relevant others that may be chosen."""
    picks = [pick.item for pick in chosen.selection.picks]
    out = {*picks, *chosen.selection.config.left_out}
    order = np.argsort(-chosen.selection.cosines, kind="stable")[: count + len(out)].tolist()
    return [*picks, *[item for item in order if item not in out]][: max(count, len(picks))]


def build_points(
    chosen: SelectedDemonstrations, library: LoadedLibrary, sequence_map: SequenceMap
) -> list[dict[str, Any]]:
    """What is drawn of each candidate; `pick` numbers the picks from 1 and is 0 for the others."""
    picks = len(chosen.selection.picks)
    groups = library.pool.actions.groups.labels
    return [
        {
            "place": round(float(sequence_map.coordinates[groups[item], 0]), 4),
            "relevance": round(float(chosen.selection.cosines[item]), 4),
            "question": library.demonstrations[item].question,
            "actions": " > ".join(library.demonstrations[item].tools),
            "pick": number if number <= picks else 0,
        }
        for number, item in enumerate(rank_candidates(chosen, MAX_POINTS), start=1)
    ]


def scatter_chart(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Relevance against the place on the map, the picks joined in their order."""
    picks = [row for row in rows if row["pick"]]
    position = {
        "x": {
            "field": "place",
            "type": "quantitative",
            "title": "place on the map of action sequences (near: the same actions)",
            "scale": {"zero": False, "padding": 24},
        },
        "y": {
            "field": "relevance",
            "type": "quantitative",
            "title": "relevance (cosine of the questions)",
            "scale": {"zero": False, "padding": 18},
        },
    }
    tooltip = [{"field": name} for name in ("question", "relevance", "actions")]
    others = [row for row in rows if not row["pick"]]
    return {
        "height": 380,
        "encoding": position,
        "layer": [
            {
                "data": {"values": others},
                "mark": {"type": "circle", "color": CANDIDATE_COLOUR, "size": 70, "opacity": 0.6},
                "encoding": {"tooltip": tooltip},
            },
            {
                "data": {"values": picks},
                "mark": {"type": "line", "color": PICK_COLOUR, "strokeWidth": 1.5, "strokeDash": [5, 3]},
                "encoding": {"order": {"field": "pick", "type": "quantitative"}},
            },
            {
                "data": {"values": picks},
                "mark": {"type": "circle", "color": PICK_COLOUR, "size": 330, "opacity": 1},
                "encoding": {"tooltip": tooltip},
            },
            {
                "data": {"values": picks},
                "mark": {"type": "text", "color": "white", "fontWeight": 700, "fontSize": 12},
                "encoding": {"text": {"field": "pick", "type": "quantitative"}, "tooltip": tooltip},
            },
        ],
    }


def heat_map_chart(values: FloatArray, names: Sequence[str], title: str, scale: str) -> dict[str, Any]:
    """The values as a heat map, the items in their order along both sides; `scale` is linear or sqrt."""
    numbers = list(range(1, len(names) + 1))
    rows = [
        {"row": one + 1, "column": other + 1, "value": round(float(values[one, other]), 4), "a": a, "b": b}
        for one, a in enumerate(names)
        for other, b in enumerate(names)
    ]

    def side(field: str) -> dict[str, Any]:
        axis = {"labelAngle": 0, "labelOverlap": True}
        return {"field": field, "type": "ordinal", "sort": numbers, "title": "candidate", "axis": axis}

    return {
        "data": {"values": rows},
        "mark": {"type": "rect"},
        "height": 380,
        "encoding": {
            "x": side("column"),
            "y": side("row"),
            "color": {
                "field": "value",
                "type": "quantitative",
                "title": title,
                "scale": {"type": scale, "scheme": "viridis", "domain": [0, 1]},
                "legend": {"orient": "right", "gradientLength": 300},
            },
            "tooltip": [{"field": "a", "title": "one"}, {"field": "b", "title": "other"}, {"field": "value"}],
        },
    }


EXAMPLE_COUNT = 3
SIMILARITY_VIEW, KERNEL_VIEW = "Likeness of the actions", "Kernel, with relevance"
ENCODING_RATE = 300
"""Questions that one core encodes in a second, roughly."""
LOADING_MESSAGE = "The model that compares questions loads: some 5 seconds, once after the server has started …"


def show_selection_console(library: SelectedLibrary) -> None:
    """The fields, and below them what is chosen."""
    if library.version is None:
        st.info(
            "Demonstrations are chosen from a frozen version, so that the choice stays the same. Choose one on the "
            "left, or freeze one with Alt+L."
        )
        return
    question = st.text_input(
        "Question", key="console_question", placeholder="Type a question and press Enter", persist_state="session"
    )
    way = ask_selection_options("console")
    if not question.strip():
        _show_examples(library)
        return
    try:
        opened = open_selected_library(library)
        with st.spinner("Choosing …"):
            chosen = opened.select(question.strip(), way.config, leave_out_itself=way.leave_out_itself)
    except (SelectionError, SourceError, StoreError) as refused:
        st.error(escape_markdown(str(refused)))
        return
    _show_picks(library.services.database, chosen, opened, way)


def open_selected_library(library: SelectedLibrary) -> LoadedLibrary:
    """The version ready to choose from; the page says so while that takes seconds."""
    with st.spinner(_waiting_message(library)):
        _, opened = library.services.open_library(library.reference)
        # The questions may be known from the disk, and the model not be loaded for them.
        library.services.encoder(["?"])
    return opened


def _waiting_message(library: SelectedLibrary) -> str:
    version = library.version
    if (
        version is not None
        and version.demonstrations > ENCODING_RATE
        and not library.services.embeddings_path(version.name, version.number).is_file()
    ):
        return (
            f"The {version.demonstrations:,} questions of this version are encoded, once for all: some "
            f"{version.demonstrations / ENCODING_RATE:,.0f} seconds …"
        )
    return "Reading the version …" if library.services.encoder.is_loaded else LOADING_MESSAGE


def _show_examples(library: SelectedLibrary) -> None:
    st.caption("Type the question that demonstrations are wanted for, or try one of the library's own:")
    with st.container(gap="small", key="examples"):
        for demonstration in library.page(DemonstrationFilter(), 0, EXAMPLE_COUNT):
            st.button(
                escape_markdown(demonstration.question),
                key=f"example_{demonstration.trace_id.hex}",
                type="tertiary",
                on_click=_fill_question,
                args=(demonstration.question,),
            )


def _fill_question(question: str) -> None:
    st.session_state["console_question"] = question


def _show_picks(
    database: Database, chosen: SelectedDemonstrations, opened: LoadedLibrary, way: SelectionOptions
) -> None:
    for demonstration in chosen.excluded:
        st.caption(f":material/block: Left out, since it asks the same: {escape_markdown(demonstration.question)}")
    picks = chosen.selection.picks
    if not picks:
        st.info("Nothing is left to choose from. Let the question itself be chosen, or freeze a larger version.")
        return
    if len(picks) < way.config.k:
        st.caption(f":material/info: The version has only {len(picks)} to choose from.")
    if chosen.selection.filler_count:
        st.caption(
            f":material/info: {chosen.selection.filler_count} of the picks are there by relevance alone: fewer "
            "demonstrations differ from each other than were asked for."
        )
    with st.container(horizontal=True, gap="small", key="picks"):
        for place, demonstration in enumerate(chosen.demonstrations):
            with st.container(border=True, width=330, gap="small", key=f"pick_{place + 1}"):
                st.button(
                    f"**{place + 1}** {escape_markdown(demonstration.question)}",
                    key=f"open_pick_{place}",
                    type="tertiary",
                    help="Open the demonstration",
                    on_click=_request_open,
                    args=(str(demonstration.trace_id),),
                )
                st.html(render_pick_reasons(chosen, opened, place))
    _show_drawings(chosen, opened)
    if requested := st.session_state.pop("console_open", None):
        open_demonstration(database, UUID(requested))


def _request_open(trace: str) -> None:
    st.session_state["console_open"] = trace


@lru_cache(maxsize=16)
def _compute_map(opened: LoadedLibrary, distance: str) -> SequenceMap:
    return build_sequence_map(opened.pool.actions, distance)


def _show_drawings(chosen: SelectedDemonstrations, opened: LoadedLibrary) -> None:
    sequence_map = _compute_map(opened, chosen.selection.config.distance)
    rows = build_points(chosen, opened, sequence_map)
    with st.container(horizontal=True, gap="medium", key="drawings"):
        with st.container(width=500, gap="small"):
            st.markdown("**How near, and what is done**")
            st.vega_lite_chart(
                scatter_chart(rows), width=490, key="scatter", alt="Relevance of each candidate by its place on the map"
            )
            st.caption(
                f"The {len(rows):,} most relevant candidates; the numbered ones are the picks in their order. Sideways "
                f"this shows {sequence_map.explained_variance[0]:.0%} of the distances between sequences of actions."
            )
        with st.container(width=500, gap="small"):
            _show_heat_map(chosen, opened)
    _show_candidates(chosen, opened)


def _show_heat_map(chosen: SelectedDemonstrations, opened: LoadedLibrary) -> None:
    items = rank_candidates(chosen, HEAT_MAP_CANDIDATES)
    drawing = st.segmented_control(
        "Heat map",
        (SIMILARITY_VIEW, KERNEL_VIEW),
        default=SIMILARITY_VIEW,
        key="heat_of",
        label_visibility="collapsed",
        required=True,
    )
    kernel = opened.build_kernel(chosen)
    values = likelihood_matrix(kernel, items) if drawing == KERNEL_VIEW else similarity_matrix(kernel, items)
    title, scale = ("kernel, greatest = 1", "sqrt") if drawing == KERNEL_VIEW else ("likeness", "linear")
    names = [f"{number} {opened.demonstrations[item].question}" for number, item in enumerate(items, start=1)]
    st.vega_lite_chart(
        heat_map_chart(values, names, title, scale), width=490, key="heat", alt=f"{drawing} of the best candidates"
    )
    picks = len(chosen.selection.picks)
    st.caption(
        f"Candidates 1 to {picks} are the picks, the others the most relevant. "
        + (
            "The kernel is likeness times both relevances (coloured by its square root): picks should be bright on "
            "the diagonal and dark among each other."
            if drawing == KERNEL_VIEW
            else "Bright means the same actions: picks should be dark among each other."
        )
    )


def _show_candidates(chosen: SelectedDemonstrations, opened: LoadedLibrary) -> None:
    """The candidates of the heat map by their numbers."""
    picks = len(chosen.selection.picks)
    with st.expander("The candidates by their numbers"):
        rows = [
            [
                TableCell(f"{number}", number=True),
                TableCell("pick" if number <= picks else "", number=True),
                TableCell(opened.demonstrations[item].question, go=str(opened.demonstrations[item].trace_id)),
                TableCell(f"{chosen.selection.cosines[item]:.3f}", number=True),
                TableCell(" > ".join(opened.demonstrations[item].tools)),
            ]
            for number, item in enumerate(rank_candidates(chosen, HEAT_MAP_CANDIDATES), start=1)
        ]
        columns = ("number", "", "question", "relevance", "actions")
        show_table(columns, rows, key="candidates", label="The candidates of the heat map", go=_request_open)
