"""How demonstrations are to be chosen: the mode and its numbers as fields, in words that an annotator understands."""

from dataclasses import dataclass, replace

import streamlit as st

from fewshot_library.kernel import DISTANCES
from fewshot_library.selection import DEFAULT_ALPHA, DEFAULT_GAMMA, SELECTION_MODES, SelectionConfig

MODE_LABELS = {
    "dpp": "DPP: near and unlike each other",
    "relevance": "Relevance only",
    "diversity": "Diversity only",
    "mmr": "MMR: near, and other questions",
    "random": "Random",
    "static": "Static: always the first",
    "sample": "Sampled from the DPP",
}
MODE_HINTS = {
    "relevance": "This mode takes the nearest questions, though they may all do the same.",
    "diversity": "This mode takes demonstrations that do different things, whatever their questions are about.",
    "mmr": "This mode weighs nearness against likeness of the questions; it does not look at the actions.",
    "random": "This mode draws by chance, the same for the same seed whatever the question is.",
    "static": "This mode takes the first demonstrations of the version for every question.",
    "sample": "This mode draws a set by chance, likelier the more it weighs; another seed gives another set.",
}
REASONS_HINT = "The reasons below still say what the determinantal point process (DPP) thinks of each pick."
MAX_PICKS = 8
"""Picks that the page asks for at most; the verb asks for any number."""


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """How to choose, and whether the question itself may be chosen."""

    config: SelectionConfig
    leave_out_itself: bool


def ask_selection_options(key: str) -> SelectionOptions:
    """The fields, and a hint where the mode is not the DPP."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=f"wish_{key}"):
        mode = st.selectbox(
            "Mode",
            SELECTION_MODES,
            format_func=MODE_LABELS.__getitem__,
            key=f"mode_{key}",
            width=235,
            persist_state="session",
        )
        k = st.number_input(
            "Picks (k)",
            1,
            MAX_PICKS,
            3,
            key=f"k_{key}",
            width=100,
            help="How many are chosen.",
            persist_state="session",
        )
        alpha = st.slider(
            "Relevance counts (alpha)",
            0.0,
            10.0,
            DEFAULT_ALPHA,
            0.25,
            key=f"alpha_{key}",
            width=172,
            help="At 0 the question does not matter; the higher, the more a near question weighs.",
            persist_state="session",
        )
        gamma = st.slider(
            "Likeness falls (gamma)",
            0.25,
            10.0,
            DEFAULT_GAMMA,
            0.25,
            key=f"gamma_{key}",
            width=172,
            help="The higher, the sooner two sequences of actions count as unlike: diversity then decides less.",
            persist_state="session",
        )
        with st.popover("More"):
            wish = _ask_advanced_options(key, SelectionConfig(k=int(k), mode=mode, alpha=alpha, gamma=gamma))
        leave_out = st.checkbox(
            "Leave out the question itself",
            value=True,
            key=f"leave_{key}",
            help="A demonstration that asks the very same would give the answer away.",
            persist_state="session",
        )
    if mode in MODE_HINTS:
        st.caption(f":material/info: {MODE_HINTS[mode]} {REASONS_HINT}")
    return SelectionOptions(wish, leave_out)


def _ask_advanced_options(key: str, wish: SelectionConfig) -> SelectionConfig:
    """The wish with what few change."""
    return replace(
        wish,
        distance=st.selectbox(
            "Distance of two sequences",
            list(DISTANCES),
            key=f"distance_{key}",
            help="longer: edits over the length of the longer one; metric: one that obeys the triangle inequality.",
            persist_state="session",
        ),
        exchange=st.checkbox(
            "Exchange picks while the set gains by it", value=True, key=f"exchange_{key}", persist_state="session"
        ),
        balance=st.slider(
            "Balance of MMR (1 is nearness alone)", 0.0, 1.0, 0.5, 0.05, key=f"balance_{key}", persist_state="session"
        ),
        seed=int(
            st.number_input("Seed of random and sampled", 0, 2**31 - 1, 0, key=f"seed_{key}", persist_state="session")
        ),
    )
