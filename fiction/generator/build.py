"""Generation of a world: its universe, the split of facts over sources, the sources on disk, and the questions."""

import hashlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from showhow.fiction.generator.articles import generate_place_articles
from showhow.fiction.generator.progress import ProgressCallback, ProgressStage, ignore_progress
from showhow.fiction.generator.source_split import assign_sources, parse_split
from showhow.fiction.generator.web_pages import generate_pages
from showhow.fiction.generator.world_files import (
    BLOCK_SIZE,
    FACT_SOURCES_FILE,
    PEOPLE_PER_BLOCK,
    UNIVERSE_FILE,
    decode_articles,
    encode_article_blocks,
    encode_articles,
    generate_people_triples,
    generate_thing_triples,
    write_graph_names,
    write_graph_store,
    write_name_index,
)
from showhow.fiction.questions.question_file import QUESTIONS_FILE
from showhow.fiction.questions.templates import build_templates, sample_questions
from showhow.fiction.universe import universe as sources
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.items import CLASSES, ITEM_KINDS, ItemCatalog
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import FactSources, Universe
from showhow.worlds.build import create_world_folder, dump_toml
from showhow.worlds.embedded.text import TextWriter, WebWriter
from showhow.worlds.folder import TEXT_FOLDER, WEB_FOLDER, WORLD_FILE, WorldError

_ITEM, _FAILURE, _END = range(3)

ItemT = TypeVar("ItemT")


@contextmanager
def run_in_process(work: Callable[..., Iterator[ItemT]], *arguments: Any) -> Iterator[Iterator[ItemT]]:
    """Iterate `work(*arguments)` in a child process that ends with the block.

    An OSError or WorldError of the child is raised here. The child runs ahead by no more than the pipe's buffer, so
    memory stays bounded.
    """
    # A forked process would inherit locks that our threads hold, but not the threads that release them.
    spawn = get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_send_all, args=(sender, work, arguments), daemon=True)
    resource_tracker.ensure_running()
    # Ctrl+C reaches every process of a terminal; only the parent handles it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    sender.close()
    try:
        with closing(receiver):
            yield _receive_items(receiver)
    finally:
        process.terminate()
        process.join()


def _receive_items(pipe: "Connection[Any, Any]") -> Iterator[Any]:
    while True:
        try:
            kind, value = pipe.recv()
        except EOFError:
            raise WorldError("A worker process of the generation was killed; generate the world again.") from None
        if kind == _END:
            return
        if kind == _FAILURE:
            raise value
        yield value


def _send_all(pipe: "Connection[Any, Any]", work: Callable[..., Iterator[Any]], arguments: tuple[Any, ...]) -> None:
    with closing(pipe):
        try:
            for item in work(*arguments):
                pipe.send((_ITEM, item))
            pipe.send((_END, None))
        except BrokenPipeError:
            # The parent has closed its end.
            return
        except (OSError, WorldError) as error:
            pipe.send((_FAILURE, error))


PAGES_FILE = "pages.jsonl"
_MAX_SINGLE_PROCESS_PEOPLE = 40_000
"""Up to this many people, starting a worker process takes longer than the work."""


