"""Query a SPARQL endpoint: SPARQLWrapper asks it through the HTTP client, and the response becomes a table.

An error reply becomes one sentence that helps to repair the query, or a stopped query. A server is judged by what its
reply says, not by its name: some answer 429 to a query that ran out of time.
"""

import json
import re
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from html import unescape
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from SPARQLWrapper import GET, JSON, POST, POSTDIRECTLY, URLENCODED, SPARQLWrapper, Wrapper

from showhow.worlds.live.description import SparqlEndpoint
from showhow.worlds.live.http.client import RecordingHttpClient
from showhow.worlds.live.http.request import (
    RETRY_STATUSES,
    HttpRequest,
    HttpResponse,
    HttpStatusError,
    InvalidResponse,
    get_host,
)
from showhow.worlds.live.sparql.rewrite import INTERNAL_PREFIX, PreparedQuery, prepare_query
from showhow.worlds.source import Cell, QueryRefused, SourceError, SourceTimeout, SourceUnavailable, Table
from showhow.worlds.sparql_syntax import shorten_parser_message, tokenize_query
from showhow.worlds.text_normalization import replace_unstorable

_XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
_RDF_LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
_VIRTUOSO_ASK = "__ASK_RETVAL"
_EXCERPT_LENGTH = 120


def parse_results(body: bytes, host: str) -> Table:
    """The table in a server's JSON; SourceUnavailable if the JSON is truncated or not a query result.

    IRIs become cells of kind "iri" with the full IRI, also those of entities. Rows before a message of an error, which
    servers can only append once they have sent status 200, are a truncated table with a note.
    """
    interrupted = None
    try:
        document = _parse_json_object(body, host)
    except SourceUnavailable:
        interrupted = _parse_interrupted(body)
        if interrupted is None:
            raise
        document = interrupted
    try:
        if isinstance(document.get("boolean"), bool):
            return Table(boolean=document["boolean"])
        columns = _parse_columns(document["head"])
        bindings = document["results"]["bindings"]
        if columns == (_VIRTUOSO_ASK,):
            # False is an empty result, or a row with 0.
            return Table(boolean=any(row[_VIRTUOSO_ASK]["value"] in {"1", "true"} for row in bindings))
        rows = tuple(tuple(_parse_cell(binding.get(column)) for column in columns) for binding in bindings)
    except (KeyError, TypeError, AttributeError) as error:
        raise SourceUnavailable(
            f"{host} answered with JSON that is not a query result ({_format_excerpt(body)}); "
            "check the graph's url in the world's description."
        ) from error
    return _mark_partial(Table(columns, rows), host) if interrupted else Table(columns, rows)


def _mark_partial(table: Table, host: str, reason: str = "") -> Table:
    detail = f": {reason[:_EXCERPT_LENGTH].rstrip('.')}" if reason else ""
    note = (
        f"This result is partial, since {host} stopped the query{detail}. Rows are missing, and counts are too small; "
        "narrow the query or run it again."
    )
    return replace(table, truncated=True, note=note)


def drop_internal_columns(table: Table) -> Table:
    """The table without the helper columns that SELECT * returns."""
    positions = [n for n, column in enumerate(table.columns) if not column.startswith(INTERNAL_PREFIX)]
    if len(positions) == len(table.columns):
        return table
    columns = tuple(table.columns[n] for n in positions)
    return replace(table, columns=columns, rows=tuple(tuple(row[n] for n in positions) for row in table.rows))


def merge_rows(table: Table, columns: Sequence[str]) -> Table:
    """Merge rows that differ in these columns only; the merged cell lists their values, separated by commas."""
    merged_columns = [table.columns.index(column) for column in columns]
    groups: dict[object, list[tuple[Cell | None, ...]]] = {}
    for number, row in enumerate(table.rows):
        shared_cells = tuple(cell for n, cell in enumerate(row) if n not in merged_columns)
        has_value = any(row[n] is not None for n in merged_columns)
        groups.setdefault(shared_cells if has_value else number, []).append(row)
    return replace(table, rows=tuple(_merge_group(group, merged_columns) for group in groups.values()))


