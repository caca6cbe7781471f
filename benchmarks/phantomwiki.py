"""Verification of published PhantomWiki instances: answers and relations are derived again and compared."""

import csv
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fiction.generator.world_files import UNIVERSE_FILE
from fiction.phantomwiki.instance import import_instance
from fiction.questions.evaluate import ExpressionEvaluator
from fiction.questions.expressions import Expression
from fiction.questions.question_file import read_question_rows
from fiction.universe.universe import Universe
from fiction.verification.checks import VerificationCheck, parse_row_expression
from fiction.verification.verify import verify_world

_CHECK_NAMES = ("answers", "answers of queries", "relation cells")
_RUN_COUNT = 5
_PEER_NAME = "phantom-wiki 1.0.3"


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """For each instance the equal answers (also by SPARQL) and relation cells, and the time of all answers."""
    folder = data / "phantomwiki" if data is not None else None
    if folder is None or not folder.is_dir():
        yield {"name": "phantomwiki", "note": "not measured: the test data are missing"}
        return
    for instance in sorted(path for path in folder.iterdir() if path.is_dir()):
        yield from _measure_instance(home / "worlds", instance)


def _measure_instance(worlds: Path, instance: Path) -> Iterator[dict[str, Any]]:
    import_instance(worlds, instance.name, instance, {})
    for check in verify_world(worlds, instance.name, lambda _: None).checks:
        if check.name in _CHECK_NAMES:
            yield _equality_result(instance.name, check)
    yield _answering_result(worlds / instance.name, instance)


def _equality_result(instance: str, check: VerificationCheck) -> dict[str, Any]:
    name = f"phantomwiki_{check.name.replace(' ', '_')}"
    return {"name": name, "size": instance, "value": check.checked - check.different, "unit": f"of {check.checked:,}"}


def _answering_result(world: Path, instance: Path) -> dict[str, Any]:
    expressions = [parse_row_expression(row) for row in read_question_rows(world)]
    seconds = min(_time_answers(world, expressions) for _ in range(_RUN_COUNT))
    with (instance / "timings.csv").open(encoding="utf-8") as stream:
        peer = float(next(csv.DictReader(stream))["questions_generate"])
    return {
        "name": "phantomwiki_answering",
        "size": f"{instance.name}, {len(expressions)} questions",
        "value": round(seconds, 4),
        "unit": "s",
        "peer": _PEER_NAME,
        "peer_value": round(peer, 1),
        "ratio": round(peer / seconds),
        "note": "best of five; the peer also draws the questions in this time, which its timings.csv states",
    }


def _time_answers(world: Path, expressions: Sequence[Expression]) -> float:
    # Indexes that the universe builds on first use, such as lists of children, are part of the work.
    universe = Universe.load(world / UNIVERSE_FILE)
    started = time.perf_counter()
    evaluation = ExpressionEvaluator(universe)
    for expression in expressions:
        evaluation.evaluate(expression)
    return time.perf_counter() - started
