"""The form for how demonstrations are selected: the mode and its parameters."""

from dataclasses import dataclass, replace

import streamlit as st

from fewshot_library.selection import DEFAULT_ALPHA, DEFAULT_GAMMA, SELECTION_MODES, SelectionConfig
from fewshot_library.sequence_similarity import DISTANCES

MODE_LABELS = {
    "dpp": "DPP: relevant and diverse",
    "relevance": "Relevance only",
    "diversity": "Diversity only",
    "mmr": "MMR: relevant, with different questions",
    "random": "Random",
    "static": "Static: always the first ones",
    "sample": "Sampled from the DPP",
}
MODE_HINTS = {
    "relevance": "This mode selects the most similar questions, even if their actions are all the same.",
    "diversity": "This mode selects demonstrations with different actions, regardless of their questions.",
    "mmr": "This mode trades relevance against similarity of the questions; it ignores the actions.",
    "random": "This mode selects at random; the same seed gives the same picks for every question.",
    "static": "This mode selects the first demonstrations of the version for every question.",
    "sample": "This mode samples a set with probability proportional to its determinant; the seed decides which set.",
}
REASONS_HINT = "The reasons below still show how the determinantal point process (DPP) scores each pick."
MAX_PICKS = 8
"""Maximum number of picks on the page; the command line accepts any number."""


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """The configuration of a selection, and whether demonstrations of the same question are left out."""

    config: SelectionConfig
    leave_out_itself: bool


def ask_selection_options(key: str) -> SelectionOptions:
    """Draw the fields, with a hint for modes other than the DPP."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=f"config_{key}"):
        mode = st.selectbox(
            "Mode",
            SELECTION_MODES,
            format_func=MODE_LABELS.__getitem__,
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
    if mode in MODE_HINTS:
        st.caption(f":material/info: {MODE_HINTS[mode]} {REASONS_HINT}")
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
        seed=int(st.number_input("Random seed", 0, 2**31 - 1, 0, key=f"seed_{key}", persist_state="session")),
    )
