"""The navigation: the pages, and which of them the person may see.

To add a page: write `page.py` in a folder of its own here, and add one line to `PAGES`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import streamlit as st

from app.services import services
from app.widgets.page_layout import STATIC_FOLDER, apply_style_sheet, listen_for_keys
from app.widgets.person import current_user


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One page of the navigation; `folder` is its folder and the path of its URL."""

    folder: str
    title: str
    icon: str
    roles: frozenset[str] = frozenset()
    """The roles that may see the page; empty for everybody."""


PAGES = (
    PageEntry("annotate", "Annotate", ":material/edit_note:"),
    PageEntry("ask", "Ask", ":material/forum:"),
    PageEntry("review", "Review", ":material/rule:", frozenset({"reviewer", "admin"})),
    PageEntry("library", "Library", ":material/auto_stories:"),
    PageEntry("verify", "Verify", ":material/fact_check:"),
    PageEntry("worlds", "Worlds", ":material/public:"),
    PageEntry("tools", "Tools", ":material/build:"),
)
"""The pages in the order of the navigation; the first one opens by default."""


def list_pages(roles: Iterable[str], entries: Sequence[PageEntry] = PAGES) -> list[PageEntry]:
    """The pages that a person with these roles may see."""
    return [entry for entry in entries if not entry.roles or entry.roles & set(roles)]


def show_navigation() -> None:
    """Draw the navigation and run the selected page."""
    st.set_page_config(page_title="Showhow", page_icon=str(STATIC_FOLDER / "icon.svg"), layout="wide")
    apply_style_sheet()
    person = current_user(services().database)
    pages = [
        st.Page(
            f"{entry.folder}/page.py",
            url_path=entry.folder,
            title=entry.title,
            icon=entry.icon,
            default=entry is PAGES[0],
        )
        for entry in list_pages(person.roles)
    ]
    st.navigation(pages, position="top").run()
    listen_for_keys()


# Streamlit runs this file as a script; tests import it.
if __name__ == "__main__":
    show_navigation()
