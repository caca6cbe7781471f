"""The person's queue: the chosen project, the trace on the page, and the header with progress, skip and guidelines.

Opening a question stores nothing: its author's first act begins the trace.
"""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from threading import Lock
from typing import Any
from uuid import UUID

import streamlit as st

from app.widgets.page_layout import (
    disarm_images,
    escape_html,
    escape_markdown,
    format_sentence,
    format_when,
    show_shortcuts_button,
)
from app.widgets.person import show_user_menu
from app.widgets.url_state import clear_url_parameters
from db import projects, queue, recording, traces, users
from db.database import Conflict, Database, RowNotFound, StoreError
from db.models import Project, Question, Trace, User
from db.trace_record import TraceRecord
from db.types import utc_now
from evaluation.repairs import next_failure
from runs.services import Services

CHOSEN_PROJECT = "chosen_project"
"""The key of the name of the project that was chosen last in this session."""


@cache
def signing_key() -> bytes:
    """The secret of this process, from which tokens and the ids of new traces are derived."""
    return secrets.token_bytes(32)


@dataclass(frozen=True, slots=True)
class OpenedTrace:
    """A trace that a person opened; `question_id` and `opened_at` are those of a trace that was new when it opened."""

    id: UUID
    person: str
    question_id: UUID | None = None
    opened_at: datetime | None = None
    is_chosen: bool = False
    """Whether the person chose the question, which may then be done or reserved by others."""

    @classmethod
    def of_question(
        cls, question_id: UUID, person: str, opened_at: datetime, *, is_chosen: bool = False
    ) -> "OpenedTrace":
        """The trace that the person will begin; its id is the same in all tabs, so that they notice each other."""
        digest = hmac.digest(signing_key(), f"{question_id} {person}".encode(), "sha256")
        return cls(UUID(bytes=digest[:16], version=4), person, question_id, opened_at, is_chosen)

    def load(self, database: Database) -> tuple[TraceRecord, User]:
        """Load the trace, or make the record of one that is not begun, and the person as stored at that moment."""
        with database.read() as session:
            try:
                # The trace first: the first draft, which the page posts by itself, may store a new person with it.
                return traces.load_trace(session, self.id), users.preview_user(session, self.person)
            except RowNotFound:
                if self.question_id is None:
                    raise
            person = users.preview_user(session, self.person)
            new_trace = Trace(
                question_id=self.question_id,
                author_id=person.id,
                started_at=self.opened_at or utc_now(),
                id=self.id,
            )
            return traces.preview_trace(session, new_trace), person

    def begin(self, session: Any) -> None:
        """Begin the trace, unless it is begun: register its author, reserve its question and store it."""
        if self.question_id is None or traces.has_trace(session, self.id):
            return
        author = users.register_user(session, self.person)
        begin = recording.start_trace if self.is_chosen else queue.begin_question
        trace = begin(session, self.question_id, author.id, trace_id=self.id, opened_at=self.opened_at)
        if trace.id != self.id:
            raise Conflict(
                "you have begun this question in another tab; what you typed is still on this page. Continue in the "
                "other tab, or reload this page"
            )


class ShownQuestions:
    """Which visitor was shown which question a short while ago, so that others are shown different ones.

    This is a preference, not a reservation: it is lost with the process, after SECONDS, and beyond MAX_VISITORS.
    """

    SECONDS = 600.0
    MAX_VISITORS = 250

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        # The visitor who was shown a question last is the last one.
        self._shown: OrderedDict[tuple[UUID, str], tuple[UUID, float]] = OrderedDict()

    def recall(self, project_id: UUID, visitor: str) -> tuple[UUID | None, frozenset[UUID]]:
        """Return the question that the visitor was shown, and those that others were shown, in this project."""
        with self._lock:
            self._forget_expired()
            last_shown, _ = self._shown.get((project_id, visitor), (None, 0.0))
            return last_shown, self._shown_to_others(project_id, visitor)

    def show(self, project_id: UUID, visitor: str, question_id: UUID, known: Collection[UUID]) -> bool:
        """Record that the visitor is shown the question; False if another one was since `known` was recalled."""
        with self._lock:
            self._forget_expired()
            if question_id not in known and question_id in self._shown_to_others(project_id, visitor):
                return False
            self._shown[project_id, visitor] = (question_id, self._clock())
            self._shown.move_to_end((project_id, visitor))
            if len(self._shown) > self.MAX_VISITORS:
                self._shown.popitem(last=False)
            return True

    def _shown_to_others(self, project_id: UUID, visitor: str) -> frozenset[UUID]:
        return frozenset(
            question_id
            for (shown_project, shown_visitor), (question_id, _) in self._shown.items()
            if shown_project == project_id and shown_visitor != visitor
        )

    def _forget_expired(self) -> None:
        expired = self._clock() - self.SECONDS
        while self._shown and next(iter(self._shown.values()))[1] < expired:
            self._shown.popitem(last=False)


