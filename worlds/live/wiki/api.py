"""Client of a MediaWiki's api.php: search by wikipedia-api, other requests directly, all through the HTTP client."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import httpx
import wikipediaapi

from worlds.live.http.client import RecordingHttpClient
from worlds.live.http.request import HttpRequest
from worlds.live.wiki.api_replies import (
    ExtensionsResponse,
    PagesResponse,
    ResponseT,
    WikiPageRecord,
    WikiSearchResponse,
    parse_response,
    response_validator,
    strip_markup,
)

MAX_TITLE_BYTES = 255
"""In bytes; no wiki has a longer one."""
_BATCH_SIZE = 20
"""Titles in one request: with the beginnings of their texts the api takes no more, and 50 without."""
_MARKUP_PATTERN = re.compile(
    r"\{\{|\}\}|\{\||\|\}|\|-|\|\||^#?redirect\b|(?:class|style|span|scope)=|<ref", re.IGNORECASE
)
_DISAMBIGUATION_PATTERN = re.compile(
    r"\b(?:may|can|could) (?:also )?(?:refer to|mean|stand for)[^.]*:?$|\bname of:?$", re.IGNORECASE
)
_ILLEGAL_TITLE_CHARACTERS = re.compile(r"[#<>\[\]|{}\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class WikiSearchHit:
    """One result of a search, the snippet in plain text."""

    title: str
    snippet: str


@dataclass(frozen=True, slots=True)
class WikiPageProperties:
    """Properties of a wiki page."""

    title: str
    item: str | None = None
    description: str | None = None
    extract: str | None = None
    """How its text begins, where the wiki tells that."""
    is_disambiguation: bool = False
    """Whether it only lists what else is called so."""


class WikiApi:
    """Asks one api.php; safe to share between threads."""

    def __init__(self, url: str, language: str, door: RecordingHttpClient) -> None:
        self._url = url
        self._door = door
        self._wiki = wikipediaapi.Wikipedia(
            user_agent="Showhow", language=language, max_retries=0, transport=_RecordingTransport(url, door)
        )

    def request(self, parameters: Mapping[str, str | int], response_type: type[ResponseT]) -> ResponseT:
        """The parsed response; SourceError for any error but a missing page."""
        query = urlencode({**parameters, "format": "json", "formatversion": 2})
        return parse_response(
            self._door.send(HttpRequest(f"{self._url}?{query}", validate_response=response_validator(response_type))),
            response_type,
        )

    def search(self, words: str, what: str, limit: int) -> list[WikiSearchHit]:
        """The wiki's own search; `what` is title, text or nearmatch (the page of exactly that name, case aside)."""
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
        led_to = {step.source: step.to for step in (*reply.normalized, *reply.redirects)}
        pages = {page.title: page for page in reply.pages if page.pageid is not None}
        properties = {}
        for title in titles:
            end = title
            for _ in range(3):
                end = led_to.get(end, end)
            if end in pages:
                properties[title] = _build_properties(pages[end])
        return properties

    def has_title_search(self) -> bool:
        """Whether the wiki supports title-only search; with CirrusSearch it is neither supported nor needed."""
        reply = self.request({"action": "query", "meta": "siteinfo", "siprop": "extensions"}, ExtensionsResponse)
        return all(extension.name != "CirrusSearch" for extension in reply.query.extensions)


class _RecordingTransport(httpx.BaseTransport):
    """Sends the requests of wikipedia-api to the configured api.php through our HTTP client."""

    def __init__(self, url: str, door: RecordingHttpClient) -> None:
        self._url = url
        self._door = door

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        query = request.url.query.decode("ascii")
        answer = self._door.send(
            HttpRequest(f"{self._url}?{query}", validate_response=response_validator(WikiSearchResponse))
        )
        return httpx.Response(answer.status, headers={"content-type": answer.content_type}, content=answer.body)


def _is_valid_title(title: str) -> bool:
    return (
        bool(title.strip()) and not _ILLEGAL_TITLE_CHARACTERS.search(title) and len(title.encode()) <= MAX_TITLE_BYTES
    )


def _clean_snippet(markup: str) -> str:
    """A snippet in plain text; "" where it is mostly the markup of templates and tables."""
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
