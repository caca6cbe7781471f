"""What is asked, and how it is to be answered: the fields of the Ask page, kept by the trace in the address."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from app.asking import Wanted
from app.components.plain import plain
from app.resources import database, settings
from app.solving import REPLAY, REPLAYED_STEPS, Way
from db.libraries import versions
from db.record import TraceRecord
from reasoners.limits import SECONDS, STEPS, Limits
from reasoners.setup import CHOICES, SELECTIONS, Setup
from settings import DEFAULT_LIBRARY
from worlds.folder import world_names

DEMONSTRATION, MODEL = "demonstration", "model"
BY = {DEMONSTRATION: "Follow a demonstration", MODEL: "Follow with a model"}
AGENTS = {"humaniq": "HumanIQ: one agent", "fusion": "Fusion: text and graph apart, then merged"}
MORE = ("pipeline", "sources", "form", "response", "merge")
"""The options that few change."""
MOST_SHOWN = 8
WIDE = 380
"""Pixels of a field that says what its choice means."""
CHOOSING = {
    "dpp": "adaptive (DPP)",
    "relevance": "relevance only",
    "diversity": "diversity only",
    "random": "random",
    "one": "one example",
    "none": "none",
}
"""The ways to choose demonstrations, as short as their field is."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the form and what it holds before anybody touches it."""

    name: str
    value: Any

    @property
    def key(self) -> str:
        """Of its widget."""
        return f"ask_{self.name}"


def seed(record: TraceRecord | None) -> None:
    """Fill the fields from the trace that the address names, once; what is typed afterwards stays."""
    shown = str(record.trace.id) if record is not None else ""
    if st.session_state.get("ask_seeded") == shown:
        return
    st.session_state["ask_seeded"] = shown
    for field in _fields(record):
        if record is not None or field.key not in st.session_state:
            st.session_state[field.key] = field.value


def _fields(record: TraceRecord | None) -> list[Field]:
    told = record.trace.configuration if record is not None else {}
    way = told.get("way") or {"reasoner": _usual(), "options": {}, "library": None}
    limits = told.get("limits") or {}
    options = Setup.read(way["options"] if way["reasoner"] != REPLAY else {}).to_json()
    model = way["reasoner"] != REPLAY
    return [
        Field("question", record.question.text if record is not None else st.query_params.get("question", "")),
        Field("world", record.project.world if record is not None else st.query_params.get("world")),
        Field("by", MODEL if model else DEMONSTRATION),
        Field("agent", way["reasoner"] if model else "humaniq"),
        Field("library", way["library"]),
        *(Field(name, options[name]) for name in (*MORE, "selection", "k", "own_answer", "seed")),
        Field("steps", limits.get("steps", STEPS) if model else STEPS),
        Field("replayed_steps", REPLAYED_STEPS if model else limits.get("steps", REPLAYED_STEPS)),
        Field("seconds", int(limits.get("seconds", SECONDS))),
        Field("tokens", limits.get("tokens")),
        Field("money", limits.get("money")),
    ]


def _usual() -> str:
    return REPLAY if settings().model is None else "humaniq"


def ask_form() -> Wanted | None:
    """The fields; what is wanted when it is asked by button or key."""
    worlds = world_names(settings().worlds)
    if not worlds:
        st.info("There is no world yet to ask: make one on the Worlds page, or run `showhow setup`.")
        return None
    question = st.text_area(
        "Question",
        key="ask_question",
        height=68,
        placeholder="What do you want to know? Ctrl+Enter asks.",
        persist_state="session",
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="ask_fields"):
        world = _select("World", worlds, "world", width=140)
        by = str(
            st.segmented_control(
                "Answer", list(BY), format_func=BY.__getitem__, key="ask_by", required=True, persist_state="session"
            )
        )
        library = _library()
        options: dict[str, Any] = {}
        if by == MODEL:
            options = _demonstrations()
        agent, more = REPLAY, dict[str, Any]()
        if by == MODEL:
            with st.popover("More", icon=":material/tune:"):
                agent, more = _more()
        with st.popover("Limits", icon=":material/speed:"):
            limits = _limits(model=by == MODEL)
        asked = st.button(
            "Ask",
            key="ask",
            type="primary",
            shortcut="Ctrl+Enter",
            icon=":material/send:",
            disabled=by == MODEL and settings().model is None,
        )
    _tell(by)
    if not asked:
        return None
    if not question.strip():
        st.error("Write a question first.")
        return None
    return Wanted(question, world, Way(agent, {**options, **more}, library), limits)


