"""Which question is on the page: the project, the person's queue, skip, guidelines, progress."""

from collections.abc import Callable, Mapping
from functools import partial
from uuid import UUID

import streamlit as st

from app.services import services
from app.widgets.page_layout import show_keys_button
from app.widgets.person import show_user_menu
from app.widgets.plain_text import escape_html, escape_markdown
from db import projects, queue, recording, traces
from db.database import RowNotFound, StoreError
from db.models import Project, User
from evaluation.repairs import claim_next_failure

QUEUE_SHORTCUTS = {"Alt+K": "Skip the question", "Alt+G": "Guidelines", "Alt+Q": "My queue", "?": "This sheet"}


def current_project() -> Project | None:
    """The project that the address names, else the first one."""
    with services().database.read() as session:
        known = projects.list_projects(session)
    wanted = st.query_params.get("project")
    return next((project for project in known if project.name == wanted), known[0] if known else None)


def choose_project() -> None:
    """A box to change the project, if there are several."""
    with services().database.read() as session:
        names = [project.name for project in projects.list_projects(session)]
    now = current_project()
    if now is None or len(names) < 2:
        return
    if st.session_state.get("project_name") not in names or "project" not in st.query_params:
        st.session_state["project_name"] = now.name
    st.selectbox(
        "Project", names, key="project_name", label_visibility="collapsed", width=260, on_change=_change_project
    )


def _change_project() -> None:
    st.query_params["project"] = st.session_state["project_name"]
    st.query_params.pop("trace", None)


def current_trace_id(person: User) -> UUID | None:
    """The trace in the address, else the next one in the person's queue."""
    named = st.query_params.get("trace", "")
    if named:
        try:
            found = UUID(named)
            with services().database.read() as session:
                traces.load_trace(session, found)
        except (ValueError, RowNotFound):
            st.session_state["notice"] = (
                "The address names a trace that is not here; this is the next one in your queue."
            )
        else:
            return found
    project = current_project()
    trace_id = _next_trace_id(project, person) if project is not None else None
    if trace_id is not None:
        st.query_params["trace"] = str(trace_id)
    return trace_id


def _next_trace_id(project: Project, person: User) -> UUID | None:
    """The person's first draft, else a failure of a verification to repair, else a new trace of the next question."""
    with services().database.read() as session:
        mine = queue.list_drafts(session, project.id, person.id)
    if mine:
        return mine[0].trace.id
    failure = claim_next_failure(services(), project, person.id)
    if failure is not None:
        return failure.outcome.trace_id
    with services().database.begin() as session:
        question = queue.next_question(session, project.id, person.id)
        return recording.start_trace(session, question.id, person.id).id if question is not None else None


def open_next_question() -> None:
    """Leave this trace for the next in the queue."""
    st.query_params.pop("trace", None)
    st.rerun()


def show_queue_header(person: User, trace_id: UUID | None, keys: Mapping[str, str]) -> None:
    """The top of the page: where one is, the question, and the doors that lead elsewhere."""
    project = current_project()
    if project is None:
        st.info(
            "There is no project yet. `showhow setup` prepares one with a small world; `showhow world import` and "
            "`showhow questions import` bring your own."
        )
        return
    with services().database.read() as session:
        record = traces.load_trace(session, trace_id) if trace_id else None
        far = queue.measure_progress(session, project.id, person.id)
    with st.container(key="masthead"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            choose_project()
            shown = record.project if record else project
            place = f"Question {record.question.position} of {far.total}" if record else f"{far.total} questions"
            st.markdown(
                f"{place} · {far.done} done, {far.completed_by_user} by you · world: {escape_markdown(shown.world)}",
                width="stretch",
            )
            if st.button("My queue", key="queue", shortcut="Alt+Q", icon=":material/inbox:"):
                _show_queue(project, person)
            if record and record.trace.status == "draft" and st.button("Skip", key="skip", shortcut="Alt+K"):
                _show_skip_dialog(record.question.id, person)
            if st.button("Guidelines", key="guidelines", shortcut="Alt+G", icon=":material/menu_book:"):
                _show_guidelines(shown)
            show_keys_button(keys)
            show_user_menu(person)
        with st.container(key="question"):
            if record:
                st.html(f"<h1>{escape_html(record.question.text)}</h1>")
            else:
                _show_queue_empty(far)


def _show_queue_empty(far: queue.ProjectProgress) -> None:
    if far.total == 0:
        st.info("This project has no questions yet: `showhow questions import FILE --project NAME` adds some.")
    else:
        st.success(
            f"Nothing is left for you here: {far.done} of {far.total} questions are done, you skipped {far.skipped}."
        )


@st.dialog("Skip this question")
def _show_skip_dialog(question_id: UUID, person: User) -> None:
    reason = st.text_input("Why?", key="skip_reason", placeholder="unclear, needs another source, ...")
    st.caption("Steps that you recorded are kept; the question is under My queue if you want it back.")
    if st.button("Skip", key="skip_now", type="primary", shortcut="Ctrl+Enter"):
        try:
            with services().database.begin() as session:
                queue.skip_question(session, question_id, person.id, reason)
        except StoreError as refused:
            st.error(str(refused))
        else:
            open_next_question()


@st.dialog("Guidelines", width="large")
def _show_guidelines(project: Project) -> None:
    st.markdown(project.guidelines or "This project has no guidelines.")


@st.dialog("My queue", width="large")
def _show_queue(project: Project, person: User) -> None:
    with services().database.read() as session:
        mine = queue.list_drafts(session, project.id, person.id)
        back = queue.list_returned_traces(session, project.id, person.id)
        left = queue.list_skipped_questions(session, project.id, person.id)
    if not mine and not back and not left:
        st.caption("No drafts, nothing returned, nothing skipped.")
    for item in back:
        _show_queue_entry(
            "Fix",
            item.question.text,
            f"Returned: {item.comment}",
            partial(_fork_returned_trace, item.trace.id, person.id),
        )
    for item in mine:
        _show_queue_entry(
            "Go on",
            item.question.text,
            f"Draft of {item.trace.started_at:%Y-%m-%d %H:%M} UTC",
            partial(_resume_draft, item.trace.id),
        )
    for question, reason in left:
        _show_queue_entry(
            "Take back", question.text, f"Skipped: {reason}", partial(_unskip_question, question.id, person.id)
        )


def _show_queue_entry(act: str, question: str, note: str, find: Callable[[], UUID]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"{escape_markdown(question)}  \n:gray[{escape_markdown(note)}]", width="stretch")
        if st.button(act, key=f"{act}_{note}_{question}"):
            st.query_params["trace"] = str(find())
            st.rerun()


def _resume_draft(trace_id: UUID) -> UUID:
    return trace_id


def _fork_returned_trace(trace_id: UUID, person_id: UUID) -> UUID:
    """Fork a returned trace with all of its steps, so that its author can mend it."""
    with services().database.begin() as session:
        steps = len(traces.load_trace(session, trace_id).steps)
        return traces.fork_trace(session, trace_id, steps, person_id).id


def _unskip_question(question_id: UUID, person_id: UUID) -> UUID:
    with services().database.begin() as session:
        queue.unskip_question(session, question_id, person_id)
        return recording.start_trace(session, question_id, person_id).id
