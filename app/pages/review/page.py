"""Review: read what was submitted beside the gold answer, approve it or return it with a reason."""

from uuid import UUID

import streamlit as st

from app.services import services
from app.widgets.notebook import show_trace
from app.widgets.page_layout import show_keys_button
from app.widgets.person import current_user, show_user_menu
from app.widgets.plain_text import escape_html, escape_markdown
from app.widgets.queue import choose_project, current_project
from db import review, traces
from db.database import StoreError
from db.libraries import MODELS, PEOPLE
from db.models import Judgement, Project, User
from db.trace_record import TraceRecord
from db.verifications import SCORE_ASPECT

KEYS = {
    "Alt+A": "Approve the trace",
    "Alt+J": "Return the trace to its author",
    "Alt+N": "Leave this trace for the next one",
    "?": "This sheet",
}
PAGE_SIZE = 25
# Characters of an answer that the list shows.
MAX_ANSWER_LENGTH = 120
SUBMISSION_HINTS = {PEOPLE: "annotators submit", MODELS: "models answer on the Ask page or in an evaluation"}
STATUSES = ("submitted", "approved", "rejected")


def show_header(project: Project, person: User) -> tuple[str, str]:
    """The top of the page; gives the status whose traces are listed, and who made them."""
    with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
        choose_project()
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
        with services().database.read() as session:
            known = review.count_by_status(session, project.id, by=by)
        status = st.segmented_control(
            "Status",
            STATUSES,
            default="submitted",
            key="status",
            format_func=lambda s: f"{s.capitalize()} ({known.get(s, 0):,})",
            label_visibility="collapsed",
            on_change=_reset_list,
        )
        st.space("stretch")
        show_keys_button(KEYS)
        show_user_menu(person)
    return status or "submitted", by


def _reset_list() -> None:
    st.session_state["review_after"] = [None]
    st.query_params.pop("trace", None)


def show_trace_list(project: Project, status: str, by: str) -> list[review.ReviewItem]:
    """The list, one page at a time; a chosen row is the one that is read."""
    pages: list[object] = st.session_state.setdefault("review_after", [None])
    with services().database.read() as session:
        page = review.list_for_review(session, project.id, status=status, by=by, limit=PAGE_SIZE, after=pages[-1])  # type: ignore[arg-type]
    read = st.query_params.get("trace") or next((str(line.trace_id) for line in page.items), "")
    for line in page.items:
        _show_row(line, chosen=read == str(line.trace_id))
    if len(pages) > 1 or page.next_cursor:
        with st.container(horizontal=True):
            if st.button("Earlier", key="earlier", disabled=len(pages) == 1):
                pages.pop()
                st.rerun()
            if st.button("Later", key="later", disabled=page.next_cursor is None):
                pages.append(page.next_cursor)
                st.rerun()
    return page.items


def _show_row(line: review.ReviewItem, *, chosen: bool) -> None:
    rating = f", rated {line.mean_rating:.1f}" if line.mean_rating is not None else ""
    spent = f", {_format_duration(line.active_seconds)}" if line.active_seconds is not None else ""
    with st.container(key=f"row_{line.trace_id.hex}"):
        if st.button(
            escape_markdown(line.question),
            key=f"open_{line.trace_id.hex}",
            type="primary" if chosen else "tertiary",
            width="stretch",
        ):
            st.query_params["trace"] = str(line.trace_id)
            st.rerun()
        st.caption(
            f"{escape_markdown(line.author or line.reasoner)}: {escape_markdown(_truncate(line.final_answer or ''))}"
            f" ({line.steps} steps{rating}{spent})"
        )


def _truncate(answer: str) -> str:
    return answer if len(answer) <= MAX_ANSWER_LENGTH else f"{answer[:MAX_ANSWER_LENGTH]} …"


