"""Whether a world's sources answer: one call of each, with the time it took and what came first."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from worlds import terms
from worlds.source import Article, Entity, GraphSource, Hit, Relations, SourceError, Table, TextSource, World

_ASKED = "Who was Douglas Adams?"
_NAME = "Douglas Adams"
_LONGEST = 100
_EVERY_WIKI = "Main Page"
_TRIED = 20
"""Names of the graph that are looked for among the articles, of which a wiki may have a few only."""
_ANY = "SELECT ?thing ?relation ?value WHERE { ?thing ?relation ?value } LIMIT 1"
_PAGES = f"SELECT ?page ?name WHERE {{ ?page schema:about ?thing . ?thing rdfs:label ?name }} LIMIT {_TRIED}"
_NAMES = f"SELECT ?thing ?name WHERE {{ ?thing rdfs:label ?name }} LIMIT {_TRIED}"


@dataclass(frozen=True, slots=True)
class Tried:
    """One call and how it went."""

    source: str
    call: str
    works: bool
    seconds: float
    told: str
    """What came first, or the sentence of the failure."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for: a question for the articles, and a name that an article and an entity have."""

    question: str
    name: str


def usual(world: World) -> Wanted:
    """Something to look for that the articles and the graph both have, as far as that is found at once.

    That is what every Wikipedia has, something that the graph names, or the page that a wiki begins with.
    """
    everywhere = Wanted(_ASKED, _NAME)
    try:
        if _in_text(world, _NAME) and _in_graph(world, _NAME):
            return everywhere
        named = list(dict.fromkeys(_named(world)))
        both = next((name for name in named if _in_text(world, name)), None)
        if both is not None:
            return Wanted(both, both)
        return Wanted(_EVERY_WIKI, named[0] if named else _NAME)
    except SourceError:
        # The calls that follow will tell what is wrong.
        return everywhere


def _in_text(world: World, name: str) -> bool:
    return world.text is None or bool(world.text.search(name, 1))


def _in_graph(world: World, name: str) -> bool:
    return world.graph is None or bool(world.graph.find(name, 1))


def _named(world: World) -> Iterator[str]:
    if world.graph is None:
        return
    for query in (_PAGES, _NAMES):
        for page, name in world.graph.query(query).rows:
            title = terms.title_of_page(page.value) if page else None
            if called := title or (name.value if name else None):
                yield called


def check(world: World, wanted: Wanted) -> Iterator[Tried]:
    """Call every function of every source once; what does not answer, or finds nothing, does not work."""
    if world.text is not None:
        yield from _check_text(world.text, wanted)
    if world.graph is not None:
        yield from _check_graph(world.graph, wanted, has_text=world.text is not None)
    if world.web is not None:
        web = world.web
        yield _try(
            "web", "search", lambda: _first([f"{hit.title}: {hit.address}" for hit in web.search(wanted.question, 3)])
        )


def _check_text(text: TextSource, wanted: Wanted) -> Iterator[Tried]:
    found: list[Hit] = []

    def search() -> str:
        found.extend(text.search(wanted.question, 3))
        return _first([f"{hit.title}: {hit.snippet}" for hit in found])

    def article() -> str:
        return _article(text.article(found[0].title if found else wanted.name))

    yield _try("text", "search", search)
    yield _try("text", "article", article)


def _check_graph(graph: GraphSource, wanted: Wanted, *, has_text: bool) -> Iterator[Tried]:
    known: list[str] = []

    def remember(found: list[Entity]) -> str:
        known.extend(entity.id for entity in found)
        return _first([f"{entity.id}: {entity.label}" for entity in found])

    yield _try("graph", "query", lambda: _table(graph.query(_ANY)))
    if has_text:
        yield _try("graph", "entity_of", lambda: remember([graph.entity_of(wanted.name)]))
    yield _try("graph", "find", lambda: remember(graph.find(wanted.name, 3)))

    def one() -> str:
        if not known:
            raise _Nothing("It cannot be tried, since no entity was found.")
        return known[0]

    yield _try("graph", "labels", lambda: _first([f"{e.id}: {e.label}" for e in graph.entities([one()])]))
    yield _try("graph", "relations", lambda: _relations(graph.relations(one())))


def _try(source: str, call: str, run: Callable[[], str]) -> Tried:
    began = time.perf_counter()
    try:
        told, works = run(), True
    except SourceError as failed:
        told, works = str(failed), False
    return Tried(source, call, works, time.perf_counter() - began, told)


class _Nothing(SourceError):
    """It answered and found nothing, which in a check is no success."""


def _first(found: list[str]) -> str:
    if not found:
        raise _Nothing("It answered and found nothing; give a name that it has.")
    return found[0] if len(found[0]) <= _LONGEST else f"{found[0][:_LONGEST]} ..."


def _article(found: Article) -> str:
    return _first([f"{found.title}: {found.sentences[0] if found.sentences else 'no text'}"])


def _table(table: Table) -> str:
    return _first([" | ".join(cell.value if cell else "-" for cell in row) for row in table.rows])


def _relations(found: Relations) -> str:
    every = (*found.outgoing, *found.incoming)
    return _first([f"{len(every)}: {', '.join(relation.label for relation in every)}"] if every else [])
