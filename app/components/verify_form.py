"""What is to be verified, and how: a dialog that starts it beside the server."""

import streamlit as st

from app.components.ask_form import CHOOSING
from app.components.verb_job import VERIFYING, start_verb_job
from app.components.version_list import known_versions
from app.resources import settings
from app.solving import REPLAY
from db.models import Project
from reasoners.registry import MAKERS
from reasoners.setup import SELECTIONS
from settings import DEFAULT_LIBRARY

SAID = {
    REPLAY: "Follow a demonstration (no model)",
    "humaniq": "HumanIQ: one agent with a model",
    "fusion": "Fusion: text and graph apart, then merged",
}


@st.dialog("Verify", width="medium")
def ask_what_to_verify(project: Project, questions: int) -> None:
    """The form; what it says becomes the words of the verb."""
    st.caption(
        f"{questions:,} questions of this project have a gold answer. Each is answered and scored; those that are not "
        "answered rightly go into the annotators' queue."
    )
    reasoner = st.selectbox("Reasoner", list(MAKERS), format_func=_said, index=_usual(), key="verify_reasoner")
    library = st.selectbox("Library", _libraries(), key="verify_library", help="Its demonstrations are followed.")
    words = ["--reasoner", reasoner, *(["--library", library] if library else [])]
    if reasoner != REPLAY:
        words += _with_a_model()
    with st.container(horizontal=True):
        most = st.number_input("Questions, spread over all", 1, questions, min(questions, 100), key="verify_most")
        at_once = st.number_input("At the same time", 1, 64, 2, key="verify_at_once")
    words += ["--limit", str(most), "--at-once", str(at_once)]
    missing = reasoner != REPLAY and settings().model is None
    if missing:
        st.warning(
            "No model is set up. Set SHOWHOW_MODEL and its key and start the server again, or follow a demonstration."
        )
    if st.button("Verify", key="verify_now", type="primary", shortcut="Ctrl+Enter", disabled=missing):
        start_verb_job(VERIFYING, project.name, ["verify", "--project", project.name, *words])
        st.query_params.pop("verification", None)
        st.rerun()


def _said(name: str) -> str:
    return SAID.get(name, name)


def _usual() -> int:
    wanted = REPLAY if settings().model is None else "humaniq"
    return list(MAKERS).index(wanted) if wanted in MAKERS else 0


def _libraries() -> list[str]:
    known = [f"{each.name}:{each.number}" for each in known_versions()]
    return sorted(known, key=lambda named: not named.startswith(f"{DEFAULT_LIBRARY}:"))


def _with_a_model() -> list[str]:
    with st.container(horizontal=True):
        mode = st.selectbox(
            "Demonstrations", list(SELECTIONS), format_func=CHOOSING.__getitem__, key="verify_mode", width=200
        )
        k = st.number_input("k", 0, 8, 3, key="verify_k", width=110)
        money = st.number_input(
            "US dollars in all", 0.0, value=None, key="verify_money", placeholder="no limit", width=200
        )
    return ["--mode", mode, "-k", str(k), *(["--most-money", str(money)] if money else [])]
