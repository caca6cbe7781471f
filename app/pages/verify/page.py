"""The Verify page: runs a reasoner on questions with gold answers, and asks repaired failures again."""

from uuid import UUID

import streamlit as st

from app.pages.ask.form import SELECTION_LABELS
from app.pages.verify.results import open_requested_failure, show_verification
from app.services import services as process_services
from app.widgets.job_panel import VERIFICATION_JOB, show_verb_job, start_verb_job
from app.widgets.library_choice import list_versions
from app.widgets.page_layout import show_keys_button
from app.widgets.person import current_user, show_user_menu
from app.widgets.plain_text import escape_markdown
from app.widgets.queue import choose_project, current_project
from db import verifications
from db.database import Database
from db.models import Project, Run, User
from evaluation.verification_report import VerificationReport, build_verification_report
from reasoners.humaniq.options import SELECTION_DESCRIPTIONS
from reasoners.registry import REASONERS, default_reasoner
from runs.services import Services
from settings import DEFAULT_LIBRARY


@st.dialog("Verify", width="medium")
def show_verify_dialog(services: Services, project: Project, questions: int) -> None:
    """Ask for the reasoner and its options, and start `showhow verify` in the background."""
    st.caption(
        f"{questions:,} questions of this project have a gold answer. Each is answered and scored; wrong answers "
        "go into the annotators' queue for repair."
    )
    has_model = services.settings.model is not None
    reasoner = st.selectbox(
        "Reasoner",
        list(REASONERS),
        format_func=lambda name: REASONERS[name].label,
        index=list(REASONERS).index(default_reasoner(has_model=has_model).name),
        key="verify_reasoner",
    )
    library = st.selectbox(
        "Library",
        _library_references(services.database),
        key="verify_library",
        help="The demonstrations that the reasoner imitates.",
    )
    arguments = ["--reasoner", reasoner, *(["--library", library] if library else [])]
    if REASONERS[reasoner].needs_model:
        arguments += _show_model_fields()
    with st.container(horizontal=True):
        sample_size = st.number_input("Sample size", 1, questions, min(questions, 100), key="verify_most")
        parallel = st.number_input("Parallel", 1, 64, 2, key="verify_at_once", help="Questions at the same time.")
    arguments += ["--limit", str(sample_size), "--at-once", str(parallel)]
    is_model_missing = REASONERS[reasoner].needs_model and not has_model
    if is_model_missing:
        st.warning("No model is set up. Set SHOWHOW_MODEL and its key and restart the server, or choose replay.")
    if st.button("Verify", key="verify_now", type="primary", shortcut="Ctrl+Enter", disabled=is_model_missing):
        start_verb_job(VERIFICATION_JOB, project.name, ["verify", "--project", project.name, *arguments])
        st.query_params.pop("verification", None)
        st.rerun()


def _library_references(database: Database) -> list[str]:
    """Every version as NAME:NUMBER, those of the default library first."""
    references = [f"{version.name}:{version.number}" for version in list_versions(database)]
    return sorted(references, key=lambda reference: not reference.startswith(f"{DEFAULT_LIBRARY}:"))


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
            "Stop after (US dollars)", 0.0, value=None, key="verify_money", placeholder="no limit", width=200
        )
    return ["--mode", mode, "-k", str(k), *(["--most-money", str(money)] if money else [])]


KEYS = {
    "Alt+V": "Verify the project's questions",
    "Alt+F": "Freeze the approved repairs and ask the failures again",
    "?": "This sheet",
}
MAX_LISTED_RUNS = 30
# Seconds between two refreshes while a verification runs; a docstring here would be drawn on the page.
REFRESH_SECONDS = 3.0


def show_header(services: Services, project: Project, person: User) -> None:
    """Draw the top of the page."""
    with services.database.read() as session:
        questions = len(verifications.list_gold_questions(session, project.id))
    with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
        choose_project(services.database)
        if st.button("Verify", key="verify", shortcut="Alt+V", icon=":material/fact_check:", disabled=not questions):
            show_verify_dialog(services, project, questions)
        st.caption(f"{questions:,} questions with a gold answer", width="content")
        st.space("stretch")
        show_keys_button(KEYS)
        show_user_menu(person)


def choose_verification(database: Database, project: Project) -> tuple[Run | None, UUID | None]:
    """Draw the list; returns the verification of the URL, else the latest, and the id of the latest."""
    with database.read() as session:
        runs = verifications.list_verifications(session, project.id)[:MAX_LISTED_RUNS]
        reports = {run.id: build_verification_report(run, verifications.list_outcomes(session, run)) for run in runs}
    latest = runs[0] if runs else None
    requested = st.query_params.get("verification", "")
    chosen = next((run for run in runs if str(run.id) == requested), latest)
    for run in runs:
        _show_row(run, reports[run.id], chosen=run is chosen)
    return chosen, latest.id if latest else None


def rerun_when_started(database: Database, project: Project, latest: UUID | None) -> None:
    """Rerun the page as soon as the running job has stored its verification."""
    with database.read() as session:
        runs = verifications.list_verifications(session, project.id)[:1]
    if runs and runs[0].id != latest:
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


services = process_services()
person = current_user(services.database)
project = current_project(services.database)
if project is None:
    st.info("There is no project yet; `showhow setup` prepares one.")
else:
    open_requested_failure(person, project)
    show_header(services, project, person)
    left, right = st.columns([1, 3.8], gap="medium")
    with left:
        with st.container(key="list"):
            run, latest = choose_verification(services.database, project)
        if run is None:
            st.caption("Verifications are listed here.")
    with right:
        running = show_verb_job(VERIFICATION_JOB, project.name)
        if running:
            st.fragment(rerun_when_started, run_every=REFRESH_SECONDS)(services.database, project, latest)
        if run is not None:
            st.fragment(show_verification, run_every=REFRESH_SECONDS if running else None)(
                services, project, run, running=running
            )
        elif not running:
            st.info(
                "A reasoner answers the questions of this project that have a gold answer. What it gets wrong is "
                "repaired on the Annotate page, approved on the Review page, and frozen into the library here; then "
                "the failures are asked again. Begin with Verify (Alt+V)."
            )
