"""Review: a reviewer reads submitted traces beside the gold answer, approves them or returns them with a reason."""

from uuid import UUID

import streamlit as st

from app.services import services as process_services
from app.widgets.notebook import show_trace
from app.widgets.page_layout import show_keys_button
from app.widgets.person import current_user, show_user_menu
from app.widgets.plain_text import escape_html, escape_markdown
from app.widgets.queue import choose_project, current_project
from db import review, traces
from db.database import Database, StoreError
from db.libraries import MODELS, PEOPLE
from db.models import Judgement, Project, User
from db.trace_record import TraceRecord
from db.verifications import SCORE_ASPECT
from evaluation.number_format import format_count

KEYS = {
    "Alt+A": "Approve the trace",
    "Alt+J": "Return the trace to its author",
    "Alt+N": "Leave this trace for the next one",
    "?": "This sheet",
}
PAGE_SIZE = 25
# Characters of an answer that the list shows.
MAX_ANSWER_LENGTH = 120
SUBMISSION_HINTS = {
    PEOPLE: "Traces that annotators submit appear in this list.",
    MODELS: "Traces of models, from the Ask page or an evaluation, appear in this list.",
}
STATUSES = ("submitted", "approved", "rejected")
STATUS_LABELS = {"rejected": "returned"}
"""Statuses whose word on the page is not the stored one."""


def show_header(database: Database, project: Project, person: User) -> tuple[str, str]:
    """Draw the header; gives the chosen status, and PEOPLE or MODELS for who made the traces."""
    with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
        choose_project(database)
        by = st.segmented_control(
            "By",
            (PEOPLE, MODELS),
            default=PEOPLE,
            key="by",
            format_func=str.capitalize,
            label_visibility="collapsed",
            required=True,
            bind="query-params",
            on_change=_reset_list,
        )
        with database.read() as session:
            counts = review.count_by_status(session, project.id, by=by)
        status = st.segmented_control(
            "Status",
            STATUSES,
            default="submitted",
            key="status",
            format_func=lambda status: f"{status_label(status).capitalize()} ({counts.get(status, 0):,})",
            label_visibility="collapsed",
            on_change=_reset_list,
        )
        st.space("stretch")
        show_keys_button(KEYS)
        show_user_menu(person)
    return status or "submitted", by


def status_label(status: str) -> str:
    """The status in the word of the page."""
    return STATUS_LABELS.get(status, status)


def _reset_list() -> None:
    st.session_state["review_after"] = [None]
    st.query_params.pop("trace", None)


def show_trace_list(database: Database, project: Project, status: str, by: str) -> list[review.ReviewItem]:
    """Draw one page of the list with the open trace marked; gives the page's items."""
    pages: list[object] = st.session_state.setdefault("review_after", [None])
    with database.read() as session:
        page = review.list_for_review(session, project.id, status=status, by=by, limit=PAGE_SIZE, after=pages[-1])  # type: ignore[arg-type]
    open_id = st.query_params.get("trace") or next((str(item.trace_id) for item in page.items), "")
    for item in page.items:
        _show_row(item, is_open=open_id == str(item.trace_id))
    if len(pages) > 1 or page.next_cursor:
        with st.container(horizontal=True):
            if st.button("Earlier", key="earlier", disabled=len(pages) == 1):
                pages.pop()
                st.rerun()
            if st.button("Later", key="later", disabled=page.next_cursor is None):
                pages.append(page.next_cursor)
                st.rerun()
    return page.items


def _show_row(line: review.ReviewItem, *, is_open: bool) -> None:
    rating = f", rated {line.mean_rating:.1f}" if line.mean_rating is not None else ""
    duration = f", {_format_duration(line.active_seconds)}" if line.active_seconds is not None else ""
    with st.container(key=f"row_{line.trace_id.hex}"):
        if st.button(
            escape_markdown(line.question),
            key=f"open_{line.trace_id.hex}",
            type="primary" if is_open else "tertiary",
            width="stretch",
        ):
            st.query_params["trace"] = str(line.trace_id)
            st.rerun()
        st.caption(
            f"{escape_markdown(line.author or line.reasoner)}: {escape_markdown(_truncate(line.final_answer or ''))}"
            f" ({format_count(line.steps, 'step')}{rating}{duration})"
        )


def _truncate(answer: str) -> str:
    return answer if len(answer) <= MAX_ANSWER_LENGTH else f"{answer[:MAX_ANSWER_LENGTH]} …"


