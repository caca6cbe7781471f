"""The Review page: a reviewer compares submitted traces with the gold answer and approves or returns them."""

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from uuid import UUID

import streamlit as st

from app.widgets.choices import compare_on_request
from app.widgets.notebook import list_shown_arguments, show_trace, status_label
from app.widgets.page_layout import escape_html, escape_markdown, format_sentence, format_when, show_head
from app.widgets.person import acting_services
from app.widgets.queue import current_project, show_task
from app.widgets.repeatability import show_repeatability
from app.widgets.step_notes import show_history_button, show_requested_note_dialog
from app.widgets.table import TableCell, show_table
from db import attempts, review, traces, users
from db.database import Database, StoreError
from db.libraries import MODELS, PEOPLE
from db.models import Judgement, Project, Step, User
from db.trace_record import TraceRecord
from evaluation.bounded_scoring import score_within_limits
from evaluation.metrics import ANSWER_F1, METRICS, GoldAnswer
from evaluation.metrics.metric import Unscorable
from evaluation.value_format import format_count
from runs.services import Services
from tools.registry import tool_title

PAGE_SIZE = 25
MAX_ANSWER_LENGTH = 120
"""Characters of an answer in the list."""
SUBMISSION_HINTS = {
    PEOPLE: "Traces that annotators submit appear in this list.",
    MODELS: "Traces of models, from the Ask page or an evaluation, appear in this list.",
}
STATUSES = ("submitted", "approved", "rejected")
RETURNED = "Returned to its author."


def show_header(database: Database, project: Project) -> tuple[str, str]:
    """Draw the header; returns the chosen status, and PEOPLE or MODELS as the kind of author."""
    with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.html('<h1 class="world">Review</h1>', width="content")
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
    return status or "submitted", by


def _reset_list() -> None:
    st.session_state["review_after"] = [None]
    st.query_params.pop("trace", None)


def show_trace_list(database: Database, project: Project, status: str, by: str) -> list[review.ReviewItem]:
    """Draw one page of the list with the open trace highlighted; returns the items of that page."""
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


def _show_row(item: review.ReviewItem, *, is_open: bool) -> None:
    rating = f", rated {item.mean_rating:.1f}" if item.mean_rating is not None else ""
    duration = f", {_format_duration(item.active_seconds)}" if item.active_seconds is not None else ""
    with st.container(key=f"row_{item.trace_id.hex}", gap=None):
        if st.button(
            escape_markdown(item.question),
            key=f"open_{item.trace_id.hex}",
            type="primary" if is_open else "tertiary",
            width="stretch",
        ):
            st.query_params["trace"] = str(item.trace_id)
            st.rerun()
        st.caption(
            f"{escape_markdown(item.author or item.reasoner)}: {escape_markdown(_truncate(item.final_answer or ''))}"
            f" ({format_count(item.steps, 'step')}{rating}{duration})"
        )


def _truncate(answer: str) -> str:
    return answer if len(answer) <= MAX_ANSWER_LENGTH else f"{answer[:MAX_ANSWER_LENGTH]} …"


def _format_duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def show_review(services: Services, record: TraceRecord, person: User, items: list[review.ReviewItem]) -> None:
    """Draw one trace with the gold answer, its earlier judgements, and the buttons Approve and Return."""
    database = services.database
    st.html(f'<h2 class="question">{escape_html(record.question.text)}</h2>')
    show_task(record)
    fork_position = record.trace.parent_position
    fork_label = f"forked at step {fork_position}" if fork_position else "a restart of another trace"
    parent = f" · {fork_label}" if record.trace.parent_id else ""
    label = status_label(record.trace.status)
    st.markdown(
        f"{_compare_with_gold(record)}  \n{escape_markdown(record.creator_name.capitalize())} · {label}{parent}"
    )
    _show_decision_bar(database, record, person, items)
    with database.read() as session:
        scores = attempts.list_trace_scores(session, record.trace.id)
        parent_record = traces.load_trace(session, record.trace.parent_id) if record.trace.parent_id else None
    if scores:
        values = ", ".join(f"{_metric_label(score.metric)} {score.value:.2f}" for score in scores)
        st.caption(f"Compared with the gold answer, {format_when(scores[0].scored_at)}: {values}.")
    for judgement in (judgement for judgement in record.judgements if judgement.step_id is None):
        st.caption(_describe_judgement(judgement, record))
    if parent_record is not None:
        show_difference(parent_record, record)
    show_repeatability(record)
    show_trace(
        record,
        editable=False,
        forkable=False,
        overrides={"notable": True, "folded": True, "gold": compare_on_request(services, record)},
    )
    show_requested_note_dialog(database, record, person)


