"""The state of the Ask, Worlds and Library pages in the URL, so that a reload or a shared link shows the same view."""

from uuid import UUID

import streamlit as st

LIBRARY_VIEWS = {
    "demonstrations": "Demonstrations",
    "overview": "Overview",
    "choose": "Choose",
    "usage": "Usage",
    "compare": "Compare",
    "drift": "Drift",
}
APPROVED = "approved"
"""The reference of all approved traces; a version's is NAME:NUMBER."""
FIRST, LAST = "first", "last"
"""References to the first and the last demonstration on the current page of the list."""


def go_to_library(reference: str) -> None:
    """Open that version, or all approved traces, in the current view."""
    clear_url_parameters("demonstration", "from")
    st.query_params["library"] = reference


def go_to_demonstration(reference: str, start: int) -> None:
    """Open a demonstration on the page of the list that begins at offset `start`."""
    st.query_params.update({"demonstration": reference, "from": str(start)})


def reset_list() -> None:
    """Return to the start of the list, such as after a change of the filter."""
    clear_url_parameters("demonstration", "from")


def list_start() -> int:
    """The offset of the current page of the list."""
    offset = str(st.query_params.get("from", ""))
    return int(offset) if offset.isascii() and offset.isdecimal() and len(offset) < 10 else 0


WORLD_VIEWS = {"overview": "Overview", "look": "Look around", "query": "Query", "questions": "Questions"}
WORLD_PARAMETERS = ("view", "title", "entity", "page", "question")
"""Parameters that refer to one world; they are removed when another world is opened."""


def get_url_parameter(name: str) -> str:
    """The value of the URL parameter; "" if it is absent."""
    return str(st.query_params.get(name, ""))


def go_to_world(name: str) -> None:
    """Open that world at its first view."""
    clear_url_parameters(*WORLD_PARAMETERS)
    st.query_params["world"] = name


def go_to_view(view: str) -> None:
    """Open that view."""
    st.query_params["view"] = view


def go_to_entity(entity: str) -> None:
    """Open an entity in the explorer."""
    clear_url_parameters("title", "page")
    st.query_params.update({"view": "look", "entity": entity})


def go_to_article(title: str) -> None:
    """Open an article in the explorer."""
    clear_url_parameters("entity", "page")
    st.query_params.update({"view": "look", "title": title})


def go_to_page(address: str) -> None:
    """Open a web page in the explorer."""
    clear_url_parameters("title", "entity")
    st.query_params.update({"view": "look", "page": address})


def go_to_question(question: str) -> None:
    """Open a question."""
    st.query_params.update({"view": "questions", "question": question})


def clear_url_parameters(*names: str) -> None:
    """Remove these parameters from the URL."""
    for name in names:
        st.query_params.pop(name, None)


def open_run(trace_id: UUID) -> None:
    """Put the run into the link of the page."""
    st.query_params["trace"] = str(trace_id)
    st.query_params.pop("step", None)