@cache
def shown_questions() -> ShownQuestions:
    """The record of this process."""
    return ShownQuestions()


def current_project(database: Database) -> Project | None:
    """The project in the link, else the one chosen in this session, else the first one; None without projects."""
    with database.read() as session:
        all_projects = projects.list_projects(session)
    if not all_projects:
        return None
    # Links between pages drop the query of the URL, but the project stays the same.
    name = st.query_params.get("project", st.session_state.get(CHOSEN_PROJECT))
    project = next((project for project in all_projects if project.name == name), all_projects[0])
    if name == project.name:
        st.session_state[CHOSEN_PROJECT] = name
        if "project" not in st.query_params:
            st.query_params["project"] = name
    return project


def show_product_header(database: Database, person: User, shortcuts: Mapping[str, str]) -> None:
    """Draw what the top of every page shows beside the navigation: the project, the shortcuts and the person."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="product_header"):
        _choose_project(database)
        show_shortcuts_button(shortcuts)
        show_user_menu(person)


def _choose_project(database: Database) -> None:
    """Draw a select box of the projects."""
    with database.read() as session:
        names = [project.name for project in projects.list_projects(session)]
    project = current_project(database)
    if project is None:
        return
    # The link is the truth: a new choice is in it before the page is drawn again.
    if st.session_state.get("project_name") != project.name:
        st.session_state["project_name"] = project.name
    st.selectbox(
        "Current project", names, key="project_name", label_visibility="collapsed", width=210, on_change=_change_project
    )


def _change_project() -> None:
    st.query_params["project"] = st.session_state["project_name"]
    clear_url_parameters("trace", "question")


def current_trace(services: Services, person: User) -> OpenedTrace | None:
    """The trace or question in the link, else the next one in the person's queue; None if the queue is empty."""
    reference = st.query_params.get("trace", "")
    if reference:
        try:
            trace_id = UUID(reference)
            with services.database.read() as session:
                traces.load_trace(session, trace_id)
        except (ValueError, RowNotFound):
            st.session_state["notice"] = "The trace in the link does not exist. This is the next one in your queue."
        else:
            clear_url_parameters("question")
            return OpenedTrace(trace_id, person.name)
    if reference := st.query_params.get("question", ""):
        try:
            return _open_chosen_question(services.database, UUID(reference), person)
        except (ValueError, RowNotFound):
            st.session_state["notice"] = "The question in the link does not exist. This is the next one in your queue."
            clear_url_parameters("question")
    project = current_project(services.database)
    opened = _next_trace(services, project, person) if project is not None else None
    if opened is not None and opened.question_id is None:
        st.query_params["trace"] = str(opened.id)
    return opened


def _open_chosen_question(database: Database, question_id: UUID, person: User) -> OpenedTrace:
    """The person's trace of the question, or one that is not begun; RowNotFound if there is no such question."""
    with database.read() as session:
        trace = queue.find_own_trace(session, question_id, person.id)
    if trace is not None:
        st.query_params["trace"] = str(trace.id)
        clear_url_parameters("question")
        return OpenedTrace(trace.id, person.name)
    opened = OpenedTrace.of_question(question_id, person.name, _opening_time(question_id), is_chosen=True)
    opened.load(database)
    return opened


def _opening_time(question_id: UUID) -> datetime:
    """When this session first showed the question."""
    opened_at: datetime = st.session_state.setdefault(f"opened_at_{question_id.hex}", utc_now())
    return opened_at


