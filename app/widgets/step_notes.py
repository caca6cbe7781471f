"""Notes on steps: comments, and what a tool lacks; and the history of a trace: who changed what and when."""

from uuid import UUID

import streamlit as st

from showhow.app.widgets.page_layout import browser_zone, errors_shown, escape_markdown
from showhow.app.widgets.table import TableCell, show_table
from showhow.db.database import Database, StoreError
from showhow.db.models import Step, User
from showhow.db.people import users
from showhow.db.review import review
from showhow.db.review.review import STEP_NOTE_ASPECT, STEP_NOTE_KINDS
from showhow.db.traces.trace_record import TraceRecord, list_changes
from showhow.tools.registry import tool_title

STEP_NOTE_LABELS = {
    "comment": "Comment",
    "wrong result": "Wrong result",
    "missing tool": "A tool is missing here",
    "expected result": "Should have returned",
}
"""The page's words for STEP_NOTE_KINDS."""
NOTED_STEP = "noted_step"
"""The key of the position of the step that a person wants to write a note on."""


def list_note_data(record: TraceRecord) -> dict[UUID | None, list[dict[str, str]]]:
    """The notes of each step for notebook.js, the oldest first."""
    notes: dict[UUID | None, list[dict[str, str]]] = {}
    for judgement in record.judgements:
        if judgement.aspect == STEP_NOTE_ASPECT:
            label = STEP_NOTE_LABELS.get(judgement.value, judgement.value)
            author = record.people.get(judgement.judge_id, "") if judgement.judge_id else ""
            note = {"label": label, "author": author, "text": judgement.comment}
            notes.setdefault(judgement.step_id, []).append(note)
    return notes


def show_requested_note_dialog(database: Database, record: TraceRecord, person: User) -> None:
    """Open the dialog for a note on a step after its button was pressed; no other dialog may be open."""
    position = st.session_state.pop(NOTED_STEP, None)
    step = next((step for step in record.steps if step.position == position), None)
    if step is not None:
        _show_note_dialog(database, record, person, step)


@st.dialog("Note on a step")
def _show_note_dialog(database: Database, record: TraceRecord, person: User, step: Step) -> None:
    place = f"Step {step.position}, {escape_markdown(tool_title(step.tool))}" if step.tool else f"Step {step.position}"
    st.caption(
        f"{place}. Everybody who opens the trace reads the note; what a tool lacks is also listed on the Tools page."
    )
    key = f"note_{step.id.hex}"
    kind = st.pills(
        "Kind",
        STEP_NOTE_KINDS,
        default=STEP_NOTE_KINDS[0],
        format_func=STEP_NOTE_LABELS.__getitem__,
        key=f"{key}_kind",
        required=True,
    )
    text = st.text_area("Note", key=f"{key}_text", height=120)
    if st.button("Save", type="primary", key="save_note"):
        _save_note(database, person, step, str(kind), text)
    for note in record.judgements:
        if note.step_id == step.id and note.judge_id and record.people.get(note.judge_id) == person.name:
            with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
                st.markdown(f"**{STEP_NOTE_LABELS.get(note.value, note.value)}** {escape_markdown(note.comment)}")
                if st.button("Remove", key=f"remove_{note.id.hex}", type="tertiary"):
                    _remove_note(database, person, note.id)


def _save_note(database: Database, person: User, step: Step, kind: str, text: str) -> None:
    with errors_shown(StoreError):
        with database.begin() as session:
            review.add_step_note(session, step.id, kind, text, by=users.register_user(session, person.name).id)
        st.rerun()


def _remove_note(database: Database, person: User, note_id: UUID) -> None:
    with errors_shown(StoreError):
        with database.begin() as session:
            review.remove_step_note(session, note_id, by=users.register_user(session, person.name).id)
        st.rerun()


MAX_TEXT = 160
"""Characters of a text in the history; its tooltip has more."""
MAX_HINT = 2_000


def show_history_button(record: TraceRecord) -> None:
    """Draw the button that opens the history of a trace that is stored."""
    if st.button("History", key="history", shortcut="Alt+H", icon=":material/history:", type="tertiary"):
        _show_history(record)


@st.dialog("History", width="large")
def _show_history(record: TraceRecord) -> None:
    changes = list_changes(record)
    rows = [
        [
            TableCell(f"{change.at.astimezone(browser_zone()):%Y-%m-%d %H:%M:%S}", whole=True),
            TableCell(change.who),
            TableCell(_describe_action(change.action)),
            TableCell("" if change.position is None else str(change.position), number=True),
            _text_cell(change.before),
            _text_cell(change.after),
        ]
        for change in changes
    ]
    st.caption("Every change is kept: nothing that was replaced or undone is lost. The oldest comes first.")
    columns = ("when", "who", "what", "step", "before", "after")
    show_table(columns, rows, key=f"history_{record.trace.id.hex}", label="History of the trace")


def _describe_action(action: str) -> str:
    verb, _, tool = action.partition(" ")
    return f"{verb} {tool_title(tool)}" if verb == "ran" and " " not in tool else action


def _text_cell(text: str) -> TableCell:
    line = " ".join(text.split())
    return TableCell(line) if len(line) <= MAX_TEXT else TableCell(f"{line[: MAX_TEXT - 1]}…", hint=text[:MAX_HINT])
