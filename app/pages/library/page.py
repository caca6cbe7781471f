"""Library: approved traces browsed, frozen, compared and exported, what would be chosen of them,
and whether they still hold.

The form that freezes approved traces as the next version of a library.
"""

import streamlit as st

from app.pages.library.comparison import show_comparison
from app.pages.library.demonstrations import show_demonstration_filters, show_demonstrations
from app.pages.library.drift import show_drift
from app.pages.library.overview import show_library_overview
from app.pages.library.selected import SelectedLibrary
from app.pages.library.selection import show_selection_console
from app.pages.library.usage import show_usage
from app.services import services
from app.widgets.library_choice import choose_library, list_versions
from app.widgets.page_layout import choose_view, show_keys_button
from app.widgets.person import current_user, show_user_menu
from app.widgets.plain_text import escape_markdown
from app.widgets.table import TableCell, show_table
from app.widgets.url_state import LIBRARY_VIEWS, go_to_library
from db.database import StoreError
from db.libraries import DemonstrationFilter
from db.models import User
from fewshot_library.card import FreezeOptions, LeakageError
from worlds.source import SourceError

MAX_LISTED_LEAKS = 100
"""Leaks that are listed; the refusal counts all."""


@st.dialog("Freeze a version", width="large")
def show_freeze_dialog(person: User) -> None:
    """Ask for its name, conditions and terms; a refusal is told as it is, with what can be done about it."""
    approved = SelectedLibrary(None)
    st.caption(
        "A version is a numbered list of approved traces that never changes, so that whatever was tried with it can be "
        "tried again."
    )
    name = st.text_input(
        "Name", value=_latest_library_name(), key="freeze_name", placeholder="of a new or a known library"
    )
    st.caption(_describe_next_version(name.strip()))
    wanted = show_demonstration_filters(approved.choices(), key="freeze")
    count = approved.count(wanted)
    hint = "" if count else " Approve traces on the Review page, or loosen a condition."
    st.caption(f"{count:,} of {approved.count(DemonstrationFilter()):,} approved traces fit.{hint}")
    terms = _ask_terms(person)
    if st.button("Freeze", key="freeze_now", type="primary", disabled=not count or not name.strip()):
        _freeze_and_open(name.strip(), wanted, terms)


def _latest_library_name() -> str:
    known = list_versions(services().database)
    return max(known, key=lambda version: version.frozen_at).name if known else ""


def _describe_next_version(name: str) -> str:
    if not name:
        return "Name the library."
    last = max((version.number for version in list_versions(services().database) if version.name == name), default=0)
    return escape_markdown(
        f"This will be {name}:{last + 1}, " + ("a new library." if not last else f"after {name}:{last}.")
    )


def _ask_terms(person: User) -> FreezeOptions:
    left, right = st.columns(2)
    with left:
        licence = st.text_input("Licence", key="freeze_licence", placeholder="such as CC BY 4.0")
    with right:
        split = st.text_input("Split whose questions must stay out", value="test", key="freeze_split")
    note = st.text_input("Note", key="freeze_note", placeholder="whatever else its card should say")
    force = st.checkbox("Freeze although it gives away tested questions; the card then tells which", key="freeze_force")
    return FreezeOptions(
        by=person.name, licence=licence.strip(), note=note.strip(), test_split=split.strip(), force=force
    )


def _freeze_and_open(name: str, wanted: DemonstrationFilter, terms: FreezeOptions) -> None:
    wait = "" if services().encoder.is_loaded else "; the model that compares them loads first, some 5 seconds"
    try:
        with st.spinner(f"Comparing with the questions of the split {escape_markdown(terms.test_split)}{wait} …"):
            made = services().freeze_version(name, wanted, terms)
    except LeakageError as leaking:
        st.error(escape_markdown(str(leaking)))
        rows = [
            [
                TableCell(leak.demonstration.question),
                TableCell(leak.tested),
                TableCell(f"{leak.cosine:.3f}", number=True),
            ]
            for leak in leaking.leaks[:MAX_LISTED_LEAKS]
        ]
        show_table(("demonstration", "tested question", "likeness"), rows, key="leaks", label="What is given away")
    except (StoreError, SourceError) as refused:
        st.error(escape_markdown(str(refused)))
    else:
        go_to_library(f"{made.name}:{made.number}")
        st.query_params["view"] = "overview"
        st.rerun()


KEYS = {
    "Alt+L": "Freeze a version",
    "Alt+1 … Alt+6": "Choose the view of the library",
    "Alt+N, Alt+P": "Open the next or the previous demonstration",
    "Alt+E": "Export what is listed",
    "?": "This sheet",
}


def show_header(person: User) -> None:
    """The top of the page."""
    with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if {"reviewer", "admin"} & set(person.roles):
            if st.button("Freeze a version", key="freeze", shortcut="Alt+L", icon=":material/ac_unit:"):
                show_freeze_dialog(person)
        else:
            st.caption("Reviewers freeze versions.")
        st.space("stretch")
        show_keys_button(KEYS)
        show_user_menu(person)


def show_library(library: SelectedLibrary) -> None:
    """The chosen view of the demonstrations."""
    match choose_view(library.title, LIBRARY_VIEWS):
        case "overview":
            show_library_overview(library)
        case "choose":
            show_selection_console(library)
        case "usage":
            show_usage(library)
        case "compare":
            show_comparison(library)
        case "drift":
            show_drift(library)
        case _:
            show_demonstrations(library)


person = current_user(services().database)
show_header(person)
left, right = st.columns([1, 3.8], gap="medium")
with left, st.container(key="list"):
    library = choose_library(services().database)
with right:
    show_library(library)
