"""The Review page: a reviewer compares the traces of a question with each other and with gold, and decides on them."""

from collections.abc import Sequence
from itertools import takewhile
from uuid import UUID

import streamlit as st

from showhow.app.pages.review.decisions import list_choices, show_bulk_dialog, show_decision_bar, show_undo
from showhow.app.pages.review.question_list import (
    SUBMISSION_HINTS,
    ListedQuestion,
    ListPage,
    choose_page,
    list_entries,
    open_trace,
    show_filters,
    show_list,
)
from showhow.app.pages.review.side_by_side import ComparedTrace, align, group_answers, show_side_by_side
from showhow.app.widgets.choices import compare_on_request
from showhow.app.widgets.notebook import list_shown_arguments, show_trace, status_label
from showhow.app.widgets.page_layout import escape_html, escape_markdown, format_when, show_head
from showhow.app.widgets.person import acting_services
from showhow.app.widgets.queue import current_project, show_task
from showhow.app.widgets.repeatability import show_repeatability
from showhow.app.widgets.step_notes import show_requested_note_dialog
from showhow.app.widgets.table import TableCell, show_table
from showhow.db.database import Database, StoreError
from showhow.db.models import Judgement, Step, User
from showhow.db.review import review, review_queue
from showhow.db.review.review_queue import EVERYBODY, ReviewFilter, TraceToReview
from showhow.db.runs import attempts
from showhow.db.traces import traces
from showhow.db.traces.trace_record import REPETITION_ASPECT, TraceRecord
from showhow.evaluation.metrics import ANSWER_F1, METRICS, GoldAnswer
from showhow.evaluation.metrics.metric import Unscorable
from showhow.evaluation.scoring.bounded_scoring import score_within_limits
from showhow.runs.services import Services
from showhow.tools.registry import tool_title

MAX_SIDES = 4
"""Traces that are drawn side by side before others are chosen."""


def show_review(services: Services, record: TraceRecord, person: User, page: ListPage, chosen: ReviewFilter) -> None:
    """Draw the question of the trace: the bar with gold and the decision, all its traces, and this one in full."""
    database, trace = services.database, record.trace
    with database.read() as session:
        siblings = review_queue.list_traces_to_review(session, [record.question.id], chosen.by)
        if all(sibling.id != trace.id for sibling in siblings):
            siblings = review_queue.list_traces_to_review(session, [record.question.id], EVERYBODY)
        scores = attempts.list_trace_scores(session, trace.id)
        parent = traces.load_trace(session, trace.parent_id) if trace.parent_id else None
        returns = review.list_returns(session, trace)
    next_trace = find_next_trace(trace.id, page.to_decide(chosen))
    with st.container(key="decision", gap="small"):
        st.html(f'<div class="head" tabindex="0"><h2 class="question">{escape_html(record.question.text)}</h2></div>')
        st.html(f'<div class="gold" tabindex="0">{_compare_with_gold(record)}</div>')
        choose_trace(siblings, trace.id)
        subject = f"{record.author or trace.reasoner}, {record.question.summary}"
        show_decision_bar(database, record, person, next_trace, subject)
    show_task(record)
    _show_origin(record)
    if scores:
        values = ", ".join(f"{_metric_label(score.metric)} {score.value:.2f}" for score in scores)
        st.caption(f"Compared with the gold answer, {format_when(scores[0].scored_at)}: {values}.")
    for judgement in (own for own in record.judgements if own.step_id is None and own.aspect != REPETITION_ASPECT):
        st.caption(_describe_judgement(judgement, record))
    for returned in returns:
        st.warning(
            f"Returned before by {escape_markdown(returned.reviewer or 'a reviewer')}: "
            f"{escape_markdown(returned.comment)}",
            icon=":material/undo:",
        )
    if parent is not None:
        show_difference(parent, record)
    show_repeatability(services, record)
    if len(siblings) > 1:
        compare_siblings(database, record, siblings)
        st.subheader(f"All steps {escape_markdown(record.creator_name)}", anchor=False)
    show_trace(
        record,
        editable=False,
        forkable=False,
        overrides={
            "notable": True,
            "folded": True,
            "thoughts": True,
            "gold": compare_on_request(services, record),
        },
    )
    show_requested_note_dialog(database, record, person)


