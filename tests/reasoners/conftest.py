"""A small generated town with the gold traces of its questions, for reasoners that ask a real world."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.datasets import read_questions
from bench.gold.demonstrations import demonstrations
from bench.gold.traces import GoldWorld
from db.models import Project
from db.record import TraceRecord
from fewshot_library.encoder import BUNDLED, SentenceEncoder
from tools.tool import Context
from worlds.generator.build import generate_world
from worlds.graph import EmbeddedGraph
from worlds.open import open_world
from worlds.universe.options import Options

OPTIONS = Options(people=60, seed=5, depth=4, per_template=1, split="text=50,graph=35,web=15")


@dataclass(frozen=True)
class Town:
    """The town, how its tools ask it, and how some of its questions are answered."""

    context: Context
    gold: list[TraceRecord]


@pytest.fixture(scope="session")
def meaning() -> SentenceEncoder:
    """The real encoder."""
    return SentenceEncoder(BUNDLED)


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory, meaning: SentenceEncoder) -> Iterator[Town]:
    worlds = tmp_path_factory.mktemp("home") / "worlds"
    generate_world(worlds, "town", OPTIONS)
    context = Context(open_world(worlds, "town"), meaning)
    asked = read_questions(worlds / "town" / "questions.jsonl")
    gold = list(demonstrations(asked, GoldWorld(worlds / "town", context), Project(name="town", world="town"), 12))
    yield Town(context, gold)
    assert isinstance(context.world.graph, EmbeddedGraph)
    context.world.graph.close()


@pytest.fixture(scope="session")
def published(shared_data: Path) -> Path:
    """The folder of the paper's own demonstrations."""
    return shared_data / "humaniq"
