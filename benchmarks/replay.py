"""Replay: share of questions of other worlds answered without a model, from the default demonstrations."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from db.models import Project
from db.trace_record import TraceRecord
from evaluation.datasets import read_questions
from evaluation.gold_demonstrations import make_demonstrations
from evaluation.gold_traces.traces import GoldWorld
from evaluation.scoring import QuestionScore, sample_questions, score_outcome, summarize_scores
from fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from fiction.generator.build import generate_world
from fiction.questions.question_file import QUESTIONS_FILE
from fiction.universe.options import GenerationOptions
from reasoners.base import Task
from reasoners.replay.agent import ReplayReasoner
from reasoners.replay.session import MAX_STEPS
from runs.budget import RunLimits
from runs.recorders import MemoryRecorder
from runs.runner import RunControl, run_reasoner
from tools.registry import BUILT_IN_TOOLS
from tools.tool import ToolContext
from worlds.open import open_world

DEFAULT_WORLD = GenerationOptions(people=1000, seed=1, depth=6, per_template=4, split="text=50,graph=35,web=15")
DEMONSTRATION_COUNT = 20
QUESTION_COUNT = 120
HYBRID_SPLIT = "text=50,graph=35,web=15"
WORLD_OPTIONS = {
    "everywhere, depth 20": GenerationOptions(people=1000, seed=4711, depth=20, per_template=3),
    "everywhere, depth 20, another seed": GenerationOptions(people=1000, seed=52, depth=20, per_template=3),
    "everywhere, depth 6": GenerationOptions(people=1000, seed=53, depth=6, per_template=3),
    "everywhere, plain, depth 6": GenerationOptions(people=1000, seed=54, depth=6, per_template=3, plain=True),
    "everywhere, namesakes, depth 6": GenerationOptions(people=1000, seed=55, depth=6, per_template=3, collisions=0.2),
    "hybrid, depth 6": GenerationOptions(people=1000, seed=56, depth=6, per_template=3, split=HYBRID_SPLIT),
    "hybrid, depth 20": GenerationOptions(people=1000, seed=57, depth=20, per_template=3, split=HYBRID_SPLIT),
    "articles only, depth 10": GenerationOptions(people=500, seed=58, depth=10, per_template=3, split="text=100"),
    "web pages only, depth 10": GenerationOptions(people=500, seed=59, depth=10, per_template=3, split="web=100"),
}


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:  # noqa: ARG001 - the worlds are generated
    """One result per world (share with F1 = 1), and one per kind of question over the "everywhere" worlds."""
    encoder = SentenceEncoder(BUNDLED_MODEL)
    demonstrations = _make_demonstrations(home, encoder)
    all_scores: list[QuestionScore] = []
    for name, options in WORLD_OPTIONS.items():
        folder = name.replace(" ", "-").replace(",", "")
        generate_world(home, folder, options)
        context = ToolContext(open_world(home, folder), encoder)
        scores, seconds = _answer_sample(home / folder, context, demonstrations)
        all_scores += scores if name.startswith("everywhere") else ()
        yield _replay_result(
            f"replay, {name}", options.people, summarize_scores(scores), f"{seconds * 1000:.0f} ms a question"
        )
    for kind, summary in summarize_scores(all_scores)["by_kind"].items():
        yield _replay_result(
            f"replay, everywhere, {kind}", summary["questions"], summary, "worlds with all facts in every source"
        )


def _make_demonstrations(home: Path, encoder: SentenceEncoder) -> list[TraceRecord]:
    generate_world(home, "default", DEFAULT_WORLD)
    gold = GoldWorld(home / "default", ToolContext(open_world(home, "default"), encoder))
    questions = read_questions(home / "default" / QUESTIONS_FILE, "jsonl")
    return list(make_demonstrations(questions, gold, Project(name="default", world="default"), DEMONSTRATION_COUNT))


def _answer_sample(
    folder: Path, context: ToolContext, demonstrations: list[TraceRecord]
) -> tuple[list[QuestionScore], float]:
    """Scores of a sample of the world's questions, and seconds per question."""
    questions = sample_questions(read_questions(folder / QUESTIONS_FILE, "jsonl"), QUESTION_COUNT, seed=0)
    replay, started = ReplayReasoner(), time.perf_counter()
    scores = []
    for question in questions:
        task = Task(question.text, context, list(BUILT_IN_TOOLS.values()), demonstrations)
        scores.append(
            score_outcome(
                question, run_reasoner(replay, task, MemoryRecorder(), RunControl(RunLimits(steps=MAX_STEPS)))
            )
        )
    return scores, (time.perf_counter() - started) / len(questions)


def _replay_result(name: str, size: int, summary: dict[str, Any], note: str) -> dict[str, Any]:
    answered = "-" if summary["f1_answered"] is None else f"{summary['f1_answered']:.3f}"
    parts = (
        f"{summary['questions']} questions: {summary['answered']} answered",
        f"{summary['refused']} refused, {summary['failed']} failed",
        f"F1 {summary['f1']:.3f}, of the answered {answered}",
        note,
    )
    value = round(summary["right"] / summary["questions"], 4)
    return {"name": name, "size": size, "value": value, "unit": "share", "note": "; ".join(parts)}