def _format_duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def show_review(record: TraceRecord, person: User, others: list[review.ReviewItem]) -> None:
    """One trace with the gold answer, what was said of it before, and the decision."""
    st.html(f'<h2 class="question">{escape_html(record.question.text)}</h2>')
    gold = ", ".join(answer["text"] for answer in record.question.gold_answers) or "not known"
    at = record.trace.parent_position
    parent = f" · {f'forked at step {at}' if at else 'begun anew after another'}" if record.trace.parent_id else ""
    st.markdown(
        f"Gold answer: **{escape_markdown(gold)}** · {escape_markdown(record.creator_name)} · {record.trace.status}{parent}"
    )
    for judgement in record.judgements:
        st.caption(_describe_judgement(judgement, record))
    comment = st.text_area(
        "Comment", key=f"comment_{record.trace.id.hex}", height=80, placeholder="Needed to return it"
    )
    with st.container(horizontal=True):
        if st.button(
            "Approve", key="approve", type="primary", shortcut="Alt+A", disabled=record.trace.status == "approved"
        ):
            _record_decision(record, person, comment, others, approved=True)
        if st.button("Return", key="return", shortcut="Alt+J", disabled=record.trace.status == "rejected"):
            _record_decision(record, person, comment, others, approved=False)
        if st.button("Next", key="next", shortcut="Alt+N", type="tertiary"):
            _open_next_trace(record.trace.id, others)
    show_trace(record, editable=False, forkable=False)


def _describe_judgement(judgement: Judgement, record: TraceRecord) -> str:
    """What a person, or the comparison with the gold answer, said of it."""
    at = f"{judgement.created_at:%Y-%m-%d %H:%M} UTC"
    if judgement.aspect == SCORE_ASPECT:
        return f"Compared with the gold answer, {at}: F1 {float(judgement.value):.2f}."
    by = record.people.get(judgement.judge_id, "?") if judgement.judge_id else "?"
    return f"{escape_markdown(by)}, {at}: {escape_markdown(judgement.value)}. {escape_markdown(judgement.comment)}"


def _record_decision(
    record: TraceRecord, person: User, comment: str, others: list[review.ReviewItem], *, approved: bool
) -> None:
    try:
        with services().database.begin() as session:
            decide = review.approve_trace if approved else review.reject_trace
            decide(session, record.trace.id, by=person.id, comment=comment)
    except StoreError as refused:
        st.error(str(refused))
        return
    st.toast("Approved: it is a demonstration now." if approved else "Returned to its author.")
    _open_next_trace(record.trace.id, others)


def _open_next_trace(trace_id: UUID, others: list[review.ReviewItem]) -> None:
    ids = [line.trace_id for line in others]
    place = ids.index(trace_id) if trace_id in ids else -1
    rest = ids[place + 1 :] + ids[: max(place, 0)]
    if rest:
        st.query_params["trace"] = str(rest[0])
    else:
        st.query_params.pop("trace", None)
    st.rerun()


def load_record(lines: list[review.ReviewItem]) -> TraceRecord | None:
    """The trace in the address, else the first of the list."""
    named = st.query_params.get("trace", "")
    with services().database.read() as session:
        try:
            if not named and not lines:
                return None
            return traces.load_trace(session, UUID(named) if named else lines[0].trace_id)
        except (ValueError, StoreError):
            st.warning("The address names a trace that is not here; choose one from the list.")
            return None


person = current_user()
project = current_project()
if project is None:
    st.info("There is no project yet; `showhow setup` prepares one.")
else:
    status, by = show_header(project, person)
    left, right = st.columns([1, 2], gap="medium")
    with left, st.container(key="list"):
        lines = show_trace_list(project, status, by)
        if not lines:
            st.info(
                f"Nothing here is {status}."
                + (f" What {SUBMISSION_HINTS[by]} appears in this list." if status == "submitted" else "")
            )
    with right:
        record = load_record(lines)
        if record is not None:
            show_review(record, person, lines)
