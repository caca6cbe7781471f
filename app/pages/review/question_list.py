"""The left side of the Review page: filters, and the list of questions with the traces of each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import streamlit as st

from showhow.app.pages.review.side_by_side import group_answers
from showhow.app.widgets.notebook import status_label
from showhow.app.widgets.page_layout import escape_markdown
from showhow.app.widgets.table import shorten
from showhow.db.database import Database
from showhow.db.models import Project, Question
from showhow.db.review import review_queue
from showhow.db.review.review_queue import EVERYBODY, QuestionToReview, ReviewFilter, TraceToReview
from showhow.db.traces.libraries import MODELS, PEOPLE
from showhow.evaluation.value_format import format_count

PAGE_SIZE = 25
ANYBODY = "anybody"
AUTHORS = {PEOPLE: "People", MODELS: "Models", EVERYBODY: "Both"}
STATUSES = ("submitted", "approved", "rejected")
AGREEMENT = {"any": "Any", "differ": "Answers differ", "agree": "Answers agree", "single": "One answer"}
ORDERS: dict[str, Callable[["ListedQuestion"], tuple[object, ...]]] = {
    "Disagreement first": lambda entry: (entry.agreement != "differ", entry.row.first_submitted_at, entry.row.position),
    "Oldest first": lambda entry: (entry.row.first_submitted_at, entry.row.position),
    "Newest first": lambda entry: (-entry.row.last_submitted_at.timestamp(), entry.row.position),
    "Order of the project": lambda entry: (entry.row.position,),
}
SUBMISSION_HINTS = {
    PEOPLE: "Traces that annotators submit appear in this list.",
    MODELS: "Traces of models, from the Ask page or an evaluation, appear in this list.",
    EVERYBODY: "Traces that annotators submit, and those of models, appear in this list.",
}


@dataclass(frozen=True, slots=True)
class ListedQuestion:
    """A question of the list, and the number of its answers in review or approved that differ."""

    row: QuestionToReview
    different: int

    @property
    def agreement(self) -> str:
        """A key of AGREEMENT."""
        if self.different > 1:
            return "differ"
        return "agree" if self.row.completed > 1 else "single"


def show_filters(database: Database, project: Project) -> tuple[ReviewFilter, str, str]:
    """Draw the filters; returns them, the chosen agreement, and the chosen order."""
    with (
        st.container(key="masthead"),
        st.container(horizontal=True, vertical_alignment="center", gap="small", key="review_head"),
    ):
        st.html('<h1 class="world">Review</h1>', width="content")
        by = st.segmented_control(
            "By",
            list(AUTHORS),
            default=PEOPLE,
            key="by",
            format_func=AUTHORS.__getitem__,
            label_visibility="collapsed",
            required=True,
            bind="query-params",
            on_change=reset_list,
        )
        with database.read() as session:
            counts = review_queue.count_by_status(session, project.id, by=by)
            authors = review_queue.list_authors(session, project.id, by)
        status = st.segmented_control(
            "Status",
            STATUSES,
            default="submitted",
            key="status",
            format_func=lambda status: f"{status_label(status).capitalize()} ({counts.get(status, 0):,})",
            label_visibility="collapsed",
            on_change=reset_list,
        )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="review_filters"):
        text = st.text_input(
            "Search", key="review_text", placeholder="Question or answer", width=220, on_change=reset_list
        )
        author = st.selectbox("Author", [ANYBODY, *authors], key=f"review_author_{by}", width=170, on_change=reset_list)
        agreement = st.selectbox(
            "Agreement",
            list(AGREEMENT),
            key="review_agreement",
            format_func=AGREEMENT.__getitem__,
            width=170,
            on_change=reset_list,
        )
        order = st.selectbox("Sort", list(ORDERS), key="review_order", width=190, on_change=reset_list)
    chosen = ReviewFilter(status or "submitted", by, text.strip(), "" if author == ANYBODY else author)
    return chosen, agreement, order


def reset_list() -> None:
    """Go back to the first page of the list, and to its first trace."""
    st.session_state["review_page"] = 0
    st.query_params.pop("trace", None)


def list_entries(
    database: Database, project: Project, chosen: ReviewFilter, agreement: str, order: str
) -> list[ListedQuestion]:
    """All questions that meet the filters, in the chosen order."""
    with database.read() as session:
        rows = review_queue.list_questions_to_review(session, project.id, chosen)
        compared = review_queue.list_answers(session, [row.id for row in rows if row.answers > 1], chosen.by)
    entries = [ListedQuestion(row, len(group_answers(project, compared.get(row.id, {})))) for row in rows]
    kept = [entry for entry in entries if agreement in ("any", entry.agreement)]
    return sorted(kept, key=ORDERS[order])


@dataclass(frozen=True, slots=True)
class ListPage:
    """The part of the list that is drawn: questions with their traces, in order."""

    questions: dict[UUID, Question]
    traces: list[TraceToReview]

    @classmethod
    def load(cls, database: Database, entries: Sequence[ListedQuestion], by: str) -> "ListPage":
        """Load the questions and the traces of these entries."""
        ids = [entry.row.id for entry in entries]
        with database.read() as session:
            questions = review_queue.load_questions(session, ids)
            traces = review_queue.list_traces_to_review(session, ids, by)
        order = {question_id: place for place, question_id in enumerate(ids)}
        return cls(questions, sorted(traces, key=lambda trace: order[trace.question_id]))

    def traces_of(self, question_id: UUID) -> list[TraceToReview]:
        """The traces of one question."""
        return [trace for trace in self.traces if trace.question_id == question_id]

    def to_decide(self, chosen: ReviewFilter) -> list[TraceToReview]:
        """The traces that meet the status and the author of the filter, in the order of the list."""
        return [trace for trace in self.traces if trace.status == chosen.status and chosen.author in ("", trace.author)]


def choose_page(entries: Sequence[ListedQuestion]) -> list[ListedQuestion]:
    """The entries of the page of the list that is looked at."""
    last = max(0, (len(entries) - 1) // PAGE_SIZE)
    page = min(int(st.session_state.get("review_page", 0)), last)
    st.session_state["review_page"] = page
    return list(entries[page * PAGE_SIZE : (page + 1) * PAGE_SIZE])


def show_list(
    entries: Sequence[ListedQuestion],
    shown: Sequence[ListedQuestion],
    page: ListPage,
    chosen: ReviewFilter,
    opened: UUID | None,
) -> None:
    """Draw one page of the list with the question `opened` highlighted."""
    traces = format_count(sum(entry.row.traces for entry in entries), "trace")
    st.caption(f"{format_count(len(entries), 'question')}, {traces} {status_label(chosen.status)}")
    for entry in shown:
        _show_row(entry, page, chosen, is_open=entry.row.id == opened)
    if len(entries) > PAGE_SIZE:
        place = int(st.session_state["review_page"])
        with st.container(horizontal=True):
            st.button("Earlier", key="earlier", disabled=place == 0, on_click=_turn_page, args=(place - 1,))
            is_last = (place + 1) * PAGE_SIZE >= len(entries)
            st.button("Later", key="later", disabled=is_last, on_click=_turn_page, args=(place + 1,))


def _turn_page(page: int) -> None:
    reset_list()
    st.session_state["review_page"] = page


def _show_row(entry: ListedQuestion, page: ListPage, chosen: ReviewFilter, *, is_open: bool) -> None:
    question, traces = page.questions[entry.row.id], page.traces_of(entry.row.id)
    first = next((trace for trace in traces if trace in page.to_decide(chosen)), traces[0])
    with st.container(key=f"row_{question.id.hex}", gap=None):
        st.button(
            escape_markdown(question.summary),
            key=f"open_{question.id.hex}",
            type="primary" if is_open else "tertiary",
            width="stretch",
            on_click=open_trace,
            args=(first.id,),
        )
        mark = f":orange-badge[{entry.different} answers differ] " if entry.different > 1 else ""
        again = ":blue-badge[resubmitted] " if any(trace.is_resubmitted for trace in traces) else ""
        st.caption(f"{mark}{again}{' · '.join(map(_describe_trace, traces[:4]))}{_more(len(traces) - 4)}")


def _describe_trace(trace: TraceToReview) -> str:
    return f"{escape_markdown(trace.author)}: {escape_markdown(shorten(trace.answer, 80))}"


def _more(count: int) -> str:
    return f" · and {count} more" if count > 0 else ""


def open_trace(trace_id: UUID) -> None:
    """Open a trace."""
    st.query_params["trace"] = str(trace_id)
