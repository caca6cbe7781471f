"""Who works here: a name in the address bar, so that a reload and a shared machine keep people apart."""

import getpass

import streamlit as st

from app.services import services
from db import projects
from db.models import User


def current_user() -> User:
    """The person at work, known by `?you=NAME`; without one, the account's name on this machine."""
    cached: User | None = st.session_state.get("person")
    if cached is not None and not st.query_params.get("you", "").strip():
        # The links between the pages drop what the address says; who works here stays the same.
        st.query_params["you"] = cached.name
    name = st.query_params.get("you", "").strip() or getpass.getuser()
    if cached is None or cached.name != name:
        with services().database.begin() as session:
            cached = projects.get_or_create_user(session, name)
        st.session_state["person"] = cached
    return cached


def show_user_menu(person: User) -> None:
    """A small door to work under another name."""
    with st.popover(f"You: {person.name}", icon=":material/person:"):
        st.text_input("Your name", value=person.name, key="who_name", max_chars=80, on_change=_switch_user)
        st.caption("Everyone who records under a name of their own gets their own queue and drafts.")


def _switch_user() -> None:
    name = st.session_state["who_name"].strip()
    if name:
        st.query_params.clear()
        st.query_params["you"] = name
