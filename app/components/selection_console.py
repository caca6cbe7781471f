"""The selection console: a question, and which demonstrations would be put before it, with the reasons, drawn."""

from functools import lru_cache
from uuid import UUID

import streamlit as st

from app.components.ask_wish import Way, ask_wish
from app.components.demonstrations import open_demonstration
from app.components.pick_reasons import reasons
from app.components.plain import plain
from app.components.selected_library import SelectedLibrary
from app.components.selection_drawing import BEST, candidates, heat, points, scatter
from app.components.table import Entry, show_table
from app.libraries import embeddings_file, open_library
from app.resources import encoder
from db.database import StoreError
from db.libraries import Wanted
from fewshot_library.dpp import likelihoods, similarities
from fewshot_library.library import Chosen, OpenLibrary
from fewshot_library.map import SequenceMap, sequence_map
from fewshot_library.selection import SelectionError
from worlds.source import SourceError

EXAMPLES = 3
LIKENESS, KERNEL = "Likeness of the actions", "Kernel, with relevance"
PER_SECOND = 300
"""Questions that one core encodes in a second, roughly."""
LOADING = "The model that compares questions loads: some 5 seconds, once after the server has started …"


def show_selection(library: SelectedLibrary) -> None:
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
    way = ask_wish("console")
    if not question.strip():
        _offer_examples(library)
        return
    try:
        opened = opened_library(library)
        with st.spinner("Choosing …"):
            chosen = opened.choose(question.strip(), way.wish, leave_out_itself=way.leave_out_itself)
    except (SelectionError, SourceError, StoreError) as refused:
        st.error(plain(str(refused)))
        return
    _show(chosen, opened, way)


def opened_library(library: SelectedLibrary) -> OpenLibrary:
    """The version ready to choose from; the page says so while that takes seconds."""
    with st.spinner(_wait(library)):
        _, opened = open_library(library.reference)
        # The questions may be known from the disk, and the model not be loaded for them.
        encoder()(["?"])
    return opened


def _wait(library: SelectedLibrary) -> str:
    version = library.version
    if (
        version is not None
        and version.demonstrations > PER_SECOND
        and not embeddings_file(version.name, version.number).is_file()
    ):
        return (
            f"The {version.demonstrations:,} questions of this version are encoded, once for all: some "
            f"{version.demonstrations / PER_SECOND:,.0f} seconds …"
        )
    return "Reading the version …" if encoder().loaded else LOADING


def _offer_examples(library: SelectedLibrary) -> None:
    st.caption("Type the question that demonstrations are wanted for, or try one of the library's own:")
    with st.container(gap="small", key="examples"):
        for each in library.page(Wanted(), 0, EXAMPLES):
            st.button(
                plain(each.question),
                key=f"example_{each.trace_id.hex}",
                type="tertiary",
                on_click=_take,
                args=(each.question,),
            )


def _take(question: str) -> None:
    st.session_state["console_question"] = question


def _show(chosen: Chosen, opened: OpenLibrary, way: Way) -> None:
    for each in chosen.left_out:
        st.caption(f":material/block: Left out, since it asks the same: {plain(each.question)}")
    picks = chosen.selection.picks
    if not picks:
        st.info("Nothing is left to choose from. Let the question itself be chosen, or freeze a larger version.")
        return
    if len(picks) < way.wish.k:
        st.caption(f":material/info: The version has only {len(picks)} to choose from.")
    if chosen.selection.filled:
        st.caption(
            f":material/info: {chosen.selection.filled} of the picks are there by relevance alone: fewer "
            "demonstrations differ from each other than were asked for."
        )
    with st.container(horizontal=True, gap="small", key="picks"):
        for place, each in enumerate(chosen.demonstrations):
            with st.container(border=True, width=330, gap="small", key=f"pick_{place + 1}"):
                st.button(
                    f"**{place + 1}** {plain(each.question)}",
                    key=f"open_pick_{place}",
                    type="tertiary",
                    help="Open the demonstration",
                    on_click=_open,
                    args=(str(each.trace_id),),
                )
                st.html(reasons(chosen, opened, place))
    _draw(chosen, opened)
    if wanted := st.session_state.pop("console_open", None):
        open_demonstration(UUID(wanted))


def _open(trace: str) -> None:
    st.session_state["console_open"] = trace


@lru_cache(maxsize=16)
def _map(opened: OpenLibrary, distance: str) -> SequenceMap:
    return sequence_map(opened.pool.actions, distance)


def _draw(chosen: Chosen, opened: OpenLibrary) -> None:
    drawn = _map(opened, chosen.selection.wish.distance)
    rows = points(chosen, opened, drawn)
    with st.container(horizontal=True, gap="medium", key="drawings"):
        with st.container(width=500, gap="small"):
            st.markdown("**How near, and what is done**")
            st.vega_lite_chart(
                scatter(rows), width=490, key="scatter", alt="Relevance of each candidate by its place on the map"
            )
            st.caption(
                f"The {len(rows):,} most relevant candidates; the numbered ones are the picks in their order. Sideways "
                f"this shows {drawn.shown[0]:.0%} of the distances between sequences of actions."
            )
        with st.container(width=500, gap="small"):
            _draw_kernel(chosen, opened)
    _list(chosen, opened)


def _draw_kernel(chosen: Chosen, opened: OpenLibrary) -> None:
    items = candidates(chosen, BEST)
    shown = st.segmented_control(
        "Heat map", (LIKENESS, KERNEL), default=LIKENESS, key="heat_of", label_visibility="collapsed", required=True
    )
    kernel = opened.kernel(chosen)
    values = likelihoods(kernel, items) if shown == KERNEL else similarities(kernel, items)
    title, scale = ("kernel, greatest = 1", "sqrt") if shown == KERNEL else ("likeness", "linear")
    names = [f"{number} {opened.demonstrations[item].question}" for number, item in enumerate(items, start=1)]
    st.vega_lite_chart(heat(values, names, title, scale), width=490, key="heat", alt=f"{shown} of the best candidates")
    picks = len(chosen.selection.picks)
    st.caption(
        f"Candidates 1 to {picks} are the picks, the others the most relevant. "
        + (
            "The kernel is likeness times both relevances (coloured by its square root): picks should be bright on "
            "the diagonal and dark among each other."
            if shown == KERNEL
            else "Bright means the same actions: picks should be dark among each other."
        )
    )


def _list(chosen: Chosen, opened: OpenLibrary) -> None:
    """The candidates of the heat map by their numbers."""
    picks = len(chosen.selection.picks)
    with st.expander("The candidates by their numbers"):
        rows = [
            [
                Entry(f"{number}", number=True),
                Entry("pick" if number <= picks else "", number=True),
                Entry(opened.demonstrations[item].question, go=str(opened.demonstrations[item].trace_id)),
                Entry(f"{chosen.selection.cosines[item]:.3f}", number=True),
                Entry(" > ".join(opened.demonstrations[item].tools)),
            ]
            for number, item in enumerate(candidates(chosen, BEST), start=1)
        ]
        columns = ("number", "", "question", "relevance", "actions")
        show_table(columns, rows, key="candidates", label="The candidates of the heat map", go=_open)
