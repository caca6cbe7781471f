"""Worlds built once: an isle with unusual names, a graph large enough for runaway queries, and real articles."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from showhow.worlds.article_files import read_articles
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.embedded.graph import EmbeddedGraph
from showhow.worlds.embedded.graph_client import QueryLimits
from showhow.worlds.embedded.text import EmbeddedText
from showhow.worlds.open import open_world
from showhow.worlds.source import World

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that fail on purpose are asked again soon; as often as ever, and after the time that a server names."""
    monkeypatch.setattr("showhow.worlds.live.http.client._INITIAL_BACKOFF", 0.01)


@pytest.fixture(scope="session")
def isle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A small world of articles and a graph with items in Wikidata's form and with its own IRIs."""
    worlds = tmp_path_factory.mktemp("home") / "worlds"
    build_world(worlds, "isle", WorldContents(read_articles(HERE / "isle.jsonl"), HERE / "isle.ttl"))
    world = open_world(worlds, "isle")
    yield world
    world.graph.close()


@pytest.fixture(scope="session")
def crowd_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a graph of 3,000 triples."""
    home = tmp_path_factory.mktemp("home")
    lines = [f'<http://crowd.example/{n}> <http://crowd.example/says> "{n}" .\n' for n in range(3000)]
    (home / "crowd.nt").write_text("".join(lines))
    build_world(home / "worlds", "crowd", WorldContents(graph=home / "crowd.nt"))
    return home / "worlds" / "crowd"


@pytest.fixture
def crowd(crowd_folder: Path) -> Iterator[EmbeddedGraph]:
    """The graph of 3,000 triples, with limits of one second and 100 rows per query."""
    graph = EmbeddedGraph(crowd_folder, limits=QueryLimits(timeout_seconds=1, max_rows=100), workers=1)
    # Start the process first, so that only the query is measured.
    assert graph.query("ASK {}").boolean is True
    yield graph
    graph.close()


@pytest.fixture(scope="session")
def real_text(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> EmbeddedText:
    """The index of 7,035 paragraphs of Wikipedia."""
    worlds = tmp_path_factory.mktemp("home") / "worlds"
    build_world(worlds, "real", WorldContents(read_articles(shared_data / "world_2wiki" / "paragraphs.jsonl")))
    text = open_world(worlds, "real").text
    assert isinstance(text, EmbeddedText)
    return text
