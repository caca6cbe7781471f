"""What an endpoint's error reply means: one sentence that helps to repair the query, or a stopped query.

A server is judged by what its reply says, not by its name: some answer 429 to a query that ran out of time.
"""

import json
import re
from collections.abc import Iterator
from html import unescape
from http import HTTPStatus
from typing import Any

from worlds.embedded.sparql_guard import shorten_parser_message
from worlds.live.http.request import HttpResponse
from worlds.live.sparql.rewrite import PreparedQuery
from worlds.source import QueryRefused, SourceError, SourceTimeout, SourceUnavailable

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
    return text, repeats_query


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
    except ValueError:
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
