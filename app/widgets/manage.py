"""The menu Manage of what has a name or can be put away: its name and note, and the dialogs that archive and delete."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import streamlit as st

from app import removals
from app.jobs import JobError
from app.widgets.page_layout import escape_markdown, format_sentence
from app.widgets.url_state import clear_url_parameters
from db.database import StoreError
from db.removal_kinds import Kind
from db.renaming import MAX_TITLE_LENGTH
from runs.services import Services
from worlds.folder import WorldError

ERRORS = (StoreError, WorldError, JobError)


@dataclass(frozen=True, slots=True)
class NameForm:
    """The name, and if there is one the note, that can be changed; `save` gets both."""

    name: str
    save: Callable[[str, str], None]
    note: str | None = None


def show_manage_menu(
    services: Services, kind: Kind, key: UUID | str, form: NameForm | None = None, *, parameter: str = ""
) -> None:
    """Draw the menu; `parameter` is the one of the link that names the thing, which goes with it."""
    identity = f"{kind}_{key}"
    with st.popover("Manage", icon=":material/more_horiz:", key=f"manage_{identity}"):
        if form is not None:
            _show_name_form(form, identity)
        with st.container(horizontal=True, gap="small"):
            if st.button("Archive", key=f"archive_{identity}", icon=":material/archive:"):
                _show_removal_dialog(services, kind, key, parameter, archives=True)
            if st.button("Delete", key=f"delete_{identity}", icon=":material/delete:"):
                _show_removal_dialog(services, kind, key, parameter, archives=False)


def _show_name_form(form: NameForm, identity: str) -> None:
    name = st.text_input("Name", form.name, key=f"name_{identity}", max_chars=MAX_TITLE_LENGTH)
    note = "" if form.note is None else st.text_area("Note", form.note, key=f"note_{identity}", height=90)
    if st.button("Save", key=f"save_{identity}", type="primary"):
        try:
            form.save(name.strip(), note)
        except ERRORS as error:
            st.error(format_sentence(str(error)))
        else:
            st.rerun()


@st.dialog("Archive or delete", width="medium")
def _show_removal_dialog(
    services: Services, kind: Kind, key: UUID | str, parameter: str, *, archives: bool
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
        if parameter:
            clear_url_parameters(parameter)
        st.session_state["removed_notice"] = f"{'Archived' if archives else 'Deleted'}: {effect.name}"
        st.rerun()


def show_removal_notice() -> None:
    """Say once what was archived or deleted, and where it is restored."""
    if notice := st.session_state.pop("removed_notice", None):
        st.toast(f"{escape_markdown(notice)}. Settings, Archived and deleted, restores it.", icon=":material/undo:")
