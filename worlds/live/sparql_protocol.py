"""Asking a SPARQL endpoint: SPARQLWrapper makes the request, the door sends it, the answer becomes a table."""

import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from SPARQLWrapper import GET, JSON, POST, POSTDIRECTLY, URLENCODED, SPARQLWrapper

from worlds.live.door import Door
from worlds.live.endpoint import Endpoint
from worlds.live.request import AGAIN, Answer, BadStatus, NoAnswer, Request, host_of
from worlds.live.sparql_failure import explain
from worlds.live.sparql_results import joined, read_table, without_own
from worlds.live.sparql_rewrite import Prepared, prepare
from worlds.live.sparql_tokens import read_query
from worlds.source import Table

_LONGEST_ADDRESS = 4000
"""Longer ones are refused by some server or by something before it."""
_TYPES = ("application/sparql-results+json", "application/json", "text/json")
_AGAIN = AGAIN - {500}
"""A server that fails at a query with 500 fails at it once more."""
_VERDICTS = frozenset({400})
"""A query that a server cannot read stays one, and a replay offline is to tell so."""
_METHODS = {"GET": (GET, URLENCODED), "POST form": (POST, URLENCODED), "POST direct": (POST, POSTDIRECTLY)}


class SparqlProtocol:
    """One endpoint behind its door; safe to share between threads."""

    def __init__(self, door: Door, endpoint: Endpoint) -> None:
        self._door = door
        self.endpoint = endpoint
        self.host = host_of(endpoint.url)

    def select(self, sparql: str) -> Table:
        """The result of a query of our own; QueryRefused, SourceTimeout and SourceUnavailable say what went wrong."""
        # Rows of our own queries are bounded where they are written, and their columns are counted on.
        query = prepare(sparql, replace(self.endpoint, rows=1_000_000))
        return self._answered(query, partial(self._check, query, read_query(sparql).columns))

    def ask(self, query: Prepared) -> Table:
        """The result of a prepared query, IRIs as they are, cut at its limit."""
        return self._answered(query, partial(self._check, query, ()))

    def _answered(self, query: Prepared, check: Callable[[Answer], None]) -> Table:
        try:
            answer = self._door.send(self._request(query, check))
        except BadStatus as failed:
            raise explain(failed.status, failed.body, self.host, query) from failed
        table = without_own(read_table(answer.body, self.host))
        # Virtuoso tells of its own limit in a header and nowhere else.
        most = answer.headers.get("x-sparql-maxrows", "")
        if most.isdigit() and len(table.rows) >= int(most):
            table = replace(table, truncated=True)
        if query.capped and len(table.rows) > self.endpoint.rows:
            table = replace(table, rows=table.rows[: self.endpoint.rows], truncated=True)
        return joined(table, query.many_named) if query.many_named else table

    def _request(self, query: Prepared, check: Callable[[Answer], None]) -> Request:
        made = self._made(query, self.endpoint.method)
        if len(made.full_url) > _LONGEST_ADDRESS and made.data is None:
            made = self._made(query, "POST form")
        headers = {name: value for name, value in made.header_items() if name.lower() in {"accept", "content-type"}}
        content = made.data if isinstance(made.data, bytes) else b""
        return Request(made.full_url, made.get_method(), headers, content, _TYPES, check, _AGAIN, _VERDICTS)

    def _made(self, query: Prepared, method: str) -> urllib.request.Request:
        wrapper = _Wrapper(self.endpoint.url)
        wrapper.setReturnFormat(JSON)
        wrapper.setOnlyConneg(True)
        way, how = _METHODS[method]
        wrapper.setMethod(way)
        wrapper.setRequestMethod(how)
        if self.endpoint.default_graph:
            wrapper.addParameter("default-graph-uri", self.endpoint.default_graph)
        # Set as they are: setQuery would guess the form, and send what it takes for an update as one.
        wrapper.queryString, wrapper.queryType = query.text, query.form
        return wrapper.request()

    def _check(self, query: Prepared, columns: Sequence[str], answer: Answer) -> None:
        table = read_table(answer.body, self.host)
        if (table.boolean is None) != (query.form == "SELECT") or (columns and table.columns != tuple(columns)):
            raise NoAnswer(
                f"{self.host} answered something other than it was asked; check the graph's url in the world's "
                "description."
            )


class _Wrapper(SPARQLWrapper):
    """SPARQLWrapper that hands out the request instead of sending it without deadline, limit and record."""

    def request(self) -> urllib.request.Request:
        made: urllib.request.Request = self._createRequest()
        return made
