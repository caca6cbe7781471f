"""The header of the Annotate page: the question and the progress, and what can be done in place of it.

Its dialogs list the person's work and the repairs that wait, skip the question, add one, and show the guidelines.
"""

from collections.abc import Callable
from functools import partial
from uuid import UUID

import streamlit as st

from showhow.app import removals
from showhow.app.widgets.dialog_acts import act_in_dialog, forget_outcome, show_outcome
from showhow.app.widgets.guidelines import show_guidelines
from showhow.app.widgets.manage import show_manage_button, show_removal_notice
from showhow.app.widgets.page_layout import escape_html, escape_markdown, format_when
from showhow.app.widgets.queue import OpenedTrace, current_project, postpone_trace
from showhow.app.widgets.url_state import clear_url_parameters
from showhow.db.database import Database
from showhow.db.models import Project, Trace, User
from showhow.db.people import users
from showhow.db.people.gold_visibility import is_gold_visible
from showhow.db.people.users import ADMIN
from showhow.db.questions import own_questions, projects
from showhow.db.removal.removal_kinds import Kind
from showhow.db.review import queue
from showhow.db.runs import verifications
from showhow.db.traces import recording, traces
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.value_format import format_count
from showhow.evaluation.verification.repairs import VerificationFailure, list_open_failures
from showhow.runs.ask import FreeQuestion
from showhow.runs.services import Services

MAX_LISTED_REPAIRS = 50


