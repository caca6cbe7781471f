"""The api.php of a MediaWiki: searching by wikipedia-api, and what that lacks, all through the door."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import httpx
import wikipediaapi

from worlds.live.door import Door
from worlds.live.request import Request
from worlds.live.wiki_answers import Extensions, Matches, Page, Pages, Wanted, plain, read_said, saying

LONGEST_TITLE = 255
"""In bytes; no wiki has a longer one."""
_MOST_EXTRACTS = 20
"""Titles in one request: with the beginnings of their texts the api takes no more, and 50 without."""
_CODE = re.compile(r"\{\{|\}\}|\{\||\|\}|\|-|\|\||^#?redirect\b|(?:class|style|span|scope)=|<ref", re.IGNORECASE)
_LISTS = re.compile(r"\b(?:may|can|could) (?:also )?(?:refer to|mean|stand for)[^.]*:?$|\bname of:?$", re.IGNORECASE)
_ILLEGAL = re.compile(r"[#<>\[\]|{}\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Found:
    """One result of a search, the snippet in plain text."""

    title: str
    snippet: str


@dataclass(frozen=True, slots=True)
class Properties:
    """What a wiki tells of one of its pages."""

    title: str
    item: str | None = None
    description: str | None = None
    extract: str | None = None
    """How its text begins, where the wiki tells that."""
    choices: bool = False
    """Whether it only lists what else is called so."""


class WikiApi:
    """Asks one api.php; safe to share between threads."""

    def __init__(self, url: str, language: str, door: Door) -> None:
        self._url = url
        self._door = door
        self._wiki = wikipediaapi.Wikipedia(
            user_agent="Showhow", language=language, max_retries=0, transport=_Through(url, door)
        )

    def ask(self, parameters: Mapping[str, str | int], wanted: type[Wanted]) -> Wanted:
        """What the api says; errors other than of a missing page are a SourceError."""
        asked = urlencode({**parameters, "format": "json", "formatversion": 2})
        return read_said(self._door.send(Request(f"{self._url}?{asked}", check=saying(wanted))), wanted)

    def search(self, words: str, what: str, limit: int) -> list[Found]:
        """The wiki's own search; `what` is title, text or nearmatch (the page of exactly that name, case aside)."""
        pages = self._wiki.search(words, limit=limit, what=what).pages
        return [
            Found(title, _snippet(page.search_meta.snippet if page.search_meta else ""))
            for title, page in pages.items()
        ]

    def properties(self, titles: Sequence[str]) -> dict[str, Properties]:
        """By each title as it was given: what is told of the page there, redirects followed; without missing ones."""
        known: dict[str, Properties] = {}
        asked = [title for title in dict.fromkeys(titles) if _possible(title)]
        for start in range(0, len(asked), _MOST_EXTRACTS):
            known |= self._batch(asked[start : start + _MOST_EXTRACTS])
        return known

    def _batch(self, titles: Sequence[str]) -> dict[str, Properties]:
        found = self.ask(
            {
                "action": "query",
                "titles": "|".join(titles),
                "redirects": 1,
                "prop": "pageprops|description|extracts",
                "ppprop": "wikibase_item|wikibase-shortdesc|disambiguation",
                "exintro": 1,
                "explaintext": 1,
                "exsentences": 2,
                "exlimit": _MOST_EXTRACTS,
            },
            Pages,
        ).query
        led_to = {step.start: step.to for step in (*found.normalized, *found.redirects)}
        pages = {page.title: page for page in found.pages if page.pageid is not None}
        known = {}
        for title in titles:
            end = title
            for _ in range(3):
                end = led_to.get(end, end)
            if end in pages:
                known[title] = _properties(pages[end])
        return known

    def has_title_search(self) -> bool:
        """Whether titles can be searched on their own; where CirrusSearch works they cannot, and need not be."""
        found = self.ask({"action": "query", "meta": "siteinfo", "siprop": "extensions"}, Extensions)
        return all(each.name != "CirrusSearch" for each in found.query.extensions)


class _Through(httpx.BaseTransport):
    """Sends what wikipedia-api searches for in its Wikipedia through the door, to the api.php that is meant."""

    def __init__(self, url: str, door: Door) -> None:
        self._url = url
        self._door = door

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        asked = request.url.query.decode("ascii")
        answer = self._door.send(Request(f"{self._url}?{asked}", check=saying(Matches)))
        return httpx.Response(answer.status, headers={"content-type": answer.content_type}, content=answer.body)


def _possible(title: str) -> bool:
    return bool(title.strip()) and not _ILLEGAL.search(title) and len(title.encode()) <= LONGEST_TITLE


def _snippet(markup: str) -> str:
    """A snippet in plain text; "" where it is mostly the markup of templates and tables."""
    text = plain(markup)
    return "" if _CODE.search(text) else text


def _properties(page: Page) -> Properties:
    told = page.pageprops
    extract = " ".join(page.extract.split())
    return Properties(
        page.title,
        told.get("wikibase_item"),
        page.description or told.get("wikibase-shortdesc") or None,
        extract or None,
        "disambiguation" in told or page.title.endswith("(disambiguation)") or bool(_LISTS.search(extract)),
    )
