"""Typed responses of a wiki's api.php; JSON of another shape is an error, never an empty result."""

import re
from collections.abc import Callable
from html import unescape
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from worlds.live.http.request import HttpResponse, InvalidResponse, ServerBusy, get_host

_MISSING_PAGE_CODES = frozenset({"missingtitle", "invalidtitle", "pagecannotexist", "nosuchpageid", "nosuchrevid"})
"""Errors that are an answer: there is no such page."""
_BUSY_CODES = re.compile(r"maxlag|ratelimited|readonly|.*too-busy.*|internal_api_error.*")
_HTML_TAG = re.compile(r"<[^>]*>")
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]|\[\[|\]\]")
_WIKI_EMPHASIS = re.compile(r"'{2,5}")

# PHP writes an empty object as an empty list.
_EmptyListAsObject = BeforeValidator(lambda value: {} if value == [] else value)


class _ApiError(BaseModel):
    code: str = "without a code"
    info: str = ""


class WikiApiResponse(BaseModel):
    """What every answer may have."""

    error: _ApiError | None = None


class TitleRedirect(BaseModel):
    """From one title to another, by spelling it as the wiki does or by a redirect."""

    source: str = Field(alias="from")
    to: str


class WikiSearchMatch(BaseModel):
    """One result of a search."""

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
    """The answer to titles."""

    query: _PagesResult


class _SearchResult(BaseModel):
    search: list[WikiSearchMatch]


class WikiSearchResponse(WikiApiResponse):
    """The answer to a search."""

    query: _SearchResult


class _ExtensionRecord(BaseModel):
    name: str = ""


class _ExtensionsResult(BaseModel):
    extensions: list[_ExtensionRecord]


class ExtensionsResponse(WikiApiResponse):
    """Response of the query for installed extensions."""

    query: _ExtensionsResult


class ParsedWikiPage(BaseModel):
    """A page as it is rendered."""

    title: str
    text: str
    properties: Annotated[dict[str, Any], _EmptyListAsObject] = {}
    redirects: list[TitleRedirect] = []


class ParseResponse(WikiApiResponse):
    """The answer to one page; None where there is no such page."""

    parse: ParsedWikiPage | None = None


class _LanguageText(BaseModel):
    value: str


class _SiteLink(BaseModel):
    url: str = ""


class WikibaseEntityRecord(BaseModel):
    """An entity in a Wikibase response."""

    labels: Annotated[dict[str, _LanguageText], _EmptyListAsObject] = {}
    descriptions: Annotated[dict[str, _LanguageText], _EmptyListAsObject] = {}
    aliases: Annotated[dict[str, list[_LanguageText]], _EmptyListAsObject] = {}
    sitelinks: Annotated[dict[str, _SiteLink], _EmptyListAsObject] = {}
    redirects: TitleRedirect | None = None
    missing: Any = None
    """Whatever it is, there is no such entity where it is told."""


class WikibaseEntitiesResponse(WikiApiResponse):
    """The answer to ids."""

    entities: Annotated[dict[str, WikibaseEntityRecord], _EmptyListAsObject]


class _WikibaseSearchMatch(BaseModel):
    id: str


class WikibaseSearchResponse(WikiApiResponse):
    """The answer to a name."""

    search: list[_WikibaseSearchMatch]


ResponseT = TypeVar("ResponseT", bound=WikiApiResponse)


def parse_response(answer: HttpResponse, response_type: type[ResponseT]) -> ResponseT:
    """The typed response; InvalidResponse for an error under a success status or another shape.

    ServerBusy if a retry may help.
    """
    host = get_host(answer.url)
    try:
        error = WikiApiResponse.model_validate_json(answer.body).error
        if error is None or (error.code in _MISSING_PAGE_CODES and response_type is ParseResponse):
            return response_type.model_validate_json(answer.body)
    except ValidationError as wrong:
        raise InvalidResponse(_format_validation_error(host, wrong)) from wrong
    message = strip_markup(error.info)
    if _BUSY_CODES.fullmatch(error.code):
        raise ServerBusy(f"{host} is busy ({message[:200] or error.code}).")
    raise InvalidResponse(f"{host} refused ({error.code}): {message[:300] or 'it does not say why'}")


def response_validator(response_type: type[WikiApiResponse]) -> Callable[[HttpResponse], None]:
    """A check that the answer is one of that shape."""

    def check(answer: HttpResponse) -> None:
        parse_response(answer, response_type)

    return check


def strip_markup(markup: str) -> str:
    """A snippet or message of the api without tags, entities and what little of a wiki's markup has a meaning."""
    text = unescape(_HTML_TAG.sub("", markup))
    return " ".join(_WIKI_EMPHASIS.sub("", _WIKI_LINK.sub(r"\1", text)).split()).lstrip("*#:; ")


def _format_validation_error(host: str, wrong: ValidationError) -> str:
    first = wrong.errors()[0]
    if first["type"] == "json_invalid":
        return f"{host} answered with JSON that is cut off or broken; ask for less, or try again in a minute."
    place = ".".join(map(str, first["loc"][:6])) or "the whole"
    return f"{host} answered with JSON that no MediaWiki writes (see {place}); check the address of its api."
