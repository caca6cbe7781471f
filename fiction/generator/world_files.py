"""Files of a generated world: its facts as N-Triples shaped like Wikidata's, its graph store, names and articles.

Functions that take a folder run in worker processes and load the universe from it. Names and relations come from the
universe, so unlike an imported graph the store is not read back.
"""

import json
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict
from datetime import date
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyoxigraph as ox

from showhow.fiction.generator.articles import generate_people_articles
from showhow.fiction.universe.items import (
    CLASSES,
    FACT_ITEM_KINDS,
    FEMALE,
    FIRST_IDS,
    HUMAN,
    ITEM_KINDS,
    KIND_CLASS,
    MALE,
    PLACE_KINDS,
    PROPERTY_IDS,
    PROPERTY_LABELS,
    ItemCatalog,
)
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.relations import find_sibling_pairs
from showhow.fiction.universe.universe import GRAPH, NONE, TEXT, FactSources, IdArray, Universe
from showhow.worlds import terms
from showhow.worlds.embedded.graph import NameIndexWriter
from showhow.worlds.folder import GRAPH_FOLDER, NAMES_FOLDER, RELATIONS_FILE
from showhow.worlds.source import Article, Relation

BLOCK_SIZE = 1 << 15
"""People per block of triples."""
_DIGIT_COUNT = 10
_DATE_FACTS = ("birth", "death", "wedding")
_SUBJECT_PREFIX, _LINE_END = f"<{terms.ENTITY_NAMESPACE}Q".encode(), b"> .\n"
_DATE_SUFFIX = 'T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'

Numbers = npt.NDArray[np.int64]
_PEOPLE_PER_STEP = 1 << 12
_DATE_PROPERTIES = frozenset(PROPERTY_IDS[fact] for fact in _DATE_FACTS)
PEOPLE_PER_BLOCK = 1 << 12
"""People per encoded block of articles."""


def generate_triples(universe: Universe) -> Iterator[bytes]:
    """Generate all triples of the universe, each once, one per line, in blocks of people."""
    yield generate_thing_triples(universe)
    for start in range(0, len(universe), BLOCK_SIZE):
        yield from generate_people_triples(universe, range(start, min(start + BLOCK_SIZE, len(universe))))


def generate_thing_triples(universe: Universe) -> bytes:
    """Triples of properties, classes, places, jobs and hobbies."""
    return "".join((*_vocabulary_triples(), *_item_triples(universe, ItemCatalog(universe)))).encode()


def generate_people_triples(universe: Universe, block: range) -> Iterator[bytes]:
    """Triples of the people in these rows, in several blocks of lines."""
    rows = np.arange(block.start, block.stop, dtype=np.int32)
    yield "".join(_name_triples(universe, ItemCatalog(universe), rows)).encode()
    yield "".join(_date_triples(universe, rows)).encode()
    yield from _item_claim_lines(universe, rows)


def _vocabulary_triples() -> Iterator[str]:
    for pid, (label, *aliases) in PROPERTY_LABELS.items():
        yield from _label_triples(pid, label, aliases)
    for item, label in CLASSES.items():
        yield from _label_triples(item, label, ())
        yield _description_triple(item, "class")


def _item_triples(universe: Universe, items: ItemCatalog) -> Iterator[str]:
    """Triples of places, jobs and hobbies."""
    for kind, of_class in KIND_CLASS.items():
        for number, label in enumerate(items.labels(kind)):
            item = f"Q{FIRST_IDS[kind] + number}"
            yield from _label_triples(item, label, ())
            yield _description_triple(item, items.description(kind, number))
            yield _claim_triple(item, "P31", of_class)
            if kind in PLACE_KINDS:
                yield _sitelink_triples(label, item)
    places = universe.places
    for town, region in enumerate(places.region.tolist()):
        yield _claim_triple(items.town(town), PROPERTY_IDS["region"], items.region(region))
        yield _claim_triple(items.town(town), PROPERTY_IDS["country"], items.country(int(places.country[region])))
    for region, country in enumerate(places.country.tolist()):
        yield _claim_triple(items.region(region), PROPERTY_IDS["country"], items.country(country))


def _name_triples(universe: Universe, items: ItemCatalog, rows: IdArray) -> Iterator[str]:
    for row in rows.tolist():
        item = items.person(row)
        yield from _label_triples(item, universe.names[row], items.aliases(row))
        yield _description_triple(item, items.description("person", row))
        yield _sitelink_triples(universe.titles[row], item)


