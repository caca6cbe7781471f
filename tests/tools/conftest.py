"""A small town by the sea: its articles and its graph, built as a real world."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from tools.tool import ToolContext
from worlds.build import WorldContents, build_world
from worlds.embedded.web import EmbeddedWeb, WebWriter
from worlds.importers import read_articles
from worlds.open import open_world
from worlds.source import WebPage, World

HERE = Path(__file__).parent
PAGES = (
    WebPage(
        "https://gullhaven.example/news/3",
        "Storm over the harbour",
        ("The storm sank two barges.", "Ada saw it."),
        "2003-11-09",
    ),
    WebPage("https://fans.example/reed", "All about Ada Reed", ("Ada Reed has flown kites since 1990.", "She wins.")),
    WebPage("https://fans.example/long", "Notes", tuple(f"Line {n} tells nothing." for n in range(5))),
)


def must_not_encode(texts: Sequence[str]) -> np.ndarray:
    """Stands where no meaning may be needed."""
    raise AssertionError(f"the encoder was asked for {list(texts)}")


def no_meaning(texts: Sequence[str]) -> np.ndarray:
    """Finds nothing like anything else."""
    return np.zeros((len(texts), 1), dtype=np.float32)


@pytest.fixture(scope="session")
def harbour_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of worlds with the world `harbour`."""
    worlds = tmp_path_factory.mktemp("home") / "worlds"
    build_world(worlds, "harbour", WorldContents(read_articles(HERE / "harbour.jsonl"), HERE / "harbour.ttl"))
    return worlds


@pytest.fixture(scope="session")
def harbour(harbour_folder: Path) -> World:
    """The town with its text and its graph."""
    return open_world(harbour_folder, "harbour")


@pytest.fixture(scope="session")
def webbed(harbour: World, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The town with web pages besides."""
    folder = tmp_path_factory.mktemp("web") / "web"
    with closing(WebWriter(folder)) as writer:
        for page in PAGES:
            writer.add(page)
    return replace(harbour, web=EmbeddedWeb(folder))


@pytest.fixture
def without_encoder(harbour: World) -> ToolContext:
    """The town for tools that must do without meaning."""
    return ToolContext(harbour, must_not_encode)


@pytest.fixture(scope="session")
def without_meaning(harbour: World) -> ToolContext:
    """The town for tools that get no help from meaning."""
    return ToolContext(harbour, no_meaning)


@pytest.fixture(scope="session")
def with_encoder(harbour: World) -> ToolContext:
    """The town with the real encoder."""
    return ToolContext(harbour, SentenceEncoder(BUNDLED_MODEL))
