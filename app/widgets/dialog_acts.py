"""The acts of dialogs, as callbacks: these run also where Streamlit joined a click with a run of the page.

Such a run draws no dialog, and so would take the act for not asked for.
"""

from collections.abc import Callable

import streamlit as st

from showhow.app.jobs import JobError
from showhow.app.widgets.page_layout import format_sentence
from showhow.db.database import StoreError
from showhow.worlds.folder import WorldError

ERRORS = (StoreError, WorldError, JobError)
"""The refusals of an act, which stay in its dialog."""
_CLOSES = "dialog_closes"
"""The key of the session that says that an act of a dialog is done, so that the page is drawn without it."""
_PROBLEM = "dialog_problem"
"""The key of the sentence on why an act of a dialog was refused."""


def forget_outcome() -> None:
    """Callback of the button that opens a dialog: no dialog may have been drawn to take the outcome of the last act."""
    st.session_state.pop(_CLOSES, None)
    st.session_state.pop(_PROBLEM, None)


def act_in_dialog(act: Callable[[], object]) -> None:
    """Callback that carries out the act of a dialog, and closes it; a refusal stays in the dialog."""
    try:
        act()
    except ERRORS as error:
        st.session_state[_PROBLEM] = str(error)
    else:
        st.session_state[_CLOSES] = True


def show_outcome() -> None:
    """Draw the page without the dialog once its act is done; show why it was refused."""
    if st.session_state.pop(_CLOSES, False):
        st.rerun()
    if problem := st.session_state.pop(_PROBLEM, None):
        st.error(format_sentence(problem))
