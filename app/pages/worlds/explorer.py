"""World explorer: search, an article or web page next to the graph facts of its entity, and family trees."""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from app.pages.worlds.diagrams import show_family, show_neighbourhood
from app.pages.worlds.selected import SelectedWorld
from app.widgets.plain_text import escape_html, escape_markdown
from app.widgets.table import TableCell, show_table
from app.widgets.url_state import get_url_parameter, go_to_article, go_to_entity, go_to_page
from fiction.family import Family, GraphKinshipSource, build_family, build_universe_family
from worlds.embedded.text import EmbeddedText
from worlds.live.description import LIVE_KIND
from worlds.neighbourhood import load_neighbourhood
from worlds.source import Article, GraphSource, NotFound, SourceError, World

MAX_HITS = 8
MAX_SUGGESTIONS = 10


@dataclass(frozen=True, slots=True)
class WorldSearchResult:
    """A search result and the action of a click on it."""

    title: str
    note: str
    on_open: Callable[[str], None]
    target: str
    relaxed: bool = False


def show_world_search(sources: World) -> None:
    """Show the search box and its results."""
    places = _searchable_sources(sources)
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
        _show_results(places[among](query))


def show_suggestions(sources: World) -> None:
    """Show suggestions while nothing is selected."""
    if sources.metadata.get("kind") == LIVE_KIND:
        st.caption("Search above for a name or a question. A live world is only queried when you search.")
        return
    suggestions = _first_items(sources)
    if not suggestions:
        return
    st.caption("Search above, or start with one of these:")
    with st.container(horizontal=True, gap="small", key="beginnings"):
        for place, one in enumerate(suggestions):
            st.button(escape_markdown(one.title), key=f"begin_{place}", on_click=one.on_open, args=(one.target,))


def _searchable_sources(sources: World) -> dict[str, Callable[[str], list[WorldSearchResult]]]:
    text, web, graph = sources.text, sources.web, sources.graph
    searches: dict[str, Callable[[str], list[WorldSearchResult]]] = {}
    if text is not None:
        searches["articles"] = lambda query: [
            WorldSearchResult(hit.title, hit.snippet, go_to_article, hit.title, hit.relaxed)
            for hit in text.search(query, MAX_HITS)
        ]
    if web is not None:
        searches["web pages"] = lambda query: [
            WorldSearchResult(
                hit.title, f"{_strip_scheme(hit.address)}: {hit.snippet}", go_to_page, hit.address, hit.relaxed
            )
            for hit in web.search(query, MAX_HITS)
        ]
    if graph is not None:
        searches["entities"] = lambda query: [
            WorldSearchResult(one.label, f"{one.id} {one.description or ''}", go_to_entity, one.id)
            for one in graph.find(query, MAX_HITS)
        ]
    return searches


def _strip_scheme(address: str) -> str:
    # With its scheme, Markdown would render it as an external link.
    return address.partition("://")[2] or address


def _show_results(results: list[WorldSearchResult]) -> None:
    if not results:
        st.caption("No results. Try fewer words, or another name.")
        return
    if all(one.relaxed for one in results):
        st.caption("No result has all of the words; these have some of them.")
    with st.container(key="hits", gap="small", height=230 if len(results) > 3 else "content"):
        for place, one in enumerate(results):
            with st.container(gap=None):
                st.button(
                    escape_markdown(one.title),
                    key=f"hit_{place}",
                    type="tertiary",
                    on_click=one.on_open,
                    args=(one.target,),
                )
                st.caption(escape_markdown(one.note))


def _first_items(sources: World) -> list[WorldSearchResult]:
    if isinstance(sources.text, EmbeddedText):
        titles = dict.fromkeys(sources.text.list_titles(MAX_SUGGESTIONS))
        return [WorldSearchResult(title, "", go_to_article, title) for title in titles]
    if sources.graph is None or not sources.graph.vocabulary():
        return []
    table = sources.graph.query(f"SELECT DISTINCT ?one WHERE {{ ?one rdfs:label ?name }} LIMIT {MAX_SUGGESTIONS}")
    ids = [row[0].value for row in table.rows if row[0] is not None]
    return [WorldSearchResult(one.label, "", go_to_entity, one.id) for one in sources.graph.entities(ids)]


ACTUAL_FAMILY, GRAPH_FAMILY = "true family", "family in the graph"
LARGE_WORLD_PEOPLE = 200_000
"""Above this size, families are drawn from the graph by default."""


@dataclass(frozen=True, slots=True)
class WorldLocation:
    """The selected article (or web page) and entity; either may be missing."""

    article: Article | None = None
    entity: str | None = None
    address: str = ""
    """URL of the web page."""


def show_world_explorer(world: SelectedWorld) -> None:
    """Show search, article and graph side by side, and the family."""
    sources = world.open()
    show_world_search(sources)
    try:
        place = _resolve_location(sources)
    except NotFound as missing:
        st.warning(escape_markdown(str(missing)))
        place = WorldLocation()
    if place == WorldLocation():
        show_suggestions(sources)
        return
    left, right = st.columns(2, gap="medium")
    with left:
        _show_text(world, place, sources)
    with right:
        _show_graph(place, sources.graph)
    if place.entity is not None:
        _show_family(world, sources, place.entity)


