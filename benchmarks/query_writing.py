"""Text to SPARQL: the queries of the grammar for real questions and for paraphrases, over a real graph.

A paraphrase is answered rightly, wrongly (by anything but its gold answers), by no value, or refused. Its gold answers
are read from the file of the graph, not by a query.
"""

import json
import random
import re
import resource
import statistics
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyoxigraph

from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import EncodeFunction, ToolContext
from showhow.worlds.article_files import read_articles
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.open import open_world
from showhow.worlds.source import World

PARTS = ("development", "test", "second_test", "third_test")
"""The parts of the paraphrases."""
OUTCOMES = ("right", "wrong", "empty", "refused")
_PARAPHRASES = Path(__file__).with_name("paraphrases.toml")
_OPERATIONS = frozenset(["first", "last", "before", "after", "same", "year", "refuse"])
_SEED = 1
_DATE_FORMATS = ("%d %B %Y", "%B %d, %Y", "%B %Y")


@dataclass(frozen=True, slots=True)
class QueryQuestion:
    """A question with its start entities and correct answers: names, ids, dates, or yes and no."""

    text: str
    entities: tuple[str, ...]
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryMeasurement:
    """Number of questions, number answered by the first query, and median time to write a query."""

    count: int
    right: int
    milliseconds: float
    missed: tuple[str, ...]

    @property
    def share(self) -> float:
        """Share of correct answers."""
        if not self.count:
            raise ValueError("there are no questions, so there is no share")
        return self.right / self.count


def measure_first_queries(world: World, questions: Iterable[QueryQuestion]) -> QueryMeasurement:
    """Write and run the first query of each question; it is right if a cell of its result is an answer."""
    context = ToolContext(world, _encode_as_zeros)
    seconds, missed = [], []
    for question in questions:
        arguments = {"question": question.text, "entity_ids": list(question.entities)}
        result = BUILT_IN_TOOLS["generateQuery"].call(context, arguments)
        seconds.append(result.seconds)
        if not (result.observation and _query_answers(context, result.observation.text, question.answers)):
            missed.append(question.text)
    count = len(seconds)
    median = statistics.median(seconds) * 1000 if seconds else 0.0
    return QueryMeasurement(count, count - len(missed), median, tuple(missed))


@dataclass(frozen=True, slots=True)
class Paraphrase:
    """A question with its entities and gold answers: ids, literals, or yes and no; none if it has no answer."""

    text: str
    entities: tuple[str, ...]
    answers: frozenset[str]


class GraphFacts:
    """The labels and facts of a graph's file."""

    def __init__(self, file: Path) -> None:
        self.labels: dict[str, str] = {}
        self._objects: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for triple in pyoxigraph.parse(path=str(file), format=pyoxigraph.RdfFormat.TURTLE):
            subject, predicate = (_local_name(str(node)) for node in (triple.subject, triple.predicate))
            is_node = isinstance(triple.object, pyoxigraph.NamedNode)
            value = _local_name(str(triple.object)) if is_node else getattr(triple.object, "value", "")
            if predicate.endswith("label"):
                self.labels[subject] = value
            else:
                self._objects[subject, predicate].add(value)
        self.subjects = sorted({subject for subject, _ in self._objects if subject in self.labels})
        self._ids = {label: id_ for id_, label in self.labels.items() if id_.startswith("P")}

    def follow(self, start: str, relations: Iterable[str]) -> frozenset[str]:
        """The values at the end of the relations, which are named by their labels."""
        nodes = {start}
        for relation in relations:
            nodes = set().union(*(self._objects.get((node, self._ids[relation]), set()) for node in nodes))
        return frozenset(nodes)


def _local_name(iri: str) -> str:
    return iri.strip("<>").rsplit("/", 1)[-1]


def read_paraphrases(part: str) -> list[tuple[str, str]]:
    """The forms of one of PARTS: a question with places for entities, and what answers it."""
    table = tomllib.loads(_PARAPHRASES.read_text(encoding="utf-8"))
    return [(text, answer) for text, answer in table[part]]


def fill_paraphrases(facts: GraphFacts, forms: Iterable[tuple[str, str]], seed: int) -> Iterator[Paraphrase]:
    """Each form with entities that have values, drawn by the seed, and the answers that the facts give."""
    draw = random.Random(seed)  # noqa: S311 - a sample, no secret
    for text, answer in forms:
        first_word, _, after = answer.partition(" ")
        operation, rest = (first_word, after) if first_word in _OPERATIONS else ("values", answer)
        paths = [tuple(path.strip().split("/")[1:]) for path in rest.split(";")]
        choices = [[node for node in facts.subjects if facts.follow(node, path)] for path in paths]
        while True:
            items = [draw.choice(choice) for choice in choices]
            values = [facts.follow(item, path) for item, path in zip(items, paths, strict=True)]
            ordered = operation in ("first", "last", "before", "after")
            tied = ordered and (any(len(value) > 1 for value in values) or values[0] == values[1])
            if len(set(items)) == len(items) and not tied:
                break
        labels = [facts.labels[item] for item in items]
        names = dict(zip("AB", labels, strict=False)) | dict(zip("ab", map(str.lower, labels), strict=False))
        yield Paraphrase(text.format(**names), tuple(items), _gold_answers(operation, items, values))


def _gold_answers(operation: str, items: Sequence[str], values: Sequence[frozenset[str]]) -> frozenset[str]:
    match operation:
        case "refuse":
            return frozenset()
        case "first" | "last":
            ends = sorted(zip(map(min, values), items, strict=True))
            return frozenset([ends[0 if operation == "first" else -1][1]])
        case "before" | "after":
            is_before = min(values[0]) < min(values[1])
            return frozenset(["yes" if is_before == (operation == "before") else "no"])
        case "same":
            return frozenset(["yes" if values[0] & values[1] else "no"])
        case "year":
            return frozenset(str(int(value.partition("-")[0])) for value in values[0])
        case _:
            return values[0]


