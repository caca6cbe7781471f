"""What every page wears: the style sheet and the sheet of keys."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import streamlit as st

STATIC = Path(__file__).with_name("static")


@cache
def asset(name: str) -> str:
    """The text of a file in components/static."""
    return (STATIC / name).read_text(encoding="utf-8")


def dress() -> None:
    """Put the style sheet on the page."""
    st.html(f"<style>{asset('page.css')}</style>")


def keys_door(keys: Mapping[str, str]) -> None:
    """The button that opens the sheet of keys."""
    if st.button("Keys `?`", key="keys", icon=":material/keyboard:"):
        _show_keys(keys)


def listen_for_keys() -> None:
    """Listen for the keys that a button's own shortcut cannot be, or does not hear everywhere."""
    st.components.v2.component("showhow_page_keys", js=asset("page_keys.js"))(key="page_keys", height=1)


@st.dialog("Keys")
def _show_keys(keys: Mapping[str, str]) -> None:
    """The sheet: what each key of the page does."""
    st.table({"Key": [f"`{key}`" for key in keys], "What it does": list(keys.values())}, hide_index=True)