def choose_trace(siblings: Sequence[TraceToReview], opened: UUID) -> None:
    """Draw the choice of the trace that the bar decides on."""
    if len(siblings) < 2:
        return
    names = {str(sibling.id): f"{sibling.author}, {status_label(sibling.status)}" for sibling in siblings}
    key = f"side_{siblings[0].question_id.hex}"
    # The link is the truth.
    st.session_state[key] = str(opened) if str(opened) in names else None

    def choose() -> None:
        if st.session_state.get(key):
            open_trace(UUID(st.session_state[key]))

    st.segmented_control(
        "Trace to decide on",
        list(names),
        key=key,
        format_func=lambda trace_id: escape_markdown(names[trace_id]),
        label_visibility="collapsed",
        on_change=choose,
    )


def compare_siblings(database: Database, record: TraceRecord, siblings: Sequence[TraceToReview]) -> None:
    """Draw the traces of the question side by side; of many those whose answers differ come first."""
    groups = group_answers(record.project, {str(sibling.id): sibling.answer for sibling in siblings})
    letters = {trace_id: chr(ord("A") + min(place, 25)) for place, group in enumerate(groups) for trace_id in group}
    names = {str(sibling.id): sibling for sibling in siblings}
    shown = list(names)
    if len(names) > MAX_SIDES:
        firsts = [str(record.trace.id), *(group[0] for group in groups), *names]
        shown = st.multiselect(
            "Side by side",
            list(names),
            default=[trace_id for trace_id in dict.fromkeys(firsts) if trace_id in names][:MAX_SIDES],
            key=f"sides_{record.trace.id.hex}",
            format_func=lambda trace_id: f"{names[trace_id].author}: {names[trace_id].answer}"[:60],
        )
    with database.read() as session:
        outlines = review_queue.list_outlines(session, [UUID(trace_id) for trace_id in shown])
    compared = [ComparedTrace(names[trace_id], outlines[names[trace_id].id], letters[trace_id]) for trace_id in shown]
    if compared:
        show_side_by_side(compared, record.trace.id)


def find_next_trace(opened: UUID, waiting: Sequence[TraceToReview]) -> UUID | None:
    """The trace after the opened one in the list of those to decide on, from the beginning after the last."""
    ids = [trace.id for trace in waiting]
    place = ids.index(opened) if opened in ids else -1
    others = ids[place + 1 :] + ids[: max(place, 0)]
    return others[0] if others else None


def _compare_with_gold(record: TraceRecord) -> str:
    """The gold answer, whether the answer is the same set, and the answers as a whole and by source, as HTML."""
    trace, gold_answers = record.trace, record.question.gold_answers
    gold = ", ".join(answer["text"] for answer in gold_answers) or "unknown"
    verdict = f" · {_describe_score(trace.final_answer or '', gold_answers)}" if gold_answers else ""
    sources = {"text": trace.answer_text, "graph": trace.answer_graph, "model": trace.answer_model}
    by_source = " | ".join(f"{name}: {escape_html(answer)}" for name, answer in sources.items() if answer)
    answer_line = f"Answer: <strong>{escape_html(trace.final_answer or 'none')}</strong>"
    lines = (
        f"<p>Gold answer: <strong>{escape_html(gold)}</strong>{verdict}</p>",
        f"<p>{' · '.join(filter(None, (answer_line, by_source)))}</p>",
    )
    return "".join(lines)


def _describe_score(answer: str, gold_answers: Sequence[GoldAnswer]) -> str:
    """Whether the answer is the gold answer, with its F1 over the parts of both, as HTML."""
    try:
        score = score_within_limits(answer, gold_answers)[ANSWER_F1.name]
    except Unscorable as error:
        return escape_html(str(error))
    meaning = "F1 compares the parts of both answers: 1 means that all are the same, 0 that none is."
    return f'<span title="{meaning}">{"same set" if score == 1 else "another set"} (F1 {score:.2f})</span>'


def _show_origin(record: TraceRecord) -> None:
    """Draw who made the trace, its status, and whether it goes on from another one."""
    fork_position = record.trace.parent_position
    fork_label = f"forked at step {fork_position}" if fork_position else "a restart of another trace"
    parent = f" · {fork_label}" if record.trace.parent_id else ""
    name = escape_markdown(record.creator_name.capitalize())
    st.markdown(f"{name} · {status_label(record.trace.status)}{parent}")