def _date_triples(universe: Universe, rows: IdArray) -> Iterator[str]:
    for fact in _DATE_FACTS:
        days = getattr(universe, fact)[rows]
        predicate = f'> <{terms.DIRECT_NAMESPACE}{PROPERTY_IDS[fact]}> "'
        for row, day in zip(rows[days > NONE].tolist(), days[days > NONE].tolist(), strict=True):
            subject = f"<{terms.ENTITY_NAMESPACE}Q{FIRST_IDS['person'] + row}"
            yield f"{subject}{predicate}{date.fromordinal(day).isoformat()}{_DATE_SUFFIX}"


def _item_claim_lines(universe: Universe, rows: IdArray) -> Iterator[bytes]:
    """Triples from people to items."""
    yield _constant_claim_lines("P31", rows, HUMAN)
    yield _constant_claim_lines(PROPERTY_IDS["gender"], rows[universe.female[rows]], FEMALE)
    yield _constant_claim_lines(PROPERTY_IDS["gender"], rows[~universe.female[rows]], MALE)
    for fact, kind in FACT_ITEM_KINDS.items():
        values = getattr(universe, fact)[rows]
        yield _claim_lines(PROPERTY_IDS[fact], rows[values > NONE], values[values > NONE], kind)
    for relation, lists in (("child", universe.children), ("friend", universe.friends_of)):
        yield _claim_lines(
            PROPERTY_IDS[relation], np.repeat(rows, lists.list_sizes()[rows]), lists.get_many(rows), "person"
        )
    yield _claim_lines(PROPERTY_IDS["sibling"], *find_sibling_pairs(universe, rows), "person")


def _constant_claim_lines(pid: str, rows: IdArray, target: str) -> bytes:
    return _join_columns(
        _SUBJECT_PREFIX, _item_numbers(rows, "person"), _predicate_bytes(pid) + target.encode() + _LINE_END
    )


def _claim_lines(pid: str, rows: IdArray | Numbers, values: IdArray | Numbers, kind: str) -> bytes:
    return _join_columns(
        _SUBJECT_PREFIX,
        _item_numbers(rows, "person"),
        _predicate_bytes(pid) + b"Q",
        _item_numbers(values, kind),
        _LINE_END,
    )


def _item_numbers(values: IdArray | Numbers, kind: str) -> Numbers:
    return values.astype(np.int64) + FIRST_IDS[kind]


def _predicate_bytes(pid: str) -> bytes:
    return f"> <{terms.DIRECT_NAMESPACE}{pid}> <{terms.ENTITY_NAMESPACE}".encode()


def _join_columns(*parts: bytes | Numbers) -> bytes:
    """Write one line per number, vectorised: all numbers have _DIGIT_COUNT digits, so all lines have equal length."""
    count = next(len(part) for part in parts if isinstance(part, np.ndarray))
    widths = [len(part) if isinstance(part, bytes) else _DIGIT_COUNT for part in parts]
    lines = np.empty((count, sum(widths)), np.uint8)
    end = 0
    for part, width in zip(parts, widths, strict=True):
        start, end = end, end + width
        lines[:, start:end] = np.frombuffer(part, np.uint8) if isinstance(part, bytes) else _digit_columns(part)
    return lines.tobytes()


def _digit_columns(numbers: Numbers) -> npt.NDArray[np.uint8]:
    digits = np.empty((len(numbers), _DIGIT_COUNT), np.uint8)
    rest = numbers
    for position in range(_DIGIT_COUNT - 1, -1, -1):
        rest, digit = np.divmod(rest, 10)
        digits[:, position] = digit + ord("0")
    return digits


def _label_triples(item: str, label: str, aliases: Iterable[str]) -> Iterator[str]:
    yield f"<{terms.ENTITY_NAMESPACE}{item}> <{terms.RDFS_LABEL}> {_format_literal(label)} .\n"
    for alias in aliases:
        yield f"<{terms.ENTITY_NAMESPACE}{item}> <{terms.SKOS_ALT_LABEL}> {_format_literal(alias)} .\n"


def _description_triple(item: str, description: str) -> str:
    return f"<{terms.ENTITY_NAMESPACE}{item}> <{terms.SCHEMA_DESCRIPTION}> {_format_literal(description)} .\n"


def _sitelink_triples(title: str, item: str) -> str:
    return f"<{terms.page_iri_from_title(title)}> <{terms.SCHEMA_ABOUT}> <{terms.ENTITY_NAMESPACE}{item}> .\n"


def _claim_triple(subject: str, pid: str, target: str) -> str:
    return f"<{terms.ENTITY_NAMESPACE}{subject}> <{terms.DIRECT_NAMESPACE}{pid}> <{terms.ENTITY_NAMESPACE}{target}> .\n"


def _format_literal(value: str) -> str:
    # A JSON string is a valid N-Triples string for all texts used here.
    return json.dumps(value, ensure_ascii=False) + "@en"


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
