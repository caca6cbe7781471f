"""The current person: who is logged in, or, where there is no login, who the link names.

The name in a link survives a reload and distinguishes people who share a machine; with a login it means nothing.

Looking stores nothing: a person is stored at their first act (users.py). Without a name, the person is the account
of this machine, if the request comes from this machine itself (app/origin.py); from elsewhere they are a visitor
without rights, and so is who gives a name that nobody has invited.

Pages take their services from here, so that the store knows whose changes it is asked for.
"""

import getpass
import hmac
from pathlib import Path
from urllib.parse import urlencode
from uuid import UUID

import streamlit as st
import streamlit.runtime

from showhow.app.home_secret import read_secret
from showhow.app.login import INVITATION_PATH, PERSON_MARK, read_person_mark, read_token
from showhow.app.origin import LOCAL_MARK, LOCAL_TOKEN
from showhow.app.services import current_services
from showhow.app.widgets.page_layout import choose_theme, escape_markdown, format_sentence
from showhow.app.widgets.table import TableCell, show_table
from showhow.db.database import Database, StoreError
from showhow.db.models import Project, User
from showhow.db.people import users
from showhow.db.people.logins import INVITATION_DAYS, end_login, has_identity, invite, may_enter
from showhow.db.questions.projects import DEFAULT_INSTRUCTION
from showhow.runs.services import Services
from showhow.settings import LINKED_LOGINS

COOKIE_PREFIX = "showhow_you_"
VISITOR = "a visitor"
"""What pages call a person who comes from elsewhere and gives no name."""


def acting_services() -> tuple[Services, User]:
    """The services of a page, which act as the current person, and that person."""
    services = current_services()
    person = current_user(services.database)
    return services.acting_as(_acting_person()), person


def current_user(database: Database) -> User:
    """The person named by `?you=NAME`, else by the account on this machine, with their present roles.

    A person who is not stored yet has the roles of their first act; their id is not that of a stored row.
    """
    actor = _acting_person()
    with database.acting_as(actor).read() as session:
        person = users.preview_user(session, actor.name)
    st.session_state["person_name"] = person.name
    return person


def _acting_person() -> users.ActingPerson:
    if current_services().settings.login:
        if "you" in st.query_params:
            del st.query_params["you"]
        return users.ActingPerson(_logged_in_name(), is_local=False)
    is_local = is_from_this_machine()
    name = st.query_params.get("you", "").strip()
    if not name and st.session_state.get("person_name"):
        # Links between pages drop the query of the URL, but the person stays the same.
        st.query_params["you"] = name = st.session_state["person_name"]
    return users.ActingPerson(name or (getpass.getuser() if is_local else ""), is_local)


def _logged_in_name() -> str:
    """The name of the person whom the middleware let in, looked up anew; who is out is sent to the login."""
    person_id = read_person_mark(st.context.headers.get(PERSON_MARK, ""))
    with current_services().database.read() as session:
        person = None if person_id is None else session.get(User, person_id)
    if may_enter(person) and not st.session_state.get(_LOGGED_OUT):
        return person.name
    leave = st.components.v2.component("showhow_leave", js=_LEAVE)
    leave(key="leave")
    return st.stop()


_LOGGED_OUT = "logged_out"
"""The key of the session that says that its person has logged out."""
_LEAVE = 'export default () => location.replace(new URL("login", location.href))'


def _log_out() -> None:
    with current_services().database.begin() as session:
        end_login(session, read_token(st.context.cookies))
    st.session_state[_LOGGED_OUT] = True


def is_from_this_machine() -> bool:
    """Whether the browser that shows the page runs on this machine, without a proxy, and nobody has to log in."""
    if current_services().settings.login:
        return False
    # A script that runs without a server has no other visitor.
    if not streamlit.runtime.exists():
        return True
    return hmac.compare_digest(st.context.headers.get(LOCAL_MARK, "").encode(), LOCAL_TOKEN.encode())


def show_invitation(person: User) -> None:
    """Tell a person without a role what they can do here, and how they get one."""
    if not person.roles:
        st.info(format_sentence(users.ActingPerson(person.name, is_local=False).invitation), icon=":material/lock:")


def show_user_menu(person: User) -> None:
    """Draw the menu that shows the person's name, switches to another person, and chooses the theme."""
    with st.popover(f"You: {escape_markdown(person.name or VISITOR)}", icon=":material/person:"):
        show_name_field(person, "who_name")
        choose_theme("who_theme")
        if current_services().settings.login in LINKED_LOGINS:
            st.button("Log out", key="log_out", icon=":material/logout:", on_click=_log_out)


def show_name_field(person: User, key: str = "settings_name") -> None:
    """Draw the person's name, as a field that switches to another person where there is no login, and roles."""
    roles = ", ".join(person.roles) or "none"
    if current_services().settings.login:
        st.caption(f"You are logged in as {escape_markdown(person.name)}. Roles: {roles}.")
        return
    st.text_input(
        "Your name", value=person.name, key=key, max_chars=users.MAX_NAME_LENGTH, on_change=_switch_user, args=(key,)
    )
    st.caption(f"Each name has its own queue and drafts. Roles: {roles}.")


def _switch_user(key: str) -> None:
    name = st.session_state[key].strip()
    if name:
        if is_from_this_machine():
            _confirmed_names().add(name)
        st.query_params.clear()
        st.query_params["you"] = name