def _merge_group(rows: Sequence[tuple[Cell | None, ...]], merged_columns: Sequence[int]) -> tuple[Cell | None, ...]:
    merged = list(rows[0])
    for n in merged_columns:
        cells = list(dict.fromkeys(cell for row in rows if (cell := row[n]) is not None))
        if cells:
            merged[n] = replace(cells[0], value=", ".join(cell.value for cell in cells))
    return tuple(merged)


def _parse_columns(head: dict[str, Any]) -> tuple[str, ...]:
    names = head.get("vars") or []
    if not isinstance(names, list):
        raise TypeError("the columns are not a list")
    return tuple(map(str, names))


def _parse_json_object(body: bytes, host: str) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except RecursionError as error:
        raise SourceUnavailable(
            f"{host} answered with JSON that is nested too deeply for a query result; "
            "check the graph's url in the world's description."
        ) from error
    except ValueError as error:
        # A server that stops in the middle of a result has already sent status 200.
        if body.lstrip()[:1] == b"{":
            raise SourceUnavailable(
                f"The response of {host} ends after {len(body):,} bytes: the server stopped the query, "
                "probably at its time limit; narrow the query or run it again."
            ) from error
        raise SourceUnavailable(
            f"{host} did not answer with a query result ({_format_excerpt(body)}); "
            "check the graph's url in the world's description."
        ) from error
    if not isinstance(document, dict):
        raise SourceUnavailable(f"{host} answered with JSON that is not a query result ({_format_excerpt(body)}).")
    return document


_VARIABLES_START = re.compile(r'"vars"\s*:\s*(?=\[)')
_BINDINGS_START = re.compile(r'"bindings"\s*:\s*\[')
_BINDINGS_SEPARATOR = re.compile(r"[\s,]*")
_ERROR_PATTERN = re.compile(r"error|exception|timed? ?out|incomplete|interrupted|cancel|abort", re.IGNORECASE)


def _parse_interrupted(body: bytes) -> dict[str, Any] | None:
    """The complete rows of a result that ends with the message of an error; None for any other body."""
    text = body.decode("utf-8", "replace")
    variables, start = _VARIABLES_START.search(text), _BINDINGS_START.search(text)
    if variables is None or start is None:
        return None
    reader = json.JSONDecoder()
    rows: list[Any] = []
    end = start.end()
    try:
        names, _ = reader.raw_decode(text, variables.end())
        while text[(place := _skip_separator(text, end)) : place + 1] == "{":
            row, end = reader.raw_decode(text, place)
            rows.append(row)
    except (ValueError, RecursionError):
        # The row in which the server was interrupted.
        pass
    if not _ERROR_PATTERN.search(text, end):
        return None
    return {"head": {"vars": names}, "results": {"bindings": rows}}


def _skip_separator(text: str, place: int) -> int:
    match = _BINDINGS_SEPARATOR.match(text, place)
    return match.end() if match else place


def _format_excerpt(body: bytes) -> str:
    text = " ".join(body[: 4 * _EXCERPT_LENGTH].decode("utf-8", "replace").split())
    return f"it begins {text[:_EXCERPT_LENGTH]!r}" if text else "it is empty"


def _parse_cell(value: dict[str, Any] | None) -> Cell | None:
    if value is None:
        return None
    text = replace_unstorable(str(value["value"]))
    match value["type"]:
        case "uri":
            # Virtuoso writes blank nodes as IRIs with its own scheme.
            return Cell("blank", text.removeprefix("nodeID://")) if text.startswith("nodeID://") else Cell("iri", text)
        case "bnode":
            return Cell("blank", text.removeprefix("nodeID://").removeprefix("_:"))
        case "literal" | "typed-literal":
            language = value.get("xml:lang") or None
            datatype = _RDF_LANG_STRING if language else value.get("datatype") or _XSD_STRING
            return Cell("literal", text, str(datatype), language)
        case other:
            return Cell("literal", f"{other} {text}")


