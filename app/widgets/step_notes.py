"""Notes on steps: comments, and what a tool lacks."""

from uuid import UUID

import streamlit as st

from app.widgets.page_layout import escape_markdown, format_sentence
from db import review, users
from db.database import Database, StoreError
from db.models import Step, User
from db.review import STEP_NOTE_ASPECT, STEP_NOTE_KINDS
from db.trace_record import TraceRecord
from tools.registry import BUILT_IN_TOOLS

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
    tool = BUILT_IN_TOOLS[step.tool].title if step.tool in BUILT_IN_TOOLS else step.tool
    place = f"Step {step.position}, {escape_markdown(tool)}" if tool else f"Step {step.position}"
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
    try:
        with database.begin() as session:
            review.add_step_note(session, step.id, kind, text, by=users.register_user(session, person.name).id)
    except StoreError as error:
        st.error(format_sentence(str(error)))
    else:
        st.rerun()


def _remove_note(database: Database, person: User, note_id: UUID) -> None:
    try:
        with database.begin() as session:
            review.remove_step_note(session, note_id, by=users.register_user(session, person.name).id)
    except StoreError as error:
        st.error(format_sentence(str(error)))
    else:
        st.rerun()
