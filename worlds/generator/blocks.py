"""What processes make of a world's facts, which each of them reads from the world's folder."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from worlds.generator.indexes import write_names
from worlds.generator.items import Items
from worlds.generator.prose import people_articles
from worlds.source import Article
from worlds.universe.options import Options
from worlds.universe.universe import GRAPH, TEXT, Told, Universe

UNIVERSE, TOLD = "universe.npz", "told.npz"
PEOPLE_AT_ONCE = 1 << 12
"""People whose articles make up a block."""


def told_by(folder: Path, source: int) -> Universe:
    """The universe of a world's folder as one source tells it."""
    return Universe.load(folder / UNIVERSE).told_by(Told.load(folder / TOLD), source)


def article_blocks(folder: Path, options: Options, share: int, shares: int) -> Iterator[bytes]:
    """Of the blocks of people's articles every `shares`-th from `share` on."""
    told = told_by(folder, TEXT)
    items = Items(told)
    for start in range(share * PEOPLE_AT_ONCE, len(told), shares * PEOPLE_AT_ONCE):
        rows = range(start, min(start + PEOPLE_AT_ONCE, len(told)))
        yield article_lines(people_articles(told, items, options, rows))


def article_lines(articles: Iterable[Article]) -> bytes:
    """The articles as lines of JSON."""
    rows = ([article.title, article.sentences, article.entity, article.sections] for article in articles)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def read_articles(block: bytes) -> Iterator[Article]:
    """The articles of lines of JSON."""
    for line in block.splitlines():
        title, sentences, entity, sections = json.loads(line)
        yield Article(title, tuple(sentences), entity, tuple((heading, place) for heading, place in sections))


def names_of(folder: Path) -> Iterator[int]:
    """Write the names of a world's graph, which its folder tells."""
    return write_names(folder, told_by(folder, GRAPH))
