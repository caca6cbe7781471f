"""The dialog Manage of what has a name or can be put away: its name and note, and how it is archived or deleted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import streamlit as st

from showhow.app import removals
from showhow.app.widgets.dialog_acts import ERRORS, act_in_dialog, forget_outcome, show_outcome
from showhow.app.widgets.page_layout import escape_markdown, format_sentence
from showhow.app.widgets.url_state import clear_url_parameters
from showhow.db.models import Run
from showhow.db.people.users import has_acting_role
from showhow.db.removal.removal_kinds import Kind
from showhow.db.removal.removals import RemovalEffect
from showhow.db.removal.renaming import MAX_TITLE_LENGTH, name_run, roles_for_run
from showhow.runs.services import Services


@dataclass(frozen=True, slots=True)
class NameForm:
    """The name, and if there is one the note, that can be changed; `save` gets both."""

    name: str
    save: Callable[[str, str], None]
    note: str | None = None


def show_manage_button(  # noqa: PLR0913 - what is managed, and what the button is called
    services: Services,
    kind: Kind,
    key: UUID | str,
    form: NameForm | None = None,
    *,
    parameters: Sequence[str] = (),
    label: str = "Manage",
) -> None:
    """Draw the button of the dialog; `parameters` are those of the link that name the thing, which go with it."""
    if st.button(label, key=f"manage_{kind}_{key}", icon=":material/more_horiz:", on_click=forget_outcome):
        _show_dialog(services, kind, key, form, parameters)


def show_run_button(services: Services, run: Run, label: str = "Manage", *, parameters: Sequence[str] = ()) -> None:
    """Draw the button of the dialog of a run, for those who may change it."""

    def save(title: str, note: str) -> None:
        with services.database.begin() as session:
            name_run(session, run.id, title=title, note=note)

    with services.database.read() as session:
        may_change = has_acting_role(session, *roles_for_run(session, run))
    if may_change:
        form = NameForm(run.title, save, run.note)
        show_manage_button(services, Kind.RUN, run.id, form, parameters=parameters, label=label)


def show_run_buttons(services: Services, runs: Sequence[Run], labels: Mapping[UUID, str]) -> None:
    """Draw the notes of the runs, and the button of each."""
    for run in runs:
        if run.note:
            st.caption(f"**{escape_markdown(labels[run.id])}:** {escape_markdown(run.note)}")
    with st.container(horizontal=True, gap="small"):
        for run in runs:
            show_run_button(services, run, escape_markdown(labels[run.id]))


@st.dialog("Manage", width="medium")
def _show_dialog(
    services: Services, kind: Kind, key: UUID | str, form: NameForm | None, parameters: Sequence[str]
) -> None:
    show_outcome()
    try:
        effect = removals.describe(services, kind, key)
    except ERRORS as error:
        st.error(format_sentence(str(error)))
        return

    def remove(*, archives: bool) -> None:
        removals.remove(services, kind, key, archives=archives)
        clear_url_parameters(*parameters)

    if form is not None:
        _show_name_form(form, f"{kind}_{key}")
    with st.expander("Archive or delete") if form is not None else st.container():
        show_removal(effect, remove)


def _show_name_form(form: NameForm, identity: str) -> None:
    name_key, note_key = f"name_{identity}", f"note_{identity}"
    st.text_input("Name", form.name, key=name_key, max_chars=MAX_TITLE_LENGTH)
    if form.note is not None:
        st.text_area("Note", form.note, key=note_key, height=90)

    def save() -> None:
        form.save(st.session_state[name_key].strip(), st.session_state.get(note_key, ""))

    st.button("Save", key="manage_save", type="primary", shortcut="Ctrl+Enter", on_click=act_in_dialog, args=(save,))


def show_removal(effect: RemovalEffect, remove: Callable[..., None]) -> None:
    """Draw what goes and what stays, and the buttons that archive and delete it."""
    st.markdown("  \n".join(map(escape_markdown, [effect.title, *effect.stays])))

    def act(name: str, *, archives: bool) -> None:
        remove(archives=archives)
        st.session_state["removed_notice"] = f"{name}d: {effect.title}"

    for name, note, archives in (
        ("Archive", removals.ARCHIVE_NOTE, True),
        ("Delete", removals.DELETION_NOTE, False),
    ):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button(
                name,
                key=f"removal_{name.lower()}",
                icon=f":material/{name.lower()}:",
                width=130,
                on_click=act_in_dialog,
                args=(partial(act, name, archives=archives),),
            )
            st.caption(note, width="stretch")


def show_removal_notice() -> None:
    """Say once what was archived or deleted, and where it is restored."""
    if notice := st.session_state.pop("removed_notice", None):
        st.toast(f"{escape_markdown(notice)} Settings, Archived and deleted, restores it.", icon=":material/undo:")
