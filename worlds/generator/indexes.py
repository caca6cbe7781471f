"""The graph of a generated world on disk: the store, the names in it and its relations.

All of it is known beforehand, so that nothing is read back from the store as for an imported graph.
"""

import json
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pyoxigraph as ox

from worlds import terms
from worlds.folder import GRAPH, NAMES, RELATIONS
from worlds.generator.items import CLASSES, FIRST, KINDS, PROPERTIES, PROPERTY, Items
from worlds.names import NamesWriter
from worlds.source import Relation
from worlds.universe.universe import Universe

_STEP = 1 << 12
_DAYS = frozenset(PROPERTY[fact] for fact in ("birth", "death", "wedding"))


class _Stream:
    """A file to read from whose bytes are only made when they are wanted."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._block, self._place = blocks, b"", 0
        self.failure: BaseException | None = None

    def read(self, size: int) -> bytes:
        """The next bytes, at most that many; none at the end."""
        try:
            while self._place == len(self._block):
                self._block, self._place = next(self._blocks), 0
        except StopIteration:
            return b""
        except BaseException as failed:
            # The store would tell only of a failed reading.
            self.failure = failed
            raise
        start, self._place = self._place, min(self._place + size, len(self._block))
        return self._block[start : self._place]


def write_store(folder: Path, blocks: Iterator[bytes]) -> list[Relation]:
    """Write the triples of these blocks of N-Triples as the graph of the world's folder; gives its relations."""
    store = ox.Store(str(folder / GRAPH))
    stream = _Stream(blocks)
    try:
        store.bulk_load(stream, format=ox.RdfFormat.N_TRIPLES)  # type: ignore[arg-type]
    except (OSError, SyntaxError):
        if stream.failure is not None:
            raise stream.failure from None
        raise
    relations = [_relation(pid) for pid in sorted(PROPERTIES) if _used(store, pid)]
    described = json.dumps([asdict(relation) for relation in relations], ensure_ascii=False, indent=1)
    (folder / RELATIONS).write_text(described, encoding="utf-8")
    store.optimize()
    store.flush()
    return relations


def _used(store: ox.Store, pid: str) -> bool:
    return next(store.quads_for_pattern(None, ox.NamedNode(terms.DIRECT + pid), None, None), None) is not None


def _relation(pid: str) -> Relation:
    label, *aliases = PROPERTIES[pid]
    return Relation(pid, label, tuple(sorted(aliases)), "date" if pid in _DAYS else "entity")


def write_names(folder: Path, told: Universe) -> Generator[int, None, None]:
    """Write the index of what everything in the graph is called; yields how many more people are in it."""
    with closing(NamesWriter(folder / NAMES)) as names:
        for pid, (label, *aliases) in PROPERTIES.items():
            names.add(label, pid, "label")
            for alias in aliases:
                names.add(alias, pid, "alias")
        for item, label in CLASSES.items():
            names.add(label, item, "label")
        items = Items(told)
        for kind in KINDS[1:]:
            for number, label in enumerate(items.labels(kind)):
                names.add(label, f"Q{FIRST[kind] + number}", "label")
        for row in range(len(told)):
            _name_person(names, told, items, row)
            if row % _STEP == _STEP - 1:
                yield _STEP
        yield len(told) % _STEP


def _name_person(names: NamesWriter, told: Universe, items: Items, row: int) -> None:
    item, label, title = items.person(row), told.names[row], told.titles[row]
    names.add(label, item, "label")
    for alias in items.aliases(row):
        names.add(alias, item, "alias")
    if title != label:
        # An article titled like the entity's label is found by the label.
        names.add(title, item, "title")
