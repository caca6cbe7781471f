"""A small generated family town whose people partly share names, with all that is true of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fewshot_library.encoder import SentenceEncoder
from tools.tool import Context
from worlds.generator.blocks import UNIVERSE
from worlds.generator.build import generate_world
from worlds.graph import EmbeddedGraph
from worlds.open import open_world
from worlds.source import TextSource
from worlds.universe.options import Options
from worlds.universe.relations import related, relation
from worlds.universe.universe import Universe

OPTIONS = Options(people=90, seed=21, depth=4, per_template=1, collisions=0.3)


@dataclass(frozen=True)
class Namesakes:
    """The world as its tools see it, and the universe that it tells of."""

    context: Context
    universe: Universe

    @property
    def text(self) -> TextSource:
        assert self.context.world.text is not None
        return self.context.world.text

    def said(self) -> Iterator[tuple[int, str]]:
        """Every sentence of every article, with the row of whom it is about."""
        for row, title in enumerate(self.universe.titles):
            for sentence in self.text.article(title).sentences:
                yield row, sentence

    def related(self, word: str, row: int) -> set[str]:
        """The titles of those who truly are that relation of somebody."""
        rows = related(self.universe, relation(word), np.array([row], dtype=np.int32))
        return {self.universe.titles[int(each)] for each in rows}


@pytest.fixture(scope="package")
def namesakes(tmp_path_factory: pytest.TempPathFactory, meaning: SentenceEncoder) -> Iterator[Namesakes]:
    worlds: Path = tmp_path_factory.mktemp("namesakes") / "worlds"
    generate_world(worlds, "namesakes", OPTIONS)
    context = Context(open_world(worlds, "namesakes"), meaning)
    yield Namesakes(context, Universe.load(worlds / "namesakes" / UNIVERSE))
    assert isinstance(context.world.graph, EmbeddedGraph)
    context.world.graph.close()
