"""The last asks, to be opened again."""

import streamlit as st

from app.asking import ASK
from app.components.plain import plain
from app.resources import database
from db import runs

SHOWN = 25
ICONS = {
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
        with database().read() as session:
            asked = runs.latest(session, ASK, limit=SHOWN)
        if not asked:
            st.caption("What is asked here appears in this list.")
        with st.container(gap="small", key="list_asks"):
            for each in asked:
                st.button(
                    f"{ICONS[each.ending]} {plain(each.question)}",
                    key=f"asked_{each.trace_id.hex}",
                    type="tertiary",
                    help=plain(each.final_answer or each.ending or "at work or interrupted"),
                    on_click=_open,
                    args=(str(each.trace_id),),
                )
                st.caption(f"{each.started_at:%Y-%m-%d %H:%M} UTC · {plain(each.world)} · {plain(each.reasoner)}")


def _open(trace: str) -> None:
    st.query_params["trace"] = trace
    st.query_params.pop("step", None)
