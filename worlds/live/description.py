"""A live world's world.toml: which wiki and which SPARQL endpoint it uses, and the limits of requests to them.

presets/example.toml explains every field.
"""

import hashlib
import json
import re
import tomllib
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from worlds import terms
from worlds.folder import WorldError
from worlds.live.http.access import RequestPolicy
from worlds.live.http.endpoint import LabelSource, QueryMethod, SearchMode, SparqlEndpoint, VocabularySource
from worlds.live.http.request import get_host

LIVE_KIND = "live"
PRESETS_FOLDER = Path(__file__).parent / "presets"
_IRI = r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*"
_IRI_PATTERN = re.compile(_IRI)
_PREFIX_PATTERN = re.compile(r"[A-Za-z](?:[\w.-]*[\w-])?")
_HEADER_PATTERN = re.compile(r"[A-Za-z0-9-]+")
_VARIABLE_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED_HEADERS = frozenset(
    {"host", "user-agent", "accept-encoding", "content-length", "transfer-encoding", "connection"}
)
"""Headers that Showhow sets itself."""
_WIKIMEDIA_DOMAINS = ("wikipedia.org", "wikidata.org", "wikimedia.org")
_WIKIMEDIA_MAX_CONCURRENT = 3
"""Concurrent requests that the Wikimedia Foundation allows a program."""
_MAX_SHOWN_LENGTH = 60


class InvalidLiveConfig(WorldError):
    """A field of world.toml is wrong, unknown or missing."""


def _validate_url(value: Any) -> str:
    parts = _split_url(value)
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an address such as https://query.wikidata.org/sparql")
    # The value is not shown: it may contain a key.
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(
            "must be an address without ?, # and @; keys go into headers, which name an environment variable"
        )
    if not str(value).isascii():
        raise ValueError("must be an address in plain characters, as a browser copies it: xn--... and %C3%BC for a ü")
    return str(value)


def _split_url(value: Any) -> SplitResult | None:
    if not isinstance(value, str) or not _IRI_PATTERN.fullmatch(value):
        return None
    try:
        parts = urlsplit(value)
        # urlsplit checks the port only when it is read.
        port = parts.port
    except ValueError:
        return None
    return None if port == 0 else parts