@st.dialog("Members", width="medium")
def show_members_dialog(database: Database, person: User, project_id: UUID) -> None:
    """List the people with their roles; an administrator changes them, and adds people with a link to the project."""
    with database.read() as session:
        members = users.list_users(session)
    people = {member.name: member.roles for member in members}
    st.caption("Roles are those of this server: they hold in all of its projects.")
    rows = [[TableCell(member.name, whole=True), TableCell(_describe_roles(member))] for member in members]
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
    # A callback, so that the list above has the change already.
    st.button(
        "Save",
        key="member_save",
        type="primary",
        disabled=not roles,
        on_click=_save_member,
        args=(database, name.strip(), list(roles)),
    )
    login = current_services().settings.login
    if login in LINKED_LOGINS and name in people:
        st.button("Make a new link", key="member_link", on_click=_invite_member, args=(database, name))
    saved, problem, token = st.session_state.pop(_SAVED_MEMBER, ("", "", ""))
    address = (st.context.url or "").partition("?")[0].removesuffix("project")
    if problem:
        st.error(format_sentence(problem))
    elif token:
        st.success(f"With this link {escape_markdown(name)} gets in, once and within {INVITATION_DAYS} days:")
        st.code(f"{address.rstrip('/')}{INVITATION_PATH}{token}", language=None)
    elif login:
        if saved:
            st.success("Saved.")
    elif saved == name.strip() or name in people:
        # The id, since the project may be renamed before the link is used.
        query = urlencode({"you": name.strip(), "project": str(project_id)})
        st.success(f"{'Saved. ' if saved else ''}With this link {escape_markdown(name)} opens the project:")
        st.code(f"{address}?{query}", language=None)


def _describe_roles(member: User) -> str:
    roles = ", ".join(member.roles) or "none: an author of imported traces"
    return roles if member.is_active else f"{roles} (switched off)"


_SAVED_MEMBER = "saved_member"
"""Key of the session with the name of the person whose roles were saved, why they were not, and a link's token."""


def _save_member(database: Database, name: str, roles: list[str]) -> None:
    try:
        with database.begin() as session:
            person = users.set_roles(session, users.register_user(session, name).name, roles)
            login = current_services().settings.login
            needs_link = login in LINKED_LOGINS and not has_identity(session, login, person.id)
            token = invite(session, person.id) if needs_link else ""
    except StoreError as error:
        st.session_state[_SAVED_MEMBER] = ("", str(error), "")
    else:
        st.session_state[_SAVED_MEMBER] = (name, "", token)


def _invite_member(database: Database, name: str) -> None:
    try:
        with database.begin() as session:
            person = users.find_user(session, name)
            token = "" if person is None else invite(session, person.id)
    except StoreError as error:
        st.session_state[_SAVED_MEMBER] = ("", str(error), "")
    else:
        st.session_state[_SAVED_MEMBER] = ("", "", token)


def confirmation_cookie(name: str) -> str:
    """The name of the cookie by which a browser remembers that its user confirmed to be this person."""
    return COOKIE_PREFIX + name.encode(errors="replace").hex()


def confirmation_cookies(home: Path, name: str) -> dict[str, str]:
    """The cookies that this browser stores about the person, signed with the secret of the home."""
    return {confirmation_cookie(name): sign_name(home, name)} if name in _confirmed_names() else {}


def sign_name(home: Path, name: str) -> str:
    """The value of the confirmation cookie, which nobody can write who has not confirmed to be this person."""
    return hmac.digest(read_secret(home), name.encode(errors="replace"), "sha256").hex()


def is_confirmed(services: Services, name: str) -> bool:
    """Whether this browser may act as the person: logged in, a new one, this machine's account, or a confirmed one.

    A visitor without a name, or with one that is not stored, has nothing to confirm: they have no rights.
    """
    if services.settings.login:
        return True
    confirmed = _confirmed_names()
    is_local = is_from_this_machine()
    if name in confirmed or (is_local and name == getpass.getuser()):
        return True
    cookie = st.context.cookies.get(confirmation_cookie(name), "")
    if not hmac.compare_digest(str(cookie).encode(), sign_name(services.settings.home, name).encode()):
        with services.database.read() as session:
            if users.find_user(session, name) is not None:
                return False
        if not is_local:
            return True
    # A new name is stored at its first act; it is confirmed from now on, so that its own user is not asked.
    confirmed.add(name)
    return True


def ask_for_confirmation(database: Database, person: User, project: Project | None) -> None:
    """Greet a person who was invited and has not acted yet; ask others whether they are the person of the link."""
    name = escape_markdown(person.name)
    with database.read() as session:
        is_invited = bool(person.roles) and not users.has_acted(session, person.name)
    if is_invited and project is not None:
        st.markdown(f"## Welcome to {escape_markdown(project.name)}")
        task = escape_markdown(project.instruction or DEFAULT_INSTRUCTION)
        st.markdown(f"You are invited as {' and '.join(person.roles)}. {task}")
    st.markdown(f"### Are you {name}?")
    st.write(
        "What you do is stored under this name, and the link brings you back to it."
        if is_invited
        else "The link opens the pages as this person, whose work is stored here. What you do is stored as theirs."
    )
    st.button(
        f"Yes, continue as {name}",
        key="confirm_person",
        type="primary",
        on_click=_confirmed_names().add,
        args=(person.name,),
    )
    st.text_input(
        "You are somebody else? Write your own name",
        key="other_name",
        max_chars=users.MAX_NAME_LENGTH,
        width=360,
        on_change=_switch_user,
        args=("other_name",),
    )


def _confirmed_names() -> set[str]:
    names: set[str] = st.session_state.setdefault("confirmed_names", set())
    return names
