"""A live world's world.toml: its wiki, its SPARQL endpoint, its web search, and the limits of requests to them.

presets/example.toml explains every field.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, model_validator
from pydantic_core import ErrorDetails

from showhow.worlds import terms
from showhow.worlds.folder import LIVE_KIND, WorldError
from showhow.worlds.live.http.rate_limiter import WIKIMEDIA, find_operator
from showhow.worlds.live.http.request import RequestPolicy, get_host

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
    """Prefixes of this graph, in addition to worlds.terms.PREFIXES."""
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
    site: str = ""
    """The id of the articles' site in the wiki's sitelinks, such as enwiki; "" for that of `articles` at Wikimedia."""
    left_out: str = ""
    """What the endpoint does not have although the wiki has it, and where it is; one sentence for messages."""
    entity: str = terms.ENTITY_NAMESPACE
    property: str = terms.DIRECT_NAMESPACE
    """Namespaces of items and of relations; Q42 and P57 are short ids in them."""
    language: str = "en"
    rows: int = 1000
    """Maximum rows of a result."""

    def __repr__(self) -> str:
        return f"SparqlEndpoint({self.url!r})"


_IRI = r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*"
_PREFIX_PATTERN = re.compile(r"[A-Za-z](?:[\w.-]*[\w-])?")
_HEADER_PATTERN = re.compile(r"[A-Za-z0-9-]+")
_VARIABLE_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = r"[A-Za-z$_][\w.$\[\]-]*"
_PATH = r"[^\s.]+(\.[^\s.]+)*"
_SECRET_PARAMETER = re.compile(r"key|token|secret|password|auth(?!or)|signature", re.IGNORECASE)
_RESERVED_HEADERS = frozenset(
    {"host", "user-agent", "accept-encoding", "content-length", "transfer-encoding", "connection"}
)
"""Headers that Showhow sets itself."""
_WIKIMEDIA_MAX_CONCURRENT = 3
"""Maximum concurrent requests that the Wikimedia Foundation allows a user, over all of its sites."""
_MAX_SHOWN_LENGTH = 60


class InvalidLiveConfig(WorldError):
    """A field of world.toml is wrong, unknown or missing."""


def _validate_url(value: Any) -> str:
    try:
        parts = urlsplit(value if isinstance(value, str) and re.fullmatch(_IRI, value) else "")
        # urlsplit checks the port only when it is read.
        is_http = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_http = False
    if not is_http:
        raise ValueError("must be an address such as https://query.wikidata.org/sparql")
    # The messages never contain the value, which may contain a key.
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(
            "must be an address without ?, # and @; keys go into headers, which name an environment variable"
        )
    if not value.isascii():
        raise ValueError("must be an address in plain characters, as a browser copies it: xn--... and %C3%BC for a ü")
    return str(value)


def _require_table(value: Any, example: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"must be a table such as {example}")  # noqa: TRY004 - pydantic reports ValueError only
    return value


def _validate_prefixes(value: Any) -> dict[str, str]:
    for name, iri in _require_table(value, '{ ex = "http://ex.example/" }').items():
        if not _PREFIX_PATTERN.fullmatch(name):
            raise ValueError(f"contains {name!r}, which is not a valid prefix")
        if not isinstance(iri, str) or not re.fullmatch(_IRI, iri):
            raise ValueError(f"must be an IRI for {name}, such as http://ex.example/, not {_format_value(iri)}")
    return dict(value)


def _validate_headers(value: Any) -> dict[str, str]:
    for name, variable in _require_table(value, '{ Authorization = "MY_TOKEN" }').items():
        if not _HEADER_PATTERN.fullmatch(name):
            raise ValueError(f"contains {name!r}, which is not a valid header name")
        if name.lower() in _RESERVED_HEADERS:
            raise ValueError(f"must not contain {name}, which Showhow sets itself")
        if not isinstance(variable, str) or not _VARIABLE_PATTERN.fullmatch(variable):
            # The message never contains the value, which may be the key itself.
            raise ValueError(f"must name an environment variable for {name}, never the value itself")
        if is_model_key(variable):
            raise ValueError(
                f"must not send {variable}: keys of language models and settings of Showhow never go to a world"
            )
    return dict(value)


def _validate_parameters(value: Any) -> dict[str, str]:
    for name, text in _require_table(value, '{ format = "json" }').items():
        if _SECRET_PARAMETER.search(name):
            raise ValueError(f"must not contain {name}: keys go into headers, which name an environment variable")
        if not re.fullmatch(_PARAMETER, name) or not isinstance(text, str):
            raise ValueError(f"must give a text for each parameter, which {name!r} does not")
    return dict(value)


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
Parameters = Annotated[dict[str, str], BeforeValidator(_validate_parameters)]
ParameterName = Annotated[str, Field(pattern=f"^{_PARAMETER}$", description="the name of a parameter such as q")]
OptionalParameterName = Annotated[
    str, Field(pattern=f"^({_PARAMETER})?$", description='the name of a parameter, or "" for none')
]
JsonPath = Annotated[str, Field(pattern=f"^{_PATH}$", description="names joined by dots such as web.results")]
OptionalJsonPath = Annotated[str, Field(pattern=f"^({_PATH})?$", description='names joined by dots, or ""')]
Truth = Annotated[bool, Field(description="true or false")]
NonBlank = Annotated[str, Field(pattern=r"\S", description="some text")]


def _bounded(minimum: float, maximum: float, parameter: str, noun: str = "a number") -> Any:
    """A limit in world.toml; `parameter` is the field of RequestPolicy or SparqlEndpoint that it sets."""
    expected = f"{noun} from {minimum:,} to {maximum:,}"
    return Field(default=None, ge=minimum, le=maximum, serialization_alias=parameter, description=expected)


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class TextTable(_Table):
    """[text]: the wiki that has a world's articles; `api` is the address of its api.php."""

    kind: Literal["mediawiki"]
    api: Url = Field(examples=["https://en.wikipedia.org/w/api.php"])
    language: Language = "en"
    headers: Headers = {}


