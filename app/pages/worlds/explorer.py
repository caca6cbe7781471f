"""World explorer: search, an article or web page next to its facts, family trees; and the SPARQL console.

Queries of the console run through the runQuery tool, with its limits and messages.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import streamlit as st

from showhow.app.pages.worlds.diagrams import show_family, show_neighbourhood
from showhow.app.pages.worlds.world_choice import SelectedWorld
from showhow.app.widgets.page_layout import escape_html, escape_markdown, format_sentence
from showhow.app.widgets.table import TableCell, show_table
from showhow.app.widgets.url_state import get_url_parameter, go_to_article, go_to_entity, go_to_page
from showhow.db.people.gold_visibility import is_gold_of_world_visible
from showhow.fiction.family import Family, GraphKinshipSource, build_family, build_universe_family
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.run_query import format_value
from showhow.tools.tool import ToolResult
from showhow.worlds import terms
from showhow.worlds.embedded.text import EmbeddedText
from showhow.worlds.folder import LIVE_KIND
from showhow.worlds.neighbourhood import load_neighbourhood
from showhow.worlds.source import Article, GraphSource, NotFound, SourceError, World

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
    searches = _searchable_sources(sources)
    if not searches:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = st.text_input(
            "Search",
            key=f"search_{sources.name}",
            placeholder="A name, or words from a sentence",
            icon=":material/search:",
        )
        source = next(iter(searches))
        if len(searches) > 1:
            source = st.segmented_control(
                "Search in", list(searches), default=source, key=f"among_{sources.name}", required=True, width="content"
            )
    if query.strip():
        _show_results(searches[source](query))


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
        for index, suggestion in enumerate(suggestions):
            st.button(
                escape_markdown(suggestion.title),
                key=f"begin_{index}",
                on_click=suggestion.on_open,
                args=(suggestion.target,),
            )


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
            WorldSearchResult(entity.label, f"{entity.id} {entity.description or ''}", go_to_entity, entity.id)
            for entity in graph.find(query, MAX_HITS)
        ]
    return searches


def _strip_scheme(address: str) -> str:
    # With its scheme, Markdown would render it as an external link.
    return address.partition("://")[2] or address


def _show_results(results: list[WorldSearchResult]) -> None:
    if not results:
        st.caption("No results. Try fewer words, or another name.")
        return
    if all(result.relaxed for result in results):
        st.caption("No result has all of the words; these have some of them.")
    with st.container(key="hits", gap="small", height=230 if len(results) > 3 else "content"):
        for index, result in enumerate(results):
            with st.container(gap=None):
                st.button(
                    escape_markdown(result.title),
                    key=f"hit_{index}",
                    type="tertiary",
                    on_click=result.on_open,
                    args=(result.target,),
                )
                st.caption(escape_markdown(result.note))


def _first_items(sources: World) -> list[WorldSearchResult]:
    if isinstance(sources.text, EmbeddedText):
        titles = dict.fromkeys(sources.text.list_titles(MAX_SUGGESTIONS))
        return [WorldSearchResult(title, "", go_to_article, title) for title in titles]
    if sources.graph is None:
        return []
    table = sources.graph.query(f"SELECT DISTINCT ?one WHERE {{ ?one rdfs:label ?name }} LIMIT {MAX_SUGGESTIONS}")
    ids = [row[0].value for row in table.rows if row[0] is not None]
    return [WorldSearchResult(entity.label, "", go_to_entity, entity.id) for entity in sources.graph.entities(ids)]


ACTUAL_FAMILY, GRAPH_FAMILY = "true family", "family in the graph"
PART_CHARACTERS = 200_000
"""Characters of an article that are shown at once."""
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
        location = _resolve_location(sources)
    except NotFound as error:
        st.warning(format_sentence(str(error)))
        location = WorldLocation()
    if location == WorldLocation():
        show_suggestions(sources)
        return
    left, right = st.columns(2, gap="medium")
    with left:
        _show_text(world, location, sources)
    with right:
        _show_graph(location, sources.graph)
    if location.entity is not None:
        _show_family(world, sources, location.entity)


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
        # A sitelink may name an article that does not exist in this world.
        return WorldLocation(entity=entity)


def _find_entity(sources: World, title: str) -> str | None:
    try:
        return sources.graph.entity_of(title).id if sources.graph is not None else None
    except NotFound:
        return None


def _show_text(world: SelectedWorld, location: WorldLocation, sources: World) -> None:
    st.header("Web page" if location.address else "Article", anchor=False)
    if location.article is None:
        st.caption("This world has no articles." if sources.text is None else "No article is about this entity.")
        return
    if location.address:
        st.html(f'<p class="address">{escape_html(location.address)}</p>')
    parts = split_article(location.article)
    number = 1
    if len(parts) > 1:
        label = f"Part of {len(parts):,}, of {PART_CHARACTERS:,} characters each"
        number = int(st.number_input(label, 1, len(parts), key=f"part_{location.article.title}"))
    article = _render_article(location.article, parts[number - 1])
    st.html(f'<div class="article" tabindex="0" role="region" aria-label="Article">{article}</div>')
    if location.address:
        _show_page_errors(world, location.address)


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


def split_article(article: Article) -> list[list[tuple[int, str]]]:
    """Parts of at most PART_CHARACTERS: sentences with their index, -1 for what continues a longer sentence."""
    parts: list[list[tuple[int, str]]] = [[]]
    size = 0
    for index, sentence in enumerate(article.sentences):
        for start in range(0, max(1, len(sentence)), PART_CHARACTERS):
            piece = sentence[start : start + PART_CHARACTERS]
            if parts[-1] and size + len(piece) > PART_CHARACTERS:
                parts.append([])
                size = 0
            parts[-1].append((-1 if start else index, piece))
            size += len(piece)
    return parts


def _render_article(article: Article, part: list[tuple[int, str]]) -> str:
    headings = {index: heading for heading, index in article.sections}
    starts = {*article.paragraphs, *headings}
    parts = [f"<h3>{escape_html(article.title)}</h3>"]
    sentences: list[str] = []
    for index, sentence in part:
        if index in starts:
            parts.append(_render_paragraph(sentences))
            sentences = []
        if index in headings:
            parts.append(f"<h4>{escape_html(headings[index])}</h4>")
        sentences.append(sentence)
    return "".join([*parts, _render_paragraph(sentences)])


def _render_paragraph(sentences: list[str]) -> str:
    return f"<p>{escape_html(' '.join(sentences))}</p>" if sentences else ""


def _show_graph(location: WorldLocation, graph: GraphSource | None) -> None:
    st.header("Graph", anchor=False)
    if graph is None:
        st.caption("This world has no graph.")
    elif location.entity is None:
        st.caption("Web pages have no entity." if location.address else "The graph has no entity for this article.")
    else:
        try:
            show_neighbourhood(load_neighbourhood(graph, location.entity), key="neighbourhood", go=go_to_entity)
        except NotFound as error:
            st.caption(escape_markdown(str(error)))
        except SourceError as error:
            st.warning(format_sentence(str(error)))


def _show_family(world: SelectedWorld, sources: World, entity: str) -> None:
    has_both_sources = world.has_universe() and sources.graph is not None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header("Family", anchor=False, width="content")
        family_source = ACTUAL_FAMILY if world.has_universe() else GRAPH_FAMILY
        if has_both_sources:
            default_source = GRAPH_FAMILY if int(world.about.get("people", 0)) > LARGE_WORLD_PEOPLE else ACTUAL_FAMILY
            family_source = st.segmented_control(
                "Family",
                (ACTUAL_FAMILY, GRAPH_FAMILY),
                default=default_source,
                key=f"family_{world.name}",
                label_visibility="collapsed",
                required=True,
            )
    try:
        family = (
            _load_actual_family(world, entity)
            if family_source == ACTUAL_FAMILY
            else _load_graph_family(sources.graph, entity)
        )
    except SourceError as error:
        st.warning(format_sentence(str(error)))
        return
    if family is None:
        st.caption("No family: the entity is not a person, or has no known relatives.")
    else:
        show_family(family, key="family", go=go_to_entity)


def _load_graph_family(graph: GraphSource | None, entity: str) -> Family | None:
    return build_family(GraphKinshipSource(graph), entity) if graph is not None else None


def _load_actual_family(world: SelectedWorld, entity: str) -> Family | None:
    with st.spinner("Loading the universe …"):
        universe = world.universe()
    return build_universe_family(universe, entity) if universe is not None else None


LAST_RESULT_KEY = "console_asked"
"""Session key of the last result, with the world and its build."""


def console_key(world: SelectedWorld) -> str:
    """Widget key of the query field."""
    return f"sparql_{world.name}"


def show_console(world: SelectedWorld) -> None:
    """Show example queries, the query field and the result."""
    graph = world.open().graph
    if graph is None:
        st.info("This world has no graph to query; import one from a Turtle file.")
        return
    key = console_key(world)
    examples = dict(_example_queries(world, graph))
    if key not in st.session_state:
        st.session_state[key] = next(iter(examples.values()), "")
    st.caption("Examples:")
    with st.container(horizontal=True, gap="small", key="examples"):
        for index, (name, sparql) in enumerate(examples.items()):
            st.button(escape_markdown(name), key=f"example_{index}", on_click=_fill_query, args=(key, sparql))
    with st.container(key="console"):
        sparql = st.text_area("SPARQL", key=key, height=190, placeholder="SELECT ?who WHERE { ?who wdt:P22 ?father }")
        with st.container(horizontal=True, vertical_alignment="center"):
            is_pressed = st.button("Run", key="run_query", type="primary", shortcut="Ctrl+Enter")
            limits = "within the world's limits" if world.is_live else "2 s, 1,000 rows"
            st.caption(f"SELECT and ASK queries, {limits}, as in the tool Run query. Prefixes: wd:, wdt:, rdfs:.")
    if is_pressed:
        with st.spinner("Running the query …"):
            outcome = BUILT_IN_TOOLS["runQuery"].call(world.services.tool_context(world.name), {"sparql": sparql})
        st.session_state[LAST_RESULT_KEY] = (world.name, world.stamp, outcome)
    last_result = st.session_state.get(LAST_RESULT_KEY)
    if last_result is not None and last_result[:2] == (world.name, world.stamp):
        _show_outcome(last_result[2])


def _fill_query(key: str, sparql: str) -> None:
    st.session_state[key] = sparql
    st.session_state.pop(LAST_RESULT_KEY, None)


def _show_outcome(outcome: ToolResult) -> None:
    if outcome.error is not None or outcome.observation is None:
        st.error(format_sentence(outcome.error or "The query returned no result."))
        return
    data = outcome.observation.data
    if data["boolean"] is not None:
        st.markdown(f"**{'Yes' if data['boolean'] else 'No'}** · {outcome.seconds:.2f} s")
        return
    rows = [[_result_cell(cell) if cell else None for cell in row] for row in data["rows"]]
    truncation_note = "; there are more: narrow the query or count them" if data["truncated"] else ""
    st.caption(f"{len(rows):,} {'row' if len(rows) == 1 else 'rows'}{truncation_note} · {outcome.seconds:.2f} s")
    if rows:
        show_table(data["columns"], rows, key="result", label="Result of the query", go=go_to_entity)
    else:
        st.info("The query has no results.")


def _result_cell(cell: dict[str, str]) -> TableCell:
    if cell["kind"] == "entity":
        label = cell.get("label")
        return TableCell(label or cell["value"], cell["value"] if label else "", cell["value"])
    return TableCell(format_value(cell["value"], cell.get("datatype")))


def _example_queries(world: SelectedWorld, graph: GraphSource) -> Iterator[tuple[str, str]]:
    """Yield example queries that run within the limits, and the gold query of the world's first question."""
    # A live graph may have thousands of relations; opening the page must not query all of them.
    relations = () if world.is_live else graph.vocabulary()
    labelled = "\n  OPTIONAL { ?subject rdfs:label ?name }"
    for relation in relations[:3]:
        path = terms.format_predicate(relation.id)
        yield (
            f"{relation.label}: 20 pairs",
            f"SELECT ?subject ?name ?value WHERE {{\n  ?subject {path} ?value .{labelled}\n}} LIMIT 20",
        )
    yield "some names", "SELECT ?thing ?name WHERE {\n  ?thing rdfs:label ?name\n} LIMIT 20"
    if world.is_live:
        yield "facts of Q42", "SELECT ?relation ?value WHERE {\n  wd:Q42 ?relation ?value\n} LIMIT 20"
    if relations:
        path = terms.format_predicate(relations[0].id)
        yield f"{relations[0].label}: is there any?", f"ASK {{ ?subject {path} ?value }}"
    questions = world.questions()
    with world.services.database.read() as session:
        shows_gold = is_gold_of_world_visible(session, world.name)
    if shows_gold and questions is not None and questions.heads:
        gold = questions.load_row(questions.heads[0]).get("sparql")
        if isinstance(gold, str) and gold:
            yield f"gold: {questions.heads[0].text}", gold
