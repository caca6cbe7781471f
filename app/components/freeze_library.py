"""The form that freezes approved traces as the next version of a library."""

import streamlit as st

from app.components.demonstration_filters import ask_conditions
from app.components.library_places import go_to_library
from app.components.plain import plain
from app.components.selected_library import SelectedLibrary
from app.components.table import Entry, show_table
from app.components.version_list import known_versions
from app.libraries import freeze_version
from app.resources import encoder
from db.database import StoreError
from db.libraries import Wanted
from db.models import User
from fewshot_library.card import Leaking, Terms
from worlds.source import SourceError

LISTED = 100
"""Leaks that are listed; the refusal counts all."""


@st.dialog("Freeze a version", width="large")
def freeze_library(person: User) -> None:
    """Ask for its name, conditions and terms; a refusal is told as it is, with what can be done about it."""
    approved = SelectedLibrary(None)
    st.caption(
        "A version is a numbered list of approved traces that never changes, so that whatever was tried with it can be "
        "tried again."
    )
    name = st.text_input("Name", value=_latest_name(), key="freeze_name", placeholder="of a new or a known library")
    st.caption(_next(name.strip()))
    wanted = ask_conditions(approved.choices(), key="freeze")
    count = approved.count(wanted)
    hint = "" if count else " Approve traces on the Review page, or loosen a condition."
    st.caption(f"{count:,} of {approved.count(Wanted()):,} approved traces fit.{hint}")
    terms = _ask_terms(person)
    if st.button("Freeze", key="freeze_now", type="primary", disabled=not count or not name.strip()):
        _freeze(name.strip(), wanted, terms)


def _latest_name() -> str:
    known = known_versions()
    return max(known, key=lambda version: version.frozen_at).name if known else ""


def _next(name: str) -> str:
    if not name:
        return "Name the library."
    last = max((version.number for version in known_versions() if version.name == name), default=0)
    return plain(f"This will be {name}:{last + 1}, " + ("a new library." if not last else f"after {name}:{last}."))


def _ask_terms(person: User) -> Terms:
    left, right = st.columns(2)
    with left:
        licence = st.text_input("Licence", key="freeze_licence", placeholder="such as CC BY 4.0")
    with right:
        split = st.text_input("Split whose questions must stay out", value="test", key="freeze_split")
    note = st.text_input("Note", key="freeze_note", placeholder="whatever else its card should say")
    force = st.checkbox("Freeze although it gives away tested questions; the card then tells which", key="freeze_force")
    return Terms(by=person.name, licence=licence.strip(), note=note.strip(), test_split=split.strip(), force=force)


def _freeze(name: str, wanted: Wanted, terms: Terms) -> None:
    wait = "" if encoder().loaded else "; the model that compares them loads first, some 5 seconds"
    try:
        with st.spinner(f"Comparing with the questions of the split {plain(terms.test_split)}{wait} …"):
            made = freeze_version(name, wanted, terms)
    except Leaking as leaking:
        st.error(plain(str(leaking)))
        rows = [
            [Entry(leak.demonstration.question), Entry(leak.tested), Entry(f"{leak.cosine:.3f}", number=True)]
            for leak in leaking.leaks[:LISTED]
        ]
        show_table(("demonstration", "tested question", "likeness"), rows, key="leaks", label="What is given away")
    except (StoreError, SourceError) as refused:
        st.error(plain(str(refused)))
    else:
        go_to_library(f"{made.name}:{made.number}")
        st.query_params["view"] = "overview"
        st.rerun()
