"""A small web on loopback: pages about a harbour, and two search endpoints over them, one in SearXNG's shape.

with run_web() as web:
    web.searxng, web.other_search       # addresses of the endpoints
    web.server.routes["/pdf"] = ...     # a further page
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from urllib.parse import parse_qs, urlsplit

from tests.servers.faulty_server import FaultyServer, Handler, Responder, run_faulty_server, sends, status

SEARCH_KEY = "search-key-4711-0815"
RESULTS_PER_PAGE = 4


@dataclass(frozen=True, slots=True)
class HarbourPage:
    """A page of the web: its path, title, sentences and date."""

    path: str
    title: str
    sentences: tuple[str, ...]
    date: str | None = None


HARBOUR_PAGES = (
    HarbourPage(
        "/news/storm",
        "Storm over the harbour",
        ("The storm sank two barges.", "Ada Reed saw it from the quay.", "It passed at noon."),
        "2003-11-09",
    ),
    HarbourPage(
        "/people/ada",
        "Ada Reed & her kites",
        ("Ada Reed has flown kites since 1990.", "She works as a glazier in Gullhaven."),
    ),
    HarbourPage("/people/otto", "Otto Reed", ("Otto Reed sold his boat in 2001.", "Ada Reed is his sister.")),
    *(HarbourPage(f"/quay/{n}", f"Quay {n}", (f"Quay {n} has {n + 2} cranes.",)) for n in range(1, 10)),
)


def render(page: HarbourPage) -> bytes:
    """The page as HTML, with the navigation and the scripts of a usual site."""
    published = f'<meta property="article:published_time" content="{page.date}T08:00:00Z">' if page.date else ""
    text = "".join(f"<p>{escape(sentence)}</p>" for sentence in page.sentences)
    return (
        f'<!doctype html><html lang="en"><head><title>{escape(page.title)}</title>{published}'
        "<script>var menu = 'no text';</script></head><body><nav><a href='/'>Home</a></nav>"
        f"<main>{text}</main><footer>Imprint of the harbour</footer></body></html>"
    ).encode()


def html(body: bytes, kind: str = "text/html; charset=utf-8") -> Responder:
    """Respond with this page."""
    return sends(body, kind)


class HarbourWeb:
    """The pages and endpoints on one server."""

    def __init__(self, server: FaultyServer) -> None:
        self.server = server
        self.searxng = f"{server.url}/search"
        self.other_search = f"{server.url}/v2/find"
        server.respond_with(status(404, b"<html>gone</html>"))
        server.routes |= {page.path: html(render(page)) for page in HARBOUR_PAGES}
        server.routes |= {"/search": self._answer_like_searxng, "/v2/find": self._answer_in_another_shape}

    def address(self, path: str) -> str:
        """The address of the page with this path."""
        return self.server.url + path

    def paths(self, prefix: str = "") -> list[str]:
        """The paths of the received requests that begin like this, in order."""
        return [request.path for request in self.server.asked if request.path.startswith(prefix)]

    def describe(self, endpoint: str | None = None, *, private: bool = True, **limits: float) -> str:
        """A world.toml with this endpoint as its only source; by default its pages may be on loopback."""
        rates = {"per_minute": 1_000_000, "seconds": 30} | limits
        fields = "" if endpoint == self.other_search else 'parameters = { format = "json" }\npage = "pageno"\n'
        return (
            f'kind = "live"\ntitle = "The web of a harbour"\n[web]\nkind = "json"\n'
            f'search = "{endpoint or self.searxng}"\n{fields or OTHER_SHAPE}'
            f"allow_private_pages = {str(private).lower()}\n[limits]\n"
            + "".join(f"{name} = {value}\n" for name, value in rates.items())
        )

    def _matches(self, words: str) -> list[HarbourPage]:
        names = re.findall(r"\w+", words.casefold())
        texts = {page: f"{page.title} {' '.join(page.sentences)}".casefold() for page in HARBOUR_PAGES}
        return [page for page, text in texts.items() if all(name in text for name in names)]

    def _answer_like_searxng(self, handler: Handler) -> None:
        query = _parameters(handler)
        if query.get("format") != "json":
            html(b"<html><body>SearXNG</body></html>")(handler)
            return
        start = (int(query.get("pageno", "1")) - 1) * RESULTS_PER_PAGE
        results = [
            {
                "url": self.address(page.path),
                "title": page.title,
                "content": page.sentences[0],
                "publishedDate": f"{page.date}T08:00:00" if page.date else None,
                "engine": "harbour",
                "parsed_url": ["http", self.server.host, page.path, "", "", ""],
                "engines": ["harbour"],
                "positions": [1],
                "score": 1.0,
                "category": "general",
            }
            for page in self._matches(query["q"])[start : start + RESULTS_PER_PAGE]
        ]
        document = {"query": query["q"], "number_of_results": 0, "results": results, "unresponsive_engines": []}
        sends(json.dumps(document).encode())(handler)

    def _answer_in_another_shape(self, handler: Handler) -> None:
        if handler.headers.get("X-Search-Key") != SEARCH_KEY:
            status(401)(handler)
            return
        query = _parameters(handler)
        start = int(query["offset"])
        items = [
            {
                "headline": f"<b>{escape(page.title)}</b>",
                "link": {"href": self.address(page.path) + "#top"},
                "texts": [escape(page.sentences[-1])],
                "published": "Sun, 09 Nov 2003 08:00:00 GMT" if page.date else "some days ago",
            }
            for page in self._matches(query["words"])[start : start + int(query["limit"])]
        ]
        sends(json.dumps({"web": {"items": items}}).encode())(handler)


OTHER_SHAPE = """query = "words"
headers = { X-Search-Key = "HARBOUR_SEARCH" }
count = "limit"
page = "offset"
first_page = 0
page_step = 8
results = "web.items"
title = "headline"
address = "link.href"
snippet = "texts.0"
date = "published"
failures = ""
"""
"""The fields of [web] for `other_search`."""


def _parameters(handler: Handler) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(handler.path).query).items()}


@contextmanager
def run_web(address: str = "127.0.0.1") -> Iterator[HarbourWeb]:
    """Run the web on a free port of this IPv4 address."""
    with run_faulty_server(address) as server:
        yield HarbourWeb(server)