_MAX_URL_LENGTH = 4000
"""Some servers and proxies refuse longer URLs."""
_ACCEPTED_TYPES = ("application/sparql-results+json", "application/json", "text/json")
_QUERY_RETRY_STATUSES = RETRY_STATUSES - {500}
"""A query that fails with 500 usually fails again."""
_RECORDED_ERROR_STATUSES = frozenset({400})
"""Refusals of invalid queries are recorded, so that a replay offline raises the same error."""
_WRAPPER_METHODS = {"GET": (GET, URLENCODED), "POST form": (POST, URLENCODED), "POST direct": (POST, POSTDIRECTLY)}


_SENDER: ContextVar[Callable[[urllib.request.Request], HttpResponse] | None] = ContextVar("_SENDER", default=None)


def _open_url(request: urllib.request.Request, **options: Any) -> Any:
    """Send a request of SPARQLWrapper with the client that asks; those of other programs as it does by itself."""
    send = _SENDER.get()
    return urllib.request.urlopen(request, **options) if send is None else send(request)  # noqa: S310 - not ours


# SPARQLWrapper keeps this name for those who replace what sends its requests.
vars(Wrapper)["urlopener"] = _open_url


class SparqlClient:
    """Client of one endpoint; thread-safe."""

    def __init__(self, http_client: RecordingHttpClient, endpoint: SparqlEndpoint) -> None:
        self._http_client = http_client
        self.endpoint = endpoint
        self.host = get_host(endpoint.url)

    def select(self, sparql: str) -> Table:
        """The result of a query that Showhow wrote; its columns are checked, and its rows are not cut."""
        # These queries have their own LIMIT.
        query = prepare_query(sparql, replace(self.endpoint, rows=1_000_000))
        table = self._execute_checked(query, partial(self._validate_response, query, tokenize_query(sparql).columns))
        if table.note:
            # What is missing would count as absent.
            raise SourceTimeout(f"{self.host} stopped a query for names and relations midway; try again in a minute.")
        return table

    def execute(self, query: PreparedQuery) -> Table:
        """The result of a prepared query with full IRIs, cut at the endpoint's rows.

        QueryRefused, SourceTimeout or SourceUnavailable if the query fails.
        """
        return self._execute_checked(query, partial(self._validate_response, query, ()))

    def _execute_checked(self, query: PreparedQuery, check: Callable[[HttpResponse], None]) -> Table:
        try:
            response = self._send(query, check)
        except HttpStatusError as error:
            raise map_failure(error.status, error.body, self.host, query) from error
        table = drop_internal_columns(parse_results(response.body, self.host))
        if reason := response.partial_reason:
            table = _mark_partial(table, self.host, reason)
        # Virtuoso reports its own limit in a header only.
        max_rows = response.headers.get("x-sparql-maxrows", "")
        if max_rows.isdecimal() and len(max_rows) < 10 and len(table.rows) >= int(max_rows):
            table = replace(table, truncated=True)
        if query.limit_added and len(table.rows) > self.endpoint.rows:
            table = replace(table, rows=table.rows[: self.endpoint.rows], truncated=True)
        return merge_rows(table, query.alias_columns) if query.alias_columns else table

    def _send(self, query: PreparedQuery, check: Callable[[HttpResponse], None]) -> HttpResponse:
        parameters = {"default-graph-uri": self.endpoint.default_graph} if self.endpoint.default_graph else {}
        method = self.endpoint.method
        if (
            method == "GET"
            and len(f"{self.endpoint.url}?{urlencode({'query': query.text, **parameters})}") > _MAX_URL_LENGTH
        ):
            method = "POST form"
        http_method, request_method = _WRAPPER_METHODS[method]
        wrapper = SPARQLWrapper(self.endpoint.url)
        wrapper.setReturnFormat(JSON)
        wrapper.setOnlyConneg(True)
        wrapper.setMethod(http_method)
        wrapper.setRequestMethod(request_method)
        for name, value in parameters.items():
            wrapper.addParameter(name, value)
        # Set directly, because setQuery would guess the form, possibly as an update.
        wrapper.queryString, wrapper.queryType = query.text, query.form
        token = _SENDER.set(partial(self._send_encoded, query, check))
        try:
            result: Any = wrapper.query()
        finally:
            _SENDER.reset(token)
        response: HttpResponse = result.response
        return response

    def _send_encoded(
        self, query: PreparedQuery, check: Callable[[HttpResponse], None], encoded: urllib.request.Request
    ) -> HttpResponse:
        headers = {name: value for name, value in encoded.header_items() if name.lower() in {"accept", "content-type"}}
        # A server that has begun to send rows can say that it stops only in a trailer.
        headers |= {"TE": "trailers", "Connection": "TE"}
        request = HttpRequest(
            encoded.full_url,
            encoded.get_method(),
            headers,
            encoded.data if isinstance(encoded.data, bytes) else b"",
            _ACCEPTED_TYPES,
            check,
            _QUERY_RETRY_STATUSES,
            _RECORDED_ERROR_STATUSES,
            partial(is_stopped_query, query.text),
        )
        return self._http_client.send(request)

    def _validate_response(self, query: PreparedQuery, columns: Sequence[str], response: HttpResponse) -> None:
        table = parse_results(response.body, self.host)
        if (table.boolean is None) != (query.form == "SELECT") or (columns and table.columns != tuple(columns)):
            raise InvalidResponse(
                f"{self.host} answered with the result of another query; check the graph's url in the world's "
                "description."
            )


