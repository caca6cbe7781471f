"""The navigation: the table of pages, their roles and their shortcuts.

To add a page: write `<name>.py` here, or `page.py` in a folder of its parts, its help in `docs/pages/<name>.md`, and
add one entry to `PAGES`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from showhow.app.documentation import HELP_PATH, read_help_page
from showhow.app.streamlit_sessions import pop_notice
from showhow.app.widgets.page_layout import (
    STATIC_FOLDER,
    PageHelp,
    apply_style_sheet,
    listen_for_keys,
    release_removed_widgets,
    show_help_button,
)
from showhow.app.widgets.person import (
    acting_services,
    ask_for_confirmation,
    confirmation_cookies,
    is_confirmed,
    show_invitation,
    show_user_menu,
)
from showhow.app.widgets.queue import current_project, show_missing_project
from showhow.app.widgets.tour import TOUR_COOKIE, is_tour_ended, show_tour
from showhow.app.widgets.url_state import LIBRARY_VIEWS, WORLD_VIEWS, clear_url_parameters
from showhow.db.database import Database
from showhow.db.models import User
from showhow.db.people.users import ROLES
from showhow.db.questions import projects
from showhow.db.review.studies import OPEN, list_studies
from showhow.fewshot_library.encoder import SentenceEncoder


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One page of the navigation; `name` is that of its script or its folder, and the path of its URL."""

    name: str
    title: str
    icon: str
    roles: frozenset[str] = frozenset()
    """The roles that may see the page; empty for all users."""
    shortcuts: Mapping[str, str] = field(default_factory=dict)
    """What each key does on the page; the page's help lists them."""

    @property
    def script(self) -> str:
        """The file of the page, relative to this folder: a page with parts has a folder for them."""
        script = f"{self.name}.py"
        return script if (Path(__file__).parent / script).is_file() else f"{self.name}/page.py"


PAGES = (
    PageEntry(
        "annotate",
        "Annotate",
        ":material/edit_note:",
        shortcuts={
            "Ctrl+Enter": "Run the step, or submit the answer",
            "Ctrl+Shift+Enter": "Go to the answer form, and back to the steps",
            "Alt+1, Alt+2 …": "Choose the tool, in the order of the buttons; Alt+0 for the tenth",
            "1 … 5": "Rate the last observation: right after Run, and outside of text fields",
            "Alt+Shift+1 … 5": "Rate the last observation while you write",
            "Alt+T": "Go to the thought",
            "Alt+Z": "Undo the last step",
            "Alt+Y": "Redo the undone step",
            "Alt+B": "Start over the repair of an agent's answer",
            "Alt+X": "Fix your returned work in a new draft",
            "Alt+L": "Leave the draft for later, and open the next question",
            "Alt+K": "Skip the question",
            "Alt+N": "Add a question of your own, where the project allows it",
            "Alt+E": "Repairs: wrong answers of a verification, to take one",
            "Alt+G": "Guidelines",
            "Alt+Q": "My work",
            "Alt+H": "History of the trace",
        },
    ),
    PageEntry(
        "ask",
        "Ask",
        ":material/forum:",
        shortcuts={
            "Ctrl+Enter": "Ask",
            "Alt+S": "Stop the run",
            "Alt+A": "Ask again",
            "Alt+X": "Fix this: continue yourself from the steps of the run",
            "Alt+Enter": "Send the reply of the skill that you play",
        },
    ),
    PageEntry(
        "review",
        "Review",
        ":material/rule:",
        frozenset({"reviewer", "admin"}),
        shortcuts={
            "Alt+A": "Approve the trace",
            "Alt+J": "Return the trace to its author",
            "Alt+N": "Open the next trace without a decision",
            "Alt+Z": "Undo the last decision",
            "Alt+L": "Approve several traces",
            "Alt+H": "History of the trace",
        },
    ),
    PageEntry(
        "judge",
        "Judge",
        ":material/balance:",
        frozenset(ROLES),
        shortcuts={
            "1 … 4": "Rate the answer, in the order of the buttons",
            "←, ↓, →": "Prefer the left answer, neither, or the right one",
            "Alt+Z": "Undo the last click, also of the pair before",
        },
    ),
    PageEntry(
        "project",
        "Project",
        ":material/folder_open:",
        shortcuts={
            "Alt+1 … Alt+4": "Choose the view of the project",
            "Alt+N": "Create a project",
            "Alt+U": "Import questions",
            "Alt+I": "Import traces",
            "Alt+E": "Export traces",
            "Alt+M": "Members and their roles",
            "Ctrl+Enter": "Save the settings",
        },
    ),
    PageEntry(
        "library",
        "Library",
        ":material/auto_stories:",
        shortcuts={
            "Alt+L": "Freeze a version",
            f"Alt+1 … Alt+{len(LIBRARY_VIEWS)}": "Choose the view of the library",
            "Alt+N, Alt+P": "Open the next or the previous demonstration",
            "Alt+E": "Export the listed demonstrations",
        },
    ),
    PageEntry(
        "verify",
        "Verify",
        ":material/fact_check:",
        shortcuts={
            "Alt+V": "Verify the project's questions",
            "Alt+F": "Freeze the approved repairs and ask the failures again",
        },
    ),
    PageEntry(
        "compare",
        "Compare",
        ":material/compare_arrows:",
        shortcuts={"Alt+N, Alt+P": "Open the traces of the next or the previous question"},
    ),
    PageEntry(
        "worlds",
        "Worlds",
        ":material/public:",
        shortcuts={
            "Alt+G": "Generate a world",
            "Alt+I": "Import a world",
            f"Alt+1 … Alt+{len(WORLD_VIEWS)}": "Choose the view of the world",
            "Ctrl+Enter": "Run the query",
            "Alt+N, Alt+P": "Open the next or the previous question",
            "Alt+A": "Annotate the open question",
            "Alt+U": "Import questions",
        },
    ),
    PageEntry("tools", "Tools", ":material/build:", shortcuts={"Alt+1, Alt+2": "Choose the view"}),
    PageEntry(
        "settings",
        "Settings",
        ":material/settings:",
        shortcuts={
            "Alt+1 … Alt+3": "Choose the view of the settings",
            "Alt+N": "Add a model profile",
            "Alt+V": "Test the connection",
            "Ctrl+Enter": "Save the profile",
            "Alt+U": "Back up now",
        },
    ),
)
"""The pages in the order of the navigation; the first one opens by default."""
ENCODER_NOTICE = "The encoder is loading in the background. Steps that rank sentences wait for it, once."