def _resolve_location(sources: World) -> WorldLocation:
    """Resolve the URL parameters; an article and its entity are resolved from each other."""
    title, entity, address = get_url_parameter("title"), get_url_parameter("entity"), get_url_parameter("page")
    if address and sources.web is not None:
        page = sources.web.fetch(address)
        return WorldLocation(Article(page.title, page.sentences), address=page.address)
    if title and sources.text is not None:
        article = sources.text.article(title)
        return WorldLocation(article, article.entity or _find_entity(sources, article.title))
    if not entity:
        return WorldLocation()
    entities = sources.graph.entities([entity]) if sources.graph is not None else []
    if not entities or entities[0].title is None or sources.text is None:
        return WorldLocation(entity=entity)
    try:
        return WorldLocation(sources.text.article(entities[0].title), entity)
    except NotFound:
        # A sitelink may name an article that this world lacks.
        return WorldLocation(entity=entity)


def _find_entity(sources: World, title: str) -> str | None:
    try:
        return sources.graph.entity_of(title).id if sources.graph is not None else None
    except NotFound:
        return None


def _show_text(world: SelectedWorld, place: WorldLocation, sources: World) -> None:
    st.subheader("Web page" if place.address else "Article", anchor=False)
    if place.article is None:
        st.caption("This world has no articles." if sources.text is None else "No article is about this entity.")
        return
    if place.address:
        st.html(f'<p class="address">{escape_html(place.address)}</p>')
    st.html(
        f'<div class="article" tabindex="0" role="region" aria-label="Article">{_render_article(place.article)}</div>'
    )
    if place.address:
        _show_page_errors(world, place.address)


def _show_page_errors(world: SelectedWorld, address: str) -> None:
    """Show the false statements of the page."""
    marks_by_address = world.page_errors()
    if marks_by_address is None:
        return
    marks = marks_by_address.get(address, [])
    st.caption("False statements on this page:" if marks else "This page has no false statements.")
    if marks:
        rows = [
            [
                TableCell(mark["sentence"]),
                TableCell(mark["why"]),
                _value_cell(mark["true"]),
                _value_cell(mark["person"]),
            ]
            for mark in marks
        ]
        columns = ("statement", "reason", "true value", "person")
        show_table(columns, rows, key="marks", label="False statements", go=go_to_entity)


def _value_cell(value: dict[str, str | None] | None) -> TableCell | None:
    if value is None:
        return None
    entity = value["entity"] or ""
    return TableCell(value["text"] or "", entity, entity)


def _render_article(article: Article) -> str:
    headings = {place: heading for heading, place in article.sections}
    parts = [f"<h3>{escape_html(article.title)}</h3>"]
    sentences: list[str] = []
    for place, sentence in enumerate(article.sentences):
        if place in headings:
            parts += [_render_paragraph(sentences), f"<h4>{escape_html(headings[place])}</h4>"]
            sentences = []
        sentences.append(sentence)
    return "".join([*parts, _render_paragraph(sentences)])


def _render_paragraph(sentences: list[str]) -> str:
    return f"<p>{escape_html(' '.join(sentences))}</p>" if sentences else ""


def _show_graph(place: WorldLocation, graph: GraphSource | None) -> None:
    st.subheader("Graph", anchor=False)
    if graph is None:
        st.caption("This world has no graph.")
    elif place.entity is None:
        st.caption("Web pages have no entity." if place.address else "The graph has no entity for this article.")
    else:
        try:
            show_neighbourhood(load_neighbourhood(graph, place.entity), key="neighbourhood", go=go_to_entity)
        except NotFound as missing:
            st.caption(escape_markdown(str(missing)))
        except SourceError as failed:
            st.warning(escape_markdown(str(failed)))


def _show_family(world: SelectedWorld, sources: World, entity: str) -> None:
    both = world.has_universe() and sources.graph is not None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Family", anchor=False, width="content")
        how = ACTUAL_FAMILY if world.has_universe() else GRAPH_FAMILY
        if both:
            usual = GRAPH_FAMILY if int(world.about.get("people", 0)) > LARGE_WORLD_PEOPLE else ACTUAL_FAMILY
            how = st.segmented_control(
                "Family",
                (ACTUAL_FAMILY, GRAPH_FAMILY),
                default=usual,
                key=f"family_{world.name}",
                label_visibility="collapsed",
                required=True,
            )
    try:
        family = (
            _load_actual_family(world, entity) if how == ACTUAL_FAMILY else _load_graph_family(sources.graph, entity)
        )
    except SourceError as failed:
        st.warning(escape_markdown(str(failed)))
        return
    if family is None:
        st.caption("No family: the entity is no person, or has no known relatives.")
    else:
        show_family(family, key="family", go=go_to_entity)


def _load_graph_family(graph: GraphSource | None, entity: str) -> Family | None:
    return build_family(GraphKinshipSource(graph), entity) if graph is not None else None


def _load_actual_family(world: SelectedWorld, entity: str) -> Family | None:
    with st.spinner("Loading the universe …"):
        universe = world.universe()
    return build_universe_family(universe, entity) if universe is not None else None
