"""The published generator's instances, an independent oracle: everything that they state, derived once more."""

import csv
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from worlds.generator.blocks import UNIVERSE
from worlds.phantomwiki.instance import import_instance
from worlds.questions.evaluate import Evaluation
from worlds.questions.expressions import Expression
from worlds.questions.question_file import question_rows
from worlds.universe.universe import Universe
from worlds.verification.answers import expression_of
from worlds.verification.check import Check
from worlds.verification.verify import verify

_CHECKS = ("answers", "answers of queries", "relation cells")
_RUNS = 5
_PEER = "phantom-wiki 1.0.3"


def lines(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """Of each instance the answers (also by SPARQL) and cells that are equal, and how long all answers take."""
    folder = data / "phantomwiki" if data is not None else None
    if folder is None or not folder.is_dir():
        yield {"name": "phantomwiki", "note": "not measured: the test data is not here"}
        return
    for instance in sorted(path for path in folder.iterdir() if path.is_dir()):
        yield from _measured(home / "worlds", instance)


def _measured(worlds: Path, instance: Path) -> Iterator[dict[str, Any]]:
    import_instance(worlds, instance.name, instance, {})
    for check in verify(worlds, instance.name, lambda _: None).checks:
        if check.name in _CHECKS:
            yield _equal(instance.name, check)
    yield _answering(worlds / instance.name, instance)


def _equal(instance: str, check: Check) -> dict[str, Any]:
    name = f"phantomwiki_{check.name.replace(' ', '_')}"
    return {"name": name, "size": instance, "value": check.checked - check.different, "unit": f"of {check.checked:,}"}


def _answering(world: Path, instance: Path) -> dict[str, Any]:
    expressions = [expression_of(row) for row in question_rows(world)]
    seconds = min(_seconds(world, expressions) for _ in range(_RUNS))
    with (instance / "timings.csv").open(encoding="utf-8") as stream:
        peer = float(next(csv.DictReader(stream))["questions_generate"])
    return {
        "name": "phantomwiki_answering",
        "size": f"{instance.name}, {len(expressions)} questions",
        "value": round(seconds, 4),
        "unit": "s",
        "peer": _PEER,
        "peer_value": round(peer, 1),
        "ratio": round(peer / seconds),
        "note": "best of five; the peer draws the questions in the same step, its seconds are of its own timings.csv",
    }


def _seconds(world: Path, expressions: Sequence[Expression]) -> float:
    # What is found out about the universe while it answers, such as who is whose child, is part of the work.
    universe = Universe.load(world / UNIVERSE)
    started = time.perf_counter()
    evaluation = Evaluation(universe)
    for expression in expressions:
        evaluation.answer(expression)
    return time.perf_counter() - started