_MAX_MESSAGE_LENGTH = 400
_MAX_BODY_LENGTH = 4000
"""Maximum characters of a body that are searched for a message."""
_TIMEOUT_PATTERN = re.compile(
    r"time[sd]?[ _-]?out|S1TAT|S1T00|time limit|deadline|(?:took|runs?|running|ran) (?:too long|longer)|out of time"
    r"|exceed\w* the limit of .* seconds",
    re.IGNORECASE,
)
_CANCELLED_PATTERN = re.compile(r"cancel+(?:ed|ation)|abort|killed|terminated|interrupted", re.IGNORECASE)
_RATE_LIMIT_PATTERN = re.compile(
    r"rate[ _-]?limit|throttl|quota|\bslow down|\bban(?:ned)?\b|\bblocked|too many"
    r"|\bper (?:second|minute|hour|day|user|client|ip)\b|\b(?:concurrent|parallel|simultaneous|number of)\b[\w ]{0,20}"
    r"\b(?:requests|queries|connections)|\b(?:retry|again|wait)\b.{0,20}\d+ ?(?:ms|s|sec|min|hour)",
    re.IGNORECASE,
)
_ERROR_KEY_PATTERN = re.compile(r"err|exception|message|detail|fault|problem|reason", re.IGNORECASE)
_SYNTAX_ERROR_PATTERN = re.compile(
    r"SPARQL compiler|MalformedQuery|ParseException|syntax error|Invalid SPARQL", re.IGNORECASE
)
_QUERY_ECHO_PATTERN = re.compile(
    r"\n\s*(?:SPARQL query:|Was expecting|at [\w.$]+\()|SPARQL-QUERY:.*?(?=\w+Exception)", re.DOTALL
)
_JAVA_EXCEPTION_PATTERN = re.compile(r"(?:[\w.$]+(?:Exception|Error): )+")
_POSITION_PATTERN = re.compile(r"\d+:\d+")
_HTML_TAG_PATTERN = re.compile(r"<[^<>]{0,200}>")


def is_stopped_query(query: str, response: HttpResponse) -> bool:
    """Whether an error reply says that the server stopped this query, so that it would stop it again.

    A reply that repeats the query comes from the server that ran it. Any other 429 is a rate limit if it names one, a
    time to wait, or nothing at all.
    """
    text, repeats_query = read_error_text(response.status, response.body, query)
    says_stopped = _TIMEOUT_PATTERN.search(text) or _CANCELLED_PATTERN.search(text)
    if not says_stopped or response.is_success:
        return False
    names_rate_limit = "retry-after" in response.headers or _RATE_LIMIT_PATTERN.search(text)
    return repeats_query or (response.status == HTTPStatus.TOO_MANY_REQUESTS and not names_rate_limit)


