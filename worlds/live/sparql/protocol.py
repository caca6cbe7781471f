"""Query a SPARQL endpoint: SPARQLWrapper builds the request, the HTTP client sends it, the response becomes a table.

Error replies of the usual servers become one sentence that helps to repair the query.
"""

import json
import re
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from SPARQLWrapper import GET, JSON, POST, POSTDIRECTLY, URLENCODED, SPARQLWrapper

from worlds.embedded.sparql_guard import shorten_parser_message
from worlds.live.http.client import RecordingHttpClient
from worlds.live.http.endpoint import SparqlEndpoint
from worlds.live.http.request import (
    RETRY_STATUSES,
    HttpRequest,
    HttpResponse,
    HttpStatusError,
    InvalidResponse,
    get_host,
)
from worlds.live.sparql.results import drop_internal_columns, merge_rows, parse_results
from worlds.live.sparql.rewrite import PreparedQuery, prepare_query
from worlds.live.sparql.tokens import tokenize_query
from worlds.source import QueryRefused, SourceError, SourceTimeout, SourceUnavailable, Table

_MAX_MESSAGE_LENGTH = 400
_MAX_BODY_LENGTH = 4000
"""Characters of a message that are looked at."""
_TIMEOUT_PATTERN = re.compile(
    r"time[d-]?[ -]?out|S1TAT|S1T00|time limit|exceeds? the limit of .* seconds", re.IGNORECASE
)
_SYNTAX_ERROR_PATTERN = re.compile(
    r"SPARQL compiler|MalformedQuery|ParseException|syntax error|Invalid SPARQL", re.IGNORECASE
)
_QUERY_ECHO_PATTERN = re.compile(
    r"\n\s*(?:SPARQL query:|Was expecting|at [\w.$]+\()|SPARQL-QUERY:.*?(?=\w+Exception)", re.DOTALL
)
_JAVA_EXCEPTION_PATTERN = re.compile(r"(?:[\w.$]+(?:Exception|Error): )+")
_POSITION_PATTERN = re.compile(r"\d+:\d+")
_HTML_TAG_PATTERN = re.compile(r"<[^<>]{0,200}>")


def map_failure(status: int, body: bytes, host: str, query: PreparedQuery) -> SourceError:
    """The error for the query's author, from the error status and body."""
    raw = body.decode("utf-8", "replace")
    message = query.restore_line_numbers(_extract_message(raw))
    if status not in {401, 403, 404, 407} and _TIMEOUT_PATTERN.search(raw):
        return SourceTimeout(
            f"{host} stopped the query at its limit of time; ask for less, for example with more conditions or "
            "without sorting."
        )
    if status == 400 or (status == 500 and _SYNTAX_ERROR_PATTERN.search(raw)):
        return QueryRefused(
            f"The query is no valid SELECT or ASK: {message or 'the server does not say why'}"
            f"{' (line:column)' if _POSITION_PATTERN.search(message) else ''}. Mend it there and run it again."
        )
    if status in {413, 414}:
        return QueryRefused(f"{host} takes no query as long as this one; ask in smaller parts.")
    if status in {401, 403, 407}:
        return SourceUnavailable(
            f"{host} does not let us ask (status {status}{_format_detail(message)}); "
            "check the headers of the graph in the world's description and SHOWHOW_CONTACT."
        )
    if status == 404:
        return SourceUnavailable(f"{host} has no such address (status 404); check the graph's url in the description.")
    return SourceUnavailable(
        f"{host} could not answer (status {status}{_format_detail(message)}); ask otherwise or try later."
    )


def _format_detail(message: str) -> str:
    return f": {message}" if message else ""


def _extract_message(raw: str) -> str:
    """The message itself, without the query repeated, Java's traces and mark-up."""
    try:
        document = json.loads(raw)
    except ValueError:
        document = None
    if isinstance(document, dict):
        raw = str(document.get("exception") or document.get("message") or document.get("error") or raw)
        where = document.get("metadata")
        if isinstance(where, dict) and "line" in where:
            raw = f"at {where['line']}:{where.get('positionInLine', 0)}: {raw}"
    # Blazegraph repeats the whole query before it says what is wrong with it.
    raw = raw.rpartition("MalformedQueryException: ")[2][:_MAX_BODY_LENGTH]
    text = _JAVA_EXCEPTION_PATTERN.sub("", _HTML_TAG_PATTERN.sub(" ", _QUERY_ECHO_PATTERN.split(raw)[0] or raw))
    text = " ".join(shorten_parser_message(text).split()).rstrip(".")
    return text if len(text) <= _MAX_MESSAGE_LENGTH else f"{text[:_MAX_MESSAGE_LENGTH]} ..."