def help_of(name: str) -> PageHelp:
    """Return the help of the page with that name: docs/pages has a page of the documentation for each."""
    page = read_help_page(f"pages/{name}.md")
    shortcuts = next(entry.shortcuts for entry in PAGES if entry.name == name)
    return PageHelp(shortcuts, page.html, f"{HELP_PATH}/{page.path}")


def list_pages(roles: Iterable[str], entries: Sequence[PageEntry] = PAGES) -> list[PageEntry]:
    """Return the pages that a person with these roles may see."""
    return [entry for entry in entries if not entry.roles or entry.roles & set(roles)]


def _has_open_study(database: Database) -> bool:
    """Whether people judge a study of the current project now: only then the navigation has room for it."""
    project = current_project(database)
    with database.read() as session:
        return project is not None and bool(list_studies(session, project.id, OPEN))


def announce_encoder(encoder: SentenceEncoder) -> None:
    """Say once in a session that the encoder is still loading; some models take seconds."""
    if not encoder.is_loaded and not st.session_state.setdefault("encoder_announced", False):
        st.session_state["encoder_announced"] = True
        st.toast(ENCODER_NOTICE, icon=":material/hourglass_top:")


def open_page(name: str, person: User) -> None:
    """Open the page of that name, unless the person may not see it."""
    entry = next((entry for entry in list_pages(person.roles) if entry.name == name), None)
    if entry is not None:
        kept = {key: st.query_params[key] for key in ("you", "project") if key in st.query_params}
        st.switch_page(entry.script, query_params=kept)


def _show_product_header(database: Database, person: User, help_of_page: PageHelp) -> None:
    """Draw the top of every page beside the navigation: the project, the help and the person."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="product_header"):
        _choose_project(database)
        show_help_button(help_of_page)
        show_user_menu(person)


def _choose_project(database: Database) -> None:
    """Draw a select box of the projects."""
    with database.read() as session:
        names = [project.name for project in projects.list_projects(session)]
    project = current_project(database)
    if project is None:
        return
    # The link is the truth: a new choice is in it before the page is drawn again.
    if st.session_state.get("project_name") != project.name:
        st.session_state["project_name"] = project.name
    st.selectbox(
        "Current project", names, key="project_name", label_visibility="collapsed", width=210, on_change=_change_project
    )


def _change_project() -> None:
    st.query_params["project"] = st.session_state["project_name"]
    clear_url_parameters("trace", "question")


def show_navigation() -> None:
    """Draw the navigation and run the selected page."""
    st.set_page_config(page_icon=str(STATIC_FOLDER / "icon.svg"), layout="wide")
    st.logo(STATIC_FOLDER / "logo.svg")
    apply_style_sheet()
    release_removed_widgets()
    services, person = acting_services()
    database = services.database
    confirmed = is_confirmed(services, person.name)
    has_study = _has_open_study(database)
    pages = [
        st.Page(
            entry.script,
            url_path=entry.name,
            title=entry.title,
            icon=entry.icon,
            default=entry is PAGES[0],
            visibility="hidden" if entry.name == "judge" and not has_study else "visible",
        )
        for entry in list_pages(person.roles)
    ]
    page = st.navigation(pages, position="top" if confirmed else "hidden")
    st.set_page_config(page_title=f"{page.title} · Showhow" if confirmed else "Showhow")
    if (notice := pop_notice()) is not None:
        st.error(notice)
    if confirmed:
        announce_encoder(services.encoder)
        # The first page has the root as its path.
        _show_product_header(database, person, help_of(page.url_path or PAGES[0].name))
        if (name := show_tour(database, person)) is not None:
            open_page(name, person)
        show_missing_project(database)
        show_invitation(person)
        page.run()
    else:
        ask_for_confirmation(database, person, current_project(database))
    cookies = {TOUR_COOKIE: "ended"} if is_tour_ended() else {}
    listen_for_keys(page.title, cookies | confirmation_cookies(services.settings.home, person.name))


# Streamlit runs this file as a script; tests import it.
if __name__ == "__main__":
    show_navigation()
