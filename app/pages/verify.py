"""The Verify page: runs a reasoner on questions with gold answers, and asks repaired failures again."""

from collections.abc import Sequence
from uuid import UUID

import streamlit as st

from app.pages.ask.form import SELECTION_LABELS
from app.services import current_services
from app.widgets.choices import list_versions
from app.widgets.job_panel import VERIFICATION_JOB, show_verb_job, start_verb_job
from app.widgets.page_layout import escape_markdown, format_when, show_head, show_title
from app.widgets.person import current_user
from app.widgets.queue import current_project
from app.widgets.run_scores import show_run_scores
from app.widgets.table import TableCell, shorten, show_table
from db import runs, verifications
from db.database import Database
from db.models import Project, Run, User
from evaluation.metrics import METRICS
from evaluation.repairs import (
    VerificationFailure,
    count_demonstrations_by_kind,
    list_approved_repairs,
    list_failures,
    repair_priority,
)
from evaluation.scoring import (
    VerificationReport,
    describe_power,
    find_earlier_cost,
    format_model,
    load_figures,
    load_verification_report,
)
from evaluation.value_format import format_count, format_money
from evaluation.worker import describe_workers
from llm.profiles import ProfileError
from llm.types import DEFAULT_PROFILE_NAME
from reasoners.humaniq.options import SELECTION_DESCRIPTIONS
from reasoners.registry import REASONERS, default_reasoner, reasoner_title
from runs.budget import MAX_CONCURRENT_QUESTIONS
from runs.services import Services
from settings import DEFAULT_LIBRARY

DEFAULT_PARALLEL = 2
"""Questions in parallel."""
MAX_LISTED_FAILURES = 200
WORKERS_HELP = "Processes of `showhow worker`, on any machine, answer the questions."
ORDER_EXPLANATION = (
    "Sorted by expected benefit of a repair: the failures of a kind that are not being repaired yet, divided by one "
    "more than its demonstrations and repairs."
)
REPAIR_STATUS_LABELS = {
    "held": "held by {}",
    "draft": "being repaired by {}",
    "submitted": "repaired by {}, in review",
    "approved": "repaired by {}, approved",
    "rejected": "returned to {}",
    "failed": "abandoned by {}",
}


def show_verification(services: Services, project: Project, run: Run, workers: str | None, *, running: bool) -> None:
    """Draw the verification as a fragment; a click on a failure reruns the page, which opens it."""
    with services.database.read() as session:
        current = describe_workers(services.database, verifications.find_verification(session, run.id))
    if "open_failure" in st.session_state or (workers and not current):
        st.rerun()
    report = load_verification_report(services.database, run)
    show_title(_format_heading(report))
    if current:
        st.caption(current)
    _show_metrics(report)
    if report["left"] and not running:
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button(f"Continue with the {report['left']:,} questions left", key="go_on", type="primary"):
                start_verb_job(VERIFICATION_JOB, project.name, ["verify", "--go-on", str(run.id)])
                st.rerun()
    if run.configuration.get("again_of"):
        _show_before_and_after(services.database, run, report)
    failures = list_failures(services, run)
    if failures:
        _show_failures(services, project, run, failures, running=running)
    elif report["questions"] == report["right"]:
        st.success("Every question was answered correctly.")
    _show_scores_by_kind(services, run, report)


def _format_heading(report: VerificationReport) -> str:
    again = ", the failures again" if report["again_of"] else ""
    model = f", {label}" if (label := format_model(report)) else ""
    return f"{reasoner_title(report['reasoner'])} with {report['library'] or 'no library'}{model}{again}"


def _show_metrics(report: VerificationReport) -> None:
    left = {"left": f"{report['left']:,}"} if report["left"] else {}
    figures = {
        "questions": f"{report['questions']:,}",
        **left,
        "right": f"{report['right']:,}",
        "wrong": f"{report['answered'] - report['right']:,}",
        "refused": f"{report['refused']:,}",
        "failed": f"{report['failed']:,}",
        **{f"{metric.label} (all)": _format_score(report[name]) for name, metric in METRICS.items()},
        **{
            f"{metric.label} (answered only)": _format_score(report[f"{name}_answered"])
            for name, metric in METRICS.items()
        },
    }
    if report.get("pass_at_k"):
        k = report["repetitions"]
        figures |= {
            name: f"{report[key][k]:.2f}" for key, name in (("pass_at_k", f"pass@{k}"), ("pass_hat_k", f"pass^{k}"))
        }
    if report["model_calls"]:
        is_bounded = report["unreported_calls"] and report["cost_bound"] is not None
        cost = report["cost_bound" if is_bounded else "cost"]
        figures["cost, at most" if is_bounded else "cost"] = "unknown" if cost is None else format_money(cost)
    if report["unavailable"]:
        figures["source unavailable"] = f"{report['unavailable']:,}"
    with st.container(horizontal=True, key="verification_sizes"):
        for name, value in figures.items():
            st.metric(name, value, width="content")


