"""One verification: how good the answers are, which failures to repair first, and what repairs have brought."""

from collections.abc import Sequence
from uuid import UUID

import streamlit as st

from app.services import services
from app.widgets.job_panel import VERIFICATION_JOB, start_verb_job
from app.widgets.person import current_user
from app.widgets.plain_text import escape_html, escape_markdown
from app.widgets.table import TableCell, show_table
from db import verifications
from db.models import Project, Run
from db.verifications import VerificationOutcome
from evaluation.number_format import format_money
from evaluation.repairs import (
    VerificationFailure,
    count_demonstrations_by_kind,
    list_approved_repairs,
    list_failures,
    repair_value,
)
from evaluation.verification_report import VerificationReport, build_verification_report, summarize_outcomes

MAX_LISTED_FAILURES = 200
ORDER_EXPLANATION = (
    "The order is by what the next repair of a kind is worth: its failures that nobody repairs yet, divided by one "
    "more than the demonstrations and repairs that it has. Kinds where the library is thin and failures are many come "
    "first."
)
REPAIR_STATUS_LABELS = {
    "held": "held by {}",
    "draft": "being repaired by {}",
    "submitted": "repaired by {}, in review",
    "approved": "repaired by {}, approved",
    "rejected": "returned to {}",
    "failed": "given up by {}",
}


def show_verification(project: Project, run: Run, *, at_work: bool) -> None:
    """Draw it; as a fragment, which leaves it to the page to open a failure."""
    if "open_failure" in st.session_state:
        st.rerun()
    with services().database.read() as session:
        found = verifications.list_outcomes(session, run)
    report = build_verification_report(run, found)
    st.html(f'<h1 class="world">{_format_heading(report)}</h1>')
    _show_metrics(report)
    if report["left"] and not at_work:
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button(f"Go on with the {report['left']:,} that are left", key="go_on", type="primary"):
                start_verb_job(VERIFICATION_JOB, project.name, ["verify", "--go-on", str(run.id)])
                st.rerun()
    if run.configuration.get("again_of"):
        _show_before_and_after(run, found)
    failed = list_failures(services(), run)
    if failed:
        _show_failures(project, run, failed, at_work=at_work)
    elif not report["left"]:
        st.success("Every question was answered rightly.")
    _show_scores_by_kind(run, report)


def _format_heading(report: VerificationReport) -> str:
    again = ", the failures again" if report["again_of"] else ""
    return escape_html(f"{report['reasoner']} with {report['library'] or 'no library'}{again}")


def _show_metrics(report: VerificationReport) -> None:
    left = {"left": f"{report['left']:,}"} if report["left"] else {}
    told = {
        "questions": f"{report['questions']:,}",
        **left,
        "right": f"{report['right']:,}",
        "wrong": f"{report['answered'] - report['right']:,}",
        "refused": f"{report['refused']:,}",
        "failed": f"{report['failed']:,}",
        "F1 of all": _format_score(report["f1"]),
        "F1 of the answered": _format_score(report["f1_answered"]),
    }
    if report["cost"] != 0:
        told["cost"] = format_money(report["cost"])
    with st.container(horizontal=True, key="verification_sizes"):
        for name, value in told.items():
            st.metric(name, value, width="content")


