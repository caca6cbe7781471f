"""What people have answered: the table of all answers with its files, and what each person submitted over time."""

import io
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import date

import streamlit as st

from showhow.app.widgets.notebook import status_label
from showhow.app.widgets.page_layout import browser_zone, format_when
from showhow.app.widgets.table import TableCell, shorten, show_table
from showhow.app.widgets.url_state import clear_url_parameters, get_url_parameter, list_start
from showhow.db.database import Database
from showhow.db.models import Project
from showhow.db.people.gold_visibility import is_gold_visible
from showhow.db.people.users import ADMIN, REVIEWER, acting_person, has_acting_role
from showhow.db.questions import person_answers
from showhow.db.questions.person_answers import (
    ANSWER_STATUSES,
    COMPLETED,
    PERIODS,
    AnswerConditions,
    PeriodProgress,
    PersonAnswer,
)
from showhow.db.review.queue import list_annotators
from showhow.db.unanswerable import CANNOT_BE_ANSWERED
from showhow.evaluation.comparison.answer_table import list_person_answers, restrict_to_own, write_answer_table
from showhow.evaluation.value_format import TABLE_WRITERS, format_count
from showhow.runs.services import Services

PAGE_SIZE = 25
EVERYBODY, ALL = "everybody", "all"
STATUS_LABELS = {COMPLETED: "submitted and approved"} | {
    status: status_label(status) for status in ANSWER_STATUSES if status != COMPLETED
}
FILE_LABELS = {"csv": "CSV", "xlsx": "Excel", "json": "JSON", "parquet": "Parquet"}
MAX_LISTED_PERIODS = 100


def may_see_all_answers(database: Database) -> bool:
    """Whether the person who acts sees the answers of others."""
    with database.read() as session:
        return has_acting_role(session, REVIEWER, ADMIN)


def show_answers(services: Services, project: Project) -> None:
    """Draw the filters, one page of the table, and its files; people who annotate see their own answers."""
    database = services.database
    conditions = _choose_conditions(database, project)
    start = list_start()
    with database.read() as session:
        conditions = restrict_to_own(session, conditions)
        total = person_answers.count_answers(session, project.id, conditions)
        start = min(start, max(0, (total - 1) // PAGE_SIZE * PAGE_SIZE))
        ids = person_answers.list_answer_ids(session, project.id, conditions, start=start, limit=PAGE_SIZE)
        rows = list_person_answers(session, project, ids)
        answers = person_answers.load_answers(session, ids)
        shows_gold = is_gold_visible(session, project)
    if not total:
        st.info("No answers. Try other filters, or wait until people have submitted some.")
        return
    columns = ["no.", "question", "person", "status", "answer", *(["gold answer"] if shows_gold else [])]
    columns += ["agreement", "min.", "comment", "submitted"]
    show_table(
        columns,
        [_answer_row(answer, row, shows_gold=shows_gold) for answer, row in zip(answers, rows, strict=True)],
        key="project_answers",
        label="Answers of people",
        go=_request_trace,
    )
    _show_pager(start, total)
    _show_files(database, project, conditions)


def _choose_conditions(database: Database, project: Project) -> AnswerConditions:
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="answer_filters"):
        person = None
        if may_see_all_answers(database):
            with database.read() as session:
                people = sorted(entry.name for entry in list_annotators(session, project.id))
            person = _choose("Person", "person", {EVERYBODY: EVERYBODY} | {name: name for name in people}, 190)
        else:
            st.caption("These are your own answers; reviewers see those of everybody.")
        status = _choose("Status", "status", STATUS_LABELS | {ALL: "all"}, 220)
        text = _search("Search", "text", 240)
    return AnswerConditions(None if status == ALL else status, None if person == EVERYBODY else person, text.strip())


def _choose(label: str, name: str, options: Mapping[str, str], width: int) -> str:
    """Draw a choice that the link stores; the first option is the default."""
    key, stored = f"answers_{name}", get_url_parameter(name)
    st.session_state[key] = stored if stored in options else next(iter(options))
    return st.selectbox(
        label, list(options), key=key, format_func=options.__getitem__, width=width, on_change=_store, args=(name, key)
    )


def _search(label: str, name: str, width: int) -> str:
    key = f"answers_{name}"
    st.session_state[key] = get_url_parameter(name)
    return st.text_input(
        label, key=key, width=width, placeholder="Question or answer", on_change=_store, args=(name, key)
    )


def _store(name: str, key: str) -> None:
    clear_url_parameters("from")
    st.query_params[name] = st.session_state[key]


def _answer_row(answer: PersonAnswer, row: Mapping[str, object], *, shows_gold: bool) -> list[TableCell]:
    agreement, minutes = row["agreement"], row["minutes"]
    return [
        TableCell(f"{answer.question.position}", number=True),
        TableCell(shorten(answer.question.summary), go=str(answer.trace_id)),
        TableCell(answer.person, whole=True),
        TableCell(status_label(answer.status), whole=True),
        TableCell(shorten(answer.answer or "–")),
        *([TableCell(shorten(str(row["gold"])))] if shows_gold else []),
        TableCell("–" if agreement is None else f"{agreement:.2f}", number=True),
        TableCell("–" if minutes is None else f"{minutes:.1f}", number=True),
        TableCell(shorten(answer.comment or "")),
        TableCell("–" if answer.submitted_at is None else format_when(answer.submitted_at), whole=True),
    ]


def _request_trace(trace_id: str) -> None:
    st.session_state["open_trace"] = trace_id


def _show_pager(start: int, total: int) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="answer_pager"):
        if total > PAGE_SIZE:
            for label, target in (("Previous", start - PAGE_SIZE), ("Next", start + PAGE_SIZE)):
                is_off = not 0 <= target < total
                st.button(label, key=f"answers_{label.lower()}", disabled=is_off, on_click=_go_to, args=(target,))
        last = min(start + PAGE_SIZE, total)
        st.caption(f"{start + 1:,}–{last:,} of {format_count(total, 'answer')}", width="content")


