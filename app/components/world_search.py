"""Searching a world's articles, its web pages or, where it has neither, its graph."""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from app.components.places import go_to_article, go_to_entity, go_to_page
from app.components.plain import plain
from worlds.live.description import LIVE
from worlds.source import World
from worlds.text import EmbeddedText

HITS = 8
BEGINNINGS = 10


@dataclass(frozen=True, slots=True)
class Found:
    """One thing found and where a click on it leads."""

    title: str
    note: str
    go: Callable[[str], None]
    to: str
    relaxed: bool = False


def search_world(sources: World) -> None:
    """The search box and what is found with it."""
    places = _places(sources)
    if not places:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = st.text_input(
            "Search",
            key=f"search_{sources.name}",
            placeholder="A name, or words of a sentence",
            icon=":material/search:",
        )
        among = next(iter(places))
        if len(places) > 1:
            among = st.segmented_control(
                "Among", list(places), default=among, key=f"among_{sources.name}", required=True, width="content"
            )
    if query.strip():
        _show(places[among](query))


def suggest(sources: World) -> None:
    """Something to begin with on a page where nothing is chosen yet."""
    if sources.about.get("kind") == LIVE:
        st.caption("Search above for a name or a question; a live world is asked nothing before you do.")
        return
    found = _first(sources)
    if not found:
        return
    st.caption("Search above, or begin with one of these:")
    with st.container(horizontal=True, gap="small", key="beginnings"):
        for place, one in enumerate(found):
            st.button(plain(one.title), key=f"begin_{place}", on_click=one.go, args=(one.to,))


def _places(sources: World) -> dict[str, Callable[[str], list[Found]]]:
    text, web, graph = sources.text, sources.web, sources.graph
    found: dict[str, Callable[[str], list[Found]]] = {}
    if text is not None:
        found["articles"] = lambda query: [
            Found(hit.title, hit.snippet, go_to_article, hit.title, hit.relaxed) for hit in text.search(query, HITS)
        ]
    if web is not None:
        found["web pages"] = lambda query: [
            Found(hit.title, f"{_bare(hit.address)}: {hit.snippet}", go_to_page, hit.address, hit.relaxed)
            for hit in web.search(query, HITS)
        ]
    if graph is not None:
        found["entities"] = lambda query: [
            Found(one.label, f"{one.id} {one.description or ''}", go_to_entity, one.id)
            for one in graph.find(query, HITS)
        ]
    return found


def _bare(address: str) -> str:
    # With its scheme it would be drawn as a link out of the world.
    return address.partition("://")[2] or address


def _show(found: list[Found]) -> None:
    if not found:
        st.caption("Nothing is found; try fewer words, or another name.")
        return
    if all(one.relaxed for one in found):
        st.caption("Nothing has all of the words; these have some.")
    with st.container(key="hits", gap="small", height=230 if len(found) > 3 else "content"):
        for place, one in enumerate(found):
            with st.container(gap=None):
                st.button(plain(one.title), key=f"hit_{place}", type="tertiary", on_click=one.go, args=(one.to,))
                st.caption(plain(one.note))


def _first(sources: World) -> list[Found]:
    if isinstance(sources.text, EmbeddedText):
        titles = dict.fromkeys(sources.text.first(BEGINNINGS))
        return [Found(title, "", go_to_article, title) for title in titles]
    if sources.graph is None or not sources.graph.vocabulary():
        return []
    table = sources.graph.query(f"SELECT DISTINCT ?one WHERE {{ ?one rdfs:label ?name }} LIMIT {BEGINNINGS}")
    ids = [row[0].value for row in table.rows if row[0] is not None]
    return [Found(one.label, "", go_to_entity, one.id) for one in sources.graph.entities(ids)]
