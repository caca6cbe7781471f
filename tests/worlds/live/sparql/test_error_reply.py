"""Replies to stopped queries and to too many requests, from a server that answers both with 429."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from showhow.worlds.live.description import QUERY_METHODS, SparqlEndpoint
from showhow.worlds.live.sparql.graph import SparqlGraph
from showhow.worlds.live.sparql.protocol import map_failure
from showhow.worlds.live.sparql.rewrite import prepare_query
from showhow.worlds.source import QueryRefused, SourceTimeout, SourceUnavailable
from tests.servers.faulty_server import FaultyServer, Handler, Responder, run_faulty_server, says, status
from tests.worlds.live.graphs import live_graph

SPARQL = 'SELECT ?x { ?x rdfs:label "retry after the time-out"@en ; wdt:P31 ?timeout }'


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with run_faulty_server() as started:
        yield started


@pytest.fixture
def graph(server: FaultyServer, tmp_path: Path) -> SparqlGraph:
    return live_graph(SparqlEndpoint(f"{server.url}/sparql"), tmp_path, seconds=5)


def _read_query(handler: Handler) -> str:
    """The query as the server received it."""
    fields = {**parse_qs(urlsplit(handler.path).query), **parse_qs(handler.content.decode())}
    return fields["query"][0] if "query" in fields else handler.content.decode()


def _replies(code: int, build_body: Callable[[str], bytes], **headers: str) -> Responder:
    def responder(handler: Handler) -> None:
        status(code, build_body(_read_query(handler)), **headers)(handler)

    return responder


def _qlever_report(query: str, exception: str) -> bytes:
    """QLever's report of a query that failed; its statistics are often longer than 10,000 bytes."""
    children = [{"description": f"INDEX SCAN ?x <rate limit> {n}", "status": "fully materialized"} for n in range(300)]
    return json.dumps(
        {
            "query": query,
            "status": "ERROR",
            "resultsize": 0,
            "time": {"total": 30012, "computeResult": 30012},
            "exception": exception,
            "runtimeInformation": {"description": "SORT on quota", "status": "optimized out", "children": children},
        }
    ).encode()


STOPPED: dict[str, Responder] = {
    "QLever": _replies(429, lambda query: _qlever_report(query, "Operation timed out. Last operation: Sort")),
    "QLever, cancelled": _replies(429, lambda query: _qlever_report(query, "Operation was manually cancelled.")),
    "QLever behind a proxy with Retry-After": _replies(
        429, lambda query: _qlever_report(query, "Operation timed out."), Retry_After="60"
    ),
    "a gateway's JSON": _replies(
        429, lambda _: b'{"status": 429, "error": "Too Many Requests", "message": "Query exceeded its deadline of 30s"}'
    ),
    "a nested error": _replies(429, lambda _: b'{"error": {"code": 1, "details": [{"type": "query_timeout"}]}}'),
    "a flag": _replies(429, lambda _: b'{"timedOut": true}'),
    "plain text": _replies(429, lambda _: b"The query ran out of time after 30 seconds"),
    "a page": _replies(429, lambda _: b"<html><title>429 Too Many Requests</title><p>Query timed out</p></html>"),
    "an unavailable engine": _replies(503, lambda query: f"{query}: query time-out".encode()),
}


@pytest.mark.parametrize("reply", STOPPED)
def test_a_query_that_ran_out_of_time_is_sent_once_and_pauses_no_other(reply, server, graph):
    server.respond_with(STOPPED[reply], says({"head": {}, "boolean": True}))
    with pytest.raises(SourceTimeout, match="stopped the query at its time limit; narrow it"):
        graph.query(SPARQL)
    assert len(server.asked) == 1
    # A pause of the host would be longer than the time limit of the call.
    assert graph.query("ASK {}").boolean is True


@pytest.mark.parametrize("method", QUERY_METHODS)
def test_a_report_of_the_query_is_recognised_however_the_query_was_sent(method, server, tmp_path):
    server.respond_with(STOPPED["QLever behind a proxy with Retry-After"])
    with pytest.raises(SourceTimeout):
        live_graph(SparqlEndpoint(f"{server.url}/sparql", method), tmp_path).query(SPARQL)
    assert len(server.asked) == 1


RATE_LIMITED: dict[str, Responder] = {
    "no word": _replies(429, lambda _: b""),
    "the phrase only": _replies(429, lambda _: b"<title>429 Too Many Requests</title>"),
    "Wikidata's query service": _replies(
        429, lambda _: b"Too Many Requests - Please retry in 1 seconds.", Retry_After="0"
    ),
    "query time per minute": _replies(429, lambda _: b"Your time limit of 60 s per minute is used up"),
    "a time limit with Retry-After": _replies(429, lambda _: b"You reached the time limit", Retry_After="0"),
    "cancelled for the rate": _replies(429, lambda _: b'{"message": "Request cancelled: rate limit of 5 reached"}'),
    "concurrent queries": _replies(429, lambda _: b"Query aborted: more than 5 parallel queries"),
    "the query repeated by a limiter": _replies(429, lambda query: f"Refused for now: {query}".encode()),
}


@pytest.mark.parametrize("reply", RATE_LIMITED)
def test_a_rate_limit_is_waited_for_and_the_query_sent_again(reply, server, graph):
    server.respond_with(RATE_LIMITED[reply], says({"head": {}, "boolean": True}))
    assert graph.query(SPARQL.replace("SELECT ?x", "ASK")).boolean is True
    assert len(server.asked) == 2


def test_a_rate_limit_that_stays_is_no_time_out(server, graph):
    server.respond_with(status(429, b"slow down", Retry_After="600"))
    with pytest.raises(SourceUnavailable, match="429"):
        graph.query(SPARQL)


PREPARED = prepare_query(SPARQL, SparqlEndpoint("http://g.example/sparql"))


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (400, "Variable ?timeout is used twice"),
        (400, f"Parse error in {PREPARED.text}: unexpected token at 1:9"),
        (500, f"SPARQL-QUERY: queryStr={PREPARED.text}\norg.x.MalformedQueryException: unexpected '}}' at 1:9"),
    ],
)
def test_words_of_the_query_in_a_refusal_are_no_time_out(code, body):
    assert type(map_failure(code, body.encode(), "g.example", PREPARED)) is QueryRefused


@pytest.mark.parametrize("code", [400, 500, 503])
def test_a_time_out_is_one_under_any_status_that_is_not_a_denial(code):
    assert type(map_failure(code, b"Query evaluation deadline exceeded", "g.example", PREPARED)) is SourceTimeout
    assert type(map_failure(403, b"Query evaluation timed out", "g.example", PREPARED)) is SourceUnavailable
