"""Worlds: made, imported, and looked at from every side."""

import streamlit as st

from app.components.chrome import keys_door
from app.components.generate_world import generate_world
from app.components.import_world import import_world
from app.components.job_panel import show_jobs
from app.components.places import VIEWS
from app.components.plain import plain
from app.components.query_console import show_console
from app.components.selected_world import SelectedWorld
from app.components.views import choose_view
from app.components.who import choose_who, who
from app.components.world_list import choose_world
from app.components.world_look import show_surroundings
from app.components.world_overview import show_overview
from app.components.world_questions import show_questions
from db.models import User
from worlds.source import SourceError

KEYS = {
    "Alt+G": "Generate a world",
    "Alt+I": "Import a world",
    "Alt+1 … Alt+4": "Choose the view of the world",
    "Ctrl+Enter": "Run the query",
    "Alt+N, Alt+P": "Open the next or the previous question",
    "Alt+A": "Annotate the open question",
    "?": "This sheet",
}


def masthead(person: User) -> None:
    """The top of the page: what can be made here, and the doors that lead elsewhere."""
    with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if "admin" in person.roles:
            if st.button("Generate a world", key="generate", shortcut="Alt+G", icon=":material/add:"):
                generate_world()
            if st.button("Import a world", key="import", shortcut="Alt+I", icon=":material/upload:"):
                import_world()
        else:
            st.caption("Whoever administers this server generates and imports worlds.")
        st.space("stretch")
        keys_door(KEYS)
        choose_who(person)


def show_world(world: SelectedWorld, person: User) -> None:
    """The chosen view of the world; a source that does not answer is told in its place."""
    try:
        show_view(world, person)
    except SourceError as failed:
        st.error(plain(str(failed)))


def show_view(world: SelectedWorld, person: User) -> None:
    """The chosen view of the world."""
    match choose_view(world.name, VIEWS):
        case "look":
            show_surroundings(world)
        case "query":
            show_console(world)
        case "questions":
            show_questions(world, person)
        case _:
            show_overview(world)


person = who()
masthead(person)
show_jobs(stoppable="admin" in person.roles)
left, right = st.columns([1, 3.4], gap="medium")
with left, st.container(key="list"):
    world = choose_world()
with right:
    if world is None:
        st.info(
            "There is no world yet. Generate one: a thousand fictional people take some seconds. "
            "Or import articles, a graph, or both; or add a live one: `showhow world add NAME --preset wikipedia`."
        )
    else:
        show_world(world, person)
