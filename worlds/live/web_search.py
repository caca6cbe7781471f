"""Live web pages: a JSON search endpoint such as SearXNG, and the pages of its results, over HTTP.

A page is read only if a search of this world returned its address or a person typed it, so that no text on a page can
make a language model send a request elsewhere. Hosts are checked when they are connected to (http/transport.py).
"""

import json
import re
from dataclasses import replace
from html import unescape
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from showhow.worlds.live.description import WebTable
from showhow.worlds.live.http.client import RecordingHttpClient
from showhow.worlds.live.http.request import (
    HttpRequest,
    HttpResponse,
    HttpStatusError,
    InvalidResponse,
    ServerBusy,
    get_host,
    require_complete_json,
)
from showhow.worlds.live.http.response_cache import ResponseCache
from showhow.worlds.live.web_page import HTML_TYPE, TEXT_TYPE, parse_date, read_web_page
from showhow.worlds.source import NotFound, WebHit, WebPage
from showhow.worlds.text_normalization import replace_surrogates, replace_unstorable, truncate_text

MAX_RESULT_PAGES = 3
"""Pages of results that one search requests at most."""
_MAX_QUERY_LENGTH = 500
_MAX_SNIPPET_LENGTH = 300
_MAX_TITLE_LENGTH = 300
_MAX_ERROR_LENGTH = 200
_MAX_ADDRESS_LENGTH = 2000
_MAX_HOST_LENGTH = 200
"""Shorter than the 253 characters of DNS, since the request limits of a host are files with its name."""
_SAFE_CHARACTERS = "%/:?@!$&'()*+,;=~[]"
_HTML_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_HOST = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\]")
_GONE_STATUSES = frozenset({404, 410})
_MISSING = object()


def normalize_address(address: str) -> str | None:
    """The address of a page as it is requested, in ASCII and without its fragment; None if it cannot be one.

    It begins with http:// or https://, and has no user name and no password.
    """
    try:
        parts = urlsplit(address.strip())
        # urlsplit checks the port only when it is read.
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode("ascii")
        path, query = (quote(part, safe=_SAFE_CHARACTERS) for part in (parts.path or "/", parts.query))
    except ValueError:
        return None
    host = f"[{host}]" if ":" in host else host
    if parts.scheme not in {"http", "https"} or "@" in parts.netloc or port == 0 or not _HOST.fullmatch(host):
        return None
    netloc = host if port is None else f"{host}:{port}"
    normalized = urlunsplit((parts.scheme, netloc, path, query, ""))
    return normalized if len(host) <= _MAX_HOST_LENGTH and len(normalized) <= _MAX_ADDRESS_LENGTH else None