def _format_score(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _show_before_and_after(run: Run, found: Sequence[VerificationOutcome]) -> None:
    """Before and after, by kind."""
    with services().database.read() as session:
        earlier = verifications.find_verification(session, UUID(run.configuration["again_of"]))
        before = {each.question_id: each for each in verifications.list_outcomes(session, earlier)}
    pairs = [(before[each.question_id], each) for each in found if each.question_id in before and each.ending]
    mended_now = sum(after.is_correct and not was.is_correct for was, after in pairs)
    told = earlier.configuration["library"] or "no library"
    st.markdown(
        f"Of {len(pairs):,} failures with {escape_markdown(told)}, **{mended_now:,} are right now** with "
        f"{escape_markdown(run.configuration['library'])}. A question's own repair is never shown to it."
    )
    rows = []
    for kind in sorted({was.kind or "" for was, _ in pairs}):
        mine = [(was, after) for was, after in pairs if (was.kind or "") == kind]
        then, now = summarize_outcomes([was for was, _ in mine]), summarize_outcomes([after for _, after in mine])
        rows.append(
            [
                TableCell(kind or "no kind"),
                TableCell(f"{len(mine):,}", number=True),
                TableCell(_format_score(then["f1"]), number=True),
                TableCell(_format_score(now["f1"]), number=True),
                TableCell(f"{now['right']:,}", number=True),
            ]
        )
    columns = ("kind", "failures", "F1 before", "F1 after", "right after")
    with st.container(width="content"):
        show_table(columns, rows, key="before_after", label="Before and after, by kind")


def _show_failures(project: Project, run: Run, failed: Sequence[VerificationFailure], *, at_work: bool) -> None:
    st.subheader(f"Failures ({len(failed):,})", anchor=False)
    approved = list_approved_repairs(services(), run)
    with st.container(horizontal=True, vertical_alignment="center"):
        if approved and not at_work:
            many = f"{len(approved):,} repair{'' if len(approved) == 1 else 's'}"
            label = f"Freeze {many} and ask the failures again"
            if st.button(label, key="again", type="primary", shortcut="Alt+F", icon=":material/replay:"):
                start_verb_job(VERIFICATION_JOB, project.name, ["verify", "--again", str(run.id)])
                st.query_params.pop("verification", None)
                st.rerun()
        else:
            st.caption(
                "Repairs that are approved on the Review page can be frozen here as the library's next version, and "
                "the failures be asked again."
            )
    rows = [_failure_row(place, each) for place, each in enumerate(failed[:MAX_LISTED_FAILURES], 1)]
    columns = ("", "question", "kind", "gold answer", "what came instead", "repair")
    show_table(columns, rows, key="failures", label="Failures, what teaches most first", go=_request_open)
    if len(failed) > MAX_LISTED_FAILURES:
        st.caption(f"and {len(failed) - MAX_LISTED_FAILURES:,} more")
    st.caption(ORDER_EXPLANATION)


def _failure_row(place: int, each: VerificationFailure) -> list[TableCell]:
    outcome, repair = each.outcome, each.repair
    gold = ", ".join(str(answer["text"]) for answer in outcome.gold)
    instead = outcome.answer or f"{outcome.ending}: {outcome.failure or ''}"
    status = "" if repair is None else REPAIR_STATUS_LABELS[repair.status].format(repair.person or "somebody")
    return [
        TableCell(f"{place}", number=True),
        TableCell(outcome.question, go=str(outcome.trace_id)),
        TableCell(outcome.kind or "", whole=True),
        TableCell(_truncate(gold), whole=True),
        TableCell(_truncate(instead)),
        TableCell(status, whole=True),
    ]


def _truncate(text: str) -> str:
    return text if len(text) <= 140 else f"{text[:140]} …"


def _request_open(trace: str) -> None:
    st.session_state["open_failure"] = trace


def open_requested_failure(project: Project) -> None:
    """Open the failure that was clicked, where it can be repaired."""
    if trace := st.session_state.pop("open_failure", None):
        place = {"you": current_user(services().database).name, "project": project.name, "trace": trace}
        st.switch_page("annotate/page.py", query_params=place)


def _show_scores_by_kind(run: Run, report: VerificationReport) -> None:
    st.subheader("By kind of question", anchor=False)
    shown = count_demonstrations_by_kind(services(), run)
    rows = []
    for kind, told in report["by_kind"].items():
        lost = told["questions"] - told["left"] - told["right"]
        known = shown[kind or None]
        rows.append(
            [
                TableCell(kind or "no kind"),
                TableCell(f"{told['questions']:,}", number=True),
                TableCell(f"{told['right']:,}", number=True),
                TableCell(f"{told['refused']:,}", number=True),
                TableCell(_format_score(told["f1"]), number=True),
                TableCell(f"{known:,}", number=True),
                TableCell(f"{repair_value(lost, known):.1f}" if lost else "", number=True),
            ]
        )
    columns = ("kind", "questions", "right", "refused", "F1", "demonstrations", "a repair is worth")
    with st.container(width="content"):
        show_table(columns, rows, key="kinds", label="Scores by kind of question")
