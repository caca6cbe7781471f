"""A small generated town with the gold traces of its questions, for reasoners that ask a real world."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from db.models import Project
from db.trace_record import TraceRecord
from evaluation.datasets import read_questions
from evaluation.gold_traces.demonstrations import make_demonstrations
from evaluation.gold_traces.traces import GoldWorld
from fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from fiction.generator.build import generate_world
from fiction.universe.options import GenerationOptions
from tools.tool import ToolContext
from worlds.embedded.graph import EmbeddedGraph
from worlds.open import open_world

OPTIONS = GenerationOptions(people=60, seed=5, depth=4, per_template=1, split="text=50,graph=35,web=15")


@dataclass(frozen=True)
class Town:
    """The town, how its tools ask it, and how some of its questions are answered."""

    context: ToolContext
    gold: list[TraceRecord]


@pytest.fixture(scope="session")
def meaning() -> SentenceEncoder:
    """The real encoder."""
    return SentenceEncoder(BUNDLED_MODEL)


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory, meaning: SentenceEncoder) -> Iterator[Town]:
    worlds = tmp_path_factory.mktemp("home") / "worlds"
    generate_world(worlds, "town", OPTIONS)
    context = ToolContext(open_world(worlds, "town"), meaning)
    asked = read_questions(worlds / "town" / "questions.jsonl")
    gold = list(make_demonstrations(asked, GoldWorld(worlds / "town", context), Project(name="town", world="town"), 12))
    yield Town(context, gold)
    assert isinstance(context.world.graph, EmbeddedGraph)
    context.world.graph.close()


@pytest.fixture(scope="session")
def published(shared_data: Path) -> Path:
    """The folder of the paper's own demonstrations."""
    return shared_data / "humaniq"
