"""Library: approved traces browsed, frozen, compared and exported, what would be chosen of them,
and whether they still hold.
"""

import streamlit as st

from app.components.chrome import keys_door
from app.components.compare_versions import show_comparison
from app.components.demonstrations import show_demonstrations
from app.components.freeze_library import freeze_library
from app.components.library_drift import show_drift
from app.components.library_overview import show_overview
from app.components.library_places import VIEWS
from app.components.library_usage import show_usage
from app.components.selected_library import SelectedLibrary
from app.components.selection_console import show_selection
from app.components.version_list import choose_library
from app.components.views import choose_view
from app.components.who import choose_who, who
from db.models import User

KEYS = {
    "Alt+L": "Freeze a version",
    "Alt+1 … Alt+6": "Choose the view of the library",
    "Alt+N, Alt+P": "Open the next or the previous demonstration",
    "Alt+E": "Export what is listed",
    "?": "This sheet",
}


def masthead(person: User) -> None:
    """The top of the page."""
    with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if {"reviewer", "admin"} & set(person.roles):
            if st.button("Freeze a version", key="freeze", shortcut="Alt+L", icon=":material/ac_unit:"):
                freeze_library(person)
        else:
            st.caption("Reviewers freeze versions.")
        st.space("stretch")
        keys_door(KEYS)
        choose_who(person)


def show_library(library: SelectedLibrary) -> None:
    """The chosen view of the demonstrations."""
    match choose_view(library.title, VIEWS):
        case "overview":
            show_overview(library)
        case "choose":
            show_selection(library)
        case "usage":
            show_usage(library)
        case "compare":
            show_comparison(library)
        case "drift":
            show_drift(library)
        case _:
            show_demonstrations(library)


person = who()
masthead(person)
left, right = st.columns([1, 3.8], gap="medium")
with left, st.container(key="list"):
    library = choose_library()
with right:
    show_library(library)
