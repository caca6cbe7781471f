"""The history of a trace: who changed what and when, with the texts before and after."""

import streamlit as st

from app.widgets.notebook import status_label
from app.widgets.table import TableCell, show_table
from db.trace_record import TRACE_STATUSES, TraceRecord, list_changes
from tools.registry import BUILT_IN_TOOLS

MAX_TEXT = 160
"""Characters of a text in the table; its tooltip has more."""
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
            TableCell(f"{change.at:%Y-%m-%d %H:%M:%S}", whole=True),
            TableCell(change.who),
            TableCell(_describe_action(change.action)),
            TableCell("" if change.position is None else str(change.position), number=True),
            _text_cell(change.before),
            _text_cell(change.after),
        ]
        for change in changes
    ]
    st.caption("Every change is kept: nothing that was replaced or undone is lost. The oldest comes first.")
    columns = ("when (UTC)", "who", "what", "step", "before", "after")
    show_table(columns, rows, key=f"history_{record.trace.id.hex}", label="History of the trace")


def _describe_action(action: str) -> str:
    verb, _, tool = action.partition(" ")
    return f"{verb} {BUILT_IN_TOOLS[tool].title}" if tool in BUILT_IN_TOOLS else action


def _text_cell(text: str) -> TableCell:
    line = " ".join(text.split())
    shown = status_label(line) if line in TRACE_STATUSES else line
    if len(shown) <= MAX_TEXT:
        return TableCell(shown)
    return TableCell(f"{shown[: MAX_TEXT - 1]}…", hint=text[:MAX_HINT])
