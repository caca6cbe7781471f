"""Replay: shares of questions answered without a model, of the real world and of generated worlds."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.demonstrate import GRAPH, SIDES, record_demonstrations
from db.models import Project
from db.trace_record import TraceRecord
from evaluation.datasets import read_questions
from evaluation.datasets.record import QuestionRecord
from evaluation.demonstration_reruns import check_repetition, make_demonstrations
from evaluation.gold_traces.traces import GoldWorld
from evaluation.scoring import QuestionScore, sample_questions, score_outcome, summarize_scores
from fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from fiction.generator.build import generate_world
from fiction.questions.question_file import QUESTIONS_FILE
from fiction.universe.options import GenerationOptions
from reasoners.base import Task
from reasoners.registry import REPLAY_STEP_LIMIT
from reasoners.replay.agent import ReplayReasoner
from runs.budget import RunLimits
from runs.recorders import MemoryRecorder
from runs.runner import RunControl, run_reasoner
from tools.registry import available_tools
from tools.tool import ToolContext
from worlds.build import WorldContents, build_world
from worlds.importers import read_articles
from worlds.open import open_world

DEFAULT_WORLD = GenerationOptions(people=1000, seed=1, depth=6, per_template=4, split="text=50,graph=35,web=15")
DEMONSTRATION_COUNT = 60
QUESTION_COUNT = 120
PER_KIND = 8
HYBRID_SPLIT = "text=50,graph=35,web=15"
WORLD_OPTIONS = {
    "everywhere, depth 20": GenerationOptions(people=1000, seed=4711, depth=20, per_template=3),
    "everywhere, depth 20, another seed": GenerationOptions(people=1000, seed=52, depth=20, per_template=3),
    "everywhere, depth 6": GenerationOptions(people=1000, seed=53, depth=6, per_template=3),
    "everywhere, namesakes, depth 6": GenerationOptions(people=1000, seed=55, depth=6, per_template=3, collisions=0.2),
    "hybrid, depth 6": GenerationOptions(people=1000, seed=56, depth=6, per_template=3, split=HYBRID_SPLIT),
}


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """Own questions, other questions and reworded ones of the real world, and questions of generated worlds."""
    encoder = SentenceEncoder(BUNDLED_MODEL)
    if data is not None:
        yield from _measure_real_world(home, data / "world_2wiki", encoder)
    demonstrations = _make_demonstrations(home, encoder)
    for name, options in WORLD_OPTIONS.items():
        folder = name.replace(" ", "-").replace(",", "")
        generate_world(home, folder, options)
        context = ToolContext(open_world(home, folder), encoder)
        questions = sample_questions(read_questions(home / folder / QUESTIONS_FILE, "jsonl"), QUESTION_COUNT, seed=0)
        yield _measure(f"replay, {name}", questions, context, demonstrations)


def _measure_real_world(home: Path, data: Path, encoder: SentenceEncoder) -> Iterator[dict[str, Any]]:
    questions = read_questions(data / "questions_300.json")
    for through, graph in ((GRAPH, "kg_full.ttl"), (SIDES, "kg_half.ttl")):
        build_world(home, through, WorldContents(read_articles(data / "paragraphs.jsonl"), data / graph))
        context = ToolContext(open_world(home, through), encoder)
        demonstrations = list(record_demonstrations(questions, context, through, PER_KIND, through))
        tools = available_tools(context.world)
        repeated = sum(check_repetition(record, context, tools) is None for record in demonstrations)
        yield {
            "name": f"replay, real world through {through}, own questions",
            "size": len(demonstrations),
            "value": repeated / len(demonstrations),
            "unit": "share",
            "note": f"{repeated} of {len(demonstrations)} demonstrations repeat exactly",
        }
        shown = {record.question.text for record in demonstrations}
        rest = [question for question in questions if question.text not in shown]
        yield _measure(f"replay, real world through {through}", rest, context, demonstrations)


def _make_demonstrations(home: Path, encoder: SentenceEncoder) -> list[TraceRecord]:
    generate_world(home, "default", DEFAULT_WORLD)
    gold = GoldWorld(home / "default", ToolContext(open_world(home, "default"), encoder))
    questions = read_questions(home / "default" / QUESTIONS_FILE, "jsonl")
    return list(make_demonstrations(questions, gold, Project(name="default", world="default"), DEMONSTRATION_COUNT))


def _measure(
    name: str, questions: Sequence[QuestionRecord], context: ToolContext, demonstrations: list[TraceRecord]
) -> dict[str, Any]:
    """Ask the questions, and count how they end."""
    replay, tools, started = ReplayReasoner(), available_tools(context.world), time.perf_counter()
    scores: list[QuestionScore] = []
    for question in questions:
        task = Task(question.text, context, tools, demonstrations)
        control = RunControl(RunLimits(steps=REPLAY_STEP_LIMIT))
        scores.append(score_outcome(question, run_reasoner(replay, task, MemoryRecorder(), control)))
    seconds = (time.perf_counter() - started) / len(questions)
    summary = summarize_scores(scores)
    answered = "-" if summary["f1_answered"] is None else f"{summary['f1_answered']:.3f}"
    counts = (
        f"{summary['answered']} answered, {summary['right']} right, {summary['answered'] - summary['right']} wrong",
        f"{summary['refused']} refused, {summary['failed']} crashed",
        f"F1 {summary['f1']:.3f}, of the answered {answered}",
        f"{seconds * 1000:.0f} ms a question",
    )
    value = round(summary["right"] / summary["questions"], 4)
    return {"name": name, "size": len(questions), "value": value, "unit": "share", "note": "; ".join(counts)}
