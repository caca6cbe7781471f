"""The menu Manage of what has a name or can be put away: its name and note, and the dialogs that archive and delete."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import streamlit as st

from app import removals
from app.jobs import JobError
from app.widgets.page_layout import escape_markdown, format_sentence
from app.widgets.url_state import clear_url_parameters
from db.database import StoreError
from db.models import Run
from db.removal_kinds import Kind
from db.renaming import MAX_TITLE_LENGTH, name_run, roles_for_run
from db.users import has_acting_role
from runs.services import Services
from worlds.folder import WorldError

ERRORS = (StoreError, WorldError, JobError)


@dataclass(frozen=True, slots=True)
class NameForm:
    """The name, and if there is one the note, that can be changed; `save` gets both."""

    name: str
    save: Callable[[str, str], None]
    note: str | None = None


def show_manage_menu(  # noqa: PLR0913 - what is managed, and how the menu is called
    services: Services,
    kind: Kind,
    key: UUID | str,
    form: NameForm | None = None,
    *,
    parameters: Sequence[str] = (),
    label: str = "Manage",
) -> None:
    """Draw the menu; `parameters` are those of the link that name the thing, which go with it."""
    identity = f"{kind}_{key}"
    # It keeps its state so that its acts can close it: open, it would lie above the dialogs and take their clicks.
    with st.popover(label, icon=":material/more_horiz:", key=_menu_key(identity), on_change="rerun"):
        if form is not None:
            _show_name_form(form, identity)
        with st.container(horizontal=True, gap="small"):
            archives = st.button(
                "Archive",
                key=f"archive_{identity}",
                icon=":material/archive:",
                on_click=_close_menu,
                args=(identity,),
            )
            deletes = st.button(
                "Delete", key=f"delete_{identity}", icon=":material/delete:", on_click=_close_menu, args=(identity,)
            )
    if archives or deletes:
        _show_removal_dialog(services, kind, key, parameters, archives=archives)


def _menu_key(identity: str) -> str:
    return f"manage_{identity}"


def _close_menu(identity: str) -> None:
    st.session_state[_menu_key(identity)] = False


def show_run_menu(services: Services, run: Run, label: str = "Manage", *, parameters: Sequence[str] = ()) -> None:
    """Draw the menu of a run with its name and note, for those who may change them."""

    def save(title: str, note: str) -> None:
        with services.database.begin() as session:
            name_run(session, run.id, title=title, note=note)

    with services.database.read() as session:
        may_change = has_acting_role(session, *roles_for_run(session, run))
    if may_change:
        form = NameForm(run.title, save, run.note)
        show_manage_menu(services, Kind.RUN, run.id, form, parameters=parameters, label=label)


def show_run_menus(services: Services, runs: Sequence[Run], labels: Mapping[UUID, str]) -> None:
    """Draw the notes of the runs, and a menu for each."""
    for run in runs:
        if run.note:
            st.caption(f"**{escape_markdown(labels[run.id])}:** {escape_markdown(run.note)}")
    with st.container(horizontal=True, gap="small"):
        for run in runs:
            show_run_menu(services, run, escape_markdown(labels[run.id]))


def _show_name_form(form: NameForm, identity: str) -> None:
    st.text_input("Name", form.name, key=f"name_{identity}", max_chars=MAX_TITLE_LENGTH)
    if form.note is not None:
        st.text_area("Note", form.note, key=f"note_{identity}", height=90)
    st.button("Save", key=f"save_{identity}", on_click=_save_name, args=(form, identity))
    if problem := st.session_state.pop(f"problem_{identity}", None):
        st.error(format_sentence(problem))


def _save_name(form: NameForm, identity: str) -> None:
    try:
        form.save(st.session_state[f"name_{identity}"].strip(), st.session_state.get(f"note_{identity}", ""))
    except ERRORS as error:
        st.session_state[f"problem_{identity}"] = str(error)
    else:
        _close_menu(identity)


@st.dialog("Archive or delete", width="medium")
def _show_removal_dialog(
    services: Services, kind: Kind, key: UUID | str, parameters: Sequence[str], *, archives: bool
) -> None:
    try:
        effect = removals.describe(services, kind, key)
    except ERRORS as error:
        st.error(format_sentence(str(error)))
        return
    st.markdown(f"**{escape_markdown(effect.title)}**")
    for sentence in effect.stays:
        st.markdown(escape_markdown(sentence))
    st.caption(removals.ARCHIVE_NOTE if archives else removals.DELETION_NOTE)
    label, icon = ("Archive it", ":material/archive:") if archives else ("Delete it", ":material/delete:")
    with st.container(horizontal=True, gap="small"):
        is_confirmed = st.button(label, key="removal_confirm", type="primary", icon=icon)
        if st.button("Keep it", key="removal_keep"):
            st.rerun()
    if is_confirmed:
        try:
            removals.remove(services, kind, key, archives=archives)
        except ERRORS as error:
            st.error(format_sentence(str(error)))
            return
        clear_url_parameters(*parameters)
        st.session_state["removed_notice"] = f"{'Archived' if archives else 'Deleted'}: {effect.name}"
        st.rerun()


def show_removal_notice() -> None:
    """Say once what was archived or deleted, and where it is restored."""
    if notice := st.session_state.pop("removed_notice", None):
        st.toast(f"{escape_markdown(notice)}. Settings, Archived and deleted, restores it.", icon=":material/undo:")
