"""Ask: a reasoner answers a question; the run is watched, stopped, continued and fixed, and listed in the history."""

from uuid import UUID

import streamlit as st

from app.pages.ask.form import seed_ask_form, show_ask_form
from app.pages.ask.run_details import TRACE, choose_run_view, show_run_view
from app.pages.ask.run_view import show_run, start_ask
from app.services import services as process_services
from app.widgets.page_layout import show_keys_button
from app.widgets.person import current_user, show_user_menu
from app.widgets.plain_text import escape_html, escape_markdown
from db import libraries, projects, runs, traces
from db.database import Database, RowNotFound
from db.libraries import Demonstration
from db.trace_record import TraceRecord
from runs.ask import ASK_RUN_NAME

HISTORY_LENGTH = 25
ENDING_ICONS = {
    "answered": ":material/check:",
    "refused": ":material/do_not_disturb_on:",
    "stopped": ":material/stop:",
    "limit": ":material/hourglass_disabled:",
    "failed": ":material/error:",
    None: ":material/pending:",
}


def show_history(database: Database) -> None:
    """Draw the menu of the latest runs."""
    with st.popover("History", icon=":material/history:"):
        with database.read() as session:
            latest = runs.list_latest_traces(session, ASK_RUN_NAME, limit=HISTORY_LENGTH)
        if not latest:
            st.caption("Questions that are asked here appear in this list.")
        with st.container(gap="small", key="list_asks"):
            for run in latest:
                st.button(
                    f"{ENDING_ICONS[run.ending]} {escape_markdown(run.question)}",
                    key=f"asked_{run.trace_id.hex}",
                    type="tertiary",
                    help=escape_markdown(run.final_answer or run.ending or "running or interrupted"),
                    on_click=_open_run,
                    args=(str(run.trace_id),),
                )
                details = f"{run.started_at:%Y-%m-%d %H:%M} UTC · {run.world} · {run.reasoner}"
                st.caption(escape_markdown(details))


def _open_run(trace: str) -> None:
    st.query_params["trace"] = trace
    st.query_params.pop("step", None)


EXAMPLE_COUNT = 3
SCAN_LIMIT = 200
"""The first questions of a project that are searched for examples."""
PREFIX_WORDS = 2
"""A question fits a demonstration when this many of its first words are the same."""


def show_examples(database: Database) -> None:
    """Draw questions that the library's demonstrations fit; a click writes one into the field."""
    examples = find_examples(database, str(st.session_state.get("ask_world", "")), st.session_state.get("ask_library"))
    if not examples:
        return
    with st.container(gap="small", key="examples_to_ask"):
        st.caption("Questions to begin with. No demonstration shows their answers.")
        for place, text in enumerate(examples):
            st.button(
                escape_markdown(text),
                key=f"example_{place}",
                type="tertiary",
                icon=":material/north_west:",
                help="Write it into the field",
                on_click=_fill_question,
                args=(text,),
            )


def find_examples(database: Database, world: str, library: str | None) -> list[str]:
    """A few questions over the world, each of another kind, that fit the demonstrations but are none of them."""
    if library is None:
        return []
    with database.read() as session:
        demonstrations = libraries.load_demonstrations(session, libraries.find_version(session, library).id)
        questions = [
            question
            for project in projects.list_projects(session)
            if project.world == world
            for question in projects.list_questions(session, project.id, limit=SCAN_LIMIT)
        ]
    patterns = {_question_pattern(demonstration) for demonstration in demonstrations}
    demonstrated = {demonstration.question for demonstration in demonstrations}
    examples: dict[str | None, str] = {}
    for question in questions:
        fits = (question.kind, *_first_words(question.text)) in patterns
        if fits and question.gold_answers and question.text not in demonstrated:
            examples.setdefault(question.kind, question.text)
    return sorted(examples.values(), key=len)[:EXAMPLE_COUNT]


def _question_pattern(demonstration: Demonstration) -> tuple[str | None, ...]:
    return (demonstration.kind, *_first_words(demonstration.question))


def _first_words(question: str) -> list[str]:
    return question.split()[:PREFIX_WORDS]


def _fill_question(text: str) -> None:
    st.session_state["ask_question"] = text


KEYS = {
    "Ctrl+Enter": "Ask",
    "Alt+S": "Stop the run",
    "Alt+A": "Ask again",
    "Alt+X": "Fix this: continue yourself from the steps of the run",
    "?": "This sheet",
}


def load_record(database: Database) -> TraceRecord | None:
    """The trace that the link names; None without one, or when it is not here."""
    named = st.query_params.get("trace", "")
    if not named:
        return None
    try:
        with database.read() as session:
            return traces.load_trace(session, UUID(named))
    except (ValueError, RowNotFound):
        return None


services = process_services()
database = services.database
person = current_user(database)
record = load_record(database)
seed_ask_form(record, has_model=services.settings.model is not None)
with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
    st.html('<h1 class="world">Ask</h1>')
    st.space("stretch")
    show_history(database)
    show_keys_button(KEYS)
    show_user_menu(person)
ask_request = show_ask_form(services)
if ask_request is not None and start_ask(services, ask_request):
    st.rerun()
if record is None:
    if st.query_params.get("trace"):
        st.warning("The link names a trace that is not here; ask a question, or open one from the history.")
    st.caption(
        "Steps appear here as they happen, with their observations. Every run is stored: it can be shared, fixed and "
        "made a demonstration."
    )
    show_examples(database)
else:
    if " ".join(st.session_state["ask_question"].split()) != record.question.text:
        # The field has been changed since.
        st.html(f'<h2 class="question">{escape_html(record.question.text)}</h2>')
    view = choose_run_view(record)
    if view == TRACE:
        show_run(services, record.trace.id, person)
    else:
        show_run_view(services, view, record)