def _next_trace(services: Services, project: Project, person: User) -> OpenedTrace | None:
    """The next trace: returned work, else the latest draft, else a failed run to repair, else a new trace."""
    postponed: set[UUID] = st.session_state.get("postponed", set())
    with services.database.read() as session:
        returned = queue.list_returned_traces(session, project.id, person.id)
        drafts = queue.list_drafts(session, project.id, person.id)
    for item in (*returned, *drafts):
        if item.trace.id not in postponed:
            return OpenedTrace(item.trace.id, person.name)
    failure = next_failure(services, project, person.id)
    if failure is not None and failure.outcome.trace_id is not None:
        return OpenedTrace(failure.outcome.trace_id, person.name)
    question = _next_question(services.database, project, person)
    if question is None:
        return None
    return OpenedTrace.of_question(question.id, person.name, _opening_time(question.id))


def _next_question(database: Database, project: Project, person: User) -> Question | None:
    """The person's next question; a reload shows the same one, and people who come at once are shown different ones."""
    while True:
        last_shown, shown_to_others = shown_questions().recall(project.id, person.name)
        with database.read() as session:
            question = queue.next_question(
                session, project.id, person.id, last_shown=last_shown, shown_to_others=shown_to_others
            )
        # Nobody waits for another's query: who is second to choose the same question chooses again.
        if question is None or shown_questions().show(project.id, person.name, question.id, shown_to_others):
            return question


def open_next_question(postpone: UUID | None = None) -> None:
    """Open the next trace of the queue; a postponed trace stays under My work until the next visit."""
    if postpone is not None:
        st.session_state.setdefault("postponed", set()).add(postpone)
    clear_url_parameters("trace", "question")
    st.rerun()


