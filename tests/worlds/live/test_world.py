"""A live world whose servers send responses of another kind."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from showhow.worlds.live.http.request import Access
from showhow.worlds.live.world import add_live_world
from showhow.worlds.open import open_world
from showhow.worlds.source import NotFound, SourceError, World
from tests.servers.faulty_server import FaultyServer, run_faulty_server, sends
from tests.servers.live_world import description

WIKIBASE = 'labels = "api"\nsearch = "api"\nvocabulary = "wikibase"\n'
QUERY = "SELECT ?x { ?x ?y ?z }"
CALLS: dict[str, Callable[[World], Any]] = {
    "search": lambda world: world.text.search("Who was Ada Reed?", 5),
    "article": lambda world: world.text.article("Ada Reed"),
    "query": lambda world: world.graph.query(QUERY),
    "ask": lambda world: world.graph.query("ASK { ?x ?y ?z }"),
    "entities": lambda world: world.graph.entities(["Q1", "Q2"]),
    "find": lambda world: world.graph.find("Ada Reed"),
    "entity_of": lambda world: world.graph.entity_of("Ada Reed"),
    "relations": lambda world: world.graph.relations("Q1"),
    "vocabulary": lambda world: world.graph.vocabulary(),
}
ODD = {
    "a number": b"3",
    "an empty object": b"{}",
    "nested without end": b"[" * 200_000,
    "nested without end and closed": b'{"query":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "no list of pages": b'{"query": {"pages": null, "search": null}}',
    "pages as wikis wrote them long ago": b'{"query": {"pages": {"1": {"pageid": 1, "title": "Ada Reed"}}}}',
    "pages that are none": b'{"query": {"pages": ["x"], "search": [{}]}}',
    "another list of names": b'{"search": [{}], "entities": {"Q1": null}}',
    "a truth that is none": b'{"head": {}, "boolean": "maybe"}',
    "columns that are none": b'{"head": {"vars": "xy"}, "results": {"bindings": []}}',
    "other columns": b'{"head": {"vars": ["a", "b"]}, "results": {"bindings": []}}',
}


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with run_faulty_server() as server:
        yield server


@pytest.mark.parametrize("wikibase", ["", WIKIBASE], ids=["graph alone", "with its wiki"])
@pytest.mark.parametrize("odd", ODD)
def test_an_invalid_response_is_an_error_and_never_an_empty_result(
    odd: str, wikibase: str, server: FaultyServer, tmp_path: Path
):
    server.respond_with(sends(ODD[odd]))
    written = description(f"{server.url}/w/api.php", f"{server.url}/sparql")
    if wikibase:
        written = written.replace("[limits]", f'api = "{server.url}/w/api.php"\n{wikibase}[limits]')
    add_live_world(tmp_path, "odd", written, "odd.toml")
    world = open_world(tmp_path, "odd", Access("ada@example.org"))
    for name, call in CALLS.items():
        if (odd, name) == ("other columns", "query"):
            # The columns are checked for Showhow's own queries only.
            continue
        with pytest.raises(SourceError) as failed:
            call(world)
        assert not isinstance(failed.value, NotFound), name
        assert server.host in str(failed.value)


def test_unstorable_characters_are_replaced(server: FaultyServer, tmp_path: Path):
    cell = b'{"x": {"type": "literal", "value": "a\\ud800b\\u0000c"}}'
    server.respond_with(sends(b'{"head": {"vars": ["x"]}, "results": {"bindings": [' + cell + b"]}}"))
    add_live_world(tmp_path, "odd", description(None, f"{server.url}/sparql"), "odd.toml")
    world = open_world(tmp_path, "odd", Access("ada@example.org"))
    assert world.graph.query(QUERY).rows[0][0].value == "a\ufffdb\ufffdc"