class GraphTable(_Table):
    """[graph]: the SPARQL endpoint; its fields are those of SparqlEndpoint."""

    kind: Literal["sparql"]
    endpoint: Url = Field(serialization_alias="url", examples=["https://query.wikidata.org/sparql"])
    method: QueryMethod = "GET"
    headers: Headers = {}
    default_graph: Iri = ""
    prefixes: Prefixes = {}
    labels: LabelSource = "rdfs:label"
    label_service: Truth = False
    api: Url = ""
    vocabulary: VocabularySource = "scan"
    search: SearchMode = "scan"
    articles: OptionalIri = terms.ARTICLE_NAMESPACE
    site: Annotated[str, Field(pattern=r"^[a-z0-9_-]*$", description="the id of a site such as enwiki")] = ""
    left_out: Annotated[str, Field(pattern=r"^[^\n]*$", description="one line of text")] = ""
    entity: Iri = terms.ENTITY_NAMESPACE
    property: Iri = terms.DIRECT_NAMESPACE
    language: Language = "en"
    rows: int = _bounded(1, 10_000, "rows", "a whole number")

    @model_validator(mode="after")
    def _require_api(self) -> "GraphTable":
        for name in ("labels", "search"):
            if getattr(self, name) == "api" and not self.api:
                raise ValueError(f'{name} = "api" needs the field api, the address of the wiki\'s api.php')
        return self


