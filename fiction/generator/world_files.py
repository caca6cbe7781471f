"""Files of a generated world: its graph store, name index and relations, and the encoded blocks of its articles.

Functions that take a folder run in worker processes and load the universe from it. Names and relations come from the
universe, so unlike an imported graph the store is not read back.
"""

import json
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pyoxigraph as ox

from fiction.generator.prose import generate_people_articles
from fiction.universe.items import CLASSES, FIRST_IDS, ITEM_KINDS, PROPERTY_IDS, PROPERTY_LABELS, ItemCatalog
from fiction.universe.options import GenerationOptions
from fiction.universe.universe import GRAPH, TEXT, FactSources, Universe
from worlds import terms
from worlds.embedded.graph import NameIndexWriter
from worlds.folder import GRAPH_FOLDER, NAMES_FOLDER, RELATIONS_FILE
from worlds.source import Article, Relation

_PEOPLE_PER_STEP = 1 << 12
_DATE_PROPERTIES = frozenset(PROPERTY_IDS[fact] for fact in ("birth", "death", "wedding"))


class _BlockReader:
    """A readable stream over generated blocks; each block is generated on demand."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._block, self._place = blocks, b"", 0
        self.failure: BaseException | None = None

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; b"" at the end."""
        try:
            while self._place == len(self._block):
                self._block, self._place = next(self._blocks), 0
        except StopIteration:
            return b""
        except BaseException as error:
            # The store reports any exception as an I/O error, so the cause is stored and raised instead.
            self.failure = error
            raise
        start, self._place = self._place, min(self._place + size, len(self._block))
        return self._block[start : self._place]


def write_graph_store(folder: Path, blocks: Iterator[bytes]) -> list[Relation]:
    """Load blocks of N-Triples into the graph store of a world's folder; returns the relations that occur."""
    store = ox.Store(str(folder / GRAPH_FOLDER))
    stream = _BlockReader(blocks)
    try:
        store.bulk_load(stream, format=ox.RdfFormat.N_TRIPLES)  # type: ignore[arg-type]
    except (OSError, SyntaxError):
        if stream.failure is not None:
            raise stream.failure from None
        raise
    relations = [_build_relation(pid) for pid in sorted(PROPERTY_LABELS) if _is_used(store, pid)]
    relations_json = json.dumps([asdict(relation) for relation in relations], ensure_ascii=False, indent=1)
    (folder / RELATIONS_FILE).write_text(relations_json, encoding="utf-8")
    store.optimize()
    store.flush()
    return relations


def _is_used(store: ox.Store, pid: str) -> bool:
    return next(store.quads_for_pattern(None, ox.NamedNode(terms.DIRECT_NAMESPACE + pid), None, None), None) is not None


def _build_relation(pid: str) -> Relation:
    label, *aliases = PROPERTY_LABELS[pid]
    return Relation(pid, label, tuple(sorted(aliases)), "date" if pid in _DATE_PROPERTIES else "entity")


def write_name_index(folder: Path, universe: Universe) -> Generator[int, None, None]:
    """Write the index of all names in the graph; yields the number of people added since the last yield."""
    with closing(NameIndexWriter(folder / NAMES_FOLDER)) as names:
        for pid, (label, *aliases) in PROPERTY_LABELS.items():
            names.add(label, pid, "label")
            for alias in aliases:
                names.add(alias, pid, "alias")
        for item, label in CLASSES.items():
            names.add(label, item, "label")
        items = ItemCatalog(universe)
        for kind in ITEM_KINDS[1:]:
            for number, label in enumerate(items.labels(kind)):
                names.add(label, f"Q{FIRST_IDS[kind] + number}", "label")
        for row in range(len(universe)):
            _add_person_names(names, universe, items, row)
            if row % _PEOPLE_PER_STEP == _PEOPLE_PER_STEP - 1:
                yield _PEOPLE_PER_STEP
        yield len(universe) % _PEOPLE_PER_STEP


def _add_person_names(names: NameIndexWriter, universe: Universe, items: ItemCatalog, row: int) -> None:
    item, label, title = items.person(row), universe.names[row], universe.titles[row]
    names.add(label, item, "label")
    for alias in items.aliases(row):
        names.add(alias, item, "alias")
    if title != label:
        # A title equal to the label needs no entry of its own.
        names.add(title, item, "title")


UNIVERSE_FILE, FACT_SOURCES_FILE = "universe.npz", "told.npz"
PEOPLE_PER_BLOCK = 1 << 12
"""People per encoded block of articles."""


def load_source_universe(folder: Path, source: int) -> Universe:
    """Load the universe of a world's folder, restricted to the facts of one source."""
    return Universe.load(folder / UNIVERSE_FILE).restrict_to_sources(
        FactSources.load(folder / FACT_SOURCES_FILE), source
    )


def encode_article_blocks(folder: Path, options: GenerationOptions, share: int, shares: int) -> Iterator[bytes]:
    """Every `shares`-th block of people's articles, starting with block number `share`."""
    universe = load_source_universe(folder, TEXT)
    items = ItemCatalog(universe)
    for start in range(share * PEOPLE_PER_BLOCK, len(universe), shares * PEOPLE_PER_BLOCK):
        rows = range(start, min(start + PEOPLE_PER_BLOCK, len(universe)))
        yield encode_articles(generate_people_articles(universe, items, options, rows))


def encode_articles(articles: Iterable[Article]) -> bytes:
    """Encode articles as JSON Lines."""
    rows = ([article.title, article.sentences, article.entity, article.sections] for article in articles)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def decode_articles(block: bytes) -> Iterator[Article]:
    """Decode articles from JSON Lines."""
    for line in block.splitlines():
        title, sentences, entity, sections = json.loads(line)
        yield Article(title, tuple(sentences), entity, tuple((heading, index) for heading, index in sections))


def write_graph_names(folder: Path) -> Iterator[int]:
    """Write the name index of the graph of a world's folder."""
    return write_name_index(folder, load_source_universe(folder, GRAPH))
