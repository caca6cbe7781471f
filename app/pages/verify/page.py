"""The Verify page: runs a reasoner on questions with gold answers, and asks repaired failures again."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import streamlit as st

from showhow.app.pages.verify.answers import OPENED_ANSWER, format_score, show_answers
from showhow.app.pages.verify.start_dialog import DEFAULT_PARALLEL, show_verify_dialog
from showhow.app.widgets.job_panel import VERIFICATION_JOB, may_start, show_verb_job, start_verb_job
from showhow.app.widgets.manage import show_removal_notice, show_run_button
from showhow.app.widgets.page_layout import escape_markdown, format_sentence, format_when, show_head, show_title
from showhow.app.widgets.person import acting_services
from showhow.app.widgets.queue import current_project
from showhow.app.widgets.run_scores import show_run_scores
from showhow.app.widgets.table import TableCell, show_table
from showhow.app.widgets.url_state import clear_url_parameters
from showhow.db.database import Database, StoreError
from showhow.db.models import Project, Run, User
from showhow.db.runs import runs, verifications
from showhow.db.unanswerable import CANNOT_BE_ANSWERED
from showhow.evaluation.metrics import METRICS
from showhow.evaluation.scoring.scoring import (
    VerificationReport,
    format_model,
    load_figures,
    load_verification_report,
)
from showhow.evaluation.value_format import format_count, format_money
from showhow.evaluation.verification.repairs import (
    count_demonstrations_by_kind,
    repair_priority,
)
from showhow.evaluation.verification.worker import describe_workers
from showhow.reasoners.registry import DEFAULT_PRESET, reasoner_title
from showhow.runs.budget import MAX_CONCURRENT_QUESTIONS
from showhow.runs.services import Services
from showhow.tasks.task import dump_call
from showhow.tasks.verification import ContinueRun, continue_run


def show_verification(services: Services, project: Project, run: Run, workers: str | None, *, running: bool) -> None:
    """Draw the verification as a fragment; a click on an answer reruns the page, which opens it."""
    with services.database.read() as session:
        stored = verifications.find_verification(session, run.id)
    current = describe_workers(services.database, stored) if workers else None
    if OPENED_ANSWER in st.session_state or (workers and not current):
        st.rerun()
    report = load_verification_report(services.database, run)
    show_title(report["name"] or _format_heading(report))
    details = [_format_heading(report)] if report["name"] else []
    if details or report["note"]:
        st.caption(escape_markdown(". ".join(filter(None, (*details, report["note"])))))
    if current:
        st.info(current, icon=":material/progress_activity:")
    _show_metrics(report)
    if report["left"] and not running and may_start(services.database, VERIFICATION_JOB):
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button(f"Continue with the {report['left']:,} questions left", key="go_on", type="primary"):
                call = dump_call(continue_run, ContinueRun(run=str(run.id)))
                start_verb_job(services.database, VERIFICATION_JOB, project.name, call)
                st.rerun()
    if run.spec.repeats is not None:
        _show_before_and_after(services.database, run, report)
    show_answers(services, project, run, report, running=running)
    _show_scores_by_kind(services, run, report)


def _format_heading(report: VerificationReport) -> str:
    again = ", the failures again" if report["again_of"] else ""
    model = f", {label}" if (label := format_model(report)) else ""
    preset = f" ({report['preset']})" if report["preset"] not in (None, DEFAULT_PRESET) else ""
    return f"{reasoner_title(report['reasoner'])}{preset} with {report['library'] or 'no library'}{model}{again}"


def _show_metrics(report: VerificationReport) -> None:
    left = {"left": f"{report['left']:,}"} if report["left"] else {}
    figures = {
        "questions": f"{report['questions']:,}",
        **left,
        "right": f"{report['right']:,}",
        "wrong": f"{report['answered'] - report['right']:,}",
        CANNOT_BE_ANSWERED: f"{report['cannot_be_answered']:,}",
        "refused": f"{report['refused']:,}",
        "failed": f"{report['failed']:,}",
        **{f"{metric.label} (all)": format_score(report[name]) for name, metric in METRICS.items()},
        **{
            f"{metric.label} (answered only)": format_score(report[f"{name}_answered"])
            for name, metric in METRICS.items()
        },
    }
    if report.get("pass_at_k"):
        k = report["repetitions"]
        figures |= {
            name: f"{report[key][k]:.2f}" for key, name in (("pass_at_k", f"pass@{k}"), ("pass_hat_k", f"pass^{k}"))
        }
    if report["model_calls"]:
        figures["cost"] = "unknown" if report["cost"] is None else format_money(report["cost"])
        if report["unreported_calls"] and report["cost_bound"] is not None:
            figures["cost, at most"] = format_money(report["cost_bound"])
    if report["unavailable"]:
        figures["source unavailable"] = f"{report['unavailable']:,}"
    with st.container(horizontal=True, key="verification_sizes"):
        for name, value in figures.items():
            st.metric(name, value, width="content")


def _show_before_and_after(database: Database, run: Run, after: VerificationReport) -> None:
    """Compare the scores of repaired failures with those of the previous verification, by kind."""
    with database.read() as session:
        previous_run = verifications.find_former_verification(session, run)
    if previous_run is None:
        st.caption("The verification whose failures were asked again here is deleted.")
        return
    before = load_figures(database, previous_run.id, asked_in=run.id)
    library = previous_run.spec.library or "no library"
    # Only failures were asked again, so each right answer is a repaired one.
    st.markdown(
        f"Of {before['questions']:,} failures with {escape_markdown(library)}, **{after['right']:,} are now right** "
        f"with {escape_markdown(str(run.spec.library))}. "
        "The repair of a question is never a demonstration for it."
    )
    rows = [
        [
            TableCell(kind or "no kind"),
            TableCell(f"{scores['questions']:,}", number=True),
            TableCell(format_score(scores["f1"]), number=True),
            TableCell(format_score(after["by_kind"][kind]["f1"]), number=True),
            TableCell(f"{after['by_kind'][kind]['right']:,}", number=True),
        ]
        for kind, scores in before["by_kind"].items()
    ]
    columns = ("kind", "failures", "F1 before", "F1 after", "right after")
    with st.container(width="content"):
        show_table(columns, rows, key="before_after", label="Before and after, by kind")


def open_requested_answer(person: User, project: Project) -> None:
    """Open the clicked answer on the Annotate page, where it can be repaired."""
    if trace := st.session_state.pop(OPENED_ANSWER, None):
        st.switch_page("annotate/page.py", query_params={"you": person.name, "project": project.name, "trace": trace})


def _show_scores_by_kind(services: Services, run: Run, report: VerificationReport) -> None:
    st.header("By kind of question", anchor=False)
    demonstrations = count_demonstrations_by_kind(services, run)
    rows = []
    for kind, scores in report["by_kind"].items():
        failed = scores["questions"] - scores["left"] - scores["right"]
        count = demonstrations[kind or None]
        rows.append(
            [
                TableCell(kind or "no kind"),
                TableCell(f"{scores['questions']:,}", number=True),
                TableCell(f"{scores['right']:,}", number=True),
                TableCell(f"{scores['cannot_be_answered']:,}", number=True),
                TableCell(f"{scores['refused']:,}", number=True),
                *(TableCell(format_score(scores[name]), number=True) for name in METRICS),
                TableCell(f"{count:,}", number=True),
                TableCell(f"{repair_priority(failed, count):.1f}" if failed else "", number=True),
            ]
        )
    labels = (metric.label for metric in METRICS.values())
    columns = (
        "kind",
        "questions",
        "right",
        CANNOT_BE_ANSWERED,
        "refused",
        *labels,
        "demonstrations",
        "benefit of a repair",
    )
    with st.container(width="content"):
        show_table(columns, rows, key="kinds", label="Scores by kind of question")


EXPLANATION = (
    "A reasoner answers the questions that have a gold answer. Wrong answers are repaired on the Annotate page, "
    "approved on the Review page and frozen into the library; then they are asked again."
)
HOW_TO_START = " Start with Verify (Alt+V)."
NO_GOLD = "No question of this project has a gold answer. Import some on the Project page, or choose another project."
MAX_LISTED_RUNS = 30
REFRESH_SECONDS = 3.0
"""Seconds between two refreshes while a verification runs."""


def show_header(services: Services, project: Project) -> int:
    """Draw the top of the page; returns the number of questions that can be verified."""
    with services.database.read() as session:
        questions = len(verifications.list_gold_questions(session, project.id))
    may_verify = may_start(services.database, VERIFICATION_JOB)
    who = "" if may_verify else " Reviewers and administrators can verify them."
    with show_head("Verify", f"{format_count(questions, 'question')} with a gold answer.{who}"):
        if st.button(
            "Verify",
            key="verify",
            shortcut="Alt+V",
            icon=":material/fact_check:",
            disabled=not questions or not may_verify,
        ):
            show_verify_dialog(services, project, questions)
    return questions


def choose_verification(database: Database, project: Project) -> tuple[Run | None, UUID | None]:
    """Draw the list; returns the verification of the URL, else the latest, and the id of the latest."""
    with database.read() as session:
        listed = verifications.list_verifications(session, project.id)[:MAX_LISTED_RUNS]
    reports = {run.id: load_verification_report(database, run) for run in listed}
    latest = listed[0] if listed else None
    requested = st.query_params.get("verification", "")
    chosen = next((run for run in listed if str(run.id) == requested), latest)
    for run in listed:
        _show_row(run, reports[run.id], chosen=run is chosen)
    return chosen, latest.id if latest else None


def show_concurrency(database: Database, run: Run) -> None:
    """Draw the number of parallel questions of a running verification, and the button that pauses it."""
    key = f"parallel_{run.id.hex}"
    is_refused = not may_start(database, VERIFICATION_JOB)

    def change(store: Callable[[Any], None]) -> None:
        try:
            with database.begin() as session:
                store(session)
        except StoreError as error:
            st.toast(format_sentence(str(error)))

    def set_concurrency() -> None:
        change(lambda session: runs.set_concurrency(session, run.id, st.session_state[key]))

    def pause(*, is_paused: bool) -> None:
        change(lambda session: runs.pause_run(session, run.id, is_paused=is_paused))

    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input(
            "Parallel",
            1,
            MAX_CONCURRENT_QUESTIONS,
            run.concurrency or DEFAULT_PARALLEL,
            key=key,
            on_change=set_concurrency,
            width=140,
            disabled=is_refused,
            help="Questions in parallel; a change takes effect within a second or two.",
        )
        label, icon = ("Resume", ":material/play_arrow:") if run.is_paused else ("Pause", ":material/pause:")
        st.button(
            label,
            key="pause",
            icon=icon,
            disabled=is_refused,
            on_click=pause,
            kwargs={"is_paused": not run.is_paused},
        )
        if run.is_paused:
            st.caption("Paused: questions at work are finished, and no other one is begun.")


def show_other_scores(services: Services, project: Project, run: Run) -> None:
    """Draw the scores of the verification by other metrics and by judges."""
    show_run_scores(services, project, lambda: run)


def rerun_when_started(database: Database, project: Project, latest: UUID | None) -> None:
    """Rerun the page as soon as the running job has stored its verification."""
    with database.read() as session:
        newest = verifications.list_verifications(session, project.id)[:1]
    if newest and newest[0].id != latest:
        st.rerun()


def _show_row(run: Run, report: VerificationReport, *, chosen: bool) -> None:
    with st.container(key=f"row_{run.id.hex}", gap=None):
        again = " again" if report["again_of"] else ""
        title = run.title or f"{reasoner_title(report['reasoner'])}, {report['library'] or 'no library'}{again}"
        st.button(
            escape_markdown(title),
            key=f"open_{run.id.hex}",
            type="primary" if chosen else "tertiary",
            width="stretch",
            on_click=_open_verification,
            args=(run.id,),
        )
        left = f", {report['left']:,} left" if report["left"] else ""
        score = f", F1 {report['f1']:.2f}" if report["f1"] is not None else ""
        st.caption(f"{format_when(run.started_at)}: {report['right']:,} of {report['questions']:,} right{score}{left}")


def _open_verification(run_id: UUID) -> None:
    clear_url_parameters("from")
    st.query_params["verification"] = str(run_id)


services, person = acting_services()
show_removal_notice()
project = current_project(services.database)
if project is None:
    show_head("Verify")
    st.info("There is no project yet. `showhow setup` makes one.")
else:
    open_requested_answer(person, project)
    questions = show_header(services, project)
    left, right = st.columns([1, 3.8], gap="medium")
    with left:
        with st.container(key="list"):
            run, latest = choose_verification(services.database, project)
        if run is None:
            st.caption("Verifications are listed here.")
    with right:
        running = show_verb_job(services.database, VERIFICATION_JOB, project.name)
        # The panel shows the work of this page's own job.
        is_own = running and run is not None and run.id == latest
        workers = None if run is None else describe_workers(services.database, run, is_own=is_own)
        if run is not None and run.finished_at is None and (workers or (running and run.id == latest)):
            show_concurrency(services.database, run)
        if running:
            st.fragment(rerun_when_started, run_every=REFRESH_SECONDS)(services.database, project, latest)
        if run is not None:
            show_run_button(services, run, parameters=["verification"])
            at_work = running or workers is not None
            st.fragment(show_verification, run_every=REFRESH_SECONDS if at_work else None)(
                services, project, run, workers, running=at_work
            )
            show_other_scores(services, project, run)
        elif not running:
            how_to_start = HOW_TO_START if may_start(services.database, VERIFICATION_JOB) else ""
            st.info(f"{EXPLANATION}{how_to_start}" if questions else NO_GOLD)
