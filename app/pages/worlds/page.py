"""The Worlds page: generates, imports, explores and queries worlds."""

import streamlit as st

from showhow.app.pages.worlds.create_world import show_generate_dialog
from showhow.app.pages.worlds.explorer import show_console, show_world_explorer
from showhow.app.pages.worlds.import_world import show_import_dialog
from showhow.app.pages.worlds.questions import show_next_steps, show_project_button, show_world_questions
from showhow.app.pages.worlds.world_choice import SelectedWorld, choose_world, show_world_overview
from showhow.app.removals import rename_world
from showhow.app.widgets.job_panel import show_world_jobs
from showhow.app.widgets.manage import NameForm, show_manage_button, show_removal_notice
from showhow.app.widgets.page_layout import choose_view, errors_shown, show_head, show_title
from showhow.app.widgets.person import acting_services
from showhow.app.widgets.url_state import WORLD_VIEWS
from showhow.db.models import User
from showhow.db.removal.removal_kinds import Kind
from showhow.fiction.questions.question_file import QUESTIONS_FILE
from showhow.runs.services import Services
from showhow.worlds.source import SourceError


def show_header(services: Services, person: User) -> None:
    """Draw the top of the page, with the buttons of an administrator."""
    is_administrator = "admin" in person.roles
    note = "" if is_administrator else " An administrator of this server can generate and import worlds."
    with show_head("Worlds", f"The texts, graphs and web pages that tools search.{note}"):
        if not is_administrator:
            return
        if st.button("Generate a world", key="generate", shortcut="Alt+G", icon=":material/add:"):
            show_generate_dialog(services, person)
        if st.button("Import a world", key="import", shortcut="Alt+I", icon=":material/upload:"):
            show_import_dialog(services, person)


def show_world(world: SelectedWorld, person: User) -> None:
    """Draw the selected view of the world, or the error of a source that does not answer."""
    with errors_shown(SourceError):
        show_view(world, person)


def _show_manage(world: SelectedWorld) -> None:
    def save(name: str, _: str) -> None:
        rename_world(world.services, world.name, name)
        st.query_params["world"] = name

    show_manage_button(world.services, Kind.WORLD, world.name, NameForm(world.name, save), parameters=["world"])


def show_view(world: SelectedWorld, person: User) -> None:
    """Draw the selected view of the world."""
    with st.container(horizontal=True, vertical_alignment="center"):
        show_title(world.name)
        if "admin" in person.roles:
            _show_manage(world)
    match choose_view(WORLD_VIEWS):
        case "look":
            show_world_explorer(world)
        case "query" if not person.roles:
            st.info("Whoever has a role can query the graph here.")
        case "query":
            show_console(world)
        case "questions":
            show_world_questions(world, person)
        case _:
            if (world.folder / QUESTIONS_FILE).is_file():
                show_project_button(world, person)
            else:
                show_next_steps(world, person)
            show_world_overview(world)


services, person = acting_services()
show_removal_notice()
show_header(services, person)
show_world_jobs(for_administrator="admin" in person.roles)
left, right = st.columns([1, 3.4], gap="medium")
with left, st.container(key="list"):
    world = choose_world(services)
with right:
    if world is None:
        st.info(
            "There is no world yet. Generate one (a thousand fictional people take some seconds), import articles or a "
            "graph, or add a live world with `showhow world add NAME --preset wikipedia`."
        )
    else:
        show_world(world, person)