def show_queue_header(database: Database, person: User, opened: OpenedTrace | None) -> None:
    """Draw the header of the Annotate page: project, progress, the buttons of the queue, and the question."""
    project = current_project(database)
    if project is None:
        st.info(
            "There is no project yet. `showhow setup` makes one with a small world; `showhow world import` and "
            "`showhow questions import` import your own."
        )
        return
    record, person = opened.load(database) if opened else (None, person)
    with database.read() as session:
        progress = queue.measure_progress(session, project.id, person.id)
        returned = len(queue.list_returned_traces(session, project.id, person.id))
    shown_project = record.project if record else project
    with st.container(key="masthead"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            position_text = (
                f"Question {record.question.position} of {progress.total}" if record else f"{progress.total} questions"
            )
            with st.container(key="question", width="stretch", gap=None):
                st.caption(
                    f"{position_text} · {progress.done} done, {progress.completed_by_user} by you"
                    + (f" · world: {escape_markdown(shown_project.world)}" if shown_project.world else "")
                )
                if record:
                    # A long question is cut by page.css, and expands with the focus.
                    st.html(f'<div class="head" tabindex="0"><h1>{escape_html(record.question.text)}</h1></div>')
            label = f"My work :orange-badge[{returned} returned]" if returned else "My work"
            if st.button(label, key="queue", shortcut="Alt+Q", icon=":material/inbox:"):
                _show_queue(database, project, person)
            is_own_draft = record is not None and record.trace.status == "draft" and record.trace.author_id == person.id
            if record and person.roles and is_own_draft and st.button("Skip", key="skip", shortcut="Alt+K"):
                st.session_state.pop("is_skipped", None)
                _show_skip_dialog(database, record.question.id, person)
            if st.button("Guidelines", key="guidelines", shortcut="Alt+G", icon=":material/menu_book:"):
                _show_guidelines(shown_project)
        if record is None:
            _show_queue_empty(progress)


def show_task(record: TraceRecord) -> None:
    """Draw what the question has beside its text: the instruction of the project, and its attachments."""
    if record.project.instruction:
        st.caption(escape_markdown(record.project.instruction))
    for name, value in record.question.attachments.items():
        with st.expander(escape_markdown(name), expanded=True):
            if isinstance(value, str):
                st.text(value)
            else:
                st.json(value)


def _show_queue_empty(progress: queue.ProjectProgress) -> None:
    if progress.total == 0:
        st.info("This project has no questions yet. Import a file of questions, or take those of a generated world.")
        if st.button("Import questions", key="empty_import", type="primary", icon=":material/upload:"):
            kept = {name: st.query_params[name] for name in ("you", "project") if name in st.query_params}
            st.switch_page("project.py", query_params=kept)
    else:
        st.success(
            f"Your queue is empty: {progress.done} of {progress.total} questions are done, you skipped "
            f"{progress.skipped}, and others hold {progress.held}."
        )


@st.dialog("Skip this question")
def _show_skip_dialog(database: Database, question_id: UUID, person: User) -> None:
    if st.session_state.pop("is_skipped", False):
        st.rerun()
    st.text_input("Why?", key="skip_reason", placeholder="unclear, needs another source, ...")
    st.caption("Your steps are saved. You can return to the question from My work.")
    # A callback runs also where Streamlit joined the click with a run of the page, which draws no dialog.
    st.button(
        "Skip",
        key="skip_now",
        type="primary",
        shortcut="Ctrl+Enter",
        on_click=_skip_question,
        args=(database, question_id, person),
    )
    if problem := st.session_state.pop("skip_problem", None):
        st.error(format_sentence(problem))


def _skip_question(database: Database, question_id: UUID, person: User) -> None:
    try:
        with database.begin() as session:
            author = users.register_user(session, person.name)
            queue.skip_question(session, question_id, author.id, st.session_state.get("skip_reason", ""))
    except StoreError as error:
        st.session_state["skip_problem"] = str(error)
    else:
        clear_url_parameters("trace", "question")
        st.session_state["is_skipped"] = True


@st.dialog("Guidelines", width="medium")
def _show_guidelines(project: Project) -> None:
    st.markdown(disarm_images(project.guidelines) or "This project has no guidelines.")


@st.dialog("My work", width="medium")
def _show_queue(database: Database, project: Project, person: User) -> None:
    with database.read() as session:
        returned = queue.list_returned_traces(session, project.id, person.id)
        drafts = queue.list_drafts(session, project.id, person.id)
        completed = {
            status: queue.list_completed_traces(session, project.id, person.id, status)
            for status in projects.COMPLETED_STATUSES
        }
        skipped = queue.list_skipped_questions(session, project.id, person.id)
        # The lists end at their first entries, the counts do not.
        counted = queue.count_own_work(session, project.id, person.id)
    counts = {name.capitalize(): count for name, count in counted.items()}
    first = next((tab for tab, count in counts.items() if count), "Returned")
    tab = st.segmented_control(
        "My work",
        list(counts),
        default=first,
        key="my_work",
        format_func=lambda tab: f"{tab} {counts[tab]}",
        label_visibility="collapsed",
        required=True,
    )
    if not counts[str(tab)]:
        st.caption("Nothing yet.")
    elif tab == "Returned":
        for item in returned:
            fix = partial(fork_returned_trace, database, item.trace.id, person.id)
            _show_queue_entry("Fix", item.trace.id, item.question.summary, f"Returned: {item.comment}", fix)
    elif tab == "Skipped":
        for question, reason in skipped:
            unskip = partial(_unskip_question, database, question.id, person.id)
            _show_queue_entry("Return to my queue", question.id, question.summary, f"Skipped: {reason}", unskip)
    else:
        label = "Continue" if tab == "Drafts" else "Open"
        for item in drafts if tab == "Drafts" else completed[str(tab).lower()]:
            _show_queue_entry(label, item.trace.id, item.question.summary, _describe_own_trace(item.trace))


def _describe_own_trace(trace: Trace) -> str:
    fork = f", forked at step {trace.parent_position}" if trace.parent_position else ""
    answer = f": {trace.final_answer}" if trace.final_answer else ""
    return f"{trace.status.capitalize()}, {format_when(trace.submitted_at or trace.started_at)}{fork}{answer}"


def _show_queue_entry(
    label: str, row_id: UUID, question: str, note: str, open_trace: Callable[[], UUID] | None = None
) -> None:
    """Draw one row of the dialog; `open_trace` returns the trace that it opens, which else has the id of the row."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"{escape_markdown(question)}  \n:gray[{escape_markdown(note)}]", width="stretch")
        if st.button(label, key=f"queue_entry_{row_id.hex}"):
            st.query_params["trace"] = str(open_trace() if open_trace else row_id)
            st.rerun()


def fork_returned_trace(database: Database, trace_id: UUID, person_id: UUID) -> UUID:
    """Fork a returned trace with all its steps, so that its author can fix it; returns the id of the draft."""
    with database.begin() as session:
        steps = len(traces.load_trace(session, trace_id).steps)
        return traces.fork_trace(session, trace_id, steps, person_id).id


def _unskip_question(database: Database, question_id: UUID, person_id: UUID) -> UUID:
    with database.begin() as session:
        queue.unskip_question(session, question_id, person_id)
        return recording.start_trace(session, question_id, person_id).id