class LiveWeb:
    """Web pages through a JSON search endpoint; thread-safe.

    The clients differ: that of the pages sends no key of the search endpoint, and refuses private addresses.
    """

    def __init__(
        self,
        table: WebTable,
        search_client: RecordingHttpClient,
        page_client: RecordingHttpClient,
        cache: ResponseCache,
    ) -> None:
        self._table = table
        self._search_client = search_client
        self._page_client = page_client
        self._cache = cache

    def search(self, query: str, k: int) -> list[WebHit]:
        """The first k results of the endpoint, in its order; [] if it has none."""
        words = " ".join(replace_surrogates(query).split())[:_MAX_QUERY_LENGTH]
        if k < 1 or not words:
            return []
        hits: dict[str, WebHit] = {}
        with self._search_client.shared_deadline():
            for page in range(MAX_RESULT_PAGES if self._table.page else 1):
                known = len(hits)
                for hit in self._request_results(words, k, page):
                    hits.setdefault(hit.address, hit)
                if len(hits) >= k or len(hits) == known:
                    break
        best = [replace(hit, score=round(1 / (1 + rank), 3)) for rank, hit in enumerate(list(hits.values())[:k])]
        self._cache.add_readable_pages(hit.address for hit in best)
        return best

    def fetch(self, address: str, *, typed: bool = False) -> WebPage:
        """The text of the page at this address, HTML or plain text, redirects followed.

        NotFound if there is none, if it is no address, or if neither a search returned nor a person `typed` it;
        SourceUnavailable if it cannot be read.
        """
        normalized = normalize_address(address)
        if normalized is None:
            raise NotFound(
                f"{truncate_text(address, _MAX_ERROR_LENGTH)!r} is not the address of a page; use an address from a "
                "search result."
            )
        if not typed and not self._cache.is_readable_page(normalized):
            raise NotFound(
                f"The page {normalized} was not returned by a search; only results of websearch and addresses that a "
                "person typed are read."
            )
        language = self._table.language
        checked_pages: list[WebPage] = []

        def check(response: HttpResponse) -> None:
            checked_pages.append(read_web_page(normalized, response, language))

        request = HttpRequest(
            normalized,
            headers={"Accept": f"{HTML_TYPE}, {TEXT_TYPE}", "Accept-Language": language},
            accepted_types=(HTML_TYPE, TEXT_TYPE),
            validate_response=check,
            recorded_error_statuses=_GONE_STATUSES,
            advice="read another page",
        )
        try:
            response = self._page_client.send(request)
        except HttpStatusError as error:
            if error.status in _GONE_STATUSES:
                raise NotFound(
                    f"There is no page at {normalized} any more ({error.status}); read another one."
                ) from error
            raise
        if typed:
            self._cache.add_readable_pages([normalized])
        return checked_pages[-1] if checked_pages else read_web_page(normalized, response, language)

    def _request_results(self, words: str, k: int, page: int) -> list[WebHit]:
        table = self._table
        parameters = {**table.parameters, table.query: words}
        if table.count:
            parameters[table.count] = str(k)
        if table.page:
            parameters[table.page] = str(table.first_page + page * table.page_step)
        request = HttpRequest(
            f"{table.search}?{urlencode(parameters)}",
            headers={"Accept": "application/json"},
            validate_response=self._check_results,
        )
        return self._parse_results(self._search_client.send(request))

    def _check_results(self, response: HttpResponse) -> None:
        """The validator of searches."""
        self._parse_results(response)

    def _parse_results(self, response: HttpResponse) -> list[WebHit]:
        """The results of a response; InvalidResponse if its JSON has another shape than world.toml says.

        ServerBusy for an empty list with a report of failed engines: that is no search without results.
        """
        host, table = get_host(response.url), self._table
        require_complete_json(response)
        document = json.loads(response.body)
        results = _follow_path(document, table.results)
        if not isinstance(results, list):
            raise _shape_error(host, "results", table.results or "the top", "list")
        failures = _follow_path(document, table.failures) if table.failures else _MISSING
        if not results and failures is not _MISSING and failures:
            reason = truncate_text(json.dumps(failures, ensure_ascii=False), _MAX_ERROR_LENGTH)
            raise ServerBusy(f"{host} found nothing, and reports failures: {replace_unstorable(reason)}")
        hits = [hit for result in results if (hit := self._parse_hit(result)) is not None]
        for field, path in (("address", table.address), ("title", table.title)):
            if results and not any(isinstance(_follow_path(result, path), str) for result in results):
                raise _shape_error(host, field, f"{path} of its results", "text")
        return hits

    def _parse_hit(self, result: Any) -> WebHit | None:
        """One result; None if its address is missing or not that of a page, such as a file on an FTP server."""
        table = self._table
        address = _follow_path(result, table.address)
        normalized = normalize_address(address) if isinstance(address, str) else None
        if normalized is None:
            return None
        title = _plain_text(_follow_path(result, table.title)) or normalized.partition("://")[2]
        snippet = _plain_text(_follow_path(result, table.snippet)) if table.snippet else ""
        day = _follow_path(result, table.date) if table.date else None
        return WebHit(
            truncate_text(title, _MAX_TITLE_LENGTH),
            truncate_text(snippet, _MAX_SNIPPET_LENGTH),
            normalized,
            date=parse_date(day) if isinstance(day, str) else None,
        )


def _follow_path(value: Any, path: str) -> Any:
    """The value at this path of names and list indexes, joined by dots; _MISSING if there is none."""
    for name in path.split(".") if path else ():
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and len(name) < 10 and int(name) < len(value):
            value = value[int(name)]
        else:
            return _MISSING
    return value


def _plain_text(value: Any) -> str:
    """A text without HTML tags, in one line; "" for anything else."""
    return replace_unstorable(" ".join(unescape(_HTML_TAG.sub("", value)).split())) if isinstance(value, str) else ""


def _shape_error(host: str, field: str, path: str, expected: str) -> InvalidResponse:
    return InvalidResponse(
        f"{host} answered with JSON that has no {expected} at {path}; correct {field} under [web] in world.toml."
    )