_MAX_URL_LENGTH = 4000
"""Longer ones are refused by some server or by something before it."""
_ACCEPTED_TYPES = ("application/sparql-results+json", "application/json", "text/json")
_QUERY_RETRY_STATUSES = RETRY_STATUSES - {500}
"""A server that fails at a query with 500 fails at it once more."""
_RECORDED_ERROR_STATUSES = frozenset({400})
"""A query that a server cannot read stays one, and a replay offline is to tell so."""
_WRAPPER_METHODS = {"GET": (GET, URLENCODED), "POST form": (POST, URLENCODED), "POST direct": (POST, POSTDIRECTLY)}


class SparqlClient:
    """Client of one endpoint; thread-safe."""

    def __init__(self, door: RecordingHttpClient, endpoint: SparqlEndpoint) -> None:
        self._door = door
        self.endpoint = endpoint
        self.host = get_host(endpoint.url)

    def select(self, sparql: str) -> Table:
        """The result of a query of our own; QueryRefused, SourceTimeout and SourceUnavailable say what went wrong."""
        # Rows of our own queries are bounded where they are written, and their columns are counted on.
        query = prepare_query(sparql, replace(self.endpoint, rows=1_000_000))
        return self._execute_checked(query, partial(self._validate_response, query, tokenize_query(sparql).columns))

    def execute(self, query: PreparedQuery) -> Table:
        """The result of a prepared query, IRIs as they are, cut at its limit."""
        return self._execute_checked(query, partial(self._validate_response, query, ()))

    def _execute_checked(self, query: PreparedQuery, check: Callable[[HttpResponse], None]) -> Table:
        try:
            answer = self._door.send(self._build_request(query, check))
        except HttpStatusError as failed:
            raise map_failure(failed.status, failed.body, self.host, query) from failed
        table = drop_internal_columns(parse_results(answer.body, self.host))
        # Virtuoso tells of its own limit in a header and nowhere else.
        most = answer.headers.get("x-sparql-maxrows", "")
        if most.isdigit() and len(table.rows) >= int(most):
            table = replace(table, truncated=True)
        if query.limit_added and len(table.rows) > self.endpoint.rows:
            table = replace(table, rows=table.rows[: self.endpoint.rows], truncated=True)
        return merge_rows(table, query.alias_columns) if query.alias_columns else table

    def _build_request(self, query: PreparedQuery, check: Callable[[HttpResponse], None]) -> HttpRequest:
        made = self._encode_query(query, self.endpoint.method)
        if len(made.full_url) > _MAX_URL_LENGTH and made.data is None:
            made = self._encode_query(query, "POST form")
        headers = {name: value for name, value in made.header_items() if name.lower() in {"accept", "content-type"}}
        content = made.data if isinstance(made.data, bytes) else b""
        return HttpRequest(
            made.full_url,
            made.get_method(),
            headers,
            content,
            _ACCEPTED_TYPES,
            check,
            _QUERY_RETRY_STATUSES,
            _RECORDED_ERROR_STATUSES,
        )

    def _encode_query(self, query: PreparedQuery, method: str) -> urllib.request.Request:
        wrapper = _RequestBuilder(self.endpoint.url)
        wrapper.setReturnFormat(JSON)
        wrapper.setOnlyConneg(True)
        way, how = _WRAPPER_METHODS[method]
        wrapper.setMethod(way)
        wrapper.setRequestMethod(how)
        if self.endpoint.default_graph:
            wrapper.addParameter("default-graph-uri", self.endpoint.default_graph)
        # Set as they are: setQuery would guess the form, and send what it takes for an update as one.
        wrapper.queryString, wrapper.queryType = query.text, query.form
        return wrapper.build_request()

    def _validate_response(self, query: PreparedQuery, columns: Sequence[str], answer: HttpResponse) -> None:
        table = parse_results(answer.body, self.host)
        if (table.boolean is None) != (query.form == "SELECT") or (columns and table.columns != tuple(columns)):
            raise InvalidResponse(
                f"{self.host} answered something other than it was asked; check the graph's url in the world's "
                "description."
            )


class _RequestBuilder(SPARQLWrapper):
    """SPARQLWrapper that hands out the request instead of sending it without deadline, limit and record."""

    def build_request(self) -> urllib.request.Request:
        made: urllib.request.Request = self._createRequest()
        return made
