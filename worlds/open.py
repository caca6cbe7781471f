"""Open worlds by name, read their metadata, and check their sources with one timed call of each function."""

import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from showhow.guard.destinations import SecretTable
from showhow.worlds import terms
from showhow.worlds.embedded.graph import EmbeddedGraph
from showhow.worlds.embedded.text import EmbeddedText, EmbeddedWeb
from showhow.worlds.folder import (
    GRAPH_FOLDER,
    LIVE_KIND,
    TEXT_FOLDER,
    WEB_FOLDER,
    WORLD_FILE,
    WorldError,
    WorldNotFound,
    list_world_names,
    world_folder,
)
from showhow.worlds.live.http.request import Access
from showhow.worlds.source import (
    Article,
    Entity,
    GraphSource,
    Relations,
    SearchHit,
    SourceError,
    Table,
    TextSource,
    WebHit,
    WebSource,
    World,
)

if TYPE_CHECKING:
    from showhow.worlds.live.description import LiveWorldConfig

_COUNTS = ("articles", "triples", "pages", "people", "questions")
_LISTS = ("left_out", "shortfalls")
NO_WORLD = ""
"""The name of the world of projects whose tools need none: it has no sources."""
_NO_CONTACT = Access()
_DEFAULT_QUESTION = "Who was Douglas Adams?"
_DEFAULT_NAME = "Douglas Adams"
_MAX_SHOWN_LENGTH = 100
_MAIN_PAGE = "Main Page"
_MAX_CHECKED_PAGES = 3
_MAX_CANDIDATES = 20
"""Names of the graph that are searched for among the articles; a small wiki has articles for only a few."""
_ANY_TRIPLE_QUERY = "SELECT ?thing ?relation ?value WHERE { ?thing ?relation ?value } LIMIT 1"
_PAGES_QUERY = (
    f"SELECT ?page ?name WHERE {{ ?page schema:about ?thing . ?thing rdfs:label ?name }} LIMIT {_MAX_CANDIDATES}"
)
_NAMES_QUERY = f"SELECT ?thing ?name WHERE {{ ?thing rdfs:label ?name }} LIMIT {_MAX_CANDIDATES}"


def open_world(worlds: Path, name: str, access: Access = _NO_CONTACT, secrets: SecretTable | None = None) -> World:
    """Open the world with this name, or one without sources for NO_WORLD; WorldNotFound lists the existing ones.

    `access` applies to live worlds; `secrets` has the variables that their headers name.
    """
    metadata = read_world_metadata(worlds, name)
    if name == NO_WORLD:
        return World(name, metadata=metadata)
    folder = world_folder(worlds, name)
    if metadata.get("kind") == LIVE_KIND:
        # Imported here, because the HTTP and SPARQL clients take 0.4 s that other worlds do not need.
        from showhow.worlds.live.world import open_live_world  # noqa: PLC0415

        return open_live_world(
            folder,
            _parse_description(_read_world_file(folder / WORLD_FILE)[0], WORLD_FILE),
            access,
            secrets or SecretTable({}),
            metadata,
        )
    text = EmbeddedText(folder / TEXT_FOLDER) if (folder / TEXT_FOLDER).is_dir() else None
    graph = EmbeddedGraph(folder, text) if (folder / GRAPH_FOLDER).is_dir() else None
    web = EmbeddedWeb(folder / WEB_FOLDER) if (folder / WEB_FOLDER).is_dir() else None
    return World(name, text=text, graph=graph, web=web, metadata=metadata)


def read_world_metadata(worlds: Path, name: str) -> dict[str, Any]:
    """Metadata from world.toml: kind, sizes, hash, seed, licence; for a live world also its hosts; {} for NO_WORLD."""
    if name == NO_WORLD:
        return {}
    file = world_folder(worlds, name) / WORLD_FILE
    if not file.is_file():
        names = ", ".join(list_world_names(worlds)) or "none yet"
        raise WorldNotFound(f"There is no world {name!r}; there are: {names}. `showhow world import` makes one.")
    toml, metadata = _read_world_file(file)
    if metadata.get("kind") != LIVE_KIND:
        # The folder has the name; a renamed world keeps the file that it was built with.
        return {"name": name} | {"articles": 0, "triples": 0} | metadata | {"name": name}
    built = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")
    return {"name": name, **_parse_description(toml, str(file)).metadata, "built": built}


