"""Verify: a reasoner asked a project's questions with gold answers, its failures repaired, and asked again."""

from uuid import UUID

import streamlit as st

from app.components.chrome import keys_door
from app.components.plain import plain
from app.components.queue import choose_project, current_project
from app.components.verb_job import VERIFYING, show_verb_job
from app.components.verification import follow_up, show_verification
from app.components.verify_form import ask_what_to_verify
from app.components.who import choose_who, who
from app.resources import database
from app.verification_report import Report, report_of
from db import verifications
from db.models import Project, Run, User

KEYS = {
    "Alt+V": "Verify the project's questions",
    "Alt+F": "Freeze the approved repairs and ask the failures again",
    "?": "This sheet",
}
LISTED = 30
# Seconds between two looks at what a verification at work has found; a string here would be drawn.
PULSE = 3.0


def masthead(project: Project, person: User) -> None:
    """The top of the page."""
    with database().read() as session:
        questions = len(verifications.gold_questions(session, project.id))
    with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
        choose_project()
        if st.button("Verify", key="verify", shortcut="Alt+V", icon=":material/fact_check:", disabled=not questions):
            ask_what_to_verify(project, questions)
        st.caption(f"{questions:,} questions with a gold answer", width="content")
        st.space("stretch")
        keys_door(KEYS)
        choose_who(person)


def choose_verification(project: Project) -> tuple[Run | None, UUID | None]:
    """The list, the latest first; gives what the address names, else the latest, and which the latest is."""
    with database().read() as session:
        runs = verifications.verifications(session, project.id)[:LISTED]
        told = {run.id: report_of(run, verifications.outcomes(session, run)) for run in runs}
    latest = runs[0] if runs else None
    named = st.query_params.get("verification", "")
    chosen = next((run for run in runs if str(run.id) == named), latest)
    for run in runs:
        _row(run, told[run.id], chosen=run is chosen)
    return chosen, latest.id if latest else None


def await_next(project: Project, latest: UUID | None) -> None:
    """Draw the page anew as soon as the verification that is at work has begun."""
    with database().read() as session:
        begun = verifications.verifications(session, project.id)[:1]
    if begun and begun[0].id != latest:
        st.rerun()


def _row(run: Run, report: Report, *, chosen: bool) -> None:
    with st.container(key=f"row_{run.id.hex}"):
        title = f"{report['reasoner']}, {report['library'] or 'no library'}" + (" again" if report["again_of"] else "")
        st.button(
            plain(title),
            key=f"open_{run.id.hex}",
            type="primary" if chosen else "tertiary",
            width="stretch",
            on_click=_go_to,
            args=(run.id,),
        )
        left = f", {report['left']:,} left" if report["left"] else ""
        st.caption(f"{run.started_at:%Y-%m-%d %H:%M} UTC: {report['right']:,} of {report['questions']:,} right{left}")


def _go_to(run_id: UUID) -> None:
    st.query_params["verification"] = str(run_id)


person = who()
project = current_project()
if project is None:
    st.info("There is no project yet; `showhow setup` prepares one.")
else:
    follow_up(project)
    masthead(project, person)
    left, right = st.columns([1, 3.8], gap="medium")
    with left:
        with st.container(key="list"):
            run, latest = choose_verification(project)
        if run is None:
            st.caption("What is verified is listed here.")
    with right:
        at_work = show_verb_job(VERIFYING, project.name)
        if at_work:
            st.fragment(await_next, run_every=PULSE)(project, latest)
        if run is not None:
            st.fragment(show_verification, run_every=PULSE if at_work else None)(project, run, at_work=at_work)
        elif not at_work:
            st.info(
                "A reasoner answers the questions of this project that have a gold answer. What it gets wrong is "
                "repaired on the Annotate page, approved on the Review page, and frozen into the library here; then "
                "the failures are asked again. Begin with Verify (Alt+V)."
            )
