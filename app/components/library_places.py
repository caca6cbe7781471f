"""Where on the Library page one is: the address says it, so that a reload and a link come back to it."""

import streamlit as st

from app.components.places import forget

VIEWS = {
    "demonstrations": "Demonstrations",
    "overview": "Overview",
    "choose": "Choose",
    "usage": "Usage",
    "compare": "Compare",
    "drift": "Drift",
}
APPROVED = "approved"
"""What the address calls all approved traces; a version is named NAME:NUMBER."""
FIRST, LAST = "first", "last"
"""Of the page of the list."""


def go_to_library(reference: str) -> None:
    """Have the address name that version, or all approved traces, in the view that is open."""
    forget("demonstration", "from")
    st.query_params["library"] = reference


def go_to_demonstration(which: str, start: int) -> None:
    """Have the address name a demonstration and where the page of the list begins."""
    st.query_params.update({"demonstration": which, "from": str(start)})


def back_to_the_first() -> None:
    """Begin the list anew, as after a filter has changed."""
    forget("demonstration", "from")


def list_start() -> int:
    """Where the page of the list begins."""
    told = str(st.query_params.get("from", ""))
    return int(told) if told.isascii() and told.isdecimal() and len(told) < 10 else 0
