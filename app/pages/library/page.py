"""The Library page: approved traces browsed, frozen as versions, compared, exported and run again."""

import streamlit as st

from showhow.app.pages.library.demonstrations import show_demonstration_filters, show_demonstrations, show_leaks
from showhow.app.pages.library.overview import show_comparison, show_library_overview
from showhow.app.pages.library.selection import show_selection_console
from showhow.app.pages.library.usage import show_drift, show_usage
from showhow.app.widgets.choices import SelectedLibrary, choose_library, list_versions
from showhow.app.widgets.manage import NameForm, show_manage_button, show_removal_notice
from showhow.app.widgets.option_form import show_option_fields
from showhow.app.widgets.page_layout import choose_view, escape_markdown, format_sentence, show_head, show_title
from showhow.app.widgets.person import acting_services
from showhow.app.widgets.url_state import LIBRARY_VIEWS, go_to_library
from showhow.db.database import Conflict, Database, StoreError
from showhow.db.models import User
from showhow.db.removal.removal_kinds import Kind
from showhow.db.removal.renaming import rename_library
from showhow.db.traces.libraries import DemonstrationFilter, LibraryVersion, check_library_name
from showhow.fewshot_library.library import FreezeOptions, LeakageError
from showhow.option_fields import build_request, list_options
from showhow.runs.services import Services
from showhow.tasks.library import FreezeLibrary, freeze
from showhow.worlds.source import SourceError


@st.dialog("Freeze a version", width="large")
def show_freeze_dialog(services: Services) -> None:
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
    values = show_option_fields(list_options(FreezeOptions), "freeze")
    if st.button("Freeze", key="freeze_now", type="primary", disabled=not count or bool(refusal)):
        options = build_request(FreezeOptions, values)
        _freeze_and_open(services, FreezeLibrary(name=name.strip(), conditions=conditions, options=options))


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


def _freeze_and_open(services: Services, request: FreezeLibrary) -> None:
    wait = "" if services.encoder.is_loaded else ", after the encoder is loaded"
    try:
        with st.spinner(
            f"Comparing with the questions of the split {escape_markdown(request.options.test_split)}{wait} …"
        ):
            version = freeze(services, request)
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
            show_freeze_dialog(services)


def _show_manage(services: Services, version: LibraryVersion) -> None:
    """Draw the menu that renames the library, and archives or deletes the version."""

    def save(name: str, _: str) -> None:
        with services.database.begin() as session:
            rename_library(session, version.name, name)
        go_to_library(f"{name}:{version.number}")

    show_manage_button(services, Kind.LIBRARY, version.id, NameForm(version.name, save), parameters=["library"])


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
