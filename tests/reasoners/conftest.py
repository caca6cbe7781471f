"""The fleet, which tests of methods with a scripted model ask about."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from showhow.tools.tool import ToolContext
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.embedded.graph import EmbeddedGraph
from showhow.worlds.open import open_world
from tests.reasoners.fleet import FLEET_ITEMS, articles, fleet, fleet_graph


@pytest.fixture(scope="session")
def ships(tmp_path_factory: pytest.TempPathFactory) -> ToolContext:
    """A world with articles only."""
    return fleet(tmp_path_factory.mktemp("home") / "worlds", "fleet", articles())


@pytest.fixture(scope="session")
def sailing_ships(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolContext]:
    """A world of the fleet with articles and a graph."""
    home = tmp_path_factory.mktemp("home")
    graph = home / "fleet.ttl"
    graph.write_text(fleet_graph(), encoding="utf-8")
    ids = {label: id_ for id_, label in FLEET_ITEMS.items()}
    linked = [replace(article, entity=ids.get(article.title)) for article in articles()]
    build_world(home / "worlds", "fleet", WorldContents(linked, graph))
    # An encoder without similarities: words rank the sentences.
    context = ToolContext(open_world(home / "worlds", "fleet"), lambda texts: np.zeros((len(texts), 1), np.float32))
    yield context
    assert isinstance(context.world.graph, EmbeddedGraph)
    context.world.graph.close()