def show_difference(parent: TraceRecord, fork: TraceRecord) -> None:
    """Draw what differs between a fork and its parent: the steps that only one of them has, and the answers."""
    texts = [[(_step_text(step),) for step in record.steps] for record in (parent, fork)]
    pairs = align(texts)
    places = [tuple(None if i is None else texts[side][i][0] for side, i in enumerate(pair)) for pair in pairs]
    same = len(list(takewhile(lambda place: place[0] == place[1], places)))
    kept = "The first step is the same." if same == 1 else f"The first {same:,} steps are the same."
    rows = [
        [TableCell(_step_label(pair)), TableCell(before or "–"), TableCell(after or "–")]
        for pair, (before, after) in zip(pairs, places, strict=True)
        if before != after
    ]
    if (parent.trace.final_answer or "") != (fork.trace.final_answer or ""):
        rows.append(
            [
                TableCell("answer"),
                TableCell(parent.trace.final_answer or "none"),
                TableCell(fork.trace.final_answer or "none"),
            ]
        )
    with st.expander(
        f"What changed since the trace it continues ({escape_markdown(parent.creator_name)})", expanded=True
    ):
        st.caption(kept if same else "The first step differs.")
        if rows:
            show_table(("", "before", "now"), rows, key="fork_difference", label="What changed")


def _step_label(pair: tuple[int | None, ...]) -> str:
    """The number of the step in the fork, else in the parent."""
    before, after = pair
    return f"step {after + 1}" if after is not None else f"step {(before or 0) + 1}, left out"


def _step_text(step: Step) -> str:
    """The step as one line to compare and to show."""
    if step.tool is None:
        return step.thought
    arguments = ", ".join(f"{label}: {value}" for _, label, value in list_shown_arguments(step))
    return f"{tool_title(step.tool)} ({arguments}) {step.thought}".strip()


def _metric_label(name: str) -> str:
    """The label of a metric; the name of one that no longer exists."""
    return METRICS[name].label if name in METRICS else name


def _describe_judgement(judgement: Judgement, record: TraceRecord) -> str:
    """Describe a reviewer's decision; one that does not hold any more says so."""
    reviewer = record.people.get(judgement.judge_id, "?") if judgement.judge_id else "?"
    is_decision = judgement.aspect == "approval"
    label = status_label(judgement.value) if is_decision else f"{judgement.aspect}: {judgement.value}"
    decision = escape_markdown(label[:1].upper() + label[1:])
    is_over = is_decision and judgement.value != record.trace.status
    held = " (holds no more)" if is_over else ""
    when = format_when(judgement.created_at)
    return f"{escape_markdown(reviewer)}, {when}: {decision}{held}. {escape_markdown(judgement.comment)}"


def load_record(database: Database, waiting: Sequence[TraceToReview]) -> TraceRecord | None:
    """Load the trace in the link, else the first one of the list."""
    trace_id = st.query_params.get("trace", "")
    with database.read() as session:
        try:
            if not trace_id and not waiting:
                return None
            return traces.load_linked_trace(session, UUID(trace_id) if trace_id else waiting[0].id)
        except (ValueError, StoreError):
            st.warning("The trace in the link does not exist. Choose one from the list.")
            return None


def show_page(services: Services, person: User) -> None:
    """Draw the filters, the list of questions, and the opened one."""
    database = services.database
    project = current_project(database)
    if project is None:
        show_head("Review")
        st.info("There is no project yet. `showhow setup` makes one.")
        return
    chosen, agreement, order = show_filters(database, project)
    show_undo(database, person)
    if decision := st.session_state.pop("decision", None):
        st.toast(decision)
    entries = list_entries(database, project, chosen, agreement, order)
    shown = choose_page(entries)
    page = ListPage.load(database, shown, chosen.by)
    record = load_record(database, page.to_decide(chosen))
    left, right = st.columns([1, 2.6], gap="medium")
    with left:
        _show_left(database, person, entries, shown, page, chosen, record)
    with right:
        if record is not None:
            show_review(services, record, person, page, chosen)


def _show_left(  # noqa: PLR0913, PLR0917 - what the list shows
    database: Database,
    person: User,
    entries: Sequence[ListedQuestion],
    shown: Sequence[ListedQuestion],
    page: ListPage,
    chosen: ReviewFilter,
    record: TraceRecord | None,
) -> None:
    with st.container(key="review_list"):
        if chosen.status == "submitted" and st.button(
            "Approve several", key="bulk", shortcut="Alt+L", icon=":material/done_all:", disabled=not entries
        ):
            agreements = {entry.row.id: entry.agreement for entry in shown}
            choices = list_choices(page.to_decide(chosen), page, agreements)
            show_bulk_dialog(database, person, choices)
        list_container = st.container(key="list")
    with list_container:
        if not entries:
            is_filtered = bool(chosen.text or chosen.author)
            hint = f" {SUBMISSION_HINTS[chosen.by]}" if chosen.status == "submitted" else ""
            hint = " Try fewer filters." if is_filtered else hint
            st.info(f"No trace is {status_label(chosen.status)}.{hint}")
            return
        show_list(entries, shown, page, chosen, record.question.id if record is not None else None)


services, person = acting_services()
show_page(services, person)
