"""The part of the Settings page that lists what was archived and deleted, and restores it."""

import streamlit as st

from showhow.app import removals
from showhow.app.widgets.dialog_acts import ERRORS
from showhow.app.widgets.page_layout import escape_markdown, format_sentence, format_when
from showhow.db.removal.removal_kinds import KEPT_DAYS
from showhow.db.removal.removals import Removal, format_touched, list_removals, may_restore
from showhow.db.types import utc_now
from showhow.runs.services import Services

MAX_LISTED = 100
_ALL = "everything"
_NOTICE = "restored_notice"


def show_removed(services: Services) -> None:
    """Draw the list, with a button for each entry that the person may restore."""
    st.caption(
        f"What is archived stays here until it is restored; what is deleted is gone for good after {KEPT_DAYS} days."
    )
    with services.database.read() as session:
        listed = list_removals(session)
        restorable = {removal.id for removal in listed if may_restore(session, removal)}
    if notice := st.session_state.pop(_NOTICE, None):
        st.info(notice)
    if not listed:
        st.info(
            "Nothing is archived or deleted. Manage, on the pages of projects, runs, libraries and worlds, does both."
        )
        return
    kinds = [_ALL, *dict.fromkeys(removal.kind for removal in listed)]
    kind = st.segmented_control(
        "Show", kinds, default=_ALL, key="removed_kind", format_func=str.capitalize, required=True
    )
    chosen = [removal for removal in listed if kind in (_ALL, removal.kind)]
    for removal in chosen[:MAX_LISTED]:
        with st.container(horizontal=True, vertical_alignment="center", key=f"removed_{removal.id.hex}"):
            st.markdown(
                f"{escape_markdown(f'{removal.kind.capitalize()} {removal.name}{format_touched(removal.touched)}')}  \n"
                f":gray[{escape_markdown(_describe(removal))}]",
                width="stretch",
            )
            st.button(
                "Restore",
                key=f"restore_{removal.id.hex}",
                disabled=removal.id not in restorable,
                on_click=_restore,
                args=(services, removal),
            )
    if len(chosen) > MAX_LISTED:
        st.caption(f"and {len(chosen) - MAX_LISTED:,} more; `showhow KIND restore` lists all.")


def _describe(removal: Removal) -> str:
    by = f" by {removal.removed_by}" if removal.removed_by else ""
    if removal.kept_until is None:
        return f"Archived {format_when(removal.removed_at)}{by}"
    days = max(0, (removal.kept_until - utc_now()).days)
    return f"Deleted {format_when(removal.removed_at)}{by}; {days} days left"


def _restore(services: Services, removal: Removal) -> None:
    try:
        removals.restore(services, removal.id)
    except ERRORS as error:
        st.session_state[_NOTICE] = format_sentence(str(error))
        return
    st.session_state[_NOTICE] = escape_markdown(f"Restored: {removal.kind} {removal.name}.")