def _validate_prefixes(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError('must be a table of prefixes, such as { ex = "http://ex.example/" }')  # noqa: TRY004 - pydantic
    for name, iri in value.items():
        if not _PREFIX_PATTERN.fullmatch(name):
            raise ValueError(f"contains {name!r}, which is not a valid prefix")
        if not isinstance(iri, str) or not _IRI_PATTERN.fullmatch(iri):
            raise ValueError(f"must be an IRI for {name}, such as http://ex.example/, not {_format_value(iri)}")
    return value


def _validate_headers(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError('must be a table such as { Authorization = "MY_TOKEN" }')  # noqa: TRY004 - pydantic
    for name, variable in value.items():
        if not _HEADER_PATTERN.fullmatch(name):
            raise ValueError(f"contains {name!r}, which is not a valid header name")
        if name.lower() in _RESERVED_HEADERS:
            raise ValueError(f"must not contain {name}, which Showhow sets itself")
        if not isinstance(variable, str) or not _VARIABLE_PATTERN.fullmatch(variable):
            # The value is not shown: it may be the key itself.
            raise ValueError(f"must name an environment variable for {name}, never the value itself")
    return value


def _format_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN_LENGTH else f"{text[:_MAX_SHOWN_LENGTH]} ..."


# A field's description completes the sentence "must be ..." of its error.
Url = Annotated[str, BeforeValidator(_validate_url)]
Iri = Annotated[str, Field(pattern=f"^{_IRI}$", description="an IRI such as http://www.wikidata.org/entity/")]
OptionalIri = Annotated[str, Field(pattern=f"^({_IRI})?$", description='an IRI, or "" for any')]
Language = Annotated[
    str, Field(pattern=r"^[a-z]{2,12}(-[a-z0-9]{2,8})*$", description="the code of a language such as en")
]
Headers = Annotated[dict[str, str], BeforeValidator(_validate_headers)]
"""Header names with the names of the environment variables that hold their values."""
Prefixes = Annotated[dict[str, str], BeforeValidator(_validate_prefixes)]
NonBlank = Annotated[str, Field(pattern=r"\S", description="some text")]


def _integer(least: int, most: int) -> Any:
    return Field(default=None, ge=least, le=most, description=f"a whole number from {least:,} to {most:,}")


def _number(least: float, most: float) -> Any:
    return Field(
        default=None, ge=least, le=most, allow_inf_nan=False, description=f"a number from {least:g} to {most:,g}"
    )


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class TextTable(_Table):
    """[text]: the wiki."""

    kind: Literal["mediawiki"]
    api: Url = Field(examples=["https://en.wikipedia.org/w/api.php"])
    language: Language = "en"
    headers: Headers = {}


class GraphTable(_Table):
    """[graph]: the SPARQL endpoint; the fields of SparqlEndpoint, its url called endpoint."""

    kind: Literal["sparql"]
    endpoint: Url = Field(examples=["https://query.wikidata.org/sparql"])
    method: QueryMethod = "GET"
    headers: Headers = {}
    default_graph: Iri = ""
    prefixes: Prefixes = {}
    labels: LabelSource = "rdfs:label"
    label_service: Annotated[bool, Field(description="true or false")] = False
    api: Url = ""
    vocabulary: VocabularySource = "scan"
    search: SearchMode = "scan"
    articles: OptionalIri = terms.ARTICLE_NAMESPACE
    entity: Iri = terms.ENTITY_NAMESPACE
    property: Iri = terms.DIRECT_NAMESPACE
    language: Language = "en"
    rows: int = _integer(1, 10_000)

    @model_validator(mode="after")
    def _require_api(self) -> "GraphTable":
        for name in ("labels", "search"):
            if getattr(self, name) == "api" and not self.api:
                raise ValueError(f'{name} = "api" needs the field api, the address of the wiki\'s api.php')
        return self


class LimitsTable(_Table):
    """[limits]: of requests to each host."""

    at_once: int = _integer(1, 64)
    per_minute: int = _integer(1, 1_000_000)
    seconds: float = _number(1, 300)
    bytes: int = _integer(10_000, 1_000_000_000)
    attempts: int = _integer(1, 10)
    cache_days: float = _number(0, 36_500)


class LiveWorldFile(_Table):
    """The whole world.toml of a live world."""

    kind: Literal["live"]
    title: NonBlank = ""
    licence: NonBlank = ""
    text: TextTable | None = None
    graph: GraphTable | None = None
    limits: LimitsTable = LimitsTable()

    @model_validator(mode="after")
    def _require_source(self) -> "LiveWorldFile":
        if self.text is None and self.graph is None:
            raise ValueError("the world has neither articles nor a graph; add a table [text], [graph] or both")
        for host in self.hosts():
            if host.endswith(_WIKIMEDIA_DOMAINS) and (self.limits.at_once or 0) > _WIKIMEDIA_MAX_CONCURRENT:
                raise ValueError(
                    f"[limits] at_once must be at most {_WIKIMEDIA_MAX_CONCURRENT} for {host}, as its operator requires"
                )
        return self

    def hosts(self) -> list[str]:
        """The hosts of all addresses, each once."""
        addresses = [self.text.api] if self.text else []
        addresses += [self.graph.endpoint, self.graph.api] if self.graph else []
        return list(dict.fromkeys(get_host(address) for address in addresses if address))


TABLES: dict[str, type[BaseModel]] = {"text": TextTable, "graph": GraphTable, "limits": LimitsTable}


@dataclass(frozen=True, slots=True)
class WikiConfig:
    """The wiki that has a world's articles."""

    api: str
    """The address of its api.php."""
    language: str = "en"
    headers: tuple[tuple[str, str], ...] = ()
    """Header names with the names of the environment variables that hold their values."""


@dataclass(frozen=True, slots=True)
class LiveWorldConfig:
    """The configuration of a live world."""

    text: WikiConfig | None
    graph: SparqlEndpoint | None
    limits: RequestPolicy
    """Without hosts and headers, which belong to each source."""
    metadata: dict[str, Any]
    """Metadata for lists of worlds."""


def parse_live_config(toml: str, file: str = "the description") -> LiveWorldConfig:
    """Parse world.toml; InvalidLiveConfig names the field that is wrong, unknown or missing."""
    try:
        table = tomllib.loads(toml)
    except tomllib.TOMLDecodeError as error:
        raise InvalidLiveConfig(f"{file} is not valid TOML: {str(error)[:1].lower()}{str(error)[1:]}.") from error
    try:
        described = LiveWorldFile.model_validate(table)
    except ValidationError as error:
        # An unknown field comes first: a misspelt field is also a missing one.
        first = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
        raise InvalidLiveConfig(f"{file}: {_describe_error(first)}") from None
    wiki, graph = described.text, described.graph
    return LiveWorldConfig(
        WikiConfig(wiki.api, wiki.language, tuple(wiki.headers.items())) if wiki else None,
        _build_endpoint(graph) if graph else None,
        _build_request_policy(described.limits),
        _build_metadata(table, described),
    )


def read_preset(name: str) -> str:
    """The text of a preset, a description that comes with Showhow."""
    names = list_presets()
    if name not in names:
        raise InvalidLiveConfig(f"There is no preset {name!r}; there are {', '.join(names)}.")
    return (PRESETS_FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def list_presets() -> list[str]:
    """The names of the presets."""
    return sorted(path.stem for path in PRESETS_FOLDER.glob("*.toml"))


def _describe_error(error: ErrorDetails) -> str:
    """One sentence: table, field, what is wrong and what to write."""
    location = [str(part) for part in error["loc"]]
    if error["type"] == "value_error" and (not location or location[-1] in TABLES):
        table = f"[{location[-1]}] " if location else ""
        return f"{table}{error['ctx']['error']}."
    table_name, name = location if len(location) > 1 else ("", location[0])
    fields = (TABLES[table_name] if table_name else LiveWorldFile).model_fields
    place = f"[{table_name}] {name}" if table_name else name
    if error["type"] == "extra_forbidden":
        near = get_close_matches(name, fields, 1)
        return f"{place} is not a known field; " + (
            f"did you mean {near[0]}?" if near else f"the fields are {', '.join(fields)}."
        )
    field = fields[name]
    if error["type"] == "missing":
        return f'{place} is missing; write for example {name} = "{(field.examples or get_args(field.annotation))[0]}".'
    if error["type"] == "value_error":
        return f"{place} {error['ctx']['error']}."
    if not table_name and name in TABLES:
        return f"{name} must be a table, written [{name}]."
    expected = field.description or f"one of {', '.join(get_args(field.annotation))}"
    return f"{place} must be {expected}, not {_format_value(error['input'])}."


def _build_endpoint(graph: GraphTable) -> SparqlEndpoint:
    fields = graph.model_dump(exclude={"kind", "endpoint"}, exclude_unset=True)
    fields.setdefault("label_service", graph.labels == "service")
    return SparqlEndpoint(graph.endpoint, **fields)


def _build_request_policy(limits: LimitsTable) -> RequestPolicy:
    parameters = {
        "at_once": "max_concurrent",
        "per_minute": "max_per_minute",
        "seconds": "timeout_seconds",
        "bytes": "max_bytes",
        "attempts": "max_attempts",
        "cache_days": "cache_lifetime",
    }
    values: dict[str, Any] = limits.model_dump(exclude_unset=True)
    if "cache_days" in values:
        values["cache_days"] = timedelta(days=values["cache_days"])
    return RequestPolicy(frozenset(), **{parameters[name]: value for name, value in values.items()})


def _build_metadata(table: dict[str, Any], described: LiveWorldFile) -> dict[str, Any]:
    digest = hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()
    metadata: dict[str, Any] = {"kind": LIVE_KIND, "hash": digest}
    metadata |= {name: table[name] for name in ("title", "licence") if name in table}
    if described.text is not None:
        metadata |= {"articles of": get_host(described.text.api), "language": described.text.language}
    if described.graph is not None:
        metadata["graph of"] = get_host(described.graph.endpoint)
    metadata["hosts"] = described.hosts()
    return metadata