def read_error_text(status: int, body: bytes, query: str) -> tuple[str, bool]:
    """What an error reply says, without the status's own phrase and the query, and whether it repeats the query."""
    raw = body.decode("utf-8", "replace")
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        document = raw
    text = _join_lines("\n".join(_iter_error_strings(document)) if isinstance(document, dict) else unescape(raw))
    shown_query = _join_lines(query)
    repeats_query = shown_query in text
    text = text.replace(shown_query, " ")
    if status in set(HTTPStatus):
        text = re.sub(re.escape(HTTPStatus(status).phrase), " ", text, flags=re.IGNORECASE)
    return text[:_MAX_BODY_LENGTH], repeats_query


def _iter_error_strings(document: dict[str, Any]) -> Iterator[str]:
    """The strings of an error document, and of its parts that are named as errors, but not of its statistics."""
    for name, value in document.items():
        if value is True:
            yield name
        elif isinstance(value, str):
            yield value
        elif _ERROR_KEY_PATTERN.search(name):
            yield from _iter_strings(value)


def _iter_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _iter_strings(item)


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def map_failure(status: int, body: bytes, host: str, query: PreparedQuery) -> SourceError:
    """The error that an error status and body mean for the query's author."""
    raw = body.decode("utf-8", "replace")
    message = query.restore_line_numbers(_extract_message(raw))
    if status not in {401, 403, 404, 407} and _says_timeout(status, body, query.text):
        return SourceTimeout(
            f"{host} stopped the query at its time limit; narrow it, for example with more conditions or without "
            "sorting."
        )
    if status == 400 or (status == 500 and _SYNTAX_ERROR_PATTERN.search(raw)):
        return QueryRefused(
            f"The query is not a valid SELECT or ASK: {message or 'the server does not say why'}"
            f"{' (line:column)' if _POSITION_PATTERN.search(message) else ''}. Correct it there and run it again."
        )
    if status in {413, 414}:
        return QueryRefused(f"The query is too long for {host}; split it into smaller ones.")
    if status in {401, 403, 407}:
        return SourceUnavailable(
            f"{host} denies access (status {status}{_format_detail(message)}); "
            "check the headers of the graph in the world's description and SHOWHOW_CONTACT."
        )
    if status == 404:
        return SourceUnavailable(f"{host} has no such address (status 404); check the graph's url in the description.")
    return SourceUnavailable(
        f"{host} could not answer (status {status}{_format_detail(message)}); change the query or try again later."
    )


def _says_timeout(status: int, body: bytes, query: str) -> bool:
    """Whether a reply of this status, which is not retried, says that the query ran out of time."""
    text, _ = read_error_text(status, body, query)
    if status == HTTPStatus.TOO_MANY_REQUESTS and _CANCELLED_PATTERN.search(text):
        return True
    # The parser's message quotes words of the query, which may be called ?timeout.
    quoted = query.casefold() if status == HTTPStatus.BAD_REQUEST else ""
    return any(match[0].casefold() not in quoted for match in _TIMEOUT_PATTERN.finditer(text))


def _format_detail(message: str) -> str:
    return f": {message}" if message else ""


def _extract_message(raw: str) -> str:
    """The message without the echoed query, Java stack traces and markup."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        raw = str(document.get("exception") or document.get("message") or document.get("error") or raw)
        position = document.get("metadata")
        if isinstance(position, dict) and "line" in position:
            raw = f"at {position['line']}:{position.get('positionInLine', 0)}: {raw}"
    # Blazegraph repeats the whole query before the message.
    raw = raw.rpartition("MalformedQueryException: ")[2][:_MAX_BODY_LENGTH]
    text = _JAVA_EXCEPTION_PATTERN.sub("", _HTML_TAG_PATTERN.sub(" ", _QUERY_ECHO_PATTERN.split(raw)[0] or raw))
    text = " ".join(shorten_parser_message(text).split()).rstrip(".")
    return text if len(text) <= _MAX_MESSAGE_LENGTH else f"{text[:_MAX_MESSAGE_LENGTH]} ..."
