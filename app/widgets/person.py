"""The current person: a name in the link, which survives a reload and distinguishes people who share a machine.

Looking stores nothing: a person is stored at their first act (db/users.py).
"""

import getpass
from urllib.parse import urlencode

import streamlit as st

from app.widgets.page_layout import escape_markdown, format_sentence
from app.widgets.table import TableCell, show_table
from db import users
from db.database import Database, StoreError
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


@st.dialog("Members", width="medium")
def show_members_dialog(database: Database, person: User, project: str) -> None:
    """List the people with their roles; an administrator changes them, and adds people with a link to the project."""
    with database.read() as session:
        people = {member.name: member.roles for member in users.list_users(session)}
    st.caption("Roles are those of this server: they hold in all of its projects.")
    rows = [
        [TableCell(name, whole=True), TableCell(", ".join(roles) or "none: an author of imported traces")]
        for name, roles in people.items()
    ]
    show_table(("person", "roles"), rows, key="member_roles", label="People and their roles")
    if users.ADMIN not in person.roles:
        st.caption("An administrator can change them.")
        return
    name = st.selectbox(
        "Add or change",
        list(people),
        index=None,
        key="member_name",
        placeholder="Choose a person, or type a new name",
        accept_new_options=True,
    )
    if not name:
        return
    default = people.get(name) or [users.ANNOTATOR]
    roles = st.pills("Roles", users.ROLES, selection_mode="multi", default=default, key=f"member_roles_{name}")
    if st.button("Save", key="member_save", type="primary", disabled=not roles):
        try:
            with database.begin() as session:
                users.require_role(session, users.register_user(session, person.name).id, users.ADMIN)
                users.set_roles(session, users.register_user(session, name.strip()).name, roles)
        except StoreError as error:
            st.error(format_sentence(str(error)))
            return
        st.success(f"Saved. With this link {escape_markdown(name)} opens the project:")
        query = urlencode({"you": name.strip(), "project": project})
        st.code(f"{(st.context.url or '').partition('?')[0].removesuffix('project')}?{query}", language=None)


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
