"""The gold trace of a question, made by really running the tools when somebody asks for it."""

from typing import Any

import streamlit as st

from app.components.notebook import show_trace
from app.components.plain import plain
from app.components.selected_world import SelectedWorld
from app.gold import trace_of
from db.record import TraceRecord
from worlds.generator.blocks import TOLD

MADE = "gold_trace"
"""The gold trace that was made last, with the build and the question that it is of."""
LARGE = 200_000
"""People of a world of which the page makes no gold traces: all of its facts would be read for one."""


def show_gold_trace(world: SelectedWorld, row: dict[str, Any]) -> None:
    """A button that makes the trace, and the trace."""
    if int(world.about.get("people", 0)) > LARGE or not (world.folder / TOLD).is_file():
        st.caption(f"`showhow world trace {world.name} {plain(str(row.get('id')))}` makes it.")
        return
    place = (world.stamp, row.get("id"))
    made = st.session_state.get(MADE)
    if made is None or made[0] != place:
        st.caption("A trace that follows the gold reasoning, every step a real call of a tool on this world's sources.")
        if not st.button("Make the trace", key="make_trace"):
            return
        with st.spinner("Running the tools …"):
            made = st.session_state[MADE] = (place, trace_of(world.name, row))
    record: TraceRecord = made[1]
    if record.trace.status == "approved":
        show_trace(record, editable=False, forkable=False)
    else:
        st.warning(plain(record.trace.final_thought or "There is no gold trace."))
