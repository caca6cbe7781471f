"""What there is to know about one SPARQL endpoint before it is asked anything."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from worlds import terms

QUERY_METHODS = ("GET", "POST form", "POST direct")
LABEL_SOURCES = ("service", "rdfs:label", "api")
VOCABULARY_SOURCES = ("wikibase", "scan")
SEARCH_MODES = ("api", "scan", "exact")


@dataclass(frozen=True, slots=True)
class SparqlEndpoint:
    """Where a graph is asked and what it is like; the defaults fit a small endpoint with Wikidata's name spaces."""

    url: str
    method: str = "GET"
    """How queries travel, one of METHODS; a long one never goes in an address."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names of headers and of the environment variables that hold their values."""
    default_graph: str | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """Prefixes of this graph, besides the usual ones."""
    labels: str = "rdfs:label"
    """Where labels come from, one of LABELS."""
    label_service: bool = False
    """Whether queries may call SERVICE wikibase:label; where they may not it is written otherwise."""
    api: str | None = None
    """The api.php of the wiki behind the graph, which knows its labels and finds names."""
    vocabulary: str = "scan"
    """Where the relations come from, one of VOCABULARIES: from items of the type wikibase:Property, or those in use."""
    search: str = "scan"
    """How names are found, one of SEARCHES: by the api, by looking at every label, or only as they are written."""
    articles: str = terms.ARTICLE_NAMESPACE
    """What the addresses of the articles begin with that schema:about has; "" for any page of a wiki."""
    entity: str = terms.ENTITY_NAMESPACE
    property: str = terms.DIRECT_NAMESPACE
    """What the IRIs of items and of relations begin with, so that Q42 and P57 are short for them."""
    language: str = "en"
    rows: int = 1000
    """Rows of a result that are given out."""

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"
