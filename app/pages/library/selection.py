"""The selection console: the demonstrations selected for a question, with the reasons and two charts.

A scatter plot shows the relevance of each candidate by its actions, a heat map the similarity of the best candidates.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
import streamlit as st

from showhow.app.pages.library.demonstrations import EXPORT_REFUSAL, may_export, open_demonstration
from showhow.app.widgets.choices import SelectedLibrary
from showhow.app.widgets.page_layout import escape_markdown, format_sentence
from showhow.app.widgets.queue import current_project
from showhow.app.widgets.selection_form import (
    SelectionOptions,
    ask_selection_options,
    format_actions,
    render_pick_reasons,
)
from showhow.app.widgets.table import TableCell, show_table
from showhow.db.database import Database, StoreError
from showhow.db.questions.projects import DEFAULT_INSTRUCTION
from showhow.db.traces.libraries import DemonstrationFilter
from showhow.db.traces.traces import load_trace
from showhow.fewshot_library.dpp import FloatArray, likelihood_matrix, similarity_matrix
from showhow.fewshot_library.formats.few_shot_prompt import write_prompt_messages, write_prompt_text
from showhow.fewshot_library.library import LoadedLibrary, SelectedDemonstrations, list_actions
from showhow.fewshot_library.selection import SelectionError
from showhow.fewshot_library.sequence_similarity import SequenceMap, build_sequence_map
from showhow.reasoners.withheld import list_withheld
from showhow.runs.services import Services
from showhow.worlds.source import SourceError

MAX_POINTS = 400
"""Maximum candidates in the scatter plot; the most relevant are drawn."""
HEAT_MAP_CANDIDATES = 24
"""Candidates in the heat map."""
PROMPT_HEIGHT = 420
"""Pixels of a prompt, which scrolls."""
PICK_COLOUR, CANDIDATE_COLOUR = "#b3261e", "#8a8f98"


def rank_candidates(selected: SelectedDemonstrations, count: int) -> list[int]:
    """Indices of the picks in order, then of the most relevant other candidates, `count` in total."""
    picks = [pick.item for pick in selected.selection.picks]
    excluded = {*picks, *selected.selection.config.left_out}
    order = np.argsort(-selected.selection.cosines, kind="stable")[: count + len(excluded)].tolist()
    return [*picks, *[item for item in order if item not in excluded]][: max(count, len(picks))]


def build_points(
    selected: SelectedDemonstrations, library: LoadedLibrary, sequence_map: SequenceMap
) -> list[dict[str, Any]]:
    """The points of the scatter plot; "pick" numbers the picks from 1 and is 0 for the other candidates."""
    picks = len(selected.selection.picks)
    groups = library.pool.actions.groups.labels
    return [
        {
            "place": round(float(sequence_map.coordinates[groups[item], 0]), 4),
            "relevance": round(float(selected.selection.cosines[item]), 4),
            "question": library.demonstrations[item].question,
            "actions": format_actions(list_actions(library.demonstrations[item])),
            "pick": number if number <= picks else 0,
        }
        for number, item in enumerate(rank_candidates(selected, MAX_POINTS), start=1)
    ]


def scatter_chart(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The scatter plot: relevance against the first axis of the map, with a line through the picks in order."""
    picks = [row for row in rows if row["pick"]]
    position = {
        "x": {
            "field": "place",
            "type": "quantitative",
            "title": "first axis of the map of action sequences",
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
    """The values as a heat map, with the candidates in order on both axes; `scale` is "linear" or "sqrt"."""
    numbers = list(range(1, len(names) + 1))
    rows = [
        {"row": row + 1, "column": column + 1, "value": round(float(values[row, column]), 4), "a": a, "b": b}
        for row, a in enumerate(names)
        for column, b in enumerate(names)
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
SIMILARITY_VIEW, KERNEL_VIEW = "Similarity of the actions", "Kernel (with relevance)"
ENCODING_RATE = 300
"""Approximate number of questions that one core encodes per second."""
LOADING_MESSAGE = "Loading the encoder …"


def show_selection_console(library: SelectedLibrary) -> None:
    """Draw the fields and, below them, the selected demonstrations."""
    if library.version is None:
        st.info(
            "Demonstrations are selected from a frozen version, so that the selection can be repeated. Choose a "
            "version on the left, or freeze one with Alt+L."
        )
        return
    question = st.text_input(
        "Question", key="console_question", placeholder="Type a question and press Enter", persist_state="session"
    )
    options = ask_selection_options("console")
    if not question.strip():
        _show_examples(library)
        return
    try:
        opened = open_selected_library(library)
        with st.spinner("Selecting …"):
            selected = opened.select(
                question.strip(),
                options.config,
                leave_out_itself=options.leave_out_itself,
                withheld=list_withheld(options.config.guard, question),
            )
    except (SelectionError, SourceError, StoreError) as error:
        st.error(format_sentence(str(error)))
        return
    _show_picks(library.services, selected, opened, options)
    if selected.demonstrations:
        _show_prompt(library.services.database, selected, question.strip())
        _show_drawings(selected, opened)


def open_selected_library(library: SelectedLibrary) -> LoadedLibrary:
    """Open the version for selection, with a spinner while it loads."""
    with st.spinner(_waiting_message(library)):
        _, opened = library.services.open_library(library.reference)
        # Cached embeddings do not load the encoder, but the selection needs it.
        library.services.encoder(["?"])
    return opened


def _waiting_message(library: SelectedLibrary) -> str:
    version = library.version
    if (
        version is not None
        and version.demonstrations > ENCODING_RATE
        and not library.services.embeddings_path(version.id).is_file()
    ):
        return (
            f"Encoding the {version.demonstrations:,} questions of this version (only once), about "
            f"{version.demonstrations / ENCODING_RATE:,.0f} seconds …"
        )
    return "Reading the version …" if library.services.encoder.is_loaded else LOADING_MESSAGE


def _show_examples(library: SelectedLibrary) -> None:
    st.caption("Type a question to select demonstrations for, or try one of the library's questions:")
    with st.container(gap="small", key="examples"):
        for demonstration in library.page(DemonstrationFilter(), 0, EXAMPLE_COUNT):
            st.button(
                escape_markdown(demonstration.summary),
                key=f"example_{demonstration.trace_id.hex}",
                type="tertiary",
                on_click=_fill_question,
                args=(demonstration.full_text,),
            )


def _fill_question(question: str) -> None:
    st.session_state["console_question"] = question


def _show_picks(
    services: Services, selected: SelectedDemonstrations, opened: LoadedLibrary, options: SelectionOptions
) -> None:
    for demonstration in selected.excluded:
        st.caption(f":material/block: Left out as the same question: {escape_markdown(demonstration.summary)}")
    picks = selected.selection.picks
    if not picks:
        st.info("No candidate is left. Allow the question itself, or freeze a larger version.")
        return
    if len(picks) < options.config.k:
        st.caption(f":material/info: The version has only {len(picks)} candidates.")
    if selected.selection.filler_count:
        st.caption(
            f":material/info: {selected.selection.filler_count} of the picks are selected by relevance alone, since "
            "too few demonstrations differ from each other."
        )
    with st.container(horizontal=True, gap="small", key="picks"):
        for index, demonstration in enumerate(selected.demonstrations):
            with st.container(border=True, width=330, gap="small", key=f"pick_{index + 1}"):
                st.button(
                    f"**{index + 1}** {escape_markdown(demonstration.summary)}",
                    key=f"open_pick_{index}",
                    type="tertiary",
                    help="Open the demonstration",
                    on_click=_request_open,
                    args=(str(demonstration.trace_id),),
                )
                st.html(render_pick_reasons(selected, opened, index))
    if requested_id := st.session_state.pop("console_open", None):
        open_demonstration(services, UUID(requested_id))


def _request_open(trace: str) -> None:
    st.session_state["console_open"] = trace


def _show_prompt(database: Database, selected: SelectedDemonstrations, question: str) -> None:
    """Draw the picks as a prompt with the instruction of the current project, to be copied."""
    is_refused = not may_export(database)
    with st.popover(
        "Copy as a prompt",
        icon=":material/content_copy:",
        disabled=is_refused,
        help=EXPORT_REFUSAL if is_refused else None,
        width="content",
    ):
        project = current_project(database)
        instruction = (project.instruction if project is not None else "") or DEFAULT_INSTRUCTION
        with database.read() as session:
            records = [load_trace(session, demonstration.trace_id) for demonstration in selected.demonstrations]
        text, messages = st.tabs(["Text", "Messages"])
        with text:
            st.caption("For any chat: the instruction, the demonstrations and the question. The button copies it.")
            st.code(write_prompt_text(records, instruction, question), language=None, height=PROMPT_HEIGHT)
        with messages:
            st.caption("The messages of a request to an OpenAI-compatible server, as JSON.")
            written = json.dumps(write_prompt_messages(records, instruction, question), ensure_ascii=False, indent=2)
            st.code(written, language="json", height=PROMPT_HEIGHT)


@lru_cache(maxsize=16)
def _compute_map(opened: LoadedLibrary, distance: str) -> SequenceMap:
    return build_sequence_map(opened.pool.actions, distance)


def _show_drawings(selected: SelectedDemonstrations, opened: LoadedLibrary) -> None:
    sequence_map = _compute_map(opened, selected.selection.config.distance)
    rows = build_points(selected, opened, sequence_map)
    with st.container(horizontal=True, gap="medium", key="drawings"):
        with st.container(width=500, gap="small"):
            st.markdown("**Relevance and actions**")
            st.vega_lite_chart(
                scatter_chart(rows),
                width=490,
                key="scatter",
                alt="Relevance of each candidate by its position on the map",
            )
            st.caption(
                f"The {len(rows):,} most relevant candidates; the picks are numbered in order. Candidates with similar "
                f"actions are close: the horizontal axis shows {sequence_map.explained_variance[0]:.0%} of the "
                "distances between action sequences."
            )
        with st.container(width=500, gap="small"):
            _show_heat_map(selected, opened)
    _show_candidates(selected, opened)


def _show_heat_map(selected: SelectedDemonstrations, opened: LoadedLibrary) -> None:
    candidates = rank_candidates(selected, HEAT_MAP_CANDIDATES)
    view = st.segmented_control(
        "Heat map",
        (SIMILARITY_VIEW, KERNEL_VIEW),
        default=SIMILARITY_VIEW,
        key="heat_of",
        label_visibility="collapsed",
        required=True,
    )
    kernel = opened.build_kernel(selected)
    values = likelihood_matrix(kernel, candidates) if view == KERNEL_VIEW else similarity_matrix(kernel, candidates)
    title, scale = ("kernel, maximum = 1", "sqrt") if view == KERNEL_VIEW else ("similarity", "linear")
    names = [f"{number} {opened.demonstrations[item].question}" for number, item in enumerate(candidates, start=1)]
    st.vega_lite_chart(
        heat_map_chart(values, names, title, scale), width=490, key="heat", alt=f"{view} of the best candidates"
    )
    picks = len(selected.selection.picks)
    st.caption(
        f"Candidates 1 to {picks} are the picks, the others are the most relevant. "
        + (
            "The kernel is the similarity times both relevances (colours show its square root). Picks should be bright "
            "on the diagonal and dark elsewhere."
            if view == KERNEL_VIEW
            else "Bright means similar actions. Picks should be dark outside the diagonal."
        )
    )


def _show_candidates(selected: SelectedDemonstrations, opened: LoadedLibrary) -> None:
    """Draw the table of the heat map's candidates."""
    picks = len(selected.selection.picks)
    with st.expander("Candidates by number"):
        rows = [
            [
                TableCell(f"{number}", number=True),
                TableCell("pick" if number <= picks else "", number=True),
                TableCell(opened.demonstrations[item].question, go=str(opened.demonstrations[item].trace_id)),
                TableCell(f"{selected.selection.cosines[item]:.3f}", number=True),
                TableCell(format_actions(list_actions(opened.demonstrations[item]))),
            ]
            for number, item in enumerate(rank_candidates(selected, HEAT_MAP_CANDIDATES), start=1)
        ]
        columns = ("number", "", "question", "relevance", "actions")
        show_table(columns, rows, key="candidates", label="The candidates of the heat map", go=_request_open)