def measure_paraphrases(
    world: World, paraphrases: Iterable[Paraphrase], encode: EncodeFunction
) -> tuple[Counter[str], list[str]]:
    """The numbers of right, wrong, empty and refused answers, and the wrongly answered questions."""
    context = ToolContext(world, encode)
    counts, wrong = Counter(dict.fromkeys(OUTCOMES, 0)), []
    for paraphrase in paraphrases:
        outcome = _judge_paraphrase(context, paraphrase)
        counts[outcome] += 1
        if outcome == "wrong":
            wrong.append(paraphrase.text)
    return counts, wrong


def _judge_paraphrase(context: ToolContext, paraphrase: Paraphrase) -> str:
    arguments = {"question": paraphrase.text, "entity_ids": list(paraphrase.entities)}
    written = BUILT_IN_TOOLS["generateQuery"].call(context, arguments).observation
    if written is None or written.data["unexplained"]:
        return "refused"
    result = BUILT_IN_TOOLS["runQuery"].call(context, {"sparql": written.text}).observation
    if result is None:
        raise ValueError(f"The query for {paraphrase.text!r} does not run: {written.text}")
    values = {row[0]["value"] for row in result.data["rows"] if row[0]}
    if not values:
        return "empty"
    return "right" if values == paraphrase.answers else "wrong"


def _encode_as_zeros(texts: Sequence[str]) -> np.ndarray:
    # Without embeddings, unknown words count as missed, so the grammar alone is measured.
    return np.zeros((len(texts), 1), dtype=np.float32)


def _query_answers(context: ToolContext, sparql: str, answers: tuple[str, ...]) -> bool:
    observation = BUILT_IN_TOOLS["runQuery"].call(context, {"sparql": sparql}).observation
    if observation is None:
        return False
    if observation.data["boolean"] is not None:
        return ("yes" if observation.data["boolean"] else "no") in answers
    cells = [cell for row in observation.data["rows"] for cell in row if cell]
    texts = {str(text).casefold() for cell in cells for text in (cell["value"], cell.get("label", ""))}
    return any(answer.casefold() in texts or _is_date(answer, texts) for answer in answers)


def _is_date(answer: str, values: set[str]) -> bool:
    """Whether a value is the date that the answer states in words; a bare year matches by year."""
    if re.fullmatch(r"\d{1,4}", answer):
        return any(value.startswith(f"{answer.zfill(4)}-") for value in values)
    for date_format in _DATE_FORMATS:
        try:
            date = datetime.strptime(answer, date_format).replace(tzinfo=UTC)
        except ValueError:
            continue
        return any(value.startswith(f"{date.year:04}-{date.month:02}-{date.day:02}") for value in values)
    return False


def questions_from_hops(records: Iterable[Mapping[str, Any]]) -> Iterator[QueryQuestion]:
    """Build questions from their hops; start entities are the subjects that no hop leads to."""
    for record in records:
        objects = {hop["object_qid"] for hop in record["hops"]}
        starts = dict.fromkeys(h["subject_qid"] for h in record["hops"] if h["subject_qid"] not in objects)
        answers = tuple(answer for answer in (record["answer"], record.get("answer_id")) if answer)
        yield QueryQuestion(record["question"], tuple(starts), answers)


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """Share of correct first queries and time to write one, for graph questions and for all questions."""
    source = data / "world_2wiki" if data else None
    if source is None or not source.is_dir():
        yield {"name": "query_writing", "value": None, "unit": "share", "note": "not measured: no real test data"}
        return
    worlds = home / "worlds"
    build_world(worlds, "real", WorldContents(read_articles(source / "paragraphs.jsonl"), source / "kg_full.ttl"))
    world = open_world(worlds, "real")
    records = json.loads((source / "questions_300.json").read_text(encoding="utf-8"))
    graph_records = [record for record in records if record["needs"] == "kg"]
    for name, subset in (("graph questions", graph_records), ("all questions", records)):
        measurement = measure_first_queries(world, questions_from_hops(subset))
        shared = {"size": measurement.count, "peak_mb": _peak_mb()}
        note = f"{measurement.right} of {measurement.count} {name} of the real world, full graph, no encoder"
        yield {"name": "query_writing", "value": round(measurement.share, 4), "unit": "share", "note": note, **shared}
        median = {"value": round(measurement.milliseconds, 2), "unit": "ms"}
        yield {"name": "query_writing_median", "note": f"one query, {name}", **median, **shared}
    yield from _measure_paraphrase_parts(world, GraphFacts(source / "kg_full.ttl"))


def _measure_paraphrase_parts(world: World, facts: GraphFacts) -> Iterator[dict[str, Any]]:
    """Outcomes of the paraphrases, with and without the encoder."""
    encoder = SentenceEncoder(BUNDLED_MODEL)
    for part in PARTS:
        paraphrases = list(fill_paraphrases(facts, read_paraphrases(part), _SEED))
        unanswerable = sum(not paraphrase.answers for paraphrase in paraphrases)
        for how, encode in (("with", encoder), ("without", _encode_as_zeros)):
            counts, _ = measure_paraphrases(world, paraphrases, encode)
            outcomes = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES)
            note = (
                f"{outcomes} of {len(paraphrases)} {part} paraphrases, {unanswerable} without an answer, {how} encoder"
            )
            share = round(counts["right"] / len(paraphrases), 4)
            size = {"size": len(paraphrases), "value": share, "unit": "share"}
            yield {"name": "query_paraphrases", "note": note, "peak_mb": _peak_mb(), **size}


def _peak_mb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
