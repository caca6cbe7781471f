"""The current person: a name in the link, which survives a reload and distinguishes people who share a machine.

Looking stores nothing: a person is stored at their first act (db/users.py).
"""

import getpass

import streamlit as st

from app.widgets.page_layout import escape_markdown
from db import users
from db.database import Database
from db.models import User

COOKIE_PREFIX = "showhow_you_"


def current_user(database: Database) -> User:
    """The person named by `?you=NAME`, else by the account on this machine, with their present roles.

    A person who is not stored yet has the roles of their first act; their id is not that of a stored row.
    """
    name = st.query_params.get("you", "").strip()
    if not name and "person_name" in st.session_state:
        # Links between pages drop the query of the URL, but the person stays the same.
        st.query_params["you"] = name = st.session_state["person_name"]
    with database.read() as session:
        person = users.preview_user(session, name or getpass.getuser())
    st.session_state["person_name"] = person.name
    return person


def show_user_menu(person: User) -> None:
    """Draw the menu that shows the person's name and switches to another person."""
    with st.popover(f"You: {escape_markdown(person.name)}", icon=":material/person:"):
        show_name_field(person, "who_name")


def show_name_field(person: User, key: str = "settings_name") -> None:
    """Draw the field of the person's name, which switches to another person, and their roles."""
    st.text_input(
        "Your name", value=person.name, key=key, max_chars=users.MAX_NAME_LENGTH, on_change=_switch_user, args=(key,)
    )
    st.caption(f"Each name has its own queue and drafts. Roles: {', '.join(person.roles)}.")


def _switch_user(key: str) -> None:
    name = st.session_state[key].strip()
    if name:
        _confirmed_names().add(name)
        st.query_params.clear()
        st.query_params["you"] = name


def confirmation_cookie(name: str) -> str:
    """The name of the cookie by which a browser remembers that its user confirmed to be this person."""
    return COOKIE_PREFIX + name.encode(errors="replace").hex()


def is_confirmed(database: Database, name: str) -> bool:
    """Whether this browser may act as the person: a new one, that of this machine's account, or a confirmed one."""
    confirmed = _confirmed_names()
    if name not in confirmed and name != getpass.getuser() and confirmation_cookie(name) not in st.context.cookies:
        with database.read() as session:
            if users.find_user(session, name) is not None:
                return False
    # A new name is stored at its first act; it is confirmed from now on, so that its own user is not asked.
    confirmed.add(name)
    return True


def ask_for_confirmation(name: str) -> None:
    """Ask whether the user is the person that the link names."""
    st.markdown(f"### Are you {escape_markdown(name)}?")
    st.write("The link opens the pages as this person, whose work is stored here. What you do is stored as theirs.")
    st.button(
        f"Yes, continue as {escape_markdown(name)}",
        key="confirm_person",
        type="primary",
        on_click=_confirmed_names().add,
        args=(name,),
    )
    st.caption("If you are not, put your own name into the link, after `you=`.")


def _confirmed_names() -> set[str]:
    names: set[str] = st.session_state.setdefault("confirmed_names", set())
    return names