def _go_to(start: int) -> None:
    st.query_params["from"] = str(start)


def _show_files(database: Database, project: Project, conditions: AnswerConditions) -> None:
    """Draw the downloads of the whole table, each written when it is asked for."""

    def write(name: str) -> Callable[[], bytes]:
        def make() -> bytes:
            stream = io.BytesIO()
            write_answer_table(database, project, conditions, name, stream)
            return stream.getvalue()

        return make

    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="answer_files"):
        st.caption("All of them as", width="content")
        for name in TABLE_WRITERS:
            st.download_button(
                FILE_LABELS.get(name, name),
                write(name),
                f"answers.{name}",
                key=f"answers_as_{name}",
                on_click="ignore",
            )
    st.code(f"showhow traces table answers.xlsx --project {shlex.quote(project.name)}", language=None)


def show_progress(database: Database, project: Project) -> None:
    """Draw what each person submitted in each week or day, the latest first."""
    st.header("Over time", anchor=False)
    period = st.segmented_control(
        "Period",
        list(PERIODS),
        default="week",
        key="progress_period",
        format_func=lambda name: f"By {name}",
        label_visibility="collapsed",
        required=True,
    )
    with database.read() as session:
        progress = person_answers.list_progress(session, project.id, str(period), browser_zone())
        actor = acting_person(session)
    if not progress:
        st.caption("Nobody has submitted anything yet.")
        return
    own = None if may_see_all_answers(database) or actor is None else actor.name
    columns = [str(period), "person", "submitted", "approved", "returned", "median time (min.)"]
    counts_unanswerable = any(entry.unanswerable for entry in progress)
    if counts_unanswerable:
        columns.insert(3, CANNOT_BE_ANSWERED)
    rows = [
        [
            TableCell(_format_period(entry.begins, str(period)), whole=True),
            TableCell(entry.person, go=entry.person if own in (None, entry.person) else "", whole=True),
            TableCell(f"{entry.submitted:,}", number=True),
            *([TableCell(f"{entry.unanswerable:,}", number=True)] if counts_unanswerable else []),
            TableCell(f"{entry.approved:,}", number=True),
            TableCell(f"{entry.returned:,}", number=True),
            TableCell("–" if entry.median_seconds is None else format_minutes(entry.median_seconds), number=True),
        ]
        for entry in progress[:MAX_LISTED_PERIODS]
    ]
    show_table(columns, rows, key="progress", label="What each person has submitted over time", go=open_work)
    st.caption(_describe_progress(progress))


def _format_period(begins: date, period: str) -> str:
    return f"{begins:%a %d %b %Y}" if period == "day" else f"from {begins:%d %b %Y}"


def _describe_progress(progress: Sequence[PeriodProgress]) -> str:
    hidden = len(progress) - MAX_LISTED_PERIODS
    older = f" {hidden:,} earlier rows are not shown." if hidden > 0 else ""
    return f"Approved and returned: what of the submitted is so now. A name leads to the person's answers.{older}"


def format_minutes(seconds: float) -> str:
    """Format seconds as minutes for a table."""
    return f"{round(seconds) // 60}:{round(seconds) % 60:02}"


def open_work(name: str) -> None:
    """Open the answers of a person, whatever became of them."""
    clear_url_parameters("from", "text")
    st.query_params.update({"view": "answers", "person": name, "status": ALL})
