"""Parts that every page has: the style sheet, the sheet of shortcuts, and the buttons of a page's views."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import streamlit as st

from app.widgets.plain_text import escape_html
from app.widgets.url_state import get_url_parameter, go_to_view


def choose_view(heading: str, views: Mapping[str, str]) -> str:
    """Draw the heading and one button per view; gives the open view, the first unless the link names another."""
    chosen = get_url_parameter("view") if get_url_parameter("view") in views else next(iter(views))
    st.html(f'<h1 class="world">{escape_html(heading)}</h1>')
    with st.container(horizontal=True, gap="small", key="views"):
        for number, (view, title) in enumerate(views.items(), 1):
            st.button(
                title,
                key=f"view_{view}",
                type="primary" if view == chosen else "secondary",
                shortcut=f"Alt+{number}",
                on_click=go_to_view,
                args=(view,),
            )
    return chosen


STATIC_FOLDER = Path(__file__).with_name("static")


@cache
def read_asset(name: str) -> str:
    """The text of a file in app/widgets/static."""
    return (STATIC_FOLDER / name).read_text(encoding="utf-8")


def apply_style_sheet() -> None:
    """Put the style sheet on the page."""
    st.html(f"<style>{read_asset('page.css')}</style>")


def show_keys_button(keys: Mapping[str, str]) -> None:
    """Draw the button that opens the sheet of shortcuts."""
    if st.button("Shortcuts `?`", key="keys", icon=":material/keyboard:"):
        _show_keys_dialog(keys)


def listen_for_keys() -> None:
    """Listen for keys that Streamlit's button shortcuts cannot express or miss inside text fields."""
    st.components.v2.component("showhow_page_keys", js=read_asset("page_keys.js"))(key="page_keys", height=1)


@st.dialog("Shortcuts")
def _show_keys_dialog(keys: Mapping[str, str]) -> None:
    """Show what each key of the page does."""
    st.table({"Key": [f"`{key}`" for key in keys], "What it does": list(keys.values())}, hide_index=True)
