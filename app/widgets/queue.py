"""The person's queue: the chosen project, and the trace on the page.

Opening a question stores nothing: its author's first act begins the trace.
"""

import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import count
from threading import Lock
from typing import Any
from uuid import UUID

import streamlit as st

from showhow.app.home_secret import derive_key
from showhow.app.services import current_services
from showhow.app.widgets.page_layout import (
    escape_markdown,
)
from showhow.app.widgets.url_state import clear_url_parameters
from showhow.db.database import Conflict, Database, RowNotFound
from showhow.db.models import Project, Question, Trace, User
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.review import queue
from showhow.db.traces import recording, traces
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import utc_now
from showhow.runs.services import Services

CHOSEN_PROJECT = "chosen_project"
"""The key of the name and the id of the project that was chosen last in this session."""


def signing_key() -> bytes:
    """The key, the same in all processes of the home, from which tokens and the ids of new traces are derived."""
    return derive_key(current_services().settings.home, "drafts")


def derive_id(text: str) -> UUID:
    """An id that every process of the home derives from the text."""
    return UUID(bytes=hmac.digest(signing_key(), text.encode(), "sha256")[:16], version=4)


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
        cls, database: Database, question_id: UUID, person: str, opened_at: datetime, *, is_chosen: bool = False
    ) -> "OpenedTrace":
        """The trace that the person will begin; its id is the same in all tabs, so that they notice each other."""
        ids = (derive_id(f"{question_id} {person} {number}") for number in count())
        with database.read() as session:
            # What pages remember of a discarded trace is not used again.
            trace_id = next(id_ for id_ in ids if not traces.is_removed(session, id_))
        return cls(trace_id, person, question_id, opened_at, is_chosen)

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
    # Links between pages drop the query of the URL, but the project stays the same, also when it is renamed.
    last_name, last_id = st.session_state.get(CHOSEN_PROJECT, (None, None))
    name = st.query_params.get("project", last_name)
    keys = [name, last_id] if name == last_name else [name]
    ways = {key: project for project in reversed(all_projects) for key in (str(project.id), project.name)}
    project = next((ways[key] for key in keys if key in ways), None)
    if project is None:
        return all_projects[0] if all_projects else None
    st.session_state[CHOSEN_PROJECT] = (project.name, str(project.id))
    if st.query_params.get("project") != project.name:
        st.query_params["project"] = project.name
    return project


def show_missing_project(database: Database) -> None:
    """Say that the link names a project that is not here, where another one is shown in its place."""
    project, name = current_project(database), st.query_params.get("project")
    if project is not None and name and name != project.name:
        st.warning(
            f"There is no project **{escape_markdown(name)}**: it was renamed, archived or deleted, or the link is "
            f"wrong. This is **{escape_markdown(project.name)}**; choose another one above."
        )


def current_trace(services: Services, person: User) -> OpenedTrace | None:
    """The trace or question in the link, else the next one in the person's queue; None if the queue is empty."""
    reference = st.query_params.get("trace", "")
    if reference:
        try:
            trace_id = UUID(reference)
            with services.database.read() as session:
                trace = traces.load_linked_trace(session, trace_id).trace
                if trace.removal_id is not None and trace.status == "draft":
                    raise RowNotFound("the draft is deleted")  # noqa: TRY301 - as one that is not stored
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
    opened = OpenedTrace.of_question(database, question_id, person.name, _opening_time(question_id), is_chosen=True)
    opened.load(database)
    return opened


def _opening_time(question_id: UUID) -> datetime:
    """When this session first showed the question."""
    opened_at: datetime = st.session_state.setdefault(f"opened_at_{question_id.hex}", utc_now())
    return opened_at


def _next_trace(services: Services, project: Project, person: User) -> OpenedTrace | None:
    """The next trace: returned work, else the latest draft, else a new one; what was postponed is left out."""
    with services.database.read() as session:
        work = queue.list_work_to_resume(session, project.id, person.id)
    for item in work:
        if item.trace.id not in _postponed_traces():
            return OpenedTrace(item.trace.id, person.name)
    question = _next_question(services.database, project, person)
    if question is None:
        return None
    return OpenedTrace.of_question(services.database, question.id, person.name, _opening_time(question.id))


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


def postpone_trace(trace_id: UUID) -> None:
    """Go on to the next trace of the queue; this one stays under My work until the next visit."""
    _postponed_traces().add(trace_id)
    clear_url_parameters("trace", "question")


def _postponed_traces() -> set[UUID]:
    postponed: set[UUID] = st.session_state.setdefault("postponed", set())
    return postponed


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
