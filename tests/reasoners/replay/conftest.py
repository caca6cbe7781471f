"""A small generated world with namesakes, and its universe."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fewshot_library.encoder import SentenceEncoder
from fiction.generator.build import generate_world
from fiction.generator.world_files import UNIVERSE_FILE
from fiction.universe.options import GenerationOptions
from fiction.universe.relations import find_related, get_relation
from fiction.universe.universe import Universe
from tools.tool import ToolContext
from worlds.embedded.graph import EmbeddedGraph
from worlds.open import open_world
from worlds.source import TextSource

OPTIONS = GenerationOptions(people=90, seed=21, depth=4, per_template=1, collisions=0.3)


@dataclass(frozen=True)
class Namesakes:
    """The tools' context of the world, and its universe."""

    context: ToolContext
    universe: Universe

    @property
    def text(self) -> TextSource:
        assert self.context.world.text is not None
        return self.context.world.text

    def said(self) -> Iterator[tuple[int, str]]:
        """Yield the sentences of all articles, with the row of their subject."""
        for row, title in enumerate(self.universe.titles):
            for sentence in self.text.article(title).sentences:
                yield row, sentence

    def related(self, word: str, row: int) -> set[str]:
        """The titles of a person's true relatives."""
        rows = find_related(self.universe, get_relation(word), np.array([row], dtype=np.int32))
        return {self.universe.titles[int(row)] for row in rows}


@pytest.fixture(scope="package")
def namesakes(tmp_path_factory: pytest.TempPathFactory, meaning: SentenceEncoder) -> Iterator[Namesakes]:
    worlds: Path = tmp_path_factory.mktemp("namesakes") / "worlds"
    generate_world(worlds, "namesakes", OPTIONS)
    context = ToolContext(open_world(worlds, "namesakes"), meaning)
    yield Namesakes(context, Universe.load(worlds / "namesakes" / UNIVERSE_FILE))
    assert isinstance(context.world.graph, EmbeddedGraph)
    context.world.graph.close()
