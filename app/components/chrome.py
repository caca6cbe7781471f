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


@st.dialog("Keys")
def show_keys(keys: Mapping[str, str]) -> None:
    """The sheet of a page's keys: what each does."""
    st.table({"Key": [f"`{key}`" for key in keys], "What it does": list(keys.values())}, hide_index=True)
