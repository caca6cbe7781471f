"""Where on the Worlds page one is: the address says it, so that a reload and a link come back to it.

Where on the Library page one is: the address says it, so that a reload and a link come back to it.
"""

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
"""What the address calls all approved traces; a version is named NAME:NUMBER."""
FIRST, LAST = "first", "last"
"""Of the page of the list."""


def go_to_library(reference: str) -> None:
    """Have the address name that version, or all approved traces, in the view that is open."""
    clear_url_parameters("demonstration", "from")
    st.query_params["library"] = reference


def go_to_demonstration(which: str, start: int) -> None:
    """Have the address name a demonstration and where the page of the list begins."""
    st.query_params.update({"demonstration": which, "from": str(start)})


def reset_list() -> None:
    """Begin the list anew, as after a filter has changed."""
    clear_url_parameters("demonstration", "from")


def list_start() -> int:
    """Where the page of the list begins."""
    told = str(st.query_params.get("from", ""))
    return int(told) if told.isascii() and told.isdecimal() and len(told) < 10 else 0


WORLD_VIEWS = {"overview": "Overview", "look": "Look around", "query": "Query", "questions": "Questions"}
WORLD_PARAMETERS = ("view", "title", "entity", "page", "question")
"""What the address says of a place in one world and means nothing in another."""


def get_url_parameter(place: str) -> str:
    """What the address says of a place; "" when it says nothing."""
    return str(st.query_params.get(place, ""))


def go_to_world(name: str) -> None:
    """Have the address name that world, at its first view."""
    clear_url_parameters(*WORLD_PARAMETERS)
    st.query_params["world"] = name


def go_to_view(view: str) -> None:
    """Have the address name that view of what is open."""
    st.query_params["view"] = view


def go_to_entity(entity: str) -> None:
    """Have the address name an entity to look at, whichever article it has."""
    clear_url_parameters("title", "page")
    st.query_params.update({"view": "look", "entity": entity})


def go_to_article(title: str) -> None:
    """Have the address name an article to look at, whichever entity it is about."""
    clear_url_parameters("entity", "page")
    st.query_params.update({"view": "look", "title": title})


def go_to_page(address: str) -> None:
    """Have the address name a web page to look at."""
    clear_url_parameters("title", "entity")
    st.query_params.update({"view": "look", "page": address})


def go_to_question(question: str) -> None:
    """Have the address name a question to open."""
    st.query_params.update({"view": "questions", "question": question})


def clear_url_parameters(*places: str) -> None:
    """Let the address say nothing of these."""
    for place in places:
        st.query_params.pop(place, None)
