"""Graphs for the tests: the same triples in an embedded world, an Oxigraph server and a Virtuoso."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.live.description import SparqlEndpoint
from showhow.worlds.live.http.client import RecordingHttpClient
from showhow.worlds.live.http.request import Access, RequestPolicy, get_host
from showhow.worlds.live.http.response_cache import ResponseCache
from showhow.worlds.live.sparql.graph import SparqlGraph
from showhow.worlds.live.sparql.protocol import SparqlClient
from showhow.worlds.open import open_world
from showhow.worlds.source import GraphSource
from tests.servers.sparql import SparqlServer

CONTACT = Access(contact="tests@showhow.example")
SERVERS = ["oxigraph", "virtuoso"]
KINDS = ["embedded", *SERVERS]


def live_graph(endpoint: SparqlEndpoint, folder: Path, access: Access = CONTACT, seconds: float = 60) -> SparqlGraph:
    """The graph of an endpoint, with its response cache in that folder."""
    policy = RequestPolicy(frozenset({get_host(endpoint.url)}), max_per_minute=1_000_000, timeout_seconds=seconds)
    return SparqlGraph(
        SparqlClient(RecordingHttpClient(policy, ResponseCache(folder / "answers.sqlite"), access), endpoint)
    )


def endpoint_of(server: SparqlServer, graph: str, **fields: object) -> SparqlEndpoint:
    """The configuration of one graph of a server."""
    return replace(SparqlEndpoint(server.url, default_graph=server.graph(graph)), **fields)


@contextmanager
def opened(kind: str, graph: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[GraphSource]:
    """The graph with this name, of this kind."""
    if kind == "embedded":
        file = request.getfixturevalue("graph_files")[graph]
        build_world(folder / "worlds", graph, WorldContents(graph=file))
        source = open_world(folder / "worlds", graph).graph
        yield source
        source.close()
    else:
        yield live_graph(endpoint_of(request.getfixturevalue(kind), graph), folder)
