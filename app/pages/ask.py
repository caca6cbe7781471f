"""Ask: have a reasoner answer a question, watch it, stop it, and mend what went wrong."""

from uuid import UUID

import streamlit as st

from app.components.ask_acts import start
from app.components.ask_examples import show_examples
from app.components.ask_form import ask_form, seed
from app.components.ask_history import show_history
from app.components.ask_looks import TRACE, choose_look, show_look
from app.components.ask_run import show_run
from app.components.chrome import keys_door
from app.components.plain import plain_html
from app.components.who import choose_who, who
from app.resources import database
from db import reading
from db.database import Missing
from db.record import TraceRecord

KEYS = {
    "Ctrl+Enter": "Ask",
    "Alt+S": "Stop the run",
    "Alt+A": "Ask the same again",
    "Alt+X": "Fix this: go on yourself from the steps that are there",
    "?": "This sheet",
}


def shown_record() -> TraceRecord | None:
    """The trace that the address names."""
    named = st.query_params.get("trace", "")
    if not named:
        return None
    try:
        with database().read() as session:
            return reading.open_trace(session, UUID(named))
    except (ValueError, Missing):
        return None


person = who()
record = shown_record()
seed(record)
with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
    st.html('<h1 class="world">Ask</h1>')
    st.space("stretch")
    show_history()
    keys_door(KEYS)
    choose_who(person)
wanted = ask_form()
if wanted is not None and start(wanted):
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
        st.html(f'<h2 class="question">{plain_html(record.question.text)}</h2>')
    look = choose_look(record)
    if look == TRACE:
        show_run(record.trace.id, person)
    else:
        show_look(look, record)
