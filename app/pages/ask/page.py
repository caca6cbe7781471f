"""Ask: have a reasoner answer a question, watch it, stop it, and mend what went wrong.

The last asks, to be opened again.
Questions to begin with, where nobody has asked anything yet.
"""

from uuid import UUID

import streamlit as st

from app.pages.ask.form import seed_ask_form, show_ask_form
from app.pages.ask.run_details import TRACE, choose_run_view, show_run_view
from app.pages.ask.run_view import show_run, start_ask
from app.services import services
from app.widgets.page_layout import show_keys_button
from app.widgets.person import current_user, show_user_menu
from app.widgets.plain_text import escape_html, escape_markdown
from db import libraries, projects, runs, traces
from db.database import RowNotFound
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


def show_history() -> None:
    """A button that lists them, the latest first."""
    with st.popover("History", icon=":material/history:"):
        with services().database.read() as session:
            asked = runs.list_latest_traces(session, ASK_RUN_NAME, limit=HISTORY_LENGTH)
        if not asked:
            st.caption("What is asked here appears in this list.")
        with st.container(gap="small", key="list_asks"):
            for each in asked:
                st.button(
                    f"{ENDING_ICONS[each.ending]} {escape_markdown(each.question)}",
                    key=f"asked_{each.trace_id.hex}",
                    type="tertiary",
                    help=escape_markdown(each.final_answer or each.ending or "at work or interrupted"),
                    on_click=_open_run,
                    args=(str(each.trace_id),),
                )
                st.caption(
                    f"{each.started_at:%Y-%m-%d %H:%M} UTC · {escape_markdown(each.world)} · {escape_markdown(each.reasoner)}"
                )


def _open_run(trace: str) -> None:
    st.query_params["trace"] = trace
    st.query_params.pop("step", None)


EXAMPLE_COUNT = 3
SCAN_LIMIT = 200
"""Of a project's questions, the first ones, among which examples are looked for."""
PREFIX_WORDS = 2
"""First words in which a question is like one that the demonstrations show."""


def show_examples() -> None:
    """Some of the world's questions that begin as a demonstration of the library does; a click writes one down."""
    found = find_examples(str(st.session_state.get("ask_world", "")), st.session_state.get("ask_library"))
    if not found:
        return
    with st.container(gap="small", key="examples_to_ask"):
        st.caption("Questions to begin with; no demonstration shows their answers:")
        for place, text in enumerate(found):
            st.button(
                escape_markdown(text),
                key=f"example_{place}",
                type="tertiary",
                icon=":material/north_west:",
                help="Write it into the field",
                on_click=_fill_question,
                args=(text,),
            )


def find_examples(world: str, library: str | None) -> list[str]:
    """A few questions over the world, each of another kind, that the library's demonstrations do not ask themselves."""
    if library is None:
        return []
    with services().database.read() as session:
        shown = libraries.load_demonstrations(session, libraries.find_version(session, library).id)
        over = [project for project in projects.list_projects(session) if project.world == world]
        asked = [question for each in over for question in projects.list_questions(session, each.id, limit=SCAN_LIMIT)]
    begun, known = {_question_pattern(each) for each in shown}, {each.question for each in shown}
    found: dict[str | None, str] = {}
    for question in asked:
        alike = (question.kind, *_first_words(question.text)) in begun
        if alike and question.gold_answers and question.text not in known:
            found.setdefault(question.kind, question.text)
    return sorted(found.values(), key=len)[:EXAMPLE_COUNT]


def _question_pattern(shown: Demonstration) -> tuple[str | None, ...]:
    return (shown.kind, *_first_words(shown.question))


def _first_words(question: str) -> list[str]:
    return question.split()[:PREFIX_WORDS]


def _fill_question(text: str) -> None:
    st.session_state["ask_question"] = text


KEYS = {
    "Ctrl+Enter": "Ask",
    "Alt+S": "Stop the run",
    "Alt+A": "Ask the same again",
    "Alt+X": "Fix this: go on yourself from the steps that are there",
    "?": "This sheet",
}


def load_record() -> TraceRecord | None:
    """The trace that the address names."""
    named = st.query_params.get("trace", "")
    if not named:
        return None
    try:
        with services().database.read() as session:
            return traces.load_trace(session, UUID(named))
    except (ValueError, RowNotFound):
        return None


person = current_user()
record = load_record()
seed_ask_form(record)
with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
    st.html('<h1 class="world">Ask</h1>')
    st.space("stretch")
    show_history()
    show_keys_button(KEYS)
    show_user_menu(person)
ask_request = show_ask_form()
if ask_request is not None and start_ask(ask_request):
    st.rerun()
if record is None:
    if st.query_params.get("trace"):
        st.warning("The address names a trace that is not here; ask something, or open one from the history.")
    st.caption(
        "Steps appear here as they happen, with what they found. Whatever is asked is kept: it can be shared, mended "
        "and made a demonstration."
    )
    show_examples()
else:
    if " ".join(st.session_state["ask_question"].split()) != record.question.text:
        # The field has been changed since.
        st.html(f'<h2 class="question">{escape_html(record.question.text)}</h2>')
    look = choose_run_view(record)
    if look == TRACE:
        show_run(record.trace.id, person)
    else:
        show_run_view(look, record)
