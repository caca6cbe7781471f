"""The dialog that starts a verification: the reasoner, its options and its limits."""

from typing import Any

import streamlit as st

from showhow.app.widgets.choices import list_library_references, place_to_ask
from showhow.app.widgets.job_panel import VERIFICATION_JOB, start_verb_job
from showhow.app.widgets.page_layout import escape_markdown
from showhow.app.widgets.reasoner_form import show_options, show_preset, show_selection_options
from showhow.db.database import Database
from showhow.db.models import Project
from showhow.db.removal.renaming import MAX_TITLE_LENGTH
from showhow.evaluation.scoring.scoring import (
    describe_power,
    find_earlier_cost,
)
from showhow.evaluation.shared_model import TotalLimits
from showhow.evaluation.value_format import format_money
from showhow.llm.profiles import ProfileError
from showhow.llm.types import DEFAULT_PROFILE_NAME
from showhow.option_fields import OptionField, list_options
from showhow.reasoners.registry import REASONERS, default_reasoner
from showhow.runs.services import Services
from showhow.tasks.method import PlayedMethod, QuestionSample
from showhow.tasks.task import dump_call
from showhow.tasks.verification import Asking, VerifyQuestions, verify

FORM = "verify"
"""The beginning of the keys of its fields."""
MAX_SAMPLE = 100
"""The sample size that is proposed."""
DEFAULT_PARALLEL = 2
"""Questions in parallel."""
WORKERS_HELP = "Processes of `showhow worker`, on any machine, answer the questions."


@st.dialog("Verify", width="medium")
def show_verify_dialog(services: Services, project: Project, questions: int) -> None:
    """Ask for the reasoner and its options, and start the verification in the background."""
    st.caption(
        f"{questions:,} questions of this project have a gold answer. Each is answered and scored; wrong answers "
        "go into the annotators' list of repairs."
    )
    try:
        profiles = list(services.model_profiles())
    except ProfileError as error:
        st.error(escape_markdown(str(error)))
        profiles = []
    method = _choose_method(services, project, profiles)
    needs_model = REASONERS[str(method.reasoner)].needs_model
    described = {field.name: field for field in list_options(VerifyQuestions)}
    with st.container(horizontal=True):
        most = min(questions, MAX_SAMPLE)
        sample_size = int(_show_number(described["limit"], most, maximum=questions))
        parallel = int(_show_number(described["at_once"], DEFAULT_PARALLEL))
        repetitions = int(_show_number(described["repetitions"], 1))
        money = _show_number(described["money"], None) if needs_model else None
    with st.container(horizontal=True):
        name = st.text_input("Name", key="verify_name", max_chars=MAX_TITLE_LENGTH, placeholder="as lists show it")
        note = st.text_input("Note", key="verify_note")
    answerable = st.checkbox("Leave out the questions that cannot be answered", key="verify_answerable")
    workers = not services.database.is_sqlite and st.checkbox("By workers", key="verify_workers", help=WORKERS_HELP)
    st.caption(describe_power(sample_size))
    if needs_model and profiles:
        st.caption(_describe_price(services.database, project, str(method.reasoner), sample_size * repetitions))
    is_model_missing = needs_model and not profiles
    if is_model_missing:
        st.warning("No model is set up. Add a profile on the Settings page, or choose Replay.")
    if st.button("Verify", key="verify_now", type="primary", shortcut="Ctrl+Enter", disabled=is_model_missing):
        request = VerifyQuestions(
            project=project.name,
            method=method,
            sample=QuestionSample(limit=sample_size, answerable=answerable),
            totals=TotalLimits(money=money or None),
            asking=Asking(at_once=parallel, workers=workers),
            repetitions=repetitions,
            name=name.strip() or None,
            note=note.strip() or None,
        )
        start_verb_job(services.database, VERIFICATION_JOB, project.name, dump_call(verify, request))
        st.query_params.pop("verification", None)
        st.rerun()


def _choose_method(services: Services, project: Project, profiles: list[str]) -> PlayedMethod:
    """Draw the choice of the reasoner, its library, its model and its options."""
    reasoner = st.selectbox(
        "Reasoner",
        list(REASONERS),
        format_func=lambda name: REASONERS[name].label,
        index=list(REASONERS).index(default_reasoner(has_model=bool(profiles)).name),
        key="verify_reasoner",
    )
    library = st.selectbox(
        "Library",
        list_library_references(services.database, place_to_ask(project)),
        key="verify_library",
        help="The reasoner imitates the demonstrations of this version.",
    )
    entry = REASONERS[reasoner]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        profile = None
        if entry.needs_model:
            profile = st.selectbox(
                "Model", profiles, key="verify_profile", width=200, help="A profile of the Settings page."
            )
        preset = show_preset(FORM, entry)
        options = show_selection_options(FORM, entry)
    if entry.own_options[len(options) :]:
        with st.expander("Options", icon=":material/tune:"):
            options |= show_options(FORM, entry, without=options)
    return PlayedMethod(
        reasoner=reasoner,
        preset=preset,
        library=library,
        profile=None if profile == DEFAULT_PROFILE_NAME else profile,
        values=options,
    )


def _describe_price(database: Database, project: Project, reasoner: str, answers: int) -> str:
    """What so many answers will cost, by the last verification with this reasoner and model."""
    cost = find_earlier_cost(database, project.id, reasoner, st.session_state.get("verify_profile"))
    if cost is None:
        return "The price is not known before a verification with this reasoner and model; a limit bounds it."
    total = format_money(cost * answers)
    return escape_markdown(f"An answer cost at most {format_money(cost)} last time: about {total} for {answers:,}.")


def _show_number(field: OptionField, default: float | None, *, maximum: float | None = None) -> Any:
    """Draw a number of the task with its label, its bounds and its help."""
    lowest, highest = (limit if limit is None else field.kind(limit) for limit in (field.note.minimum, maximum))
    return st.number_input(
        field.label,
        lowest,
        highest or (field.note.maximum and field.kind(field.note.maximum)),
        default,
        key=f"{FORM}_{field.name}",
        placeholder="no limit",
        help=field.help,
    )
