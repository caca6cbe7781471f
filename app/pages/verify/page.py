"""Verify: a reasoner asked a project's questions with gold answers, its failures repaired, and asked again.

What is to be verified, and how: a dialog that starts it beside the server.
"""

from uuid import UUID

import streamlit as st

from app.pages.ask.form import SELECTION_LABELS
from app.pages.verify.results import open_requested_failure, show_verification
from app.services import services
from app.widgets.job_panel import VERIFICATION_JOB, show_verb_job, start_verb_job
from app.widgets.library_choice import list_versions
from app.widgets.page_layout import show_keys_button
from app.widgets.person import current_user, show_user_menu
from app.widgets.plain_text import escape_markdown
from app.widgets.queue import choose_project, current_project
from db import verifications
from db.models import Project, Run, User
from evaluation.verification_report import VerificationReport, build_verification_report
from reasoners.humaniq.options import SELECTION_DESCRIPTIONS
from reasoners.registry import REASONERS, default_reasoner
from settings import DEFAULT_LIBRARY


@st.dialog("Verify", width="medium")
def show_verify_dialog(project: Project, questions: int) -> None:
    """The form; what it says becomes the words of the verb."""
    st.caption(
        f"{questions:,} questions of this project have a gold answer. Each is answered and scored; those that are not "
        "answered rightly go into the annotators' queue."
    )
    reasoner = st.selectbox(
        "Reasoner",
        list(REASONERS),
        format_func=lambda name: REASONERS[name].label,
        index=list(REASONERS).index(default_reasoner(has_model=services().settings.model is not None).name),
        key="verify_reasoner",
    )
    library = st.selectbox(
        "Library", _library_references(), key="verify_library", help="Its demonstrations are followed."
    )
    words = ["--reasoner", reasoner, *(["--library", library] if library else [])]
    if REASONERS[reasoner].needs_model:
        words += _show_model_fields()
    with st.container(horizontal=True):
        most = st.number_input("Questions, spread over all", 1, questions, min(questions, 100), key="verify_most")
        at_once = st.number_input("At the same time", 1, 64, 2, key="verify_at_once")
    words += ["--limit", str(most), "--at-once", str(at_once)]
    missing = REASONERS[reasoner].needs_model and services().settings.model is None
    if missing:
        st.warning(
            "No model is set up. Set SHOWHOW_MODEL and its key and start the server again, or follow a demonstration."
        )
    if st.button("Verify", key="verify_now", type="primary", shortcut="Ctrl+Enter", disabled=missing):
        start_verb_job(VERIFICATION_JOB, project.name, ["verify", "--project", project.name, *words])
        st.query_params.pop("verification", None)
        st.rerun()


def _library_references() -> list[str]:
    known = [f"{each.name}:{each.number}" for each in list_versions(services().database)]
    return sorted(known, key=lambda named: not named.startswith(f"{DEFAULT_LIBRARY}:"))


def _show_model_fields() -> list[str]:
    with st.container(horizontal=True):
        mode = st.selectbox(
            "Demonstrations",
            list(SELECTION_DESCRIPTIONS),
            format_func=SELECTION_LABELS.__getitem__,
            key="verify_mode",
            width=200,
        )
        k = st.number_input("k", 0, 8, 3, key="verify_k", width=110)
        money = st.number_input(
            "US dollars in all", 0.0, value=None, key="verify_money", placeholder="no limit", width=200
        )
    return ["--mode", mode, "-k", str(k), *(["--most-money", str(money)] if money else [])]


KEYS = {
    "Alt+V": "Verify the project's questions",
    "Alt+F": "Freeze the approved repairs and ask the failures again",
    "?": "This sheet",
}
MAX_LISTED_RUNS = 30
# Seconds between two looks at what a verification at work has found; a string here would be drawn.
REFRESH_SECONDS = 3.0


def show_header(project: Project, person: User) -> None:
    """The top of the page."""
    with services().database.read() as session:
        questions = len(verifications.list_gold_questions(session, project.id))
    with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
        choose_project(services().database)
        if st.button("Verify", key="verify", shortcut="Alt+V", icon=":material/fact_check:", disabled=not questions):
            show_verify_dialog(project, questions)
        st.caption(f"{questions:,} questions with a gold answer", width="content")
        st.space("stretch")
        show_keys_button(KEYS)
        show_user_menu(person)


def choose_verification(project: Project) -> tuple[Run | None, UUID | None]:
    """The list, the latest first; gives what the address names, else the latest, and which the latest is."""
    with services().database.read() as session:
        runs = verifications.list_verifications(session, project.id)[:MAX_LISTED_RUNS]
        told = {run.id: build_verification_report(run, verifications.list_outcomes(session, run)) for run in runs}
    latest = runs[0] if runs else None
    named = st.query_params.get("verification", "")
    chosen = next((run for run in runs if str(run.id) == named), latest)
    for run in runs:
        _show_row(run, told[run.id], chosen=run is chosen)
    return chosen, latest.id if latest else None


def rerun_when_started(project: Project, latest: UUID | None) -> None:
    """Draw the page anew as soon as the verification that is at work has begun."""
    with services().database.read() as session:
        begun = verifications.list_verifications(session, project.id)[:1]
    if begun and begun[0].id != latest:
        st.rerun()


def _show_row(run: Run, report: VerificationReport, *, chosen: bool) -> None:
    with st.container(key=f"row_{run.id.hex}"):
        title = f"{report['reasoner']}, {report['library'] or 'no library'}" + (" again" if report["again_of"] else "")
        st.button(
            escape_markdown(title),
            key=f"open_{run.id.hex}",
            type="primary" if chosen else "tertiary",
            width="stretch",
            on_click=_open_verification,
            args=(run.id,),
        )
        left = f", {report['left']:,} left" if report["left"] else ""
        st.caption(f"{run.started_at:%Y-%m-%d %H:%M} UTC: {report['right']:,} of {report['questions']:,} right{left}")


def _open_verification(run_id: UUID) -> None:
    st.query_params["verification"] = str(run_id)


person = current_user(services().database)
project = current_project(services().database)
if project is None:
    st.info("There is no project yet; `showhow setup` prepares one.")
else:
    open_requested_failure(project)
    show_header(project, person)
    left, right = st.columns([1, 3.8], gap="medium")
    with left:
        with st.container(key="list"):
            run, latest = choose_verification(project)
        if run is None:
            st.caption("What is verified is listed here.")
    with right:
        at_work = show_verb_job(VERIFICATION_JOB, project.name)
        if at_work:
            st.fragment(rerun_when_started, run_every=REFRESH_SECONDS)(project, latest)
        if run is not None:
            st.fragment(show_verification, run_every=REFRESH_SECONDS if at_work else None)(
                project, run, at_work=at_work
            )
        elif not at_work:
            st.info(
                "A reasoner answers the questions of this project that have a gold answer. What it gets wrong is "
                "repaired on the Annotate page, approved on the Review page, and frozen into the library here; then "
                "the failures are asked again. Begin with Verify (Alt+V)."
            )
