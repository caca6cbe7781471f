"""The selection of demonstrations: the form of its mode and parameters, and the reasons of each pick in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp

import streamlit as st

from showhow.app.widgets.page_layout import escape_html, escape_markdown
from showhow.fewshot_library.dpp import Pick
from showhow.fewshot_library.library import LoadedLibrary, SelectedDemonstrations, list_actions
from showhow.fewshot_library.selection import (
    DEFAULT_ALPHA,
    DEFAULT_GAMMA,
    GUARDS,
    SELECTION_MODES,
    SelectionConfig,
)
from showhow.fewshot_library.sequence_similarity import DISTANCES
from showhow.tools.registry import tool_title

_SELECTION_LABELS = {
    "dpp": "Relevant + diverse (DPP)",
    "relevance": "Relevance only",
    "diversity": "Diversity only",
    "random": "Random",
    "one": "One example",
    "none": "None",
}
"""Short labels of the selection modes of reasoners."""
_GUARD_LABELS = {
    "question": "are of the same question",
    "entities": "also name what it names",
    "answers": "also show a gold answer",
}
REASONS_HINT = "The reasons below still show how the determinantal point process (DPP) scores each pick."
MAX_PICKS = 8
"""Maximum number of picks on the page; the command line accepts any number."""
RELEVANCE_LEVELS = (
    (0.95, "asks the same"),
    (0.7, "asks nearly the same"),
    (0.4, "is related"),
    (0.2, "is loosely related"),
)
NOVELTY_LEVELS = (
    (0.9, "has very different actions from the earlier picks"),
    (0.6, "has mostly different actions from the earlier picks"),
    (0.25, "has some actions that the earlier picks lack"),
    (0.01, "has nearly the same actions as an earlier pick"),
)
CLOSE_LEAD, CLEAR_LEAD = 0.1, 0.7
"""Leads below the first are nearly a tie; leads from the second on are clear."""


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """The configuration of a selection, and whether demonstrations of the same question are left out."""

    config: SelectionConfig
    leave_out_itself: bool


def selection_label(name: str) -> str:
    """The label of a value of the option `selection` of reasoners."""
    return _SELECTION_LABELS.get(name) or SELECTION_MODES[name].label


def ask_selection_options(key: str) -> SelectionOptions:
    """Draw the fields, with a hint for modes other than the DPP."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=f"config_{key}"):
        mode = st.selectbox(
            "Mode",
            list(SELECTION_MODES),
            format_func=lambda name: SELECTION_MODES[name].label,
            key=f"mode_{key}",
            width=235,
            persist_state="session",
        )
        config = _ask_kernel_options(key, SelectionConfig(mode=mode))
        with st.popover("More"):
            config = _ask_advanced_options(key, config)
        leave_out = st.checkbox(
            "Leave out the question itself",
            value=True,
            key=f"leave_{key}",
            help="A demonstration of the same question would give the answer away.",
            persist_state="session",
        )
    if hint := SELECTION_MODES[mode].hint:
        st.caption(f":material/info: {escape_markdown(hint)} {REASONS_HINT}")
    return SelectionOptions(config, leave_out)


def _ask_kernel_options(key: str, config: SelectionConfig) -> SelectionConfig:
    """Draw the fields of k, alpha and gamma; returns the configuration with their values."""
    k = st.number_input(
        "Picks (k)",
        1,
        MAX_PICKS,
        3,
        key=f"k_{key}",
        width=100,
        help="How many demonstrations are selected.",
        persist_state="session",
    )
    alpha = st.slider(
        "Relevance weight (alpha)",
        0.0,
        10.0,
        DEFAULT_ALPHA,
        0.25,
        key=f"alpha_{key}",
        width=172,
        help="Higher values prefer more similar questions; at 0 the question does not matter.",
        persist_state="session",
    )
    gamma = st.slider(
        "Diversity (gamma)",
        0.25,
        10.0,
        DEFAULT_GAMMA,
        0.25,
        key=f"gamma_{key}",
        width=172,
        help="How fast similarity falls with the distance of two action sequences. At high values all different "
        "sequences count as equally diverse.",
        persist_state="session",
    )
    return replace(config, k=int(k), alpha=alpha, gamma=gamma)