class WebTable(_Table):
    """[web]: a search for web pages that answers a GET in JSON; by default in the shape of SearXNG."""

    kind: Literal["json"]
    search: Url = Field(examples=["http://127.0.0.1:8888/search"])
    query: ParameterName = "q"
    parameters: Parameters = {}
    """Sent with every search."""
    headers: Headers = {}
    count: OptionalParameterName = ""
    """The parameter with the number of results."""
    page: OptionalParameterName = ""
    """The parameter that selects a page of results; "" if only one is requested."""
    first_page: Annotated[int, Field(ge=0, le=1000, description="a whole number from 0 to 1,000")] = 1
    page_step: Annotated[int, Field(ge=1, le=1000, description="a whole number from 1 to 1,000")] = 1
    results: OptionalJsonPath = "results"
    """The path of the list of results; "" if the list is the whole document."""
    title: JsonPath = "title"
    """This path and the next ones start at a result."""
    address: JsonPath = "url"
    snippet: OptionalJsonPath = "content"
    date: OptionalJsonPath = "publishedDate"
    failures: OptionalJsonPath = "unresponsive_engines"
    """The path of what the endpoint reports when it could not search; with it, an empty list is an error."""
    language: Language = "en"
    allow_private_pages: Truth = False
    """Whether pages at private and loopback addresses may be read."""


def _days(number: float) -> timedelta:
    return timedelta(days=number)


class LimitsTable(_Table):
    """[limits]: the limits of requests to each host."""

    at_once: int = _bounded(1, 64, "max_concurrent", "a whole number")
    per_minute: int = _bounded(1, 1_000_000, "max_per_minute", "a whole number")
    seconds: float = _bounded(1, 300, "timeout_seconds")
    bytes: int = _bounded(10_000, 1_000_000_000, "max_bytes", "a whole number")
    attempts: int = _bounded(1, 10, "max_attempts", "a whole number")
    cache_days: Annotated[float, PlainSerializer(_days)] = _bounded(0, 36_500, "cache_lifetime")


class LiveWorldFile(_Table):
    """The whole world.toml of a live world."""

    kind: Literal["live"]
    title: NonBlank = ""
    licence: NonBlank = ""
    text: TextTable | None = None
    graph: GraphTable | None = None
    web: WebTable | None = None
    limits: LimitsTable = LimitsTable()

    @model_validator(mode="after")
    def _require_source(self) -> "LiveWorldFile":
        if self.text is None and self.graph is None and self.web is None:
            raise ValueError(
                "the world has no articles, no graph and no web pages; add a table [text], [graph] or [web]"
            )
        for host in self.hosts():
            if find_operator(host) == WIKIMEDIA and (self.limits.at_once or 0) > _WIKIMEDIA_MAX_CONCURRENT:
                raise ValueError(
                    f"[limits] at_once must be at most {_WIKIMEDIA_MAX_CONCURRENT} for {host}, as its operator requires"
                )
        return self

    def hosts(self) -> list[str]:
        """The hosts of all addresses, each once; web pages have others."""
        addresses = [self.text.api] if self.text else []
        addresses += [self.graph.endpoint, self.graph.api] if self.graph else []
        addresses += [self.web.search] if self.web else []
        return list(dict.fromkeys(get_host(address) for address in addresses if address))


TABLES: dict[str, type[BaseModel]] = {"text": TextTable, "graph": GraphTable, "web": WebTable, "limits": LimitsTable}


