"""Client of a MediaWiki's api.php: search by wikipedia-api, other requests directly, all through the HTTP client."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

import httpx
import wikipediaapi
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from showhow.worlds.live.http.client import RecordingHttpClient
from showhow.worlds.live.http.request import HttpRequest, HttpResponse, InvalidResponse, ServerBusy, get_host

_MISSING_PAGE_CODES = frozenset({"missingtitle", "invalidtitle", "pagecannotexist", "nosuchpageid", "nosuchrevid"})
"""Error codes that mean that the page does not exist."""
_BUSY_CODES = re.compile(r"maxlag|ratelimited|readonly|.*too-busy.*|internal_api_error.*")
_HTML_TAG = re.compile(r"<[^<>]*>")
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]|\[\[|\]\]")
_WIKI_EMPHASIS = re.compile(r"'{2,5}")

# PHP writes an empty object as an empty list.
_EmptyListAsObject = BeforeValidator(lambda value: {} if value == [] else value)


class _ApiError(BaseModel):
    code: str = "without a code"
    info: str = ""


class WikiApiResponse(BaseModel):
    """The fields of every response."""

    error: _ApiError | None = None


class TitleRedirect(BaseModel):
    """A title and the title that it normalizes or redirects to."""

    source: str = Field(alias="from")
    to: str


class WikiSearchMatch(BaseModel):
    """One search result."""

    title: str
    ns: int = 0
    snippet: str = ""
    size: int = 0
    wordcount: int = 0


class WikiPageRecord(BaseModel):
    """A page in a list of pages; it does not exist if `pageid` is missing."""

    title: str
    pageid: int | None = None
    description: str | None = None
    extract: str = ""
    pageprops: Annotated[dict[str, str], _EmptyListAsObject] = {}


class _PagesResult(BaseModel):
    normalized: list[TitleRedirect] = []
    redirects: list[TitleRedirect] = []
    pages: list[WikiPageRecord] = []


class PagesResponse(WikiApiResponse):
    """Response of the query for pages by title."""

    query: _PagesResult


class _SearchResult(BaseModel):
    search: list[WikiSearchMatch]


class WikiSearchResponse(WikiApiResponse):
    """Response of a search."""

    query: _SearchResult


class _ExtensionRecord(BaseModel):
    name: str = ""


class _ExtensionsResult(BaseModel):
    extensions: list[_ExtensionRecord]


class ExtensionsResponse(WikiApiResponse):
    """Response of the query for installed extensions."""

    query: _ExtensionsResult


class ParsedWikiPage(BaseModel):
    """A rendered page."""

    title: str
    text: str
    properties: Annotated[dict[str, Any], _EmptyListAsObject] = {}
    redirects: list[TitleRedirect] = []


class ParseResponse(WikiApiResponse):
    """Response of action=parse; None if the page does not exist."""

    parse: ParsedWikiPage | None = None


class _LanguageText(BaseModel):
    value: str


class _SiteLink(BaseModel):
    title: str = ""
    url: str = ""


class WikibaseEntityRecord(BaseModel):
    """An entity in a Wikibase response."""

    labels: Annotated[dict[str, _LanguageText], _EmptyListAsObject] = {}
    descriptions: Annotated[dict[str, _LanguageText], _EmptyListAsObject] = {}
    aliases: Annotated[dict[str, list[_LanguageText]], _EmptyListAsObject] = {}
    sitelinks: Annotated[dict[str, _SiteLink], _EmptyListAsObject] = {}
    redirects: TitleRedirect | None = None
    missing: Any = None
    """Present, with any value, if the entity does not exist."""


class WikibaseEntitiesResponse(WikiApiResponse):
    """Response of wbgetentities."""

    entities: Annotated[dict[str, WikibaseEntityRecord], _EmptyListAsObject]


class _WikibaseSearchMatch(BaseModel):
    id: str


class WikibaseSearchResponse(WikiApiResponse):
    """Response of wbsearchentities."""

    search: list[_WikibaseSearchMatch]


ResponseT = TypeVar("ResponseT", bound=WikiApiResponse)


def parse_response(response: HttpResponse, response_type: type[ResponseT]) -> ResponseT:
    """The typed response; InvalidResponse for JSON of another shape or an API error under a success status.

    ServerBusy if a retry may succeed.
    """
    host = get_host(response.url)
    try:
        api_error = WikiApiResponse.model_validate_json(response.body).error
        if api_error is None or (api_error.code in _MISSING_PAGE_CODES and response_type is ParseResponse):
            return response_type.model_validate_json(response.body)
    except ValidationError as error:
        raise InvalidResponse(_format_validation_error(host, error)) from error
    message = strip_markup(api_error.info)
    if _BUSY_CODES.fullmatch(api_error.code):
        raise ServerBusy(f"{host} is busy ({message[:200] or api_error.code}).")
    raise InvalidResponse(f"{host} refused ({api_error.code}): {message[:300] or 'no reason given'}")


def request_json(
    http_client: RecordingHttpClient,
    url: str,
    parameters: Mapping[str, str | int],
    response_type: type[ResponseT],
) -> ResponseT:
    """The parsed response of an api.php; SourceError for any error but a missing page."""
    query = urlencode({**parameters, "format": "json", "formatversion": 2})
    request = HttpRequest(f"{url}?{query}", validate_response=response_validator(response_type))
    return parse_response(http_client.send(request), response_type)


def response_validator(response_type: type[WikiApiResponse]) -> Callable[[HttpResponse], None]:
    """A validator for HttpRequest that accepts responses of this type only."""

    def validate(response: HttpResponse) -> None:
        parse_response(response, response_type)

    return validate


def strip_markup(markup: str) -> str:
    """The text of a snippet or message of the API without HTML tags, entities and wiki markup."""
    text = unescape(_HTML_TAG.sub("", markup))
    return " ".join(_WIKI_EMPHASIS.sub("", _WIKI_LINK.sub(r"\1", text)).split()).lstrip("*#:; ")


def _format_validation_error(host: str, error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"{host} answered with JSON that is truncated or invalid; request less, or try again in a minute."
    path = ".".join(map(str, first["loc"][:6])) or "the whole document"
    return f"{host} answered with JSON that is not MediaWiki's (at {path}); check the address of its api."


MAX_TITLE_BYTES = 255
"""MediaWiki's limit of a title's length."""
_BATCH_SIZE = 20
"""Titles in one request; the API allows 20 with extracts, 50 without."""
_MARKUP_PATTERN = re.compile(
    r"\{\{|\}\}|\{\||\|\}|\|-|\|\||^#?redirect\b|(?:class|style|span|scope)=|<ref", re.IGNORECASE
)
_DISAMBIGUATION_PATTERN = re.compile(
    r"\b(?:may|can|could) (?:also )?(?:refer to|mean|stand for)[^.]*:?$|\bname of:?$", re.IGNORECASE
)
_ILLEGAL_TITLE_CHARACTERS = re.compile(r"[#<>\[\]|{}\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class WikiSearchHit:
    """One search result; the snippet is plain text."""

    title: str
    snippet: str


@dataclass(frozen=True, slots=True)
class WikiPageProperties:
    """Properties of a wiki page."""

    title: str
    item: str | None = None
    description: str | None = None
    extract: str | None = None
    """The first sentences of its text, if the wiki returns extracts."""
    is_disambiguation: bool = False
    """Whether the page only lists the meanings of its title."""


class WikiApi:
    """Client of one api.php; thread-safe."""

    def __init__(self, url: str, language: str, http_client: RecordingHttpClient) -> None:
        self._url = url
        self._http_client = http_client
        self._wiki = wikipediaapi.Wikipedia(
            user_agent="Showhow", language=language, max_retries=0, transport=_RecordingTransport(url, http_client)
        )

    def request(self, parameters: Mapping[str, str | int], response_type: type[ResponseT]) -> ResponseT:
        """The parsed response; SourceError for any error but a missing page."""
        return request_json(self._http_client, self._url, parameters, response_type)

    def search(self, words: str, what: str, limit: int) -> list[WikiSearchHit]:
        """The wiki's own search; `what` is title, text or nearmatch (the page with this title, ignoring case)."""
        pages = self._wiki.search(words, limit=limit, what=what).pages
        return [
            WikiSearchHit(title, _clean_snippet(page.search_meta.snippet if page.search_meta else ""))
            for title, page in pages.items()
        ]

    def load_properties(self, titles: Sequence[str]) -> dict[str, WikiPageProperties]:
        """Page properties by requested title, redirects followed; missing pages are left out."""
        pages: dict[str, WikiPageProperties] = {}
        valid_titles = [title for title in dict.fromkeys(titles) if _is_valid_title(title)]
        for start in range(0, len(valid_titles), _BATCH_SIZE):
            pages |= self._load_properties_batch(valid_titles[start : start + _BATCH_SIZE])
        return pages

    def _load_properties_batch(self, titles: Sequence[str]) -> dict[str, WikiPageProperties]:
        reply = self.request(
            {
                "action": "query",
                "titles": "|".join(titles),
                "redirects": 1,
                "prop": "pageprops|description|extracts",
                "ppprop": "wikibase_item|wikibase-shortdesc|disambiguation",
                "exintro": 1,
                "explaintext": 1,
                "exsentences": 2,
                "exlimit": _BATCH_SIZE,
            },
            PagesResponse,
        ).query
        targets = {redirect.source: redirect.to for redirect in (*reply.normalized, *reply.redirects)}
        pages = {page.title: page for page in reply.pages if page.pageid is not None}
        properties = {}
        for title in titles:
            target = title
            # Normalization, a redirect, and one spare.
            for _ in range(3):
                target = targets.get(target, target)
            if target in pages:
                properties[title] = _build_properties(pages[target])
        return properties

    def has_title_search(self) -> bool:
        """Whether the wiki supports title-only search; with CirrusSearch it is neither supported nor needed."""
        reply = self.request({"action": "query", "meta": "siteinfo", "siprop": "extensions"}, ExtensionsResponse)
        return all(extension.name != "CirrusSearch" for extension in reply.query.extensions)


