"""The protocols of sources, and World: a named bundle of a text, a graph and a web source, each optional.

SourceError
  SourceUnavailable   the source is unreachable, refuses access or is broken
  SourceTimeout       the source reached its limit of time or memory
  QueryRefused        the query is not run: an update, a SERVICE call, or invalid SPARQL
  NotFound            there is no such article or entity
    AmbiguousTitle    the title has several meanings, which the error lists
A search or query without matches returns an empty result and raises no error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Protocol, runtime_checkable


class ErrorKind(StrEnum):
    """Why a tool call failed; an attribute of every error of a tool, a source or a model, stored with the step."""

    REFUSED_QUERY = "refused query"
    """The query is not run: it is not a SELECT or ASK, is too long, or leaves the world."""
    NOT_FOUND = "not found"
    """There is no such article, page, entity or relation."""
    WRONG_ARGUMENTS = "wrong arguments"
    """The arguments do not fit the tool's schema."""
    MODEL = "model"
    """The language model behind the tool gave no usable reply."""
    TIME_LIMIT = "time limit"
    """The call was stopped at a limit of time or memory, or got no answer in time."""
    UNAVAILABLE = "unavailable"
    """The source, the server or the tool is unreachable, broken or not set up."""
    OTHER = "other"
    """Any other failure of an external tool."""


class SourceError(Exception):
    """A source did not return a result; the message says what to do next."""

    kind: ClassVar[ErrorKind] = ErrorKind.UNAVAILABLE


class SourceUnavailable(SourceError):
    """The source is unreachable, refuses access or is broken."""


class SourceTimeout(SourceError):
    """The request was stopped at its limit of time or memory."""

    kind = ErrorKind.TIME_LIMIT


class QueryRefused(SourceError):
    """The query is not run: it is not a SELECT or ASK, leaves the world, or is invalid SPARQL."""

    kind = ErrorKind.REFUSED_QUERY


class NotFound(SourceError):
    """There is no article or entity of that name."""

    kind = ErrorKind.NOT_FOUND


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One search result; `relaxed` if it does not contain every word of the query."""

    title: str
    snippet: str
    entity: str | None = None
    score: float = 0.0
    relaxed: bool = False
    description: str | None = None
    """The article's subject in a few words, if the source has it."""


class AmbiguousTitle(NotFound):
    """The title is ambiguous; the message lists the candidates."""

    def __init__(self, title: str, choices: Sequence[SearchHit]) -> None:
        options = "; ".join(f"{hit.title} ({hit.description})" if hit.description else hit.title for hit in choices)
        super().__init__(f"{title!r} has several meanings; choose one: {options}.")
        self.title = title
        self.choices = tuple(choices)


@dataclass(frozen=True, slots=True)
class Article:
    """A page of text as sentences; `entity` is the id of the entity that it is about."""

    title: str
    sentences: tuple[str, ...]
    entity: str | None = None
    sections: tuple[tuple[str, int], ...] = ()
    """Headings, each with the index of its first sentence; sentences before the first one are the introduction."""
    date: str | None = None
    """The date of writing, as 2024-10-20; None if unknown."""
    redirected: str | None = None
    """The requested title if it redirects to this article, else None."""
    paragraphs: tuple[int, ...] = ()
    """The index of the first sentence of each of several paragraphs; empty if it is not known where they begin."""

    @property
    def text(self) -> str:
        """The sentences in one line."""
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page of the web as sentences."""

    address: str
    title: str
    sentences: tuple[str, ...]
    date: str | None = None
    """The date of writing, as 2024-10-20; None if unknown."""

    @property
    def text(self) -> str:
        """The sentences in one line."""
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True)
class WebHit:
    """One search result; `relaxed` if it does not contain every word of the query."""

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

    def read_number(self, below: int = 10**15) -> int:
        """The whole number that a query of ours asks for; SourceUnavailable if it is another value."""
        if len(self.value) > _MAX_DIGITS or not self.value.isdecimal() or int(self.value) >= below:
            raise SourceUnavailable(
                f"The graph answered with {self.value[:40]!r} where a number was asked for; check the graph's url in "
                "the world's description."
            )
        return int(self.value)


_MAX_DIGITS = 100


@dataclass(frozen=True, slots=True)
class Table:
    """A query's result: rows of cells (None where a variable is unbound), or `boolean` for an ASK."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell | None, ...], ...] = ()
    boolean: bool | None = None
    truncated: bool = False
    """The query had more rows than the limit, or was stopped before it had all of them."""
    note: str = ""
    """Why the result is empty or partial, if the source knows."""