def _ask_advanced_options(key: str, config: SelectionConfig) -> SelectionConfig:
    """Draw the advanced fields; returns the configuration with their values."""
    return replace(
        config,
        distance=st.selectbox(
            "Distance of two sequences",
            list(DISTANCES),
            key=f"distance_{key}",
            help="longer: edits divided by the longer length; metric: a distance that obeys the triangle inequality.",
            persist_state="session",
        ),
        exchange=st.checkbox(
            "Exchange picks while that improves the set", value=True, key=f"exchange_{key}", persist_state="session"
        ),
        balance=st.slider(
            "Balance of MMR (1: relevance only)", 0.0, 1.0, 0.5, 0.05, key=f"balance_{key}", persist_state="session"
        ),
        guard=st.selectbox(
            "Leave out demonstrations that",
            list(GUARDS),
            format_func=_GUARD_LABELS.__getitem__,
            key=f"guard_{key}",
            persist_state="session",
        ),
        seed=int(st.number_input("Random seed", 0, 2**31 - 1, 0, key=f"seed_{key}", persist_state="session")),
    )


def format_actions(tools: Sequence[str]) -> str:
    """The actions of a demonstration on one line, as people read them."""
    return " › ".join(map(tool_title, tools)) or "no action"


def render_pick_reasons(selected: SelectedDemonstrations, library: LoadedLibrary, index: int) -> str:
    """Render the reasons of the pick with that index as HTML; all texts are escaped."""
    pick = selected.selection.picks[index]
    cosine = float(selected.selection.cosines[pick.item])
    rows = [
        (
            "Relevance",
            f"{cosine:.2f}",
            _render_bar(cosine),
            f"its question {_describe_level(cosine, RELEVANCE_LEVELS, 'is unrelated')}",
        ),
        ("Novelty", f"{pick.novelty:.2f}", _render_bar(pick.novelty), _describe_novelty(pick, index)),
        ("Gain", _format_signed(pick.gain), "", _describe_gain(pick)),
        *_runner_up_rows(pick, library, by_weight=selected.selection.config.mode == "dpp"),
    ]
    steps = "".join(
        f"<li>{escape_html(tool_title(tool))}</li>" for tool in list_actions(selected.demonstrations[index])
    )
    body = "".join(
        f"<tr><th scope='row'>{name}</th><td class='number'>{number}</td><td>{bar}{description}</td></tr>"
        for name, number, bar, description in rows
    )
    return f"<ol class='actions' aria-label='Its actions'>{steps}</ol><table class='reasons'>{body}</table>"


def _describe_novelty(pick: Pick, index: int) -> str:
    if index == 0:
        return "it is the first pick"
    return f"it {_describe_level(pick.novelty, NOVELTY_LEVELS, 'has the same actions as an earlier pick')}"


def _describe_gain(pick: Pick) -> str:
    if pick.is_filler:
        return "nothing new: selected by relevance alone, since too few demonstrations differ"
    factor = exp(min(pick.gain, 30))
    if factor < 1:
        return f"adding it multiplies the set's determinant by {factor:.2g}"
    number = f"{factor:,.1f}" if factor < 1e6 else "more than a million"
    return f"adding it multiplies the set's determinant by {number}"


def _runner_up_rows(pick: Pick, library: LoadedLibrary, *, by_weight: bool) -> Iterator[tuple[str, str, str, str]]:
    if pick.runner_up is None or pick.lead is None:
        return
    question = escape_html(library.demonstrations[pick.runner_up].question)
    if pick.lead < 0 and by_weight and not pick.is_filler:
        comparison = "would have gained more here; the whole set's determinant is larger this way"
    elif pick.lead < 0:
        comparison = "would have gained more here: the DPP would have selected it"
    elif pick.lead < CLOSE_LEAD:
        comparison = "nearly a tie"
    else:
        comparison = "a clear choice" if pick.lead >= CLEAR_LEAD else "a close choice"
    yield "Runner-up", "", "", f"“{question}”"
    yield "Lead", _format_signed(pick.lead), "", comparison


def _format_signed(number: float) -> str:
    return f"{number:+.2f}" if abs(number) != float("inf") else "none"


def _describe_level(value: float, levels: tuple[tuple[float, str], ...], lowest: str) -> str:
    return next((description for bound, description in levels if value >= bound), lowest)


def _render_bar(share: float) -> str:
    width = round(100 * min(max(share, 0.0), 1.0))
    return f"<span class='bar' aria-hidden='true'><span style='width:{width}%'></span></span>"