class _RecordingTransport(httpx.BaseTransport):
    """Sends the requests of wikipedia-api to the configured api.php through our HTTP client."""

    def __init__(self, url: str, http_client: RecordingHttpClient) -> None:
        self._url = url
        self._http_client = http_client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        query = request.url.query.decode("ascii")
        response = self._http_client.send(
            HttpRequest(f"{self._url}?{query}", validate_response=response_validator(WikiSearchResponse))
        )
        return httpx.Response(response.status, headers={"content-type": response.content_type}, content=response.body)


def _is_valid_title(title: str) -> bool:
    return (
        bool(title.strip()) and not _ILLEGAL_TITLE_CHARACTERS.search(title) and len(title.encode()) <= MAX_TITLE_BYTES
    )


def _clean_snippet(markup: str) -> str:
    """A snippet in plain text; "" if it contains markup of templates or tables."""
    text = strip_markup(markup)
    return "" if _MARKUP_PATTERN.search(text) else text


def _build_properties(page: WikiPageRecord) -> WikiPageProperties:
    properties = page.pageprops
    extract = " ".join(page.extract.split())
    return WikiPageProperties(
        page.title,
        properties.get("wikibase_item"),
        page.description or properties.get("wikibase-shortdesc") or None,
        extract or None,
        "disambiguation" in properties
        or page.title.endswith("(disambiguation)")
        or bool(_DISAMBIGUATION_PATTERN.search(extract)),
    )
