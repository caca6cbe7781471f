"""Making a world: the universe, what each source tells of it, its sources on disk, and its questions."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from worlds.build import new_world
from worlds.folder import ABOUT, TEXT, WEB
from worlds.generator.blocks import (
    PEOPLE_AT_ONCE,
    TOLD,
    UNIVERSE,
    article_blocks,
    article_lines,
    names_of,
    read_articles,
)
from worlds.generator.indexes import write_names, write_store
from worlds.generator.items import CLASSES, KINDS, Items
from worlds.generator.pages import pages
from worlds.generator.progress import Stage, Watcher, unwatched
from worlds.generator.prose import place_articles
from worlds.generator.split import parse_split, tell
from worlds.generator.statements import BLOCK, of_people, of_things
from worlds.generator.streams import started
from worlds.questions.kinds import templates
from worlds.questions.question_file import QUESTIONS
from worlds.questions.sampler import questions
from worlds.text import TextWriter
from worlds.toml import dump
from worlds.universe import universe as sources
from worlds.universe.make import make_universe
from worlds.universe.options import Options
from worlds.universe.universe import Told, Universe
from worlds.web import WebWriter

PAGES = "pages.jsonl"
VERSION = 1
"""Of the generator; the same options give another world under another version."""
_FEW = 40_000
"""People for whom starting a process takes longer than the work."""


def generate_world(  # noqa: PLR0913 - what is made, and how the work is done and told
    worlds: Path,
    name: str,
    options: Options,
    *,
    progress: Watcher = unwatched,
    replace: bool = False,
    processes: int | None = None,
) -> dict[str, Any]:
    """Make a world of these options and give what its world.toml says.

    Its folder holds text/ (articles), graph/, names/ and relations.json, web/ if there are pages, universe.npz and
    told.npz (the facts and which source tells them), questions.jsonl, pages.jsonl (what is wrong on which page) and
    world.toml. The same options give the same articles, triples, questions and hash with any number of processes; there
    are as many as are useful, unless the number is given. What could not be asked is told under "shortfalls".

    `progress` is called when a stage begins and ends and some times a second; whatever it raises, as KeyboardInterrupt
    does, stops the work, and nothing of the world stays.
    """
    options.check()
    split = parse_split(options.split, options.split_by)
    with new_world(worlds, name, replace=replace) as folder:
        making = _Making(folder, options, progress, processes or _useful(options.people))
        universe = making.universe()
        told = making.told(tell(universe, split, options.seed))
        counts = {
            "articles": making.articles(universe),
            "pages": making.pages(universe, told),
            **making.questions(universe, told),
            **making.graph(universe.told_by(told, sources.GRAPH)),
        }
        about = {
            "name": name,
            "kind": "generated",
            "generator": VERSION,
            **asdict(options),
            **counts,
            "hash": making.hash(),
            "built": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        (folder / ABOUT).write_text(dump(about), encoding="utf-8")
    return about


@dataclass
class _Making:
    """The stages of the work on one folder, each of which adds what it made to the content's hash."""

    folder: Path
    options: Options
    watch: Watcher
    processes: int
    _hashes: dict[str, Any] = field(default_factory=dict)

    def hash(self) -> str:
        """The hash of all that was made."""
        parts = "".join(f"{part} {found.hexdigest()}\n" for part, found in sorted(self._hashes.items()))
        return hashlib.sha256(parts.encode()).hexdigest()

    def universe(self) -> Universe:
        """Everything that is true."""
        stage = Stage("people", self.options.people, self.watch)
        universe = make_universe(self.options)
        universe.save(self.folder / UNIVERSE)
        self._count_arrays(UNIVERSE)
        stage.add(len(universe))
        stage.end()
        return universe

    def told(self, told: Told) -> Told:
        """Which source tells what."""
        told.save(self.folder / TOLD)
        self._count_arrays(TOLD)
        return told

    def articles(self, universe: Universe) -> int:
        """Write the articles of people, made by several processes, and then those of places."""
        places = universe.places
        total = len(universe) + len(places.towns) + len(places.regions) + len(places.countries)
        stage = Stage("articles", total, self.watch)
        seen = self._part("articles")
        # Closed also when the work fails: its threads must not write into a folder that is being removed.
        with closing(TextWriter(self.folder / TEXT)) as writer:
            for block in self._article_blocks(universe):
                seen.update(block)
                for article in read_articles(block):
                    writer.add(article)
                    stage.add(1)
        stage.end()
        return total

    def _article_blocks(self, universe: Universe) -> Iterator[bytes]:
        blocks = -(-len(universe) // PEOPLE_AT_ONCE)
        processes = min(self.processes, blocks)
        if processes == 1:
            yield from article_blocks(self.folder, self.options, 0, 1)
        else:
            with ExitStack() as stack:
                shares = [(self.folder, self.options, share, processes) for share in range(processes)]
                streams = [stack.enter_context(started(article_blocks, *share)) for share in shares]
                for block in range(blocks):
                    yield next(streams[block % processes])
        yield article_lines(place_articles(universe, Items(universe)))

    def pages(self, universe: Universe, told: Told) -> int:
        """Write the web pages, if there are any, and beside them what is wrong on which."""
        stage = Stage("pages", 0, self.watch)
        seen, written = self._part("pages"), 0
        with ExitStack() as stack:
            file = stack.enter_context((self.folder / PAGES).open("wb"))
            writer: WebWriter | None = None
            for marked in pages(universe, told, self.options):
                writer = writer or stack.enter_context(closing(WebWriter(self.folder / WEB)))
                writer.add(marked.page)
                line = json.dumps(marked.to_row(universe), ensure_ascii=False).encode() + b"\n"
                file.write(line)
                seen.update(line)
                seen.update(marked.page.text.encode())
                written += 1
                stage.add(1)
        stage.end()
        return written

    def questions(self, universe: Universe, told: Told) -> dict[str, Any]:
        """Write the questions with their gold; what could not be asked is told."""
        stage = Stage("questions", self.options.per_template * sum(1 for _ in templates(self.options)), self.watch)
        seen, written = self._part("questions"), 0
        asked = questions(universe, told, self.options)
        with (self.folder / QUESTIONS).open("wb") as file:
            for question in asked:
                line = json.dumps(question.to_row(), ensure_ascii=False).encode() + b"\n"
                file.write(line)
                seen.update(line)
                written += 1
                stage.add(1)
        stage.end()
        return {"questions": written, "shortfalls": [str(shortfall) for shortfall in asked.shortfalls]}

    def graph(self, told: Universe) -> dict[str, int]:
        """Write the graph and, beside it or after it, its names."""
        stage = Stage("graph", len(told), self.watch)
        triples = _Lines(self._part("graph"))
        beside = started(names_of, self.folder) if self.processes > 1 else closing(write_names(self.folder, told))
        with beside as names:
            relations = write_store(self.folder, triples.counted(_triples(told, stage)))
            stage.end()
            stage = Stage("names", len(told), self.watch)
            for count in names:
                stage.add(count)
        stage.end()
        things = sum(len(Items(told).labels(kind)) for kind in KINDS) + len(CLASSES)
        return {"triples": triples.count, "entities": things, "relations": len(relations)}

    def _part(self, name: str) -> Any:
        return self._hashes.setdefault(name, hashlib.sha256())

    def _count_arrays(self, name: str) -> None:
        # The file of arrays may be written otherwise by another version of numpy; the arrays are the same.
        seen = self._part(name)
        with np.load(self.folder / name) as arrays:
            for array in sorted(arrays.files):
                seen.update(f"{array} {arrays[array].dtype.str} {arrays[array].shape}\n".encode())
                seen.update(arrays[array].tobytes())


def _useful(people: int) -> int:
    """How many processes make a world of so many people the soonest."""
    if people <= _FEW:
        return 1
    # Not every system tells which of its processors this process may use.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Lines:
    """Counts the lines that pass, and adds them to a hash."""

    def __init__(self, seen: Any) -> None:
        self.count, self._seen = 0, seen

    def counted(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """The same blocks."""
        for block in blocks:
            self.count += block.count(b"\n")
            self._seen.update(block)
            yield block


def _triples(told: Universe, stage: Stage) -> Iterator[bytes]:
    yield of_things(told)
    for start in range(0, len(told), BLOCK):
        rows = range(start, min(start + BLOCK, len(told)))
        yield from of_people(told, rows)
        stage.add(len(rows))
