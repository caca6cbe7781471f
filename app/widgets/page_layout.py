"""Parts of every page: its head, style sheet, help, theme, the buttons of its views, and text without markup."""

import html
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from showhow.app.widgets.url_state import get_url_parameter, go_to_view
from showhow.tools.registry import name_tools_by_title

_TECHNICAL_NAME = re.compile(r"\S+[._/\\]\w")
_CODE = re.compile(r"(`(?:showhow |\?you=)[^`]{1,200}`)")
"""A first word such as questions.jsonl, a/path or a_name."""


def show_head(title: str, note: str = "") -> DeltaGenerator:
    """Draw the head of a page, its title and a note in Markdown; returns the container of the actions to the right."""
    with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.html(f'<h1 class="world">{escape_html(title)}</h1>', width="content")
        if note:
            st.caption(note, width="stretch")
        else:
            st.space("stretch")
        return st.container(horizontal=True, gap="small", width="content")


def show_title(title: str) -> None:
    """Draw the title of what is selected on a page."""
    st.html(f'<h2 class="world">{escape_html(title)}</h2>')


def choose_view(views: Mapping[str, str]) -> str:
    """Draw one button per view; returns the view in the link, else the first one."""
    chosen = get_url_parameter("view") if get_url_parameter("view") in views else next(iter(views))
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
    """Add the style sheet to the page."""
    st.html(f"<style>{read_asset('page.css')}</style>")


def release_removed_widgets() -> None:
    """Release the callbacks of widgets that no page of this session shows any more, with the records that they hold.

    Streamlit keeps them until the session ends, so that a session that opens many traces would keep all of them.
    """
    context = get_script_run_ctx()
    if context is None:
        return
    # There is no public way to the state of widgets.
    with context.session_state._lock:
        state = context.session_state._state
        widgets = state._new_widget_state
        removed = widgets.widget_metadata.keys() - widgets.states.keys() - state._old_state.keys()
        for widget_id in removed:
            del widgets.widget_metadata[widget_id]


@dataclass(frozen=True, slots=True)
class PageHelp:
    """What `?` shows on a page: its shortcuts, its page of the documentation as HTML, and the link to that page."""

    shortcuts: Mapping[str, str]
    html: str
    link: str


def show_help_button(help_of_page: PageHelp) -> None:
    """Draw the button that opens the help of the page."""
    if st.button("Help `?`", key="keys", icon=":material/help:"):
        _show_help_dialog(help_of_page)


SHORTCUTS_COOKIE = "showhow_shortcuts"
"""The cookie, and the value of the session, that say whether the shortcuts of pages are on."""


def shortcuts_are_on() -> bool:
    """Whether this browser uses the shortcuts of pages."""
    return bool(st.session_state.get(SHORTCUTS_COOKIE, st.context.cookies.get(SHORTCUTS_COOKIE) != "off"))


THEME_COOKIE = "showhow_theme"
"""The cookie, and the value of the session, with the theme of this browser; first.js reads it."""
THEMES = {"system": "System", "light": "Light", "dark": "Dark"}


def chosen_theme() -> str:
    """The theme of THEMES that this browser has chosen."""
    theme = st.session_state.get(THEME_COOKIE, st.context.cookies.get(THEME_COOKIE))
    return theme if theme in THEMES else "system"


def choose_theme(key: str) -> None:
    """Draw the choice between the theme of the system, the light and the dark one."""
    if st.session_state.get(key) != chosen_theme():
        st.session_state[key] = chosen_theme()
    st.segmented_control(
        "Theme",
        list(THEMES),
        key=key,
        format_func=THEMES.__getitem__,
        on_change=_store_theme,
        args=(key,),
        required=True,
    )


def _store_theme(key: str) -> None:
    st.session_state[THEME_COOKIE] = st.session_state[key]


def listen_for_keys(page: str, cookies: Mapping[str, str]) -> None:
    """Handle the keys that Streamlit's button shortcuts cannot express, or that they miss inside text fields.

    The browser stores the cookies for a year, and runs the page anew once it has reached a lost server again.
    """
    keys = st.components.v2.component("showhow_page_keys", js=read_asset("page_keys.js"))
    stored = {**cookies, SHORTCUTS_COOKIE: "on" if shortcuts_are_on() else "off", THEME_COOKIE: chosen_theme()}
    data = {"page": page, "cookies": stored, "off": not shortcuts_are_on()}
    keys(data=data, key="page_keys", height=1, on_rerun_change=lambda: None)


@st.dialog("Help", width="large")
def _show_help_dialog(help_of_page: PageHelp) -> None:
    with st.container(key="help"):
        st.html(help_of_page.html)
        st.link_button("All of the documentation", help_of_page.link, icon=":material/menu_book:")
        actions = {**help_of_page.shortcuts, "?": "This help"}
        st.markdown("**Shortcuts**")
        st.table({"Key": [f"`{key}`" for key in actions], "Action": list(actions.values())}, hide_index=True)


MARKDOWN_CHARACTERS = frozenset(r"\`*_{}[]()#+-.!|<>:$~")


def escape_markdown(text: str) -> str:
    """Escape the text for Markdown, on one line."""
    return escape_markdown_part(" ".join(text.split()))


def escape_markdown_part(text: str) -> str:
    """Escape a part of a line, with the spaces at its ends."""
    return "".join(f"\\{c}" if c in MARKDOWN_CHARACTERS else c for c in text)


def format_sentence(message: str) -> str:
    """Format an error message as a sentence for Markdown: escaped, with a capital letter and a full stop.

    Tools have their titles, since models read these messages too, with their names.
    A name of a file or of code at its start stays as it is; a verb or a part of an address in `backticks` becomes code.
    """
    text = name_tools_by_title(message.strip())
    if not text:
        return ""
    first_letter = text[0] if _TECHNICAL_NAME.match(text) else text[0].upper()
    sentence = " ".join(f"{first_letter}{text[1:]}{'' if text[-1] in '.!?' else '.'}".split())
    # Every second part is code, in which Markdown means nothing.
    parts = enumerate(_CODE.split(sentence))
    return "".join(part if place % 2 else escape_markdown_part(part) for place, part in parts)


@contextmanager
def errors_shown(*kinds: type[Exception]) -> Iterator[None]:
    """Draw an error of these kinds in place of the rest of the block."""
    try:
        yield
    except kinds as error:
        st.error(format_sentence(str(error)))


MINUTE, HOUR, DAY = 60, 3_600, 86_400


def format_when(moment: datetime) -> str:
    """Format a time for people: relative within a day, else in the zone of the person's browser."""
    seconds = int((datetime.now(UTC) - moment).total_seconds())
    if 0 <= seconds < DAY:
        if seconds < MINUTE:
            return "just now"
        return f"{seconds // MINUTE} min ago" if seconds < HOUR else f"{seconds // HOUR} h ago"
    return f"{moment.astimezone(browser_zone()):%d %b %Y %H:%M}"


def browser_zone() -> ZoneInfo:
    """The time zone of the person's browser; UTC if it names none that is known here."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def escape_html(text: str) -> str:
    """Escape the text for HTML."""
    return html.escape(text)
