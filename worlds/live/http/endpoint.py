"""The configuration of one SPARQL endpoint."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from worlds import terms

QueryMethod = Literal["GET", "POST form", "POST direct"]
LabelSource = Literal["service", "rdfs:label", "api"]
VocabularySource = Literal["wikibase", "scan"]
SearchMode = Literal["api", "scan", "exact"]
QUERY_METHODS: tuple[str, ...] = get_args(QueryMethod)


@dataclass(frozen=True, slots=True)
class SparqlEndpoint:
    """A SPARQL endpoint and its dialect; the defaults fit a small endpoint with Wikidata's namespaces."""

    url: str
    method: str = "GET"
    """How queries are sent, a QueryMethod; a long query is never sent in the URL."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Header names with the names of the environment variables that hold their values."""
    default_graph: str | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """Prefixes of this graph, besides the usual ones."""
    labels: str = "rdfs:label"
    """Where labels come from, a LabelSource."""
    label_service: bool = False
    """Whether queries may call SERVICE wikibase:label; otherwise calls are rewritten."""
    api: str | None = None
    """The api.php of the wiki behind the graph, for its labels and name search."""
    vocabulary: str = "scan"
    """Where the relations come from, a VocabularySource: items of type wikibase:Property, or predicates in use."""
    search: str = "scan"
    """How names are found, a SearchMode: by the api, by scanning all labels, or by exact match."""
    articles: str = terms.ARTICLE_NAMESPACE
    """The prefix of article URLs that schema:about links; "" for any page of a wiki."""
    entity: str = terms.ENTITY_NAMESPACE
    property: str = terms.DIRECT_NAMESPACE
    """Namespaces of items and of relations; Q42 and P57 are short ids in them."""
    language: str = "en"
    rows: int = 1000
    """Maximum rows of a result."""

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"
