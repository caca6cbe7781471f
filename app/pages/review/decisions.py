"""Decisions of a reviewer: on one trace, on several at once, and their undo."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import streamlit as st

from showhow.app.pages.review.question_list import AGREEMENT, ListPage, open_trace
from showhow.app.widgets.autosave import mount_comment_autosave
from showhow.app.widgets.page_layout import escape_markdown, format_sentence
from showhow.app.widgets.step_notes import show_history_button
from showhow.app.widgets.table import shorten
from showhow.db.database import Database, StoreError
from showhow.db.models import User
from showhow.db.people import users
from showhow.db.review import review
from showhow.db.review.review_queue import TraceToReview
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.metrics import ANSWER_F1
from showhow.evaluation.metrics.metric import Unscorable
from showhow.evaluation.scoring.bounded_scoring import score_within_limits
from showhow.evaluation.value_format import format_count

RETURNED = "Returned to its author."
APPROVED = "Approved. The trace is a demonstration now."
UNDOABLE = "undoable_decision"
"""The key of the decision that was made last in this session."""
MAX_TRACES_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class MadeDecision:
    """A decision that can be undone: what was done, and the versions of its traces after it."""

    summary: str
    versions: Mapping[UUID, int]


def show_undo(database: Database, person: User) -> None:
    """Draw what was decided last, with the button that undoes it."""
    made: MadeDecision | None = st.session_state.get(UNDOABLE)
    if made is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="undo_bar"):
        st.markdown(escape_markdown(made.summary), width="content")
        if made.versions:
            undo = partial(_take_back, database, person, made.versions)
            st.button("Undo", key="undo_decision", shortcut="Alt+Z", icon=":material/undo:", on_click=undo)
        st.button("Dismiss", key="dismiss_decision", type="tertiary", on_click=_forget_decision)


def _forget_decision() -> None:
    st.session_state.pop(UNDOABLE, None)


def _take_back(database: Database, person: User, versions: Mapping[UUID, int]) -> None:
    try:
        with database.begin() as session:
            done = review.take_back_decisions(session, versions, by=users.register_user(session, person.name).id)
    except StoreError as error:
        st.session_state["decision_problem"] = str(error)
        return
    refusal = next(iter(done.refusals.values()), "")
    if done.versions:
        st.session_state["decision"] = f"Undone: {format_count(len(done.versions), 'decision')}."
        open_trace(next(iter(done.versions)))
    st.session_state.pop(UNDOABLE, None)
    if refusal:
        st.session_state[UNDOABLE] = MadeDecision(f"Not undone: {refusal}.", {})


def show_decision_bar(
    database: Database, record: TraceRecord, person: User, next_trace: UUID | None, subject: str
) -> None:
    """Draw the comment and the buttons; `subject` names the trace, `next_trace` is opened after a decision."""
    trace = record.trace
    with database.read() as session:
        is_refused = trace.author_id == person.id and not users.is_only_person(session, person.id)
        stored = review.find_comment(session, trace.id, person.id)
        own_decision = review.find_own_decision(session, trace, person.id)
    if is_refused:
        st.caption("You recorded this trace, so another reviewer decides on it.")
    key = f"comment_{trace.id.hex}"
    # What is in the field is newer than what is stored; without a field on the page, the store has it.
    if key not in st.session_state:
        st.session_state[key] = stored
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.text_input(
            "Comment",
            key=key,
            placeholder="Comment; required when returning",
            label_visibility="collapsed",
            on_change=_save_comment,
            args=(database, record, person),
        )
        # A callback decides on the trace and the version that the reviewer saw, whatever has changed meanwhile.
        decide = partial(_decide, database, trace.id, trace.version, person, next_trace, subject)
        is_decided = trace.status in ("approved", "rejected")
        st.button(
            "Approve",
            key="approve",
            type="primary",
            shortcut="Alt+A",
            disabled=is_refused or trace.status == "approved",
            on_click=decide,
            kwargs={"approved": True},
        )
        st.button(
            "Return",
            key="return",
            shortcut="Alt+J",
            disabled=is_refused or trace.status == "rejected",
            on_click=decide,
            kwargs={"approved": False},
        )
        if is_decided and own_decision is not None:
            undo = partial(_take_back, database, person, {trace.id: trace.version})
            st.button("Take back", key="take_back", help="Undo your decision on this trace.", on_click=undo)
        st.button("Next", key="next", shortcut="Alt+N", type="tertiary", on_click=_open_next, args=(next_trace,))
        show_history_button(record)
        if person.roles:
            mount_comment_autosave(database, trace, person, stored, key)
    # What is wrong with a decision stands below its buttons.
    if problem := st.session_state.pop("decision_problem", None):
        st.error(format_sentence(problem))


def _save_comment(database: Database, record: TraceRecord, person: User) -> None:
    """Store the comment as the field is left; the component stores it while it is typed."""
    trace = record.trace
    text = st.session_state.get(f"comment_{trace.id.hex}", "")
    try:
        with database.begin() as session:
            by = users.register_user(session, person.name).id
            review.save_comment(session, trace.id, text, seen=trace.version, by=by, page_number=_page_number(trace.id))
    except StoreError:
        return  # the component says why, beside the field


def _page_number(trace_id: UUID) -> int:
    return int(st.session_state.get(f"page_number_{trace_id.hex}", 0))


def _open_next(trace_id: UUID | None) -> None:
    if trace_id is not None:
        open_trace(trace_id)
    else:
        st.query_params.pop("trace", None)


def _decide(  # noqa: PLR0913, PLR0917 - a decision, and the trace that is opened then
    database: Database,
    trace_id: UUID,
    seen: int,
    person: User,
    next_trace: UUID | None,
    subject: str,
    *,
    approved: bool,
) -> None:
    """Decide on the trace as the reviewer saw it; a refused decision leaves the comment in its field."""
    key = f"comment_{trace_id.hex}"
    try:
        with database.begin() as session:
            decide = review.approve_trace if approved else review.reject_trace
            by = users.register_user(session, person.name).id
            trace = decide(session, trace_id, seen=seen, by=by, comment=st.session_state.get(key, ""))
            version = trace.version
    except StoreError as error:
        st.session_state["decision_problem"] = str(error)
        open_trace(trace_id)
        return
    st.session_state.pop(key, None)
    st.session_state["decision"] = APPROVED if approved else RETURNED
    verb = "Approved" if approved else "Returned"
    st.session_state[UNDOABLE] = MadeDecision(f"{verb}: {subject}", {trace_id: version})
    _open_next(next_trace)


@dataclass(frozen=True, slots=True)
class BulkChoice:
    """A trace that can be approved with others, and whether its answer is the gold answer; None without gold."""

    trace: TraceToReview
    question: str
    is_gold: bool | None
    agreement: str
    """A key of AGREEMENT."""


def list_choices(traces: Sequence[TraceToReview], page: ListPage, agreements: Mapping[UUID, str]) -> list[BulkChoice]:
    """The submitted traces that can be approved at once, as the reviewer sees them now."""
    choices = []
    for trace in [trace for trace in traces if trace.status == "submitted"][:MAX_TRACES_AT_ONCE]:
        question = page.questions[trace.question_id]
        is_gold = None
        if question.gold_answers:
            try:
                is_gold = score_within_limits(trace.answer, question.gold_answers)[ANSWER_F1.name] == 1
            except Unscorable:
                is_gold = None
        choices.append(BulkChoice(trace, question.summary, is_gold, agreements[trace.question_id]))
    return choices


@st.dialog("Approve several", width="large")
def show_bulk_dialog(database: Database, person: User, choices: Sequence[BulkChoice]) -> None:
    """Ask which of these traces are approved; their versions are those that were listed when it was opened."""
    if not choices:
        st.info("No trace in this list waits for a decision.")
        return
    st.caption("The traces of this page of the list. An approved trace becomes a demonstration; it can be undone.")
    keys = {choice.trace.id: f"bulk_{choice.trace.id.hex}" for choice in choices}
    matching = [choice.trace.id for choice in choices if choice.is_gold and choice.agreement != "differ"]
    with st.container(horizontal=True, gap="small"):
        st.button(
            f"Select the {len(matching)} that match gold, where answers do not differ",
            key="bulk_gold",
            disabled=not matching,
            on_click=_select,
            args=(keys, matching),
        )
        st.button("Select all", key="bulk_all", on_click=_select, args=(keys, list(keys)))
        st.button("Select none", key="bulk_none", on_click=_select, args=(keys, []))
    for choice in choices:
        answer = escape_markdown(shorten(choice.trace.answer or "none", 120))
        label = f"{escape_markdown(choice.question)} · {escape_markdown(choice.trace.author)}: **{answer}**"
        st.checkbox(f"{label} :gray[{_describe_choice(choice)}]", key=keys[choice.trace.id])
    selected = [choice.trace for choice in choices if st.session_state.get(keys[choice.trace.id])]
    if st.button(
        f"Approve {format_count(len(selected), 'trace')}",
        key="bulk_approve",
        type="primary",
        disabled=not selected,
    ):
        _approve_all(database, person, selected)
        st.rerun()


def _select(keys: Mapping[UUID, str], selected: Sequence[UUID]) -> None:
    for trace_id, key in keys.items():
        st.session_state[key] = trace_id in selected


def _describe_choice(choice: BulkChoice) -> str:
    gold = {True: "same as gold", False: "not the gold answer", None: "no gold answer"}[choice.is_gold]
    return f"{gold}, {AGREEMENT[choice.agreement].lower()}"


def _approve_all(database: Database, person: User, traces: Sequence[TraceToReview]) -> None:
    try:
        with database.begin() as session:
            by = users.register_user(session, person.name).id
            done = review.approve_traces(session, {trace.id: trace.version for trace in traces}, by=by)
    except StoreError as error:
        st.session_state["decision_problem"] = str(error)
        return
    refused = [f"{trace.author}'s was not: {done.refusals[trace.id]}" for trace in traces if trace.id in done.refusals]
    summary = "; ".join([f"Approved {format_count(len(done.versions), 'trace')}", *refused])
    st.session_state[UNDOABLE] = MadeDecision(summary, done.versions)
    st.query_params.pop("trace", None)