@dataclass(frozen=True, slots=True)
class Entity:
    """An item of the graph with its label, description, aliases and the title of its article."""

    id: str
    label: str
    description: str | None = None
    aliases: tuple[str, ...] = ()
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A property of the graph with its names; `id` is as in a query after `wdt:`, or a full IRI."""

    id: str
    label: str
    aliases: tuple[str, ...] = ()
    value: str = "entity"
    """The kind of its values: entity, date, number or text."""


@dataclass(frozen=True, slots=True)
class Relations:
    """The outgoing and incoming relations of an entity, without duplicates."""

    outgoing: tuple[Relation, ...] = ()
    incoming: tuple[Relation, ...] = ()


class TextSource(Protocol):
    def search(self, query: str, k: int) -> list[SearchHit]:
        """The k best articles for a name or a whole question; [] if none matches."""

    def article(self, title: str) -> Article:
        """The article with this title, ignoring case; NotFound if there is none."""


@runtime_checkable
class ArticleListing(Protocol):
    """A text source that can list its articles, unlike one behind a live wiki."""

    def __len__(self) -> int:
        """The number of articles."""

    def list_articles(self, k: int) -> list[Article]:
        """The first k articles; their order is always the same."""


class GraphSource(Protocol):
    def query(self, sparql: str) -> Table:
        """The result of a SELECT or ASK within the source's limits; usual prefixes need no declaration."""

    def entity_of(self, title: str) -> Entity:
        """The entity that the article with this title is about; NotFound if there is none."""

    def entities(self, ids: Sequence[str]) -> list[Entity]:
        """The entities or properties of these ids, in their order; unknown ones are left out."""

    def relations(self, entity: str) -> Relations:
        """The relations that occur with the entity; NotFound if the graph does not know it."""

    def vocabulary(self) -> tuple[Relation, ...]:
        """Every relation of the graph; the source caches them."""

    def find(self, name: str, k: int = 5) -> list[Entity]:
        """Entities by label, alias or title, best match first."""


@runtime_checkable
class RelationSearch(Protocol):
    """A graph that finds relations by name, since its vocabulary may be too large to be loaded for a question."""

    @property
    def has_large_vocabulary(self) -> bool:
        """Whether the vocabulary has thousands of relations."""

    @property
    def is_wikidata(self) -> bool:
        """Whether items, classes, ranks and qualifiers are those of Wikidata."""

    def find_relations(self, names: Sequence[str], phrases: Sequence[str]) -> tuple[Relation, ...]:
        """The relations with exactly one of these names, and those similar to one of the phrases, by id."""


class WebSource(Protocol):
    def search(self, query: str, k: int) -> list[WebHit]:
        """The k best pages for the query; [] if none matches."""

    def fetch(self, address: str, *, typed: bool = False) -> WebPage:
        """The page at this address; NotFound if there is none.

        Live sources read only addresses that a search returned or a person `typed`; others are NotFound.
        """


@dataclass(frozen=True, slots=True)
class World:
    """A named bundle of sources; a missing source is None."""

    name: str
    text: TextSource | None = None
    graph: GraphSource | None = None
    web: WebSource | None = None
    metadata: dict[str, object] = field(default_factory=dict)
    """The metadata in world.toml: kind, sizes, seed, licence, hash."""
