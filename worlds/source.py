"""The protocols of sources, and World: a named bundle of a text, a graph and a web source, each optional.

SourceError
  SourceUnavailable   it did not answer: gone, refused, broken
  SourceTimeout       it did not answer in time, or would have used too much memory
  QueryRefused        it is not asked: an update, a SERVICE call, a text that is no query
  NotFound            it answered that there is no such article or entity
    Ambiguous         ... but several things are called so, and each is a choice
"Nothing found" by a search or a query is an empty result and no error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Protocol


class ErrorKind(StrEnum):
    """Why a tool call failed, as every error of a tool, a source or a model carries it and a step stores it."""

    REFUSED_QUERY = "refused query"
    """The query is not run: it is no SELECT or ASK, too long, or leaves the world."""
    NOT_FOUND = "not found"
    """There is no such article, page, entity or relation."""
    WRONG_ARGUMENTS = "wrong arguments"
    """The arguments do not fit the tool's schema."""
    MODEL = "model"
    """The language model behind the tool gave no usable reply."""
    TIME_LIMIT = "time limit"
    """The call was stopped at a limit of time or memory, or got no answer in time."""
    UNAVAILABLE = "unavailable"
    """The source, the server or the tool is gone, broken or not set up."""
    OTHER = "other"
    """Any other failure of an external tool."""


class SourceError(Exception):
    """A source did not answer the request; the message says what to do next."""

    kind: ClassVar[ErrorKind] = ErrorKind.UNAVAILABLE


class SourceUnavailable(SourceError):
    """The source is gone, refuses or is broken."""


class SourceTimeout(SourceError):
    """The source was stopped at its limit of time or memory."""

    kind = ErrorKind.TIME_LIMIT


class QueryRefused(SourceError):
    """The query is not run: it is no SELECT or ASK, leaves the world, or is no SPARQL."""

    kind = ErrorKind.REFUSED_QUERY


class NotFound(SourceError):
    """There is no article or entity of that name."""

    kind = ErrorKind.NOT_FOUND


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One search result; `relaxed` when not every word of the query was found in it."""

    title: str
    snippet: str
    entity: str | None = None
    score: float = 0.0
    relaxed: bool = False
    description: str | None = None
    """What it is about in a few words, where the source tells that."""


class AmbiguousTitle(NotFound):
    """The title is ambiguous; the message lists the candidates."""

    def __init__(self, title: str, choices: Sequence[SearchHit]) -> None:
        options = "; ".join(f"{hit.title} ({hit.description})" if hit.description else hit.title for hit in choices)
        super().__init__(f"{title!r} may mean several things; name the one that is meant: {options}.")
        self.title = title
        self.choices = tuple(choices)


@dataclass(frozen=True, slots=True)
class Article:
    """A page of text in its sentences; `entity` is the id of what it is about."""

    title: str
    sentences: tuple[str, ...]
    entity: str | None = None
    sections: tuple[tuple[str, int], ...] = ()
    """Headings, each with the place of its first sentence; what stands before the first one introduces the article."""
    date: str | None = None
    """The day on which it was written, as 2024-10-20; None where it is not told."""
    redirected: str | None = None
    """The other title that led here; None where the article was asked for by its own."""

    @property
    def text(self) -> str:
        """The sentences in one line."""
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page of the web in its sentences."""

    address: str
    title: str
    sentences: tuple[str, ...]
    date: str | None = None
    """The day on which it was written, as 2024-10-20; None where it is not told."""

    @property
    def text(self) -> str:
        """The sentences in one line."""
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True)
class WebHit:
    """One page that a search found; `relaxed` when not every word of the query was found in it."""

    title: str
    snippet: str
    address: str
    score: float = 0.0
    relaxed: bool = False
    date: str | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a query result; `kind` is entity, iri, literal or blank."""

    kind: str
    value: str
    """An entity's id, an IRI, or a literal's lexical form."""
    datatype: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A query's result: rows of cells (None where a variable is unbound), or `boolean` for an ASK."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell | None, ...], ...] = ()
    boolean: bool | None = None
    truncated: bool = False
    """The query had more rows than the limit."""


@dataclass(frozen=True, slots=True)
class Entity:
    """An item of the graph with its label, what else it is called, a description and its article's title."""

    id: str
    label: str
    description: str | None = None
    aliases: tuple[str, ...] = ()
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A property of the graph, `id` as in a query after `wdt:` (or a full IRI), with everything it is called."""

    id: str
    label: str
    aliases: tuple[str, ...] = ()
    value: str = "entity"
    """What it leads to: entity, date, number or text."""


@dataclass(frozen=True, slots=True)
class Relations:
    """The relations that leave an entity and those that arrive at it, without duplicates."""

    outgoing: tuple[Relation, ...] = ()
    incoming: tuple[Relation, ...] = ()


class TextSource(Protocol):
    def search(self, query: str, k: int) -> list[SearchHit]:
        """The k best articles for a name or a whole question; [] if none matches."""

    def article(self, title: str) -> Article:
        """The article of that title (case aside); NotFound when there is none."""


class GraphSource(Protocol):
    def query(self, sparql: str) -> Table:
        """The result of a SELECT or ASK within the source's limits; usual prefixes need no declaration."""

    def entity_of(self, title: str) -> Entity:
        """The entity that the article of that title is about; NotFound when there is none."""

    def entities(self, ids: Sequence[str]) -> list[Entity]:
        """The entities or properties of these ids, in their order; unknown ones are left out."""

    def relations(self, entity: str) -> Relations:
        """The relations that the entity really has; NotFound when the graph does not know it."""

    def vocabulary(self) -> tuple[Relation, ...]:
        """Every relation of the graph; remembered by the source."""

    def find(self, name: str, k: int = 5) -> list[Entity]:
        """Entities by label, alias or title, best match first."""


class WebSource(Protocol):
    def search(self, query: str, k: int) -> list[WebHit]:
        """The k best pages for the query; [] when none fits."""

    def fetch(self, address: str) -> WebPage:
        """The page at that address; NotFound when there is none."""


@dataclass(frozen=True, slots=True)
class World:
    """A named bundle of sources; what a world does not have is None."""

    name: str
    text: TextSource | None = None
    graph: GraphSource | None = None
    web: WebSource | None = None
    metadata: dict[str, object] = field(default_factory=dict)
    """What world.toml says of it: kind, sizes, seed, licence, hash."""
