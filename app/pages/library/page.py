"""The Library page: approved traces browsed, frozen as versions, compared, exported and run again."""

from dataclasses import replace

import streamlit as st

from app.pages.library.demonstrations import show_demonstration_filters, show_demonstrations, show_leaks
from app.pages.library.overview import show_comparison, show_library_overview
from app.pages.library.selection import show_selection_console
from app.pages.library.usage import show_drift, show_usage
from app.widgets.choices import SelectedLibrary, choose_library, list_versions
from app.widgets.manage import NameForm, show_manage_menu, show_removal_notice
from app.widgets.page_layout import choose_view, escape_markdown, format_sentence, show_head, show_title
from app.widgets.person import acting_services
from app.widgets.url_state import LIBRARY_VIEWS, go_to_library
from db import users
from db.database import Conflict, Database, StoreError
from db.libraries import DemonstrationFilter, LibraryVersion, check_library_name
from db.models import User
from db.removal_kinds import Kind
from db.renaming import rename_library
from fewshot_library.library import FreezeOptions, LeakageError
from runs.services import Services
from worlds.source import SourceError


@st.dialog("Freeze a version", width="large")
def show_freeze_dialog(services: Services, person: User) -> None:
    """Ask for the name, the filters and the options of the next version, and freeze it."""
    approved = SelectedLibrary(services, None)
    choices = approved.choices()
    st.caption(
        "A version is a numbered list of approved traces that never changes, so every run with it can be repeated."
    )
    name = st.text_input(
        "Name",
        value=_latest_library_name(services.database),
        key="freeze_name",
        placeholder="a new or an existing library",
    )
    refusal = _explain_refused_name(services.database, name.strip())
    st.caption(refusal or _describe_next_version(services.database, name.strip()))
    conditions = show_demonstration_filters(choices, key="freeze")
    count = approved.count(conditions)
    hint = "" if count else " Approve traces on the Review page, or try fewer filters."
    if count and conditions.project is None and len(choices.projects) > 1:
        hint = f" They may be of any of {len(choices.projects)} projects; choose one under Project to freeze its own."
    st.caption(f"{count:,} of {approved.count(DemonstrationFilter()):,} approved traces match.{hint}")
    options = _show_option_fields(person)
    if st.button("Freeze", key="freeze_now", type="primary", disabled=not count or bool(refusal)):
        _freeze_and_open(services, name.strip(), conditions, options)


def _latest_library_name(database: Database) -> str:
    versions = list_versions(database)
    return max(versions, key=lambda version: version.frozen_at).name if versions else ""


def _explain_refused_name(database: Database, name: str) -> str:
    """The reason why no library may be called so, as Markdown; empty if one may."""
    if not name:
        return "Name the library."
    try:
        with database.read() as session:
            check_library_name(session, name)
    except Conflict as error:
        return format_sentence(str(error))
    return ""


def _describe_next_version(database: Database, name: str) -> str:
    last = max((version.number for version in list_versions(database) if version.name == name), default=0)
    return escape_markdown(
        f"This will be {name}:{last + 1}, " + ("a new library." if not last else f"after {name}:{last}.")
    )


def _show_option_fields(person: User) -> FreezeOptions:
    left, right = st.columns(2)
    with left:
        licence = st.text_input("Licence", key="freeze_licence", placeholder="such as CC BY 4.0")
    with right:
        split = st.text_input("Keep out questions from split", value="test", key="freeze_split")
    note = st.text_input("Note", key="freeze_note", placeholder="a note for its card")
    force = st.checkbox("Freeze anyway: includes test questions", key="freeze_force")
    return FreezeOptions(
        by=person.name, licence=licence.strip(), note=note.strip(), test_split=split.strip(), force=force
    )


def _freeze_and_open(services: Services, name: str, conditions: DemonstrationFilter, options: FreezeOptions) -> None:
    wait = "" if services.encoder.is_loaded else ", after the encoder is loaded"
    try:
        with services.database.begin() as session:
            person_id = users.register_user(session, options.by).id
        with st.spinner(f"Comparing with the questions of the split {escape_markdown(options.test_split)}{wait} …"):
            version = services.freeze_version(name, conditions, replace(options, person_id=person_id))
    except LeakageError as error:
        st.error(format_sentence(str(error)))
        show_leaks(error)
    except (StoreError, SourceError) as error:
        st.error(format_sentence(str(error)))
    else:
        go_to_library(f"{version.name}:{version.number}")
        st.query_params["view"] = "overview"
        st.rerun()


def show_header(services: Services, person: User) -> None:
    """Draw the top of the page."""
    can_freeze = bool({"reviewer", "admin"} & set(person.roles))
    note = "Approved traces, which reasoners imitate." + ("" if can_freeze else " Only reviewers can freeze versions.")
    with show_head("Library", note):
        if can_freeze and st.button("Freeze a version", key="freeze", shortcut="Alt+L", icon=":material/ac_unit:"):
            show_freeze_dialog(services, person)


def _show_manage(services: Services, version: LibraryVersion) -> None:
    """Draw the menu that renames the library, and archives or deletes the version."""

    def save(name: str, _: str) -> None:
        with services.database.begin() as session:
            rename_library(session, version.name, name)
        go_to_library(f"{name}:{version.number}")

    show_manage_menu(services, Kind.LIBRARY, version.id, NameForm(version.name, save), parameters=["library"])


def show_library(library: SelectedLibrary, person: User) -> None:
    """Draw the selected view of the demonstrations."""
    with st.container(horizontal=True, vertical_alignment="center"):
        show_title(library.title)
        if library.version is not None and {"reviewer", "admin"} & set(person.roles):
            _show_manage(library.services, library.version)
    match choose_view(LIBRARY_VIEWS):
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


services, person = acting_services()
show_removal_notice()
show_header(services, person)
left, right = st.columns([1, 3.8], gap="medium")
with left, st.container(key="list"):
    library = choose_library(services)
with right:
    show_library(library, person)