@dataclass(frozen=True, slots=True)
class LiveWorldConfig:
    """The configuration of a live world."""

    text: TextTable | None
    graph: SparqlEndpoint | None
    web: WebTable | None
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
        world_file = LiveWorldFile.model_validate(table)
    except ValidationError as error:
        # An unknown field comes first: a misspelt field is also a missing one.
        error_detail = min(error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden")
        raise InvalidLiveConfig(f"{file}: {_describe_error(error_detail)}") from None
    graph, limits = world_file.graph, world_file.limits
    return LiveWorldConfig(
        world_file.text,
        _build_endpoint(graph) if graph else None,
        world_file.web,
        RequestPolicy(frozenset(), **limits.model_dump(exclude_unset=True, by_alias=True)),
        _build_metadata(table, world_file),
    )


def _describe_error(error: ErrorDetails) -> str:
    """One sentence: table, field, what is wrong and what to write."""
    location = [str(part) for part in error["loc"]]
    if error["type"] == "value_error" and (not location or location[-1] in TABLES):
        table = f"[{location[-1]}] " if location else ""
        return f"{table}{error['ctx']['error']}."
    table_name, name = location if len(location) > 1 else ("", location[0])
    fields = (TABLES[table_name] if table_name else LiveWorldFile).model_fields
    field_path = f"[{table_name}] {name}" if table_name else name
    if error["type"] == "extra_forbidden":
        suggestions = get_close_matches(name, fields, 1)
        return f"{field_path} is not a known field; " + (
            f"did you mean {suggestions[0]}?" if suggestions else f"the fields are {', '.join(fields)}."
        )
    field = fields[name]
    if error["type"] == "missing":
        example = (field.examples or get_args(field.annotation))[0]
        return f'{field_path} is missing; write for example {name} = "{example}".'
    if error["type"] == "value_error":
        return f"{field_path} {error['ctx']['error']}."
    if not table_name and name in TABLES:
        return f"{name} must be a table, written [{name}]."
    expected = field.description or f"one of {', '.join(get_args(field.annotation))}"
    return f"{field_path} must be {expected}, not {_format_value(error['input'])}."


def _build_endpoint(graph: GraphTable) -> SparqlEndpoint:
    fields = graph.model_dump(exclude={"kind"}, exclude_unset=True, by_alias=True)
    return SparqlEndpoint(**{"label_service": graph.labels == "service"} | fields)


def _build_metadata(table: dict[str, Any], world_file: LiveWorldFile) -> dict[str, Any]:
    digest = hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()
    metadata: dict[str, Any] = {"kind": LIVE_KIND, "hash": digest}
    metadata |= {name: table[name] for name in ("title", "licence") if name in table}
    if world_file.text is not None:
        metadata |= {"articles of": get_host(world_file.text.api), "language": world_file.text.language}
    if world_file.graph is not None:
        metadata["graph of"] = get_host(world_file.graph.endpoint)
    if world_file.web is not None:
        pages = "public and private addresses" if world_file.web.allow_private_pages else "public addresses"
        metadata |= {"web search of": get_host(world_file.web.search), "web pages of": pages}
    metadata["hosts"] = world_file.hosts()
    return metadata


_MAX_VARIABLE_CHARACTERS = 200
_MODEL_KEY_PATTERN = re.compile(
    r"(SHOWHOW|OPENAI|AZURE|ANTHROPIC|CLAUDE|GOOGLE|GEMINI|VERTEX|VERTEXAI|COHERE|FIREWORKS|TOGETHER|MISTRAL|MISTRALAI"
    r"|HUGGINGFACE|HUGGINGFACEHUB|HF|HUGGING_FACE|GROQ|DEEPSEEK|XAI|PERPLEXITY|PPLX|NVIDIA|AWS|BEDROCK|WATSONX|IBM"
    r"|OPENROUTER|OLLAMA|LITELLM|LANGCHAIN|LANGSMITH|CEREBRAS|SAMBANOVA|DASHSCOPE|MOONSHOT|UPSTAGE|REPLICATE|AI21|DATABRICKS"
    r"|TOGETHERAI|VOYAGE|ZHIPUAI|ARK|NEBIUS|JINA|WRITER|QIANFAN|GIGACHAT|LLM|MODEL"
    r")_\w+|CO_API_KEY|\w*(OPENAI|ANTHROPIC|GEMINI|LLM)\w*KEY\w*",
    re.IGNORECASE,
)


def is_model_key(variable: str) -> bool:
    """Whether the variable belongs to Showhow or to a known provider of language models."""
    # No variable of anything else has so long a name either.
    return len(variable) > _MAX_VARIABLE_CHARACTERS or _MODEL_KEY_PATTERN.fullmatch(variable) is not None
