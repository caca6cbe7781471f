"""One verification: its scores, its failures in the order of repair, and the scores before and after repairs."""

from collections.abc import Sequence
from uuid import UUID

import streamlit as st

from app.widgets.job_panel import VERIFICATION_JOB, start_verb_job
from app.widgets.plain_text import escape_html, escape_markdown
from app.widgets.table import TableCell, show_table
from db import verifications
from db.database import Database
from db.models import Project, Run, User
from db.verifications import VerificationOutcome
from evaluation.metrics import METRICS
from evaluation.number_format import format_money
from evaluation.repairs import (
    VerificationFailure,
    count_demonstrations_by_kind,
    list_approved_repairs,
    list_failures,
    repair_value,
)
from evaluation.verification_report import VerificationReport, build_verification_report, summarize_outcomes
from runs.services import Services

MAX_LISTED_FAILURES = 200
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
    "failed": "given up by {}",
}


def show_verification(services: Services, project: Project, run: Run, *, running: bool) -> None:
    """Draw the verification as a fragment; a failure that is clicked is opened by a rerun of the page."""
    if "open_failure" in st.session_state:
        st.rerun()
    with services.database.read() as session:
        outcomes = verifications.list_outcomes(session, run)
    report = build_verification_report(run, outcomes)
    st.html(f'<h1 class="world">{_format_heading(report)}</h1>')
    _show_metrics(report)
    if report["left"] and not running:
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button(f"Continue with the {report['left']:,} questions left", key="go_on", type="primary"):
                start_verb_job(VERIFICATION_JOB, project.name, ["verify", "--go-on", str(run.id)])
                st.rerun()
    if run.configuration.get("again_of"):
        _show_before_and_after(services.database, run, outcomes)
    failures = list_failures(services, run)
    if failures:
        _show_failures(services, project, run, failures, running=running)
    elif not report["left"]:
        st.success("Every question was answered correctly.")
    _show_scores_by_kind(services, run, report)


def _format_heading(report: VerificationReport) -> str:
    again = ", the failures again" if report["again_of"] else ""
    return escape_html(f"{report['reasoner']} with {report['library'] or 'no library'}{again}")


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
    if report["cost"] != 0:
        figures["cost"] = format_money(report["cost"])
    with st.container(horizontal=True, key="verification_sizes"):
        for name, value in figures.items():
            st.metric(name, value, width="content")


def _format_score(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _show_before_and_after(database: Database, run: Run, outcomes: Sequence[VerificationOutcome]) -> None:
    """Compare the scores of repaired failures with those of the verification before, by kind."""
    with database.read() as session:
        earlier = verifications.find_verification(session, UUID(run.configuration["again_of"]))
        before = {outcome.question_id: outcome for outcome in verifications.list_outcomes(session, earlier)}
    pairs = [(before[after.question_id], after) for after in outcomes if after.question_id in before and after.ending]
    repaired = sum(after.is_correct and not was.is_correct for was, after in pairs)
    library = earlier.configuration["library"] or "no library"
    st.markdown(
        f"Of {len(pairs):,} failures with {escape_markdown(library)}, **{repaired:,} are right now** with "
        f"{escape_markdown(run.configuration['library'])}. A question's own repair is never shown to it."
    )
    rows = []
    for kind in sorted({was.kind or "" for was, _ in pairs}):
        of_kind = [(was, after) for was, after in pairs if (was.kind or "") == kind]
        then = summarize_outcomes([was for was, _ in of_kind])
        now = summarize_outcomes([after for _, after in of_kind])
        rows.append(
            [
                TableCell(kind or "no kind"),
                TableCell(f"{len(of_kind):,}", number=True),
                TableCell(_format_score(then["f1"]), number=True),
                TableCell(_format_score(now["f1"]), number=True),
                TableCell(f"{now['right']:,}", number=True),
            ]
        )
    columns = ("kind", "failures", "F1 before", "F1 after", "right after")
    with st.container(width="content"):
        show_table(columns, rows, key="before_after", label="Before and after, by kind")


def _show_failures(
    services: Services, project: Project, run: Run, failures: Sequence[VerificationFailure], *, running: bool
) -> None:
    st.subheader(f"Failures ({len(failures):,})", anchor=False)
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
        TableCell(_truncate(gold), whole=True),
        TableCell(_truncate(answer)),
        TableCell(status, whole=True),
    ]


def _truncate(text: str) -> str:
    return text if len(text) <= 140 else f"{text[:140]} …"


def _request_open(trace: str) -> None:
    st.session_state["open_failure"] = trace


def open_requested_failure(person: User, project: Project) -> None:
    """Open the failure that was clicked on the Annotate page, where it can be repaired."""
    if trace := st.session_state.pop("open_failure", None):
        st.switch_page("annotate/page.py", query_params={"you": person.name, "project": project.name, "trace": trace})


def _show_scores_by_kind(services: Services, run: Run, report: VerificationReport) -> None:
    st.subheader("By kind of question", anchor=False)
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
                TableCell(f"{repair_value(failed, count):.1f}" if failed else "", number=True),
            ]
        )
    labels = (metric.label for metric in METRICS.values())
    columns = ("kind", "questions", "right", "refused", *labels, "demonstrations", "benefit of a repair")
    with st.container(width="content"):
        show_table(columns, rows, key="kinds", label="Scores by kind of question")
