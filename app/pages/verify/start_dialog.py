"""The dialog that starts a verification: the reasoner, its options and its limits."""

import streamlit as st

from showhow.app.widgets.choices import list_library_references, place_to_ask
from showhow.app.widgets.job_panel import VERIFICATION_JOB, start_verb_job
from showhow.app.widgets.page_layout import escape_markdown
from showhow.app.widgets.selection_form import selection_label
from showhow.db.database import Database
from showhow.db.models import Project
from showhow.db.removal.renaming import MAX_TITLE_LENGTH
from showhow.evaluation.scoring.scoring import (
    describe_power,
    find_earlier_cost,
)
from showhow.evaluation.value_format import format_money
from showhow.llm.profiles import ProfileError
from showhow.llm.types import DEFAULT_PROFILE_NAME
from showhow.reasoners.humaniq.options import list_selections
from showhow.reasoners.registry import REASONERS, default_reasoner
from showhow.runs.budget import MAX_CONCURRENT_QUESTIONS
from showhow.runs.services import Services

DEFAULT_PARALLEL = 2
"""Questions in parallel."""
WORKERS_HELP = "Processes of `showhow worker`, on any machine, answer the questions."


@st.dialog("Verify", width="medium")
def show_verify_dialog(services: Services, project: Project, questions: int) -> None:
    """Ask for the reasoner and its options, and start `showhow verify` in the background."""
    st.caption(
        f"{questions:,} questions of this project have a gold answer. Each is answered and scored; wrong answers "
        "go into the annotators' list of repairs."
    )
    try:
        profiles = list(services.model_profiles())
    except ProfileError as error:
        st.error(escape_markdown(str(error)))
        profiles = []
    has_model = bool(profiles)
    reasoner = st.selectbox(
        "Reasoner",
        list(REASONERS),
        format_func=lambda name: REASONERS[name].label,
        index=list(REASONERS).index(default_reasoner(has_model=has_model).name),
        key="verify_reasoner",
    )
    library = st.selectbox(
        "Library",
        list_library_references(services.database, place_to_ask(project)),
        key="verify_library",
        help="The reasoner imitates the demonstrations of this version.",
    )
    arguments = ["--reasoner", reasoner, *(["--library", library] if library else [])]
    needs_model = REASONERS[reasoner].needs_model
    if needs_model:
        arguments += _show_model_fields(profiles)
    with st.container(horizontal=True):
        sample_size = st.number_input("Sample size", 1, questions, min(questions, 100), key="verify_most")
        parallel = st.number_input(
            "Parallel",
            1,
            MAX_CONCURRENT_QUESTIONS,
            DEFAULT_PARALLEL,
            key="verify_at_once",
            help="Questions in parallel.",
        )
        repetitions = st.number_input(
            "Repetitions", 1, 100, 1, key="verify_repetitions", help="How often each question is asked."
        )
    with st.container(horizontal=True):
        name = st.text_input("Name", key="verify_name", max_chars=MAX_TITLE_LENGTH, placeholder="as lists show it")
        note = st.text_input("Note", key="verify_note")
    arguments += [
        *(["--name", name.strip()] if name.strip() else []),
        *(["--note", note.strip()] if note.strip() else []),
    ]
    arguments += ["--limit", str(sample_size), "--at-once", str(parallel), "--repetitions", str(repetitions)]
    if st.checkbox("Leave out the questions that cannot be answered", key="verify_answerable"):
        arguments.append("--answerable-only")
    if not services.database.is_sqlite and st.checkbox("By workers", key="verify_workers", help=WORKERS_HELP):
        arguments.append("--workers")
    st.caption(describe_power(sample_size))
    if needs_model and has_model:
        st.caption(_describe_price(services.database, project, reasoner, sample_size * repetitions))
    is_model_missing = needs_model and not has_model
    if is_model_missing:
        st.warning("No model is set up. Add a profile on the Settings page, or choose Replay.")
    if st.button("Verify", key="verify_now", type="primary", shortcut="Ctrl+Enter", disabled=is_model_missing):
        start_verb_job(
            services.database, VERIFICATION_JOB, project.name, ["verify", "--project", project.name, *arguments]
        )
        st.query_params.pop("verification", None)
        st.rerun()


def _describe_price(database: Database, project: Project, reasoner: str, answers: int) -> str:
    """What so many answers will cost, by the last verification with this reasoner and model."""
    cost = find_earlier_cost(database, project.id, reasoner, st.session_state.get("verify_profile"))
    if cost is None:
        return "The price is not known before a verification with this reasoner and model; a limit bounds it."
    total = format_money(cost * answers)
    return escape_markdown(f"An answer cost at most {format_money(cost)} last time: about {total} for {answers:,}.")


def _show_model_fields(profiles: list[str]) -> list[str]:
    with st.container(horizontal=True):
        profile = st.selectbox(
            "Model", profiles, key="verify_profile", width=200, help="A profile of the Settings page."
        )
        mode = st.selectbox(
            "Demonstrations",
            list(list_selections()),
            format_func=selection_label,
            key="verify_mode",
            width=200,
        )
        k = st.number_input("k", 0, 8, 3, key="verify_k", width=110)
        money = st.number_input(
            "Stop after (US dollars)", 0.0, value=None, key="verify_money", placeholder="no limit", width=200
        )
    model = [] if profile in (None, DEFAULT_PROFILE_NAME) else ["--profile", profile]
    return [*model, "--mode", mode, "-k", str(k), *(["--most-money", str(money)] if money else [])]