def _format_score(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _show_before_and_after(database: Database, run: Run, after: VerificationReport) -> None:
    """Compare the scores of repaired failures with those of the previous verification, by kind."""
    with database.read() as session:
        previous_run = verifications.find_verification(session, UUID(run.configuration["again_of"]))
    before = load_figures(database, previous_run.id, asked_in=run.id)
    library = previous_run.configuration["library"] or "no library"
    # Only failures were asked again, so each right answer is a repaired one.
    st.markdown(
        f"Of {before['questions']:,} failures with {escape_markdown(library)}, **{after['right']:,} are now right** "
        f"with {escape_markdown(run.configuration['library'])}. "
        "The repair of a question is never a demonstration for it."
    )
    rows = [
        [
            TableCell(kind or "no kind"),
            TableCell(f"{scores['questions']:,}", number=True),
            TableCell(_format_score(scores["f1"]), number=True),
            TableCell(_format_score(after["by_kind"][kind]["f1"]), number=True),
            TableCell(f"{after['by_kind'][kind]['right']:,}", number=True),
        ]
        for kind, scores in before["by_kind"].items()
    ]
    columns = ("kind", "failures", "F1 before", "F1 after", "right after")
    with st.container(width="content"):
        show_table(columns, rows, key="before_after", label="Before and after, by kind")


def _show_failures(
    services: Services, project: Project, run: Run, failures: Sequence[VerificationFailure], *, running: bool
) -> None:
    st.header(f"Failures ({len(failures):,})", anchor=False)
    approved = list_approved_repairs(services, run)
    with st.container(horizontal=True, vertical_alignment="center"):
        if approved and not running:
            count = f"{len(approved):,} repair{'' if len(approved) == 1 else 's'}"
            label = f"Freeze {count} and ask the failures again"
            if st.button(label, key="again", type="primary", shortcut="Alt+F", icon=":material/replay:"):
                start_verb_job(VERIFICATION_JOB, project.name, ["verify", "--again", str(run.id)])
                st.query_params.pop("verification", None)
                st.rerun()
        else:
            st.caption(
                "Repairs that are approved on the Review page can be frozen here as the next version of the library; "
                "then the failures are asked again."
            )
    rows = [_failure_row(rank, failure) for rank, failure in enumerate(failures[:MAX_LISTED_FAILURES], 1)]
    columns = ("", "question", "kind", "gold answer", "answer or error", "repair")
    show_table(columns, rows, key="failures", label="Failures by expected benefit of a repair", go=_request_open)
    if len(failures) > MAX_LISTED_FAILURES:
        st.caption(f"and {len(failures) - MAX_LISTED_FAILURES:,} more")
    st.caption(ORDER_EXPLANATION)


def _failure_row(rank: int, failure: VerificationFailure) -> list[TableCell]:
    outcome, repair = failure.outcome, failure.repair
    gold = ", ".join(str(answer["text"]) for answer in outcome.gold)
    answer = outcome.answer or f"{outcome.ending}: {outcome.failure or ''}"
    status = "" if repair is None else REPAIR_STATUS_LABELS[repair.status].format(repair.person or "an unknown person")
    return [
        TableCell(f"{rank}", number=True),
        TableCell(outcome.question, go=str(outcome.trace_id)),
        TableCell(outcome.kind or "", whole=True),
        TableCell(shorten(gold), whole=True),
        TableCell(shorten(answer)),
        TableCell(status, whole=True),
    ]


def _request_open(trace: str) -> None:
    st.session_state["open_failure"] = trace


def open_requested_failure(person: User, project: Project) -> None:
    """Open the clicked failure on the Annotate page, where it can be repaired."""
    if trace := st.session_state.pop("open_failure", None):
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
                TableCell(f"{scores['refused']:,}", number=True),
                *(TableCell(_format_score(scores[name]), number=True) for name in METRICS),
                TableCell(f"{count:,}", number=True),
                TableCell(f"{repair_priority(failed, count):.1f}" if failed else "", number=True),
            ]
        )
    labels = (metric.label for metric in METRICS.values())
    columns = ("kind", "questions", "right", "refused", *labels, "demonstrations", "benefit of a repair")
    with st.container(width="content"):
        show_table(columns, rows, key="kinds", label="Scores by kind of question")