def _tell(by: str) -> None:
    """What is set up, and what the choice needs."""
    model = settings().model
    if model is not None:
        st.caption(f"Model: {plain(model)}" + (" (not used)" if by == DEMONSTRATION else ""))
    elif by == DEMONSTRATION:
        st.caption(
            "No model is set up, so a demonstration is followed: its actions are run again with what your question "
            "names. SHOWHOW_MODEL sets a model up."
        )
    else:
        st.caption(
            ":material/warning: No model is set up. Set SHOWHOW_MODEL (such as openai:gpt-4.1) and its key and start "
            "the server again, or follow a demonstration."
        )


def _select(label: str, options: list[Any], name: str, **told: Any) -> Any:
    if st.session_state.get(f"ask_{name}") not in options:
        st.session_state[f"ask_{name}"] = options[0]
    return st.selectbox(label, options, key=f"ask_{name}", persist_state="session", **told)


def _library() -> str | None:
    with database().read() as session:
        known = [f"{each.name}:{each.number}" for each in versions(session)]
    # The usual one first, so that it is the one that stands there.
    known.sort(key=lambda named: not named.startswith(f"{DEFAULT_LIBRARY}:"))
    if not known:
        st.caption("No library yet: freeze one on the Library page.")
        return None
    chosen: str = _select("Library", known, "library", width=150)
    return chosen


def _demonstrations() -> dict[str, Any]:
    selection = st.selectbox(
        "Demonstrations",
        list(SELECTIONS),
        format_func=CHOOSING.__getitem__,
        key="ask_selection",
        width=190,
        help="  \n".join(f"{CHOOSING[name]}: {meant}" for name, meant in SELECTIONS.items()),
        persist_state="session",
    )
    k = st.number_input(
        "k",
        0,
        MOST_SHOWN,
        key="ask_k",
        width=84,
        disabled=selection in ("one", "none"),
        help="How many demonstrations the model is shown.",
        persist_state="session",
    )
    return {"selection": selection, "k": int(k)}


def _more() -> tuple[str, dict[str, Any]]:
    agent = st.selectbox(
        "Reasoner",
        list(AGENTS),
        format_func=AGENTS.__getitem__,
        key="ask_agent",
        width=WIDE,
        persist_state="session",
    )
    options: dict[str, Any] = {
        name: st.selectbox(
            name.capitalize(),
            list(CHOICES[name]),
            format_func=partial(_meant, name),
            key=f"ask_{name}",
            width=WIDE,
            persist_state="session",
        )
        for name in MORE
        if name != "merge" or agent == "fusion"
    }
    options["own_answer"] = st.checkbox(
        "Ask the model without tools too", key="ask_own_answer", persist_state="session"
    )
    options["seed"] = int(st.number_input("Seed of chance", 0, 2**31 - 1, key="ask_seed", persist_state="session"))
    return agent, options


def _meant(name: str, value: str) -> str:
    return f"{value}: {CHOICES[name][value]}"


def _limits(*, model: bool) -> Limits:
    st.caption("It ends when it has taken this much.")
    key = "ask_steps" if model else "ask_replayed_steps"
    steps = st.number_input("Steps", 1, 500, key=key, persist_state="session")
    seconds = st.number_input("Seconds", 1, 86_400, key="ask_seconds", persist_state="session")
    tokens = money = None
    if model:
        tokens = st.number_input(
            "Tokens", 1, value=None, key="ask_tokens", placeholder="no limit", persist_state="session"
        )
        money = st.number_input(
            "US dollars", 0.0, value=None, key="ask_money", placeholder="no limit", persist_state="session"
        )
    return Limits(int(steps), int(tokens) if tokens else None, float(seconds), float(money) if money else None)
