"""Where on the Worlds page one is: the address says it, so that a reload and a link come back to it."""

import streamlit as st

VIEWS = {"overview": "Overview", "look": "Look around", "query": "Query", "questions": "Questions"}
PLACES = ("view", "title", "entity", "page", "question")
"""What the address says of a place in one world and means nothing in another."""


def here(place: str) -> str:
    """What the address says of a place; "" when it says nothing."""
    return str(st.query_params.get(place, ""))


def go_to_world(name: str) -> None:
    """Have the address name that world, at its first view."""
    forget(*PLACES)
    st.query_params["world"] = name


def go_to_view(view: str) -> None:
    """Have the address name that view of what is open."""
    st.query_params["view"] = view


def go_to_entity(entity: str) -> None:
    """Have the address name an entity to look at, whichever article it has."""
    forget("title", "page")
    st.query_params.update({"view": "look", "entity": entity})


def go_to_article(title: str) -> None:
    """Have the address name an article to look at, whichever entity it is about."""
    forget("entity", "page")
    st.query_params.update({"view": "look", "title": title})


def go_to_page(address: str) -> None:
    """Have the address name a web page to look at."""
    forget("title", "entity")
    st.query_params.update({"view": "look", "page": address})


def go_to_question(question: str) -> None:
    """Have the address name a question to open."""
    st.query_params.update({"view": "questions", "question": question})


def forget(*places: str) -> None:
    """Let the address say nothing of these."""
    for place in places:
        st.query_params.pop(place, None)