@st.dialog("Verify", width="medium")
def show_verify_dialog(services: Services, project: Project, questions: int) -> None:
    """Ask for the reasoner and its options, and start `showhow verify` in the background."""
    st.caption(
        f"{questions:,} questions of this project have a gold answer. Each is answered and scored; wrong answers "
        "go into the annotators' queue for repair."
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
        _library_references(services.database),
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
    arguments += ["--limit", str(sample_size), "--at-once", str(parallel), "--repetitions", str(repetitions)]
    if not services.database.is_sqlite and st.checkbox("By workers", key="verify_workers", help=WORKERS_HELP):
        arguments.append("--workers")
    st.caption(describe_power(sample_size))
    if needs_model and has_model:
        st.caption(_describe_price(services.database, project, reasoner, sample_size * repetitions))
    is_model_missing = needs_model and not has_model
    if is_model_missing:
        st.warning("No model is set up. Add a profile on the Settings page, or choose Replay.")
    if st.button("Verify", key="verify_now", type="primary", shortcut="Ctrl+Enter", disabled=is_model_missing):
        start_verb_job(VERIFICATION_JOB, project.name, ["verify", "--project", project.name, *arguments])
        st.query_params.pop("verification", None)
        st.rerun()


def _describe_price(database: Database, project: Project, reasoner: str, answers: int) -> str:
    """What so many answers will cost, by the last verification with this reasoner and model."""
    cost = find_earlier_cost(database, project.id, reasoner, st.session_state.get("verify_profile"))
    if cost is None:
        return "The price is not known before a verification with this reasoner and model; a limit bounds it."
    total = format_money(cost * answers)
    return escape_markdown(f"An answer cost at most {format_money(cost)} last time: about {total} for {answers:,}.")


def _library_references(database: Database) -> list[str]:
    """Every version as NAME:NUMBER, those of the default library first."""
    references = [f"{version.name}:{version.number}" for version in list_versions(database)]
    return sorted(references, key=lambda reference: not reference.startswith(f"{DEFAULT_LIBRARY}:"))


def _show_model_fields(profiles: list[str]) -> list[str]:
    with st.container(horizontal=True):
        profile = st.selectbox(
            "Model", profiles, key="verify_profile", width=200, help="A profile of the Settings page."
        )
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
    model = [] if profile in (None, DEFAULT_PROFILE_NAME) else ["--profile", profile]
    return [*model, "--mode", mode, "-k", str(k), *(["--most-money", str(money)] if money else [])]


EXPLANATION = (
    "A reasoner answers the questions that have a gold answer. Wrong answers are repaired on the Annotate page, "
    "approved on the Review page and frozen into the library; then they are asked again. Start with Verify (Alt+V)."
)
NO_GOLD = "No question of this project has a gold answer. Import some on the Project page, or choose another project."
MAX_LISTED_RUNS = 30
REFRESH_SECONDS = 3.0
"""Seconds between two refreshes while a verification runs."""


def show_header(services: Services, project: Project) -> int:
    """Draw the top of the page; returns the number of questions that can be verified."""
    with services.database.read() as session:
        questions = len(verifications.list_gold_questions(session, project.id))
    with show_head("Verify", f"{format_count(questions, 'question')} with a gold answer."):
        if st.button("Verify", key="verify", shortcut="Alt+V", icon=":material/fact_check:", disabled=not questions):
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

    def change() -> None:
        with database.begin() as session:
            runs.set_concurrency(session, run.id, st.session_state[key])

    def pause(*, is_paused: bool) -> None:
        with database.begin() as session:
            runs.pause_run(session, run.id, is_paused=is_paused)

    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input(
            "Parallel",
            1,
            MAX_CONCURRENT_QUESTIONS,
            run.concurrency or DEFAULT_PARALLEL,
            key=key,
            on_change=change,
            width=140,
            help="Questions in parallel; a change takes effect within a second or two.",
        )
        label, icon = ("Resume", ":material/play_arrow:") if run.is_paused else ("Pause", ":material/pause:")
        st.button(label, key="pause", icon=icon, on_click=pause, kwargs={"is_paused": not run.is_paused})
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
        title = f"{reasoner_title(report['reasoner'])}, {report['library'] or 'no library'}{again}"
        st.button(
            escape_markdown(title),
            key=f"open_{run.id.hex}",
            type="primary" if chosen else "tertiary",
            width="stretch",
            on_click=_open_verification,
            args=(run.id,),
        )
        left = f", {report['left']:,} left" if report["left"] else ""
        st.caption(f"{format_when(run.started_at)}: {report['right']:,} of {report['questions']:,} right{left}")


def _open_verification(run_id: UUID) -> None:
    st.query_params["verification"] = str(run_id)


services = current_services()
person = current_user(services.database)
project = current_project(services.database)
if project is None:
    show_head("Verify")
    st.info("There is no project yet. `showhow setup` makes one.")
else:
    open_requested_failure(person, project)
    questions = show_header(services, project)
    left, right = st.columns([1, 3.8], gap="medium")
    with left:
        with st.container(key="list"):
            run, latest = choose_verification(services.database, project)
        if run is None:
            st.caption("Verifications are listed here.")
    with right:
        running = show_verb_job(VERIFICATION_JOB, project.name)
        workers = None if run is None else describe_workers(services.database, run)
        if run is not None and run.finished_at is None and (workers or (running and run.id == latest)):
            show_concurrency(services.database, run)
        if running:
            st.fragment(rerun_when_started, run_every=REFRESH_SECONDS)(services.database, project, latest)
        if run is not None:
            at_work = running or workers is not None
            st.fragment(show_verification, run_every=REFRESH_SECONDS if at_work else None)(
                services, project, run, workers, running=at_work
            )
            show_other_scores(services, project, run)
        elif not running:
            st.info(EXPLANATION if questions else NO_GOLD)
