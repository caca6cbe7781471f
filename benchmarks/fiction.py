"""Generated worlds: questions that their gold traces answer, and published PhantomWiki instances derived again."""

import statistics
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from showhow.db.models import Project
from showhow.evaluation.datasets import read_questions
from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from showhow.fiction.generator.build import generate_world
from showhow.fiction.phantomwiki.instance import import_instance
from showhow.fiction.questions.question_file import QUESTIONS_FILE
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.verification import verify_world
from showhow.fiction.verification_checks import VerificationCheck
from showhow.oracles.gold_traces.traces import GoldWorld, make_gold_trace
from showhow.tools.tool import ToolContext
from showhow.worlds.open import open_world

WORLD_OPTIONS = {
    "hybrid": GenerationOptions(people=1000, seed=21, depth=6, per_template=2, split="text=50,graph=35,web=15"),
    "hybrid with namesakes": GenerationOptions(
        people=1000, seed=22, depth=6, per_template=1, split="text=40,graph=40,web=20", collisions=0.2
    ),
    "everything everywhere": GenerationOptions(people=1000, seed=23, depth=6, per_template=1),
}
_CHECK_NAMES = ("answers", "answers of queries", "relation cells")


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """The gold traces of generated worlds, then the published instances."""
    yield from _measure_gold_traces(home)
    yield from _measure_instances(home, data)


def _measure_gold_traces(home: Path) -> Iterator[dict[str, Any]]:
    """One result per world: share of questions whose trace ends in the gold answers, and time per question."""
    encoder = SentenceEncoder(BUNDLED_MODEL)
    for name, options in WORLD_OPTIONS.items():
        folder = name.replace(" ", "-")
        generate_world(home, folder, options)
        gold = GoldWorld(home / folder, ToolContext(open_world(home, folder), encoder))
        project = Project(name=name, world=folder)
        records = read_questions(home / folder / QUESTIONS_FILE, "jsonl")
        failed: Counter[str] = Counter()
        steps, started = [], time.perf_counter()
        for position, record in enumerate(records, 1):
            gold_trace = make_gold_trace(record, gold, project, position)
            steps.append(len(gold_trace.steps))
            if gold_trace.trace.status != "approved":
                failed[record.kind or "unknown"] += 1
        mean_seconds = (time.perf_counter() - started) / len(records)
        kinds = len({record.kind for record in records})
        failures = ", ".join(f"{kind} {count}" for kind, count in failed.items()) or "none"
        note = (
            f"{len(records)} questions of {kinds} kinds, failed: {failures}; "
            f"{statistics.mean(steps):.1f} steps and {mean_seconds * 1000:.0f} ms each"
        )
        share = 1 - failed.total() / len(records)
        yield {
            "name": f"gold traces, {name}",
            "size": options.people,
            "value": round(share, 4),
            "unit": "",
            "note": note,
        }


def _measure_instances(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """For each instance the equal answers (also by SPARQL) and relation cells."""
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


def _equality_result(instance: str, check: VerificationCheck) -> dict[str, Any]:
    name = f"phantomwiki_{check.name.replace(' ', '_')}"
    return {"name": name, "size": instance, "value": check.checked - check.different, "unit": f"of {check.checked:,}"}