def _compare_with_gold(record: TraceRecord) -> str:
    """The gold answer, whether the answer is the same set, and the answers as a whole and by source, as Markdown."""
    trace, gold_answers = record.trace, record.question.gold_answers
    gold = ", ".join(answer["text"] for answer in gold_answers) or "unknown"
    verdict = f" · {_describe_score(trace.final_answer or '', gold_answers)}" if gold_answers else ""
    sources = {"text": trace.answer_text, "graph": trace.answer_graph, "model": trace.answer_model}
    by_source = " | ".join(f"{name}: {escape_markdown(answer)}" for name, answer in sources.items() if answer)
    answer_line = f"Answer: **{escape_markdown(trace.final_answer or 'none')}**"
    lines = (f"Gold answer: **{escape_markdown(gold)}**{verdict}", " · ".join(filter(None, (answer_line, by_source))))
    return "  \n".join(lines)


def _describe_score(answer: str, gold_answers: Sequence[GoldAnswer]) -> str:
    try:
        score = score_within_limits(answer, gold_answers)[ANSWER_F1.name]
    except Unscorable as error:
        return escape_markdown(str(error))
    return f"{'same set' if score == 1 else 'another set'} (F1 {score:.2f})"


def _show_decision_bar(database: Database, record: TraceRecord, person: User, items: list[review.ReviewItem]) -> None:
    """Draw the comment and the buttons, which stay in view while the steps scroll."""
    with database.read() as session:
        is_refused = record.trace.author_id == person.id and not users.is_only_person(session, person.id)
    status = record.trace.status
    with st.container(key="decision"):
        if is_refused:
            st.caption("You recorded this trace, so another reviewer decides on it.")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.text_input(
                "Comment",
                key=f"comment_{record.trace.id.hex}",
                placeholder="Comment; required when returning",
                label_visibility="collapsed",
            )
            # A callback decides on the trace and the version that the reviewer saw, whatever has changed meanwhile.
            decide = partial(_decide, database, record.trace.id, record.trace.version, person, items)
            st.button(
                "Approve",
                key="approve",
                type="primary",
                shortcut="Alt+A",
                disabled=is_refused or status == "approved",
                on_click=decide,
                kwargs={"approved": True},
            )
            st.button(
                "Return",
                key="return",
                shortcut="Alt+J",
                disabled=is_refused or status == "rejected",
                on_click=decide,
                kwargs={"approved": False},
            )
            is_next = st.button("Next", key="next", shortcut="Alt+N", type="tertiary")
            show_history_button(record)
        # What is wrong with a decision stands below its buttons.
        if problem := st.session_state.pop("decision_problem", None):
            st.error(format_sentence(problem))
        if is_next:
            _choose_next_trace(record.trace.id, items)
            st.rerun()


