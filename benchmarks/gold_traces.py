"""Gold traces: share of generated questions answered by running the tools, and steps per question."""

import statistics
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from db.models import Project
from evaluation.datasets import read_questions
from evaluation.gold_traces.traces import GoldWorld, make_gold_trace
from fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from fiction.generator.build import generate_world
from fiction.questions.question_file import QUESTIONS_FILE
from fiction.universe.options import GenerationOptions
from tools.tool import ToolContext
from worlds.open import open_world

WORLD_OPTIONS = {
    "hybrid": GenerationOptions(people=1000, seed=21, depth=6, per_template=2, split="text=50,graph=35,web=15"),
    "hybrid with namesakes": GenerationOptions(
        people=1000, seed=22, depth=6, per_template=1, split="text=40,graph=40,web=20", collisions=0.2
    ),
    "everything everywhere": GenerationOptions(people=1000, seed=23, depth=6, per_template=1),
}


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:  # noqa: ARG001 - the worlds are generated
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
