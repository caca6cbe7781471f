"""The current user: a name in the link, so that a reload and a shared machine tell people apart."""

import getpass

import streamlit as st

from db import projects
from db.database import Database
from db.models import User


def current_user(database: Database) -> User:
    """The person named by `?you=NAME`, else by the account on this machine; a new name becomes a new user."""
    cached: User | None = st.session_state.get("person")
    if cached is not None and not st.query_params.get("you", "").strip():
        # Links between the pages drop the query of the URL; the person stays the same.
        st.query_params["you"] = cached.name
    name = st.query_params.get("you", "").strip() or getpass.getuser()
    if cached is None or cached.name != name:
        with database.begin() as session:
            cached = projects.get_or_create_user(session, name)
        st.session_state["person"] = cached
    return cached


def show_user_menu(person: User) -> None:
    """Draw the menu that shows the person's name and switches to another one."""
    with st.popover(f"You: {person.name}", icon=":material/person:"):
        st.text_input("Your name", value=person.name, key="who_name", max_chars=80, on_change=_switch_user)
        st.caption("Everyone who records under a name of their own gets their own queue and drafts.")


def _switch_user() -> None:
    name = st.session_state["who_name"].strip()
    if name:
        st.query_params.clear()
        st.query_params["you"] = name
