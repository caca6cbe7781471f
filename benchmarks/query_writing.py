"""Text to SPARQL: the share of correct first queries of the grammar, on real questions over a real graph."""

import json
import re
import resource
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from tools.registry import BUILT_IN_TOOLS
from tools.tool import ToolContext
from worlds.build import WorldContents, build_world
from worlds.importers import read_articles
from worlds.open import open_world
from worlds.source import World

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


def _peak_mb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