def _format_duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def show_review(database: Database, record: TraceRecord, person: User, items: list[review.ReviewItem]) -> None:
    """Draw one trace with the gold answer, its earlier judgements, and the buttons of the decision."""
    st.html(f'<h2 class="question">{escape_html(record.question.text)}</h2>')
    gold = ", ".join(answer["text"] for answer in record.question.gold_answers) or "unknown"
    fork_position = record.trace.parent_position
    fork_label = f"forked at step {fork_position}" if fork_position else "started over after another trace"
    parent = f" · {fork_label}" if record.trace.parent_id else ""
    status = status_label(record.trace.status)
    st.markdown(f"Gold answer: **{escape_markdown(gold)}** · {escape_markdown(record.creator_name)} · {status}{parent}")
    for judgement in record.judgements:
        st.caption(_describe_judgement(judgement, record))
    comment = st.text_area(
        "Comment", key=f"comment_{record.trace.id.hex}", height=80, placeholder="Required when returning"
    )
    with st.container(horizontal=True):
        if st.button(
            "Approve", key="approve", type="primary", shortcut="Alt+A", disabled=record.trace.status == "approved"
        ):
            _record_decision(database, record, person, comment, items, approved=True)
        if st.button("Return", key="return", shortcut="Alt+J", disabled=record.trace.status == "rejected"):
            _record_decision(database, record, person, comment, items, approved=False)
        if st.button("Next", key="next", shortcut="Alt+N", type="tertiary"):
            _open_next_trace(record.trace.id, items)
    show_trace(record, editable=False, forkable=False)


def _describe_judgement(judgement: Judgement, record: TraceRecord) -> str:
    """One judgement in a sentence: the score against the gold answer, or a reviewer's decision."""
    at = f"{judgement.created_at:%Y-%m-%d %H:%M} UTC"
    if judgement.aspect == SCORE_ASPECT:
        return f"Compared with the gold answer, {at}: F1 {float(judgement.value):.2f}."
    reviewer = record.people.get(judgement.judge_id, "?") if judgement.judge_id else "?"
    decision = status_label(judgement.value).capitalize()
    return f"{escape_markdown(reviewer)}, {at}: {escape_markdown(decision)}. {escape_markdown(judgement.comment)}"


def _record_decision(  # noqa: PLR0913 - a decision, and the list whose next trace is opened
    database: Database,
    record: TraceRecord,
    person: User,
    comment: str,
    items: list[review.ReviewItem],
    *,
    approved: bool,
) -> None:
    try:
        with database.begin() as session:
            decide = review.approve_trace if approved else review.reject_trace
            decide(session, record.trace.id, by=person.id, comment=comment)
    except StoreError as refused:
        st.error(str(refused))
        return
    st.toast("Approved: it is a demonstration now." if approved else "Returned to its author.")
    _open_next_trace(record.trace.id, items)


def _open_next_trace(trace_id: UUID, items: list[review.ReviewItem]) -> None:
    ids = [item.trace_id for item in items]
    place = ids.index(trace_id) if trace_id in ids else -1
    rest = ids[place + 1 :] + ids[: max(place, 0)]
    if rest:
        st.query_params["trace"] = str(rest[0])
    else:
        st.query_params.pop("trace", None)
    st.rerun()


def load_record(database: Database, items: list[review.ReviewItem]) -> TraceRecord | None:
    """The trace that the link names, else the first of the list."""
    named = st.query_params.get("trace", "")
    with database.read() as session:
        try:
            if not named and not items:
                return None
            return traces.load_trace(session, UUID(named) if named else items[0].trace_id)
        except (ValueError, StoreError):
            st.warning("The link names a trace that is not here; choose one from the list.")
            return None


database = process_services().database
person = current_user(database)
project = current_project(database)
if project is None:
    st.info("There is no project yet; `showhow setup` prepares one.")
else:
    status, by = show_header(database, project, person)
    left, right = st.columns([1, 2], gap="medium")
    with left, st.container(key="list"):
        items = show_trace_list(database, project, status, by)
        if not items:
            hint = f" {SUBMISSION_HINTS[by]}" if status == "submitted" else ""
            st.info(f"Nothing here is {status_label(status)}.{hint}")
    with right:
        record = load_record(database, items)
        if record is not None:
            show_review(database, record, person, items)
