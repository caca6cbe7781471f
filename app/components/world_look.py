"""An article or a web page beside what the graph says of its entity, and the family of a person."""

from dataclasses import dataclass

import streamlit as st

from app.components.family_tree import show_family
from app.components.neighbourhood import show_neighbourhood
from app.components.places import go_to_entity, here
from app.components.plain import plain, plain_html
from app.components.selected_world import SelectedWorld
from app.components.table import Entry, show_table
from app.components.world_search import search_world, suggest
from worlds.family import Family, GraphKin, family, true_family
from worlds.neighbourhood import neighbourhood
from worlds.source import Article, GraphSource, NotFound, SourceError, World

TRUE, TOLD = "as it is", "as the graph tells it"
LARGE = 200_000
"""People of a universe whose families are drawn from the graph unless somebody asks for the whole truth."""


@dataclass(frozen=True, slots=True)
class Place:
    """What is looked at: an article (a web page is drawn as one) and an entity, either of them perhaps missing."""

    article: Article | None = None
    entity: str | None = None
    address: str = ""
    """Of the web page."""


def show_surroundings(world: SelectedWorld) -> None:
    """Search, what was found, the article beside the graph, the family."""
    sources = world.open()
    search_world(sources)
    try:
        place = _place(sources)
    except NotFound as missing:
        st.warning(plain(str(missing)))
        place = Place()
    if place == Place():
        suggest(sources)
        return
    left, right = st.columns(2, gap="medium")
    with left:
        _show_text(world, place, sources)
    with right:
        _show_graph(place, sources.graph)
    if place.entity is not None:
        _show_family(world, sources, place.entity)


def _place(sources: World) -> Place:
    """What the address means; an article and its entity are found from each other."""
    title, entity, address = here("title"), here("entity"), here("page")
    if address and sources.web is not None:
        page = sources.web.fetch(address)
        return Place(Article(page.title, page.sentences), address=page.address)
    if title and sources.text is not None:
        article = sources.text.article(title)
        return Place(article, article.entity or _entity_of(sources, article.title))
    if not entity:
        return Place()
    known = sources.graph.entities([entity]) if sources.graph is not None else []
    if not known or known[0].title is None or sources.text is None:
        return Place(entity=entity)
    try:
        return Place(sources.text.article(known[0].title), entity)
    except NotFound:
        # A sitelink may lead to an article that this world does not have.
        return Place(entity=entity)


def _entity_of(sources: World, title: str) -> str | None:
    try:
        return sources.graph.entity_of(title).id if sources.graph is not None else None
    except NotFound:
        return None


def _show_text(world: SelectedWorld, place: Place, sources: World) -> None:
    st.subheader("Web page" if place.address else "Article", anchor=False)
    if place.article is None:
        st.caption("This world has no articles." if sources.text is None else "No article is about this entity.")
        return
    if place.address:
        st.html(f'<p class="address">{plain_html(place.address)}</p>')
    st.html(f'<div class="article" tabindex="0" role="region" aria-label="Article">{_written(place.article)}</div>')
    if place.address:
        _show_marks(world, place.address)


def _show_marks(world: SelectedWorld, address: str) -> None:
    """What the page gets wrong, which a reader of it cannot know."""
    known = world.marks()
    if known is None:
        return
    marks = known.get(address, [])
    st.caption("What this page gets wrong:" if marks else "Nothing on this page is wrong.")
    if marks:
        rows = [
            [Entry(mark["sentence"]), Entry(mark["why"]), _value(mark["true"]), _value(mark["person"])]
            for mark in marks
        ]
        columns = ("it says", "that is", "true is", "of")
        show_table(columns, rows, key="marks", label="What the page gets wrong", go=go_to_entity)


def _value(value: dict[str, str | None] | None) -> Entry | None:
    if value is None:
        return None
    entity = value["entity"] or ""
    return Entry(value["text"] or "", entity, entity)


def _written(article: Article) -> str:
    headings = {place: heading for heading, place in article.sections}
    parts = [f"<h3>{plain_html(article.title)}</h3>"]
    sentences: list[str] = []
    for place, sentence in enumerate(article.sentences):
        if place in headings:
            parts += [_paragraph(sentences), f"<h4>{plain_html(headings[place])}</h4>"]
            sentences = []
        sentences.append(sentence)
    return "".join([*parts, _paragraph(sentences)])


def _paragraph(sentences: list[str]) -> str:
    return f"<p>{plain_html(' '.join(sentences))}</p>" if sentences else ""


def _show_graph(place: Place, graph: GraphSource | None) -> None:
    st.subheader("What the graph says", anchor=False)
    if graph is None:
        st.caption("This world has no graph.")
    elif place.entity is None:
        st.caption(
            "A web page names nobody by an id." if place.address else "The graph has no entity for this article."
        )
    else:
        try:
            show_neighbourhood(neighbourhood(graph, place.entity), key="neighbourhood", go=go_to_entity)
        except NotFound as missing:
            st.caption(plain(str(missing)))
        except SourceError as failed:
            st.warning(plain(str(failed)))


def _show_family(world: SelectedWorld, sources: World, entity: str) -> None:
    both = world.has_universe() and sources.graph is not None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Family", anchor=False, width="content")
        how = TRUE if world.has_universe() else TOLD
        if both:
            usual = TOLD if int(world.about.get("people", 0)) > LARGE else TRUE
            how = st.segmented_control(
                "Family",
                (TRUE, TOLD),
                default=usual,
                key=f"family_{world.name}",
                label_visibility="collapsed",
                required=True,
            )
    try:
        found = _true_family(world, entity) if how == TRUE else _told_family(sources.graph, entity)
    except SourceError as failed:
        st.warning(plain(str(failed)))
        return
    if found is None:
        st.caption("It has no family here: it is nobody, or nobody is known to be related.")
    else:
        show_family(found, key="family", go=go_to_entity)


def _told_family(graph: GraphSource | None, entity: str) -> Family | None:
    return family(GraphKin(graph), entity) if graph is not None else None


def _true_family(world: SelectedWorld, entity: str) -> Family | None:
    with st.spinner("Reading what is true of this world …"):
        universe = world.universe()
    return true_family(universe, entity) if universe is not None else None
