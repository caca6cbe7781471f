"""What SPARQL servers say when they fail, each in its own way, as one sentence that helps to mend the query."""

import json
import re

from worlds.live.sparql_rewrite import Prepared
from worlds.source import QueryRefused, SourceError, SourceTimeout, SourceUnavailable
from worlds.sparql_guard import parsers_words

_LONGEST = 400
_READ = 4000
"""Characters of a message that are looked at."""
_LATE = re.compile(r"time[d-]?[ -]?out|S1TAT|S1T00|time limit|exceeds? the limit of .* seconds", re.IGNORECASE)
_UNREADABLE = re.compile(r"SPARQL compiler|MalformedQuery|ParseException|syntax error|Invalid SPARQL", re.IGNORECASE)
_ECHO = re.compile(r"\n\s*(?:SPARQL query:|Was expecting|at [\w.$]+\()|SPARQL-QUERY:.*?(?=\w+Exception)", re.DOTALL)
_JAVA = re.compile(r"(?:[\w.$]+(?:Exception|Error): )+")
_PLACE = re.compile(r"\d+:\d+")
_TAG = re.compile(r"<[^<>]{0,200}>")


def explain(status: int, body: bytes, host: str, query: Prepared) -> SourceError:
    """The error that a status of failure and what came with it mean for whoever wrote the query."""
    raw = body.decode("utf-8", "replace")
    said = query.own_places(_said(raw))
    if status not in {401, 403, 404, 407} and _LATE.search(raw):
        return SourceTimeout(
            f"{host} stopped the query at its limit of time; ask for less, for example with more conditions or "
            "without sorting."
        )
    if status == 400 or (status == 500 and _UNREADABLE.search(raw)):
        return QueryRefused(
            f"The query is no valid SELECT or ASK: {said or 'the server does not say why'}"
            f"{' (line:column)' if _PLACE.search(said) else ''}. Mend it there and run it again."
        )
    if status in {413, 414}:
        return QueryRefused(f"{host} takes no query as long as this one; ask in smaller parts.")
    if status in {401, 403, 407}:
        return SourceUnavailable(
            f"{host} does not let us ask (status {status}{_quoted(said)}); "
            "check the headers of the graph in the world's description and SHOWHOW_CONTACT."
        )
    if status == 404:
        return SourceUnavailable(f"{host} has no such address (status 404); check the graph's url in the description.")
    return SourceUnavailable(f"{host} could not answer (status {status}{_quoted(said)}); ask otherwise or try later.")


def _quoted(said: str) -> str:
    return f": {said}" if said else ""


def _said(raw: str) -> str:
    """The message itself, without the query repeated, Java's traces and mark-up."""
    try:
        told = json.loads(raw)
    except ValueError:
        told = None
    if isinstance(told, dict):
        raw = str(told.get("exception") or told.get("message") or told.get("error") or raw)
        where = told.get("metadata")
        if isinstance(where, dict) and "line" in where:
            raw = f"at {where['line']}:{where.get('positionInLine', 0)}: {raw}"
    # Blazegraph repeats the whole query before it says what is wrong with it.
    raw = raw.rpartition("MalformedQueryException: ")[2][:_READ]
    text = _JAVA.sub("", _TAG.sub(" ", _ECHO.split(raw)[0] or raw))
    text = " ".join(parsers_words(text).split()).rstrip(".")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
