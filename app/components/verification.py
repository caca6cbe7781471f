"""One verification: how good the answers are, which failures to repair first, and what repairs have brought."""

from collections.abc import Sequence
from uuid import UUID

import streamlit as st

from app.components.plain import plain, plain_html
from app.components.table import Entry, show_table
from app.components.verb_job import VERIFYING, start_verb_job
from app.components.who import who
from app.repairs import Failure, failures, mended, shown_by_kind
from app.resources import database
from app.spent import money
from app.verification_report import Report, figures, report_of
from db import verifications
from db.models import Project, Run
from db.verifications import Outcome
from fewshot_library.teaching import worth

LISTED = 200
RULE = (
    "The order is by what the next repair of a kind is worth: its failures that nobody repairs yet, divided by one "
    "more than the demonstrations and repairs that it has. Kinds where the library is thin and failures are many come "
    "first."
)
REPAIRS = {
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
    with database().read() as session:
        found = verifications.outcomes(session, run)
    report = report_of(run, found)
    st.html(f'<h1 class="world">{_heading(report)}</h1>')
    _show_sizes(report)
    if report["left"] and not at_work:
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button(f"Go on with the {report['left']:,} that are left", key="go_on", type="primary"):
                start_verb_job(VERIFYING, project.name, ["verify", "--go-on", str(run.id)])
                st.rerun()
    if run.configuration.get("again_of"):
        _show_before(run, found)
    failed = failures(run)
    if failed:
        _show_repairs(project, run, failed, at_work=at_work)
    elif not report["left"]:
        st.success("Every question was answered rightly.")
    _show_kinds(run, report)


def _heading(report: Report) -> str:
    again = ", the failures again" if report["again_of"] else ""
    return plain_html(f"{report['reasoner']} with {report['library'] or 'no library'}{again}")


def _show_sizes(report: Report) -> None:
    left = {"left": f"{report['left']:,}"} if report["left"] else {}
    told = {
        "questions": f"{report['questions']:,}",
        **left,
        "right": f"{report['right']:,}",
        "wrong": f"{report['answered'] - report['right']:,}",
        "refused": f"{report['refused']:,}",
        "failed": f"{report['failed']:,}",
        "F1 of all": _score(report["f1"]),
        "F1 of the answered": _score(report["f1_answered"]),
    }
    if report["cost"] != 0:
        told["cost"] = money(report["cost"])
    with st.container(horizontal=True, key="verification_sizes"):
        for name, value in told.items():
            st.metric(name, value, width="content")


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _show_before(run: Run, found: Sequence[Outcome]) -> None:
    """Before and after, by kind."""
    with database().read() as session:
        earlier = verifications.verification(session, UUID(run.configuration["again_of"]))
        before = {each.question_id: each for each in verifications.outcomes(session, earlier)}
    pairs = [(before[each.question_id], each) for each in found if each.question_id in before and each.ending]
    mended_now = sum(after.right and not was.right for was, after in pairs)
    told = earlier.configuration["library"] or "no library"
    st.markdown(
        f"Of {len(pairs):,} failures with {plain(told)}, **{mended_now:,} are right now** with "
        f"{plain(run.configuration['library'])}. A question's own repair is never shown to it."
    )
    rows = []
    for kind in sorted({was.kind or "" for was, _ in pairs}):
        mine = [(was, after) for was, after in pairs if (was.kind or "") == kind]
        then, now = figures([was for was, _ in mine]), figures([after for _, after in mine])
        rows.append(
            [
                Entry(kind or "no kind"),
                Entry(f"{len(mine):,}", number=True),
                Entry(_score(then["f1"]), number=True),
                Entry(_score(now["f1"]), number=True),
                Entry(f"{now['right']:,}", number=True),
            ]
        )
    columns = ("kind", "failures", "F1 before", "F1 after", "right after")
    with st.container(width="content"):
        show_table(columns, rows, key="before_after", label="Before and after, by kind")


def _show_repairs(project: Project, run: Run, failed: Sequence[Failure], *, at_work: bool) -> None:
    st.subheader(f"Failures ({len(failed):,})", anchor=False)
    approved = mended(run)
    with st.container(horizontal=True, vertical_alignment="center"):
        if approved and not at_work:
            many = f"{len(approved):,} repair{'' if len(approved) == 1 else 's'}"
            label = f"Freeze {many} and ask the failures again"
            if st.button(label, key="again", type="primary", shortcut="Alt+F", icon=":material/replay:"):
                start_verb_job(VERIFYING, project.name, ["verify", "--again", str(run.id)])
                st.query_params.pop("verification", None)
                st.rerun()
        else:
            st.caption(
                "Repairs that are approved on the Review page can be frozen here as the library's next version, and "
                "the failures be asked again."
            )
    rows = [_row(place, each) for place, each in enumerate(failed[:LISTED], 1)]
    columns = ("", "question", "kind", "gold answer", "what came instead", "repair")
    show_table(columns, rows, key="failures", label="Failures, what teaches most first", go=_open)
    if len(failed) > LISTED:
        st.caption(f"and {len(failed) - LISTED:,} more")
    st.caption(RULE)


def _row(place: int, each: Failure) -> list[Entry]:
    outcome, repair = each.outcome, each.repair
    gold = ", ".join(str(answer["text"]) for answer in outcome.gold)
    instead = outcome.answer or f"{outcome.ending}: {outcome.failure or ''}"
    status = "" if repair is None else REPAIRS[repair.status].format(repair.person or "somebody")
    return [
        Entry(f"{place}", number=True),
        Entry(outcome.question, go=str(outcome.trace_id)),
        Entry(outcome.kind or "", whole=True),
        Entry(_short(gold), whole=True),
        Entry(_short(instead)),
        Entry(status, whole=True),
    ]


def _short(text: str) -> str:
    return text if len(text) <= 140 else f"{text[:140]} …"


def _open(trace: str) -> None:
    st.session_state["open_failure"] = trace


def follow_up(project: Project) -> None:
    """Open the failure that was clicked, where it can be repaired."""
    if trace := st.session_state.pop("open_failure", None):
        place = {"you": who().name, "project": project.name, "trace": trace}
        st.switch_page("annotate.py", query_params=place)


def _show_kinds(run: Run, report: Report) -> None:
    st.subheader("By kind of question", anchor=False)
    shown = shown_by_kind(run)
    rows = []
    for kind, told in report["by_kind"].items():
        lost = told["questions"] - told["left"] - told["right"]
        known = shown[kind or None]
        rows.append(
            [
                Entry(kind or "no kind"),
                Entry(f"{told['questions']:,}", number=True),
                Entry(f"{told['right']:,}", number=True),
                Entry(f"{told['refused']:,}", number=True),
                Entry(_score(told["f1"]), number=True),
                Entry(f"{known:,}", number=True),
                Entry(f"{worth(lost, known):.1f}" if lost else "", number=True),
            ]
        )
    columns = ("kind", "questions", "right", "refused", "F1", "demonstrations", "a repair is worth")
    with st.container(width="content"):
        show_table(columns, rows, key="kinds", label="Scores by kind of question")