def show_difference(parent: TraceRecord, fork: TraceRecord) -> None:
    """Draw what differs between a fork and its parent: the steps from the first other one on, and the answers."""
    pairs = list(zip_longest(parent.steps, fork.steps))
    same = next((place for place, pair in enumerate(pairs) if _step_text(pair[0]) != _step_text(pair[1])), len(pairs))
    kept = f"The first {format_count(same, 'step')} are the same." if same else "No step is the same."
    rows = [
        [TableCell(f"step {place}"), TableCell(_step_text(before)), TableCell(_step_text(after))]
        for place, (before, after) in enumerate(pairs[same:], same + 1)
    ]
    if (parent.trace.final_answer or "") != (fork.trace.final_answer or ""):
        rows.append(
            [
                TableCell("answer"),
                TableCell(parent.trace.final_answer or "none"),
                TableCell(fork.trace.final_answer or "none"),
            ]
        )
    with st.expander(f"Difference from its parent ({escape_markdown(parent.creator_name)})", expanded=True):
        st.caption(kept)
        if rows:
            show_table(("", "parent", "this trace"), rows, key="fork_difference", label="Difference from the parent")


def _step_text(step: Step | None) -> str:
    """The step as one line to compare and to show; a dash for no step."""
    if step is None:
        return "–"
    if step.tool is None:
        return step.thought
    arguments = ", ".join(f"{label}: {value}" for _, label, value in list_shown_arguments(step))
    return f"{tool_title(step.tool)} ({arguments}) {step.thought}".strip()


def _metric_label(name: str) -> str:
    """The label of a metric; the name of one that no longer exists."""
    return METRICS[name].label if name in METRICS else name


def _describe_judgement(judgement: Judgement, record: TraceRecord) -> str:
    """Describe a reviewer's decision."""
    reviewer = record.people.get(judgement.judge_id, "?") if judgement.judge_id else "?"
    decision = escape_markdown(status_label(judgement.value).capitalize())
    when = format_when(judgement.created_at)
    return f"{escape_markdown(reviewer)}, {when}: {decision}. {escape_markdown(judgement.comment)}"


def _decide(  # noqa: PLR0913 - a decision, and the list whose next trace is opened
    database: Database, trace_id: UUID, seen: int, person: User, items: list[review.ReviewItem], *, approved: bool
) -> None:
    """Decide on the trace as the reviewer saw it; a refused decision leaves the comment in its field."""
    comment = st.session_state.get(f"comment_{trace_id.hex}", "")
    try:
        with database.begin() as session:
            decide = review.approve_trace if approved else review.reject_trace
            decide(session, trace_id, seen=seen, by=users.register_user(session, person.name).id, comment=comment)
    except StoreError as error:
        st.session_state["decision_problem"] = str(error)
        st.query_params["trace"] = str(trace_id)
        return
    st.session_state["decision"] = "Approved. The trace is a demonstration now." if approved else RETURNED
    _choose_next_trace(trace_id, items)


def _choose_next_trace(trace_id: UUID, items: list[review.ReviewItem]) -> None:
    ids = [item.trace_id for item in items]
    index = ids.index(trace_id) if trace_id in ids else -1
    other_ids = ids[index + 1 :] + ids[: max(index, 0)]
    if other_ids:
        st.query_params["trace"] = str(other_ids[0])
    else:
        st.query_params.pop("trace", None)


def load_record(database: Database, items: list[review.ReviewItem]) -> TraceRecord | None:
    """Load the trace in the link, else the first one of the list."""
    trace_id = st.query_params.get("trace", "")
    with database.read() as session:
        try:
            if not trace_id and not items:
                return None
            return traces.load_trace(session, UUID(trace_id) if trace_id else items[0].trace_id)
        except (ValueError, StoreError):
            st.warning("The trace in the link does not exist. Choose one from the list.")
            return None


services, person = acting_services()
database = services.database
project = current_project(database)
if project is None:
    show_head("Review")
    st.info("There is no project yet. `showhow setup` makes one.")
else:
    status, by = show_header(database, project)
    if decision := st.session_state.pop("decision", None):
        st.toast(decision)
    left, right = st.columns([1, 2], gap="medium")
    with left, st.container(key="list"):
        items = show_trace_list(database, project, status, by)
        if not items:
            hint = f" {SUBMISSION_HINTS[by]}" if status == "submitted" else ""
            st.info(f"No trace is {status_label(status)}.{hint}")
    with right:
        record = load_record(database, items)
        if record is not None:
            show_review(services, record, person, items)