def generate_world(  # noqa: PLR0913 - what is generated, and how
    worlds: Path,
    name: str,
    options: GenerationOptions,
    *,
    progress: ProgressCallback = ignore_progress,
    replace: bool = False,
    processes: int | None = None,
) -> dict[str, Any]:
    """Generate a world and return the contents of its world.toml.

    The folder holds text/ (articles), graph/, names/ and relations.json, web/ if there are pages, universe.npz and
    told.npz (the facts, and the sources of each), questions.jsonl, pages.jsonl (pages and their false statements) and
    world.toml. The same options give the same articles, triples, questions and hash with any number of processes.
    Its `needs = "certain"` says what a question's `needs` are: sources that are needed to be certain of its answers.
    `processes` defaults to as many as are useful. Templates with too few questions are listed under "shortfalls".

    `progress` receives a StageProgress when a stage begins, at intervals, and when it ends. An exception that it
    raises, and KeyboardInterrupt, stop the generation; the unfinished world is removed.
    """
    options.check()
    split = parse_split(options.split, options.split_by)
    with create_world_folder(worlds, name, replace=replace) as folder:
        world_build = _WorldBuild(folder, options, progress, processes or _choose_process_count(options.people))
        universe = world_build.build_universe()
        fact_sources = world_build.save_fact_sources(assign_sources(universe, split, options.seed))
        counts = {
            "articles": world_build.write_articles(universe),
            "pages": world_build.write_pages(universe, fact_sources),
            **world_build.write_questions(universe, fact_sources),
            **world_build.write_graph(universe.restrict_to_sources(fact_sources, sources.GRAPH)),
        }
        metadata = {
            "name": name,
            "kind": "generated",
            **asdict(options),
            **counts,
            "needs": "certain",
            "hash": world_build.content_hash(),
            "built": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        (folder / WORLD_FILE).write_text(dump_toml(metadata), encoding="utf-8")
    return metadata


@dataclass
class _WorldBuild:
    """The stages of one generation; each stage writes its files and adds their content to the hash."""

    folder: Path
    options: GenerationOptions
    on_progress: ProgressCallback
    processes: int
    _hashes: dict[str, Any] = field(default_factory=dict)

    def content_hash(self) -> str:
        """SHA-256 of the content of all stages."""
        parts = "".join(f"{part} {digest.hexdigest()}\n" for part, digest in sorted(self._hashes.items()))
        return hashlib.sha256(parts.encode()).hexdigest()

    def build_universe(self) -> Universe:
        """Generate and save the universe."""
        stage = ProgressStage("people", self.options.people, self.on_progress)
        universe = make_universe(self.options)
        universe.save(self.folder / UNIVERSE_FILE)
        self._hash_arrays(UNIVERSE_FILE)
        stage.advance(len(universe))
        stage.finish()
        return universe

    def save_fact_sources(self, fact_sources: FactSources) -> FactSources:
        """Save the split of facts over sources."""
        fact_sources.save(self.folder / FACT_SOURCES_FILE)
        self._hash_arrays(FACT_SOURCES_FILE)
        return fact_sources

    def write_articles(self, universe: Universe) -> int:
        """Write the articles of people (generated by several processes), then those of places; returns their number."""
        places = universe.places
        total = len(universe) + len(places.towns) + len(places.regions) + len(places.countries)
        stage = ProgressStage("articles", total, self.on_progress)
        digest = self._part_hash("articles")
        # Closed on failure as well: its threads must not write into a folder that is being removed.
        with closing(TextWriter(self.folder / TEXT_FOLDER)) as writer:
            for block in self._article_blocks(universe):
                digest.update(block)
                for article in decode_articles(block):
                    writer.add(article)
                    stage.advance(1)
        stage.finish()
        return total

    def _article_blocks(self, universe: Universe) -> Iterator[bytes]:
        blocks = -(-len(universe) // PEOPLE_PER_BLOCK)
        processes = min(self.processes, blocks)
        if processes == 1:
            yield from encode_article_blocks(self.folder, self.options, 0, 1)
        else:
            with ExitStack() as stack:
                shares = [(self.folder, self.options, share, processes) for share in range(processes)]
                streams = [stack.enter_context(run_in_process(encode_article_blocks, *share)) for share in shares]
                for block in range(blocks):
                    yield next(streams[block % processes])
        yield encode_articles(generate_place_articles(universe, ItemCatalog(universe)))

    def write_pages(self, universe: Universe, fact_sources: FactSources) -> int:
        """Write the web pages, if any, and the list of their false statements; returns their number."""
        stage = ProgressStage("pages", 0, self.on_progress)
        digest, page_count = self._part_hash("pages"), 0
        with ExitStack() as stack:
            file = stack.enter_context((self.folder / PAGES_FILE).open("wb"))
            writer: WebWriter | None = None
            for marked in generate_pages(universe, fact_sources, self.options):
                writer = writer or stack.enter_context(closing(WebWriter(self.folder / WEB_FOLDER)))
                writer.add(marked.page)
                line = json.dumps(marked.to_row(universe), ensure_ascii=False).encode() + b"\n"
                file.write(line)
                digest.update(line)
                digest.update(marked.page.text.encode())
                page_count += 1
                stage.advance(1)
        stage.finish()
        return page_count

    def write_questions(self, universe: Universe, fact_sources: FactSources) -> dict[str, Any]:
        """Write the questions with their gold answers; returns their number and the shortfalls."""
        templates = build_templates(self.options)
        requested = sum(2 * self.options.pairs if t.draw_twin else self.options.per_template for t in templates)
        stage = ProgressStage("questions", requested, self.on_progress)
        digest, question_count = self._part_hash("questions"), 0
        questions = sample_questions(universe, fact_sources, self.options)
        with (self.folder / QUESTIONS_FILE).open("wb") as file:
            for question in questions:
                line = json.dumps(question.to_row(), ensure_ascii=False).encode() + b"\n"
                file.write(line)
                digest.update(line)
                question_count += 1
                stage.advance(1)
        stage.finish()
        return {"questions": question_count, "shortfalls": [str(shortfall) for shortfall in questions.shortfalls]}

    def write_graph(self, universe: Universe) -> dict[str, int]:
        """Write the graph and its name index, in parallel if several processes are used; returns the sizes."""
        stage = ProgressStage("graph", len(universe), self.on_progress)
        triples = _LineCounter(self._part_hash("graph"))
        name_index = (
            run_in_process(write_graph_names, self.folder)
            if self.processes > 1
            else closing(write_name_index(self.folder, universe))
        )
        with name_index as name_counts:
            relations = write_graph_store(self.folder, triples.count_lines(_iter_triples(universe, stage)))
            stage.finish()
            stage = ProgressStage("names", len(universe), self.on_progress)
            for count in name_counts:
                stage.advance(count)
        stage.finish()
        item_count = sum(len(ItemCatalog(universe).labels(kind)) for kind in ITEM_KINDS) + len(CLASSES)
        return {"triples": triples.count, "entities": item_count, "relations": len(relations)}

    def _part_hash(self, name: str) -> Any:
        return self._hashes.setdefault(name, hashlib.sha256())

    def _hash_arrays(self, name: str) -> None:
        # Not the bytes of the file, which another version of numpy may write differently.
        digest = self._part_hash(name)
        with np.load(self.folder / name) as arrays:
            for array in sorted(arrays.files):
                digest.update(f"{array} {arrays[array].dtype.str} {arrays[array].shape}\n".encode())
                digest.update(arrays[array].tobytes())


def _choose_process_count(people: int) -> int:
    """The number of processes that generates a world of this size fastest."""
    if people <= _MAX_SINGLE_PROCESS_PEOPLE:
        return 1
    # sched_getaffinity does not exist on every system.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _LineCounter:
    """Counts lines of a stream of blocks and adds the blocks to a hash."""

    def __init__(self, digest: Any) -> None:
        self.count, self._seen = 0, digest

    def count_lines(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Pass the blocks through unchanged."""
        for block in blocks:
            self.count += block.count(b"\n")
            self._seen.update(block)
            yield block


def _iter_triples(universe: Universe, stage: ProgressStage) -> Iterator[bytes]:
    yield generate_thing_triples(universe)
    for start in range(0, len(universe), BLOCK_SIZE):
        rows = range(start, min(start + BLOCK_SIZE, len(universe)))
        yield from generate_people_triples(universe, rows)
        stage.advance(len(rows))
