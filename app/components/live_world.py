"""What a live world is: whom it asks, as what, and what it has kept of the answers."""

import streamlit as st

from app.components.plain import plain
from app.components.selected_world import SelectedWorld
from app.components.table import Entry, show_table
from app.components.world_list import built, in_bytes
from app.resources import settings
from worlds.live.answers import ANSWERS

NAMES = {
    "title": "title",
    "articles of": "articles of",
    "language": "language",
    "graph of": "graph of",
    "hosts": "asks",
    "licence": "licence",
    "hash": "hash of its description",
}


def show_live(world: SelectedWorld) -> None:
    """Its hosts, the state of what a call needs, and how to try it."""
    record = world.folder / ANSWERS
    with st.container(horizontal=True, key="sizes"):
        st.metric("hosts", len(world.about.get("hosts", [])), width="content")
        st.metric("answers recorded", in_bytes(record.stat().st_size if record.is_file() else 0), width="content")
    _show_state()
    rows = [[Entry(title), Entry(_said(world.about[name]))] for name, title in NAMES.items() if name in world.about]
    rows.append([Entry("described"), Entry(built(world.about))])
    show_table(("what", "value"), rows, key="origin", label="What the live world is")
    st.caption(
        "Every answer is recorded, given again for some days, and there for work offline. "
        f"`showhow world check {plain(world.name)}` tries every source once and tells what works."
    )


def _show_state() -> None:
    found = settings()
    if found.as_of is not None:
        st.info(f"It answers as it did on {found.as_of:%d %b %Y %H:%M %Z}, from its record (SHOWHOW_AS_OF).")
    elif found.offline:
        st.info("Showhow is offline: it answers what it has answered before, from its record (SHOWHOW_OFFLINE).")
    elif not found.contact:
        st.warning("No host is asked yet: set SHOWHOW_CONTACT to an e-mail address or a page where you can be reached.")


def _said(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