def show_queue_header(services: Services, person: User, opened: OpenedTrace | None) -> None:
    """Draw the project's progress, the question, and the buttons of the queue."""
    show_removal_notice()
    database = services.database
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
    with st.container(key="masthead"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            _show_question(record, project, progress)
            _show_buttons(services, project, person, opened, record)
        if record is None:
            _show_queue_empty(database, project, person, progress)


def _show_question(record: TraceRecord | None, project: Project, progress: queue.ProjectProgress) -> None:
    shown_project = record.project if record else project
    position = f"{progress.total} questions"
    if record:
        # Deleted questions leave gaps in the numbers.
        of = f" of {progress.total}" if record.question.position <= progress.total else ""
        position = f"Question {record.question.position}{of}"
    if shown_project.id != project.id:
        position = f"A question of {escape_markdown(shown_project.name)}, beside {escape_markdown(project.name)}"
    world = f" · world: {escape_markdown(shown_project.world)}" if shown_project.world else ""
    with st.container(key="question", width="stretch", gap=None):
        done = f"{progress.done} {queue.describe_done(shown_project)}"
        st.caption(f"{position} · {done}, {progress.completed_by_user} by you{world}")
        if record:
            # A long question is cut by page.css, and expands with the focus.
            st.html(f'<div class="head" tabindex="0"><h1>{escape_html(record.question.text)}</h1></div>')


def _show_buttons(
    services: Services, project: Project, person: User, opened: OpenedTrace | None, record: TraceRecord | None
) -> None:
    database = services.database
    with database.read() as session:
        returned = len(queue.list_returned_traces(session, project.id, person.id))
        is_verified = bool(verifications.list_verifications(session, project.id))
        may_add = own_questions.has_right_to_add_questions(session, project)
        is_answered = record is not None and bool(
            queue.find_answered_questions(session, [record.question.id], person.id)
        )
    label = f"My work :orange-badge[{returned} returned]" if returned else "My work"
    if st.button(label, key="queue", shortcut="Alt+Q", on_click=forget_outcome, icon=":material/inbox:"):
        _show_work(services, project, person)
    is_repaired = is_verified and bool(person.roles)
    if is_repaired and st.button(
        "Repairs", key="repairs", shortcut="Alt+E", icon=":material/build:", on_click=forget_outcome
    ):
        _show_repairs(services, project, person)
    if may_add and st.button(
        "New question", key="new_question", shortcut="Alt+N", icon=":material/add:", on_click=forget_outcome
    ):
        _show_new_question(database, project)
    if record is not None and opened is not None and person.roles and _is_own_draft(record, person):
        if opened.question_id is None:
            st.button("Later", key="later", shortcut="Alt+L", on_click=postpone_trace, args=(record.trace.id,))
        if not is_answered and st.button("Skip", key="skip", shortcut="Alt+K", on_click=forget_outcome):
            _show_skip(database, record.question.id, person)
    if record is not None and ADMIN in person.roles:
        show_manage_button(
            services, Kind.QUESTION, record.question.id, parameters=["question", "trace"], label="Question"
        )
    if st.button("Guidelines", key="guidelines", shortcut="Alt+G", icon=":material/menu_book:"):
        _show_guidelines(database, record.project if record else project)


def _is_own_draft(record: TraceRecord, person: User) -> bool:
    return record.trace.status == "draft" and record.trace.author_id == person.id


def _show_queue_empty(database: Database, project: Project, person: User, progress: queue.ProjectProgress) -> None:
    if progress.total == 0:
        st.info("This project has no questions yet. Import a file of questions, or take those of a generated world.")
        if st.button("Import questions", key="empty_import", type="primary", icon=":material/upload:"):
            kept = {name: st.query_params[name] for name in ("you", "project") if name in st.query_params}
            st.switch_page("project/page.py", query_params=kept)
        return
    with database.read() as session:
        waiting = len(queue.list_work_to_resume(session, project.id, person.id))
    later = " What you left for later is under My work." if waiting else ""
    st.success(
        f"Your queue is empty: of {format_count(progress.total, 'question')} you answered {progress.completed_by_user} "
        f"and skipped {progress.skipped}; {progress.done} are {queue.describe_done(project)}, and others hold "
        f"{progress.held}.{later}"
    )


def _open_trace(trace_id: UUID) -> None:
    clear_url_parameters("question")
    st.query_params["trace"] = str(trace_id)


@st.dialog("Skip this question")
def _show_skip(database: Database, question_id: UUID, person: User) -> None:
    show_outcome()
    st.text_input("Why?", key="skip_reason", placeholder="unclear, needs another source, ...")
    st.caption("Your steps are saved. You can return to the question from My work.")

    def skip() -> None:
        with database.begin() as session:
            author = users.register_user(session, person.name)
            queue.skip_question(session, question_id, author.id, st.session_state.get("skip_reason", ""))
        clear_url_parameters("trace", "question")

    st.button("Skip", key="skip_now", type="primary", shortcut="Ctrl+Enter", on_click=act_in_dialog, args=(skip,))


@st.dialog("New question")
def _show_new_question(database: Database, project: Project) -> None:
    show_outcome()
    st.text_area(f"A question for {escape_markdown(project.name)}", key="own_question", height=90, max_chars=5_000)
    st.caption("It joins the questions of this project, and opens for you to answer.")

    def add() -> None:
        record = FreeQuestion(" ".join(st.session_state.get("own_question", "").split()))
        with database.begin() as session:
            added = own_questions.add_own_question(session, project.id, record)
        clear_url_parameters("trace")
        st.query_params["question"] = str(added.id)

    st.button(
        "Add and open",
        key="own_question_add",
        type="primary",
        shortcut="Ctrl+Enter",
        on_click=act_in_dialog,
        args=(add,),
    )


@st.dialog("Guidelines", width="medium")
def _show_guidelines(database: Database, project: Project) -> None:
    show_guidelines(database, project)


@st.dialog("Repairs", width="large")
def _show_repairs(services: Services, project: Project, person: User) -> None:
    """List the wrong answers of the latest verification, the most useful repair first, for a person to take one."""
    show_outcome()
    failures = list_open_failures(services, project, person.id)
    st.caption(
        "Wrong answers of the latest verification that nobody repairs yet, the most useful repairs first. What you "
        "repair becomes a demonstration once it is approved."
        if failures
        else "No wrong answer of the latest verification waits for a repair."
    )
    with services.database.read() as session:
        shows_gold = is_gold_visible(session, project)
    for failure in failures[:MAX_LISTED_REPAIRS]:
        _show_repair(failure, shows_gold=shows_gold)
    if len(failures) > MAX_LISTED_REPAIRS:
        st.caption(f"and {len(failures) - MAX_LISTED_REPAIRS:,} more, which follow when these are repaired")


def _show_repair(failure: VerificationFailure, *, shows_gold: bool) -> None:
    outcome = failure.outcome
    if outcome.trace_id is None:
        return
    gold = ", ".join(str(answer["text"]) for answer in outcome.gold)
    result = f"answered {outcome.answer}" if outcome.answer else "gave no answer"
    with st.container(horizontal=True, vertical_alignment="center"):
        note = escape_markdown(f"The agent {result}{f'; the gold answer is {gold}' if shows_gold else ''}")
        st.markdown(f"{escape_markdown(outcome.question)}  \n:gray[{note}]", width="stretch")
        take = partial(_open_trace, outcome.trace_id)
        st.button("Take", key=f"take_{outcome.trace_id.hex}", on_click=act_in_dialog, args=(take,))


@st.dialog("My work", width="medium")
def _show_work(services: Services, project: Project, person: User) -> None:
    show_outcome()
    database = services.database
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
            _show_entry("Fix", item.trace.id, item.question.summary, f"Returned: {item.comment}", fix)
    elif tab == "Skipped":
        for question, reason in skipped:
            unskip = partial(_unskip_question, database, question.id, person.id)
            _show_entry("Return to my queue", question.id, question.summary, f"Skipped: {reason}", unskip)
    elif tab == "Drafts":
        for item in drafts:
            discard = partial(_discard_draft, services, item.trace)
            _show_entry(
                "Continue", item.trace.id, item.question.summary, _describe_own_trace(item.trace), None, discard
            )
    else:
        for item in completed[str(tab).lower()]:
            _show_entry("Open", item.trace.id, item.question.summary, _describe_own_trace(item.trace))


def _describe_own_trace(trace: Trace) -> str:
    fork = f", forked at step {trace.parent_position}" if trace.parent_position else ""
    answer = f": {trace.final_answer}" if trace.final_answer else ""
    return f"{trace.status.capitalize()}, {format_when(trace.submitted_at or trace.started_at)}{fork}{answer}"


def _show_entry(  # noqa: PLR0913, PLR0917 - what a row shows, and its acts
    label: str,
    row_id: UUID,
    question: str,
    note: str,
    make_trace: Callable[[], UUID] | None = None,
    discard: Callable[[], None] | None = None,
) -> None:
    """Draw one row of the dialog; `make_trace` returns the trace that it opens, which else has the id of the row."""
    asks = f"discard_{row_id.hex}"

    def open_entry() -> None:
        _open_trace(make_trace() if make_trace else row_id)

    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"{escape_markdown(question)}  \n:gray[{escape_markdown(note)}]", width="stretch")
        st.button(label, key=f"queue_entry_{row_id.hex}", on_click=act_in_dialog, args=(open_entry,))
        if discard is not None and not st.session_state.get(asks):
            ask = partial(st.session_state.update, {asks: True})
            st.button("Discard", key=f"ask_{asks}", type="tertiary", on_click=ask)
    if discard is not None and st.session_state.get(asks):
        with st.container(horizontal=True, vertical_alignment="center"):
            where = "Settings, Archived and deleted, restores it."
            st.markdown(f"It is deleted with its steps. {removals.DELETION_NOTE} {where}", width="stretch")
            st.button(
                "Discard the draft", key=f"confirm_{asks}", type="primary", on_click=act_in_dialog, args=(discard,)
            )
            keep = partial(st.session_state.pop, asks, None)
            st.button("Keep it", key=f"keep_{asks}", on_click=keep)


def _discard_draft(services: Services, trace: Trace) -> None:
    removals.remove(services, Kind.DRAFT, trace.id)
    if st.query_params.get("trace") == str(trace.id):
        clear_url_parameters("trace")


def fork_returned_trace(database: Database, trace_id: UUID, person_id: UUID) -> UUID:
    """Fork a returned trace with all its steps, so that its author can fix it; returns the id of the draft."""
    with database.begin() as session:
        steps = len(traces.load_trace(session, trace_id).steps)
        return traces.fork_trace(session, trace_id, steps, person_id).id


def _unskip_question(database: Database, question_id: UUID, person_id: UUID) -> UUID:
    with database.begin() as session:
        queue.unskip_question(session, question_id, person_id)
        return recording.start_trace(session, question_id, person_id).id