def list_worlds(worlds: Path) -> list[dict[str, Any]]:
    """Metadata of all worlds, sorted by name."""
    return [read_world_metadata(worlds, name) for name in list_world_names(worlds)]


def _parse_description(toml: str, origin: str) -> "LiveWorldConfig":
    # Imported here, because pydantic and its models take 0.15 s that other worlds do not need.
    from showhow.worlds.live.description import parse_live_config  # noqa: PLC0415

    return parse_live_config(toml, origin)


def _read_world_file(file: Path) -> tuple[str, dict[str, Any]]:
    """The text of world.toml and its values, kept until the file changes: pages read them with each step."""
    try:
        state = file.stat()
    except OSError as error:
        raise _unreadable(file, error) from error
    return _read_file_version(file, (state.st_ino, state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=256)
def _read_file_version(file: Path, _version: tuple[int, int, int]) -> tuple[str, dict[str, Any]]:
    try:
        toml = file.read_text(encoding="utf-8")
        metadata = tomllib.loads(toml)
        _check_fields(metadata)
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(file, error) from error
    return toml, metadata


def _check_fields(metadata: dict[str, Any]) -> None:
    """ValueError for a field of another type than verbs and pages read: a backup may be anybody's."""
    for name in _COUNTS:
        if type(count := metadata.get(name, 0)) is not int or count < 0:
            raise ValueError(f"its {name} are no count")
    for name in _LISTS:
        if not isinstance(metadata.get(name, []), list):
            raise ValueError(f"its {name} are no list")  # noqa: TRY004 - as of a text that is no TOML


def _unreadable(file: Path, error: Exception) -> WorldError:
    return WorldError(f"{file} cannot be read ({error}); import the world again with --replace.")


@dataclass(frozen=True, slots=True)
class SourceCallCheck:
    """The result of one call."""

    source: str
    call: str
    works: bool
    seconds: float
    told: str
    """The first result, or the error message."""


@dataclass(frozen=True, slots=True)
class SearchProbe:
    """The search terms of a check: a question for the articles, and a name that an article and an entity share."""

    question: str
    name: str


def choose_probe(world: World) -> SearchProbe:
    """Choose search terms that the articles and the graph probably both contain.

    The default name if both have it, else a name from the graph that has an article, else the wiki's main page.
    """
    default_probe = SearchProbe(_DEFAULT_QUESTION, _DEFAULT_NAME)
    try:
        if _is_in_text(world, _DEFAULT_NAME) and _is_in_graph(world, _DEFAULT_NAME):
            return default_probe
        names = list(dict.fromkeys(_iter_names(world)))
        shared_name = next((name for name in names if _is_in_text(world, name)), None)
        if shared_name is not None:
            return SearchProbe(shared_name, shared_name)
        return SearchProbe(_MAIN_PAGE, names[0] if names else _DEFAULT_NAME)
    except SourceError:
        # The calls that follow report the error.
        return default_probe


def _is_in_text(world: World, name: str) -> bool:
    return world.text is None or bool(world.text.search(name, 1))


def _is_in_graph(world: World, name: str) -> bool:
    return world.graph is None or bool(world.graph.find(name, 1))


def _iter_names(world: World) -> Iterator[str]:
    if world.graph is None:
        return
    for query in (_PAGES_QUERY, _NAMES_QUERY):
        for page, name in world.graph.query(query).rows:
            title = terms.title_from_page_iri(page.value) if page else None
            if label := title or (name.value if name else None):
                yield label


def check_sources(world: World, probe: SearchProbe) -> Iterator[SourceCallCheck]:
    """Call every function of every source once; an error or an empty result counts as a failure."""
    if world.text is not None:
        yield from _check_text(world.text, probe)
    if world.graph is not None:
        yield from _check_graph(world.graph, probe, has_text=world.text is not None)
    if world.web is not None:
        yield from _check_web(world.web, probe)


def _check_text(text: TextSource, probe: SearchProbe) -> Iterator[SourceCallCheck]:
    hits: list[SearchHit] = []

    def search() -> str:
        hits.extend(text.search(probe.question, 3))
        return _first_line([f"{hit.title}: {hit.snippet}" for hit in hits])

    def article() -> str:
        return _format_article(text.article(hits[0].title if hits else probe.name))

    yield _time_call("text", "search", search)
    yield _time_call("text", "article", article)


def _check_web(web: WebSource, probe: SearchProbe) -> Iterator[SourceCallCheck]:
    hits: list[WebHit] = []

    def search() -> str:
        hits.extend(web.search(probe.question, _MAX_CHECKED_PAGES))
        return _first_line([f"{hit.title}: {hit.address}" for hit in hits])

    def fetch() -> str:
        """Read the first readable page: some sites refuse programs, and some results are PDF files."""
        failure: SourceError = _EmptyResult("Not checked, because no page was found.")
        for hit in hits:
            try:
                page = web.fetch(hit.address)
            except SourceError as error:
                failure = error
            else:
                return _first_line([f"{page.title}: {page.sentences[0] if page.sentences else 'no text'}"])
        raise failure

    yield _time_call("web", "search", search)
    yield _time_call("web", "page", fetch)


def _check_graph(graph: GraphSource, probe: SearchProbe, *, has_text: bool) -> Iterator[SourceCallCheck]:
    entity_ids: list[str] = []

    def remember(entities: list[Entity]) -> str:
        entity_ids.extend(entity.id for entity in entities)
        return _first_line([f"{entity.id}: {entity.label}" for entity in entities])

    yield _time_call("graph", "query", lambda: _format_table(graph.query(_ANY_TRIPLE_QUERY)))
    if has_text:
        yield _time_call("graph", "entity_of", lambda: remember([graph.entity_of(probe.name)]))
    yield _time_call("graph", "find", lambda: remember(graph.find(probe.name, 3)))

    def first_entity_id() -> str:
        if not entity_ids:
            raise _EmptyResult("Not checked, because no entity was found.")
        return entity_ids[0]

    yield _time_call(
        "graph", "labels", lambda: _first_line([f"{e.id}: {e.label}" for e in graph.entities([first_entity_id()])])
    )
    yield _time_call("graph", "relations", lambda: _format_relations(graph.relations(first_entity_id())))


def _time_call(source: str, call: str, run: Callable[[], str]) -> SourceCallCheck:
    started = time.perf_counter()
    try:
        summary, works = run(), True
    except SourceError as error:
        summary, works = str(error), False
    return SourceCallCheck(source, call, works, time.perf_counter() - started, summary)


class _EmptyResult(SourceError):
    """The source returned an empty result, which a check counts as a failure."""


def _first_line(lines: list[str]) -> str:
    if not lines:
        raise _EmptyResult("The result is empty; choose a name that the source contains.")
    return lines[0] if len(lines[0]) <= _MAX_SHOWN_LENGTH else f"{lines[0][:_MAX_SHOWN_LENGTH]} ..."


def _format_article(article: Article) -> str:
    return _first_line([f"{article.title}: {article.sentences[0] if article.sentences else 'no text'}"])


def _format_table(table: Table) -> str:
    return _first_line([" | ".join(cell.value if cell else "-" for cell in row) for row in table.rows])


def _format_relations(relations: Relations) -> str:
    all_relations = (*relations.outgoing, *relations.incoming)
    return _first_line(
        [f"{len(all_relations)}: {', '.join(relation.label for relation in all_relations)}"] if all_relations else []
    )
