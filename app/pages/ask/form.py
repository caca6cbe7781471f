"""What is asked, and how it is to be answered: the fields of the Ask page, kept by the trace in the address."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from app.services import services
from app.widgets.plain_text import escape_markdown
from db.libraries import list_versions
from db.trace_record import TraceRecord
from reasoners.humaniq.options import OPTION_CHOICES, SELECTION_DESCRIPTIONS, AgentOptions
from runs.ask import AskRequest
from runs.budget import DEFAULT_MAX_SECONDS, DEFAULT_MAX_STEPS, RunLimits
from runs.preparation import REPLAY, REPLAY_STEP_LIMIT, RunConfig
from settings import DEFAULT_LIBRARY
from worlds.folder import list_world_names

DEMONSTRATION, MODEL = "demonstration", "model"
ANSWER_MODES = {DEMONSTRATION: "Follow a demonstration", MODEL: "Follow with a model"}
REASONER_LABELS = {"humaniq": "HumanIQ: one agent", "fusion": "Fusion: text and graph apart, then merged"}
ADVANCED_OPTIONS = ("pipeline", "sources", "form", "response", "merge")
"""The options that few change."""
MAX_DEMONSTRATIONS = 8
FIELD_WIDTH = 380
"""Pixels of a field that says what its choice means."""
SELECTION_LABELS = {
    "dpp": "adaptive (DPP)",
    "relevance": "relevance only",
    "diversity": "diversity only",
    "random": "random",
    "one": "one example",
    "none": "none",
}
"""The ways to choose demonstrations, as short as their field is."""


@dataclass(frozen=True, slots=True)
class AskFormField:
    """A field of the form and what it holds before anybody touches it."""

    name: str
    value: Any

    @property
    def key(self) -> str:
        """Of its widget."""
        return f"ask_{self.name}"


def seed_ask_form(record: TraceRecord | None) -> None:
    """Fill the fields from the trace that the address names, once; what is typed afterwards stays."""
    shown = str(record.trace.id) if record is not None else ""
    if st.session_state.get("ask_seeded") == shown:
        return
    st.session_state["ask_seeded"] = shown
    for field in _form_fields(record):
        if record is not None or field.key not in st.session_state:
            st.session_state[field.key] = field.value


def _form_fields(record: TraceRecord | None) -> list[AskFormField]:
    told = record.trace.configuration if record is not None else {}
    way = told.get("way") or {"reasoner": _default_reasoner(), "options": {}, "library": None}
    limits = told.get("limits") or {}
    options = AgentOptions.from_mapping(way["options"] if way["reasoner"] != REPLAY else {}).to_json()
    model = way["reasoner"] != REPLAY
    return [
        AskFormField("question", record.question.text if record is not None else st.query_params.get("question", "")),
        AskFormField("world", record.project.world if record is not None else st.query_params.get("world")),
        AskFormField("by", MODEL if model else DEMONSTRATION),
        AskFormField("agent", way["reasoner"] if model else "humaniq"),
        AskFormField("library", way["library"]),
        *(AskFormField(name, options[name]) for name in (*ADVANCED_OPTIONS, "selection", "k", "own_answer", "seed")),
        AskFormField("steps", limits.get("steps", DEFAULT_MAX_STEPS) if model else DEFAULT_MAX_STEPS),
        AskFormField("replayed_steps", REPLAY_STEP_LIMIT if model else limits.get("steps", REPLAY_STEP_LIMIT)),
        AskFormField("seconds", int(limits.get("seconds", DEFAULT_MAX_SECONDS))),
        AskFormField("tokens", limits.get("tokens")),
        AskFormField("money", limits.get("money")),
    ]


def _default_reasoner() -> str:
    return REPLAY if services().settings.model is None else "humaniq"


def show_ask_form() -> AskRequest | None:
    """The fields; what is wanted when it is asked by button or key."""
    worlds = list_world_names(services().settings.worlds_folder)
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
        world = _show_select_box("World", worlds, "world", width=140)
        by = str(
            st.segmented_control(
                "Answer",
                list(ANSWER_MODES),
                format_func=ANSWER_MODES.__getitem__,
                key="ask_by",
                required=True,
                persist_state="session",
            )
        )
        library = _select_library()
        options: dict[str, Any] = {}
        if by == MODEL:
            options = _select_demonstration_options()
        agent, more = REPLAY, dict[str, Any]()
        if by == MODEL:
            with st.popover("More", icon=":material/tune:"):
                agent, more = _show_advanced_options()
        with st.popover("Limits", icon=":material/speed:"):
            limits = _show_limit_fields(model=by == MODEL)
        asked = st.button(
            "Ask",
            key="ask",
            type="primary",
            shortcut="Ctrl+Enter",
            icon=":material/send:",
            disabled=by == MODEL and services().settings.model is None,
        )
    _show_model_status(by)
    if not asked:
        return None
    if not question.strip():
        st.error("Write a question first.")
        return None
    return AskRequest(question, world, RunConfig(agent, {**options, **more}, library), limits)


def _show_model_status(by: str) -> None:
    """What is set up, and what the choice needs."""
    model = services().settings.model
    if model is not None:
        st.caption(f"Model: {escape_markdown(model)}" + (" (not used)" if by == DEMONSTRATION else ""))
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


def _show_select_box(label: str, options: list[Any], name: str, **told: Any) -> Any:
    if st.session_state.get(f"ask_{name}") not in options:
        st.session_state[f"ask_{name}"] = options[0]
    return st.selectbox(label, options, key=f"ask_{name}", persist_state="session", **told)


def _select_library() -> str | None:
    with services().database.read() as session:
        known = [f"{each.name}:{each.number}" for each in list_versions(session)]
    # The usual one first, so that it is the one that stands there.
    known.sort(key=lambda named: not named.startswith(f"{DEFAULT_LIBRARY}:"))
    if not known:
        st.caption("No library yet: freeze one on the Library page.")
        return None
    chosen: str = _show_select_box("Library", known, "library", width=150)
    return chosen


def _select_demonstration_options() -> dict[str, Any]:
    selection = st.selectbox(
        "Demonstrations",
        list(SELECTION_DESCRIPTIONS),
        format_func=SELECTION_LABELS.__getitem__,
        key="ask_selection",
        width=190,
        help="  \n".join(f"{SELECTION_LABELS[name]}: {meant}" for name, meant in SELECTION_DESCRIPTIONS.items()),
        persist_state="session",
    )
    k = st.number_input(
        "k",
        0,
        MAX_DEMONSTRATIONS,
        key="ask_k",
        width=84,
        disabled=selection in ("one", "none"),
        help="How many demonstrations the model is shown.",
        persist_state="session",
    )
    return {"selection": selection, "k": int(k)}


def _show_advanced_options() -> tuple[str, dict[str, Any]]:
    agent = st.selectbox(
        "Reasoner",
        list(REASONER_LABELS),
        format_func=REASONER_LABELS.__getitem__,
        key="ask_agent",
        width=FIELD_WIDTH,
        persist_state="session",
    )
    options: dict[str, Any] = {
        name: st.selectbox(
            name.capitalize(),
            list(OPTION_CHOICES[name]),
            format_func=partial(_option_label, name),
            key=f"ask_{name}",
            width=FIELD_WIDTH,
            persist_state="session",
        )
        for name in ADVANCED_OPTIONS
        if name != "merge" or agent == "fusion"
    }
    options["own_answer"] = st.checkbox(
        "Ask the model without tools too", key="ask_own_answer", persist_state="session"
    )
    options["seed"] = int(st.number_input("Seed of chance", 0, 2**31 - 1, key="ask_seed", persist_state="session"))
    return agent, options


def _option_label(name: str, value: str) -> str:
    return f"{value}: {OPTION_CHOICES[name][value]}"


def _show_limit_fields(*, model: bool) -> RunLimits:
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
    return RunLimits(int(steps), int(tokens) if tokens else None, float(seconds), float(money) if money else None)
