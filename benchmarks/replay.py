"""Replay: shares of questions answered without a model, of the real world and of generated worlds, and its speed.

`python -m showhow.benchmarks.replay --page FILE` writes a page of answers and refusals of the real world.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from showhow.benchmarks.__main__ import DATA_FOLDER
from showhow.benchmarks.demonstrate import GRAPH, SIDES, record_demonstrations
from showhow.db.models import Project, Trace
from showhow.db.questions.question_record import QuestionRecord
from showhow.db.run_spec import RunLimits
from showhow.db.runs.runs import RunOutcome
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.comparison.drift import check_repetition
from showhow.evaluation.datasets import read_questions
from showhow.evaluation.scoring.gold_demonstrations import make_demonstrations
from showhow.evaluation.scoring.scoring import QuestionScore, sample_questions, score_outcome, summarize_scores
from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from showhow.fiction.generator.build import generate_world
from showhow.fiction.questions.question_file import QUESTIONS_FILE
from showhow.fiction.universe.options import GenerationOptions
from showhow.oracles.gold_traces.traces import GoldWorld
from showhow.reasoners.base import Task
from showhow.reasoners.registry import REPLAY_STEP_LIMIT
from showhow.reasoners.replay.agent import ReplayReasoner
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.registry import available_tools
from showhow.tools.tool import ToolContext
from showhow.worlds.article_files import read_articles
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.open import open_world

DEFAULT_WORLD = GenerationOptions(people=1000, seed=1, depth=6, per_template=4, split="text=50,graph=35,web=15")
DEMONSTRATION_COUNT = 60
QUESTION_COUNT = 120
PER_KIND = 8
PARAPHRASES = Path(__file__).with_name("paraphrases.json")
"""Questions of the real world that replay answers, each with the same question in other words, written by hand."""
LIBRARY_SIZE, MEASURED_STEPS, MEASURED_QUESTIONS = 10_000, 5, 20
"""The speed is that of questions with so many steps, with a library of so many demonstrations."""
PAGE_EXAMPLES = 10
EVERYWHERE_OPTIONS = {
    "everywhere, depth 20": GenerationOptions(people=1000, seed=52, depth=20, per_template=3),
    "everywhere, namesakes, depth 6": GenerationOptions(people=1000, seed=55, depth=6, per_template=3, collisions=0.2),
}
SPLIT_OPTIONS = {
    f"default split, seed {seed}": replace(DEFAULT_WORLD, seed=seed) for seed in (6007, 6101, 6203, 6301, 6421)
}
"""Worlds like the default one, which hold each fact in one source."""


@dataclass(frozen=True, slots=True)
class DemonstratedWorld:
    """The real world, demonstrations of some of its questions, and the other questions."""

    context: ToolContext
    demonstrations: list[TraceRecord]
    questions: list[QuestionRecord]


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question that replay was asked."""

    question: QuestionRecord
    outcome: RunOutcome
    score: QuestionScore
    steps: int
    own_seconds: float
    """The time of replay beside that of its tools."""


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """Own questions, other questions and paraphrases of the real world, speed, and questions of generated worlds."""
    encoder = SentenceEncoder(BUNDLED_MODEL)
    if data is not None:
        for through in (GRAPH, SIDES):
            real = _open_real_world(home, data / "world_2wiki", through, encoder)
            yield _measure_repetition(f"replay, real world through {through}", real.context, real.demonstrations)
            asked = ask_questions(real.questions, real.context, real.demonstrations)
            yield _summarize(f"replay, real world through {through}", asked)
            if through == GRAPH:
                paraphrased = ask_questions(_read_paraphrases(real.questions), real.context, real.demonstrations)
                yield _summarize("replay, paraphrases of real questions", paraphrased)
                yield _measure_speed(real, [a.question for a in asked if a.steps == MEASURED_STEPS])
    generate_world(home, "default", DEFAULT_WORLD)
    gold = GoldWorld(home / "default", ToolContext(open_world(home, "default"), encoder))
    questions = read_questions(home / "default" / QUESTIONS_FILE, "jsonl")
    demonstrations = list(
        make_demonstrations(questions, gold, Project(name="default", world="default"), DEMONSTRATION_COUNT)
    )
    yield _measure_repetition("replay, default world", gold.context, demonstrations)
    split: list[AskedQuestion] = []
    for name, options in (EVERYWHERE_OPTIONS | SPLIT_OPTIONS).items():
        folder = name.replace(" ", "-").replace(",", "")
        generate_world(home, folder, options)
        context = ToolContext(open_world(home, folder), encoder)
        questions = sample_questions(read_questions(home / folder / QUESTIONS_FILE, "jsonl"), QUESTION_COUNT, seed=0)
        asked = ask_questions(questions, context, demonstrations)
        yield _summarize(f"replay, {name}", asked)
        split += asked if name in SPLIT_OPTIONS else []
    yield _summarize(f"replay, default split, {len(SPLIT_OPTIONS)} seeds", split)


def _open_real_world(home: Path, data: Path, through: str, encoder: SentenceEncoder) -> DemonstratedWorld:
    graph = data / {GRAPH: "kg_full.ttl", SIDES: "kg_half.ttl"}[through]
    build_world(home, through, WorldContents(read_articles(data / "paragraphs.jsonl"), graph))
    context = ToolContext(open_world(home, through), encoder)
    questions = read_questions(data / "questions_300.json")
    demonstrations = list(record_demonstrations(questions, context, through, PER_KIND, through))
    shown = {record.question.text for record in demonstrations}
    return DemonstratedWorld(
        context, demonstrations, [question for question in questions if question.text not in shown]
    )


def _read_paraphrases(questions: Sequence[QuestionRecord]) -> list[QuestionRecord]:
    by_text = {question.text: question for question in questions}
    pairs = json.loads(PARAPHRASES.read_text(encoding="utf-8"))
    return [replace(by_text[text], text=paraphrase) for text, paraphrase in pairs.items()]


def ask_questions(
    questions: Sequence[QuestionRecord], context: ToolContext, demonstrations: Sequence[TraceRecord]
) -> list[AskedQuestion]:
    """Ask replay the questions, without a model."""
    asked, tools = [], available_tools(context.world)
    for question in questions:
        recorder, started = MemoryRecorder(), time.perf_counter()
        task = Task(question.text, context, tools, demonstrations)
        outcome = run_reasoner(ReplayReasoner(), task, recorder, RunControl(RunLimits(steps=REPLAY_STEP_LIMIT)))
        seconds = time.perf_counter() - started - sum(step.latency or 0.0 for step in recorder.steps)
        asked.append(AskedQuestion(question, outcome, score_outcome(question, outcome), len(recorder.steps), seconds))
    return asked


def _measure_repetition(name: str, context: ToolContext, demonstrations: Sequence[TraceRecord]) -> dict[str, Any]:
    tools = available_tools(context.world)
    failures = [why for record in demonstrations if (why := check_repetition(record, context, tools)) is not None]
    count = len(demonstrations)
    note = "; ".join([f"{count - len(failures)} of {count} demonstrations repeat exactly", *failures])
    value = 1 - len(failures) / count
    return {"name": f"{name}, own questions", "size": count, "value": value, "unit": "share", "note": note}


def _summarize(name: str, asked: Sequence[AskedQuestion]) -> dict[str, Any]:
    """How the questions ended."""
    summary = summarize_scores([one.score for one in asked])
    answered = "-" if summary["f1_answered"] is None else f"{summary['f1_answered']:.3f}"
    wrong = summary["answered"] - summary["right"]
    counts = (
        f"{summary['answered']} answered ({summary['answered'] / len(asked):.0%}), {summary['right']} right, "
        f"{wrong} wrong ({wrong / (summary['answered'] or 1):.1%} of the answered)",
        f"{summary['refused']} refused, {summary['failed']} crashed",
        f"F1 {summary['f1']:.3f}, of the answered {answered}",
        f"{1000 * statistics.median(one.own_seconds for one in asked):.0f} ms a question beside its tools (median)",
    )
    value = round(summary["right"] / summary["questions"], 4)
    return {"name": name, "size": len(asked), "value": value, "unit": "share", "note": "; ".join(counts)}


def _measure_speed(real: DemonstratedWorld, questions: Sequence[QuestionRecord]) -> dict[str, Any]:
    """The time beside the tools of questions with a large library: the demonstrations again and again, as new ones."""
    shown = real.demonstrations
    library = [_copy(shown[index % len(shown)]) for index in range(LIBRARY_SIZE)]
    ask_questions(questions[:1], real.context, library)  # compiles and calibrates the library
    asked = ask_questions(questions[:MEASURED_QUESTIONS], real.context, library)
    return {
        "name": f"replay, a question of {MEASURED_STEPS} steps beside its tools",
        "size": LIBRARY_SIZE,
        "value": round(1000 * statistics.median(one.own_seconds for one in asked), 1),
        "unit": "ms",
        "note": f"median of {len(asked)}, the longest {1000 * max(one.own_seconds for one in asked):.0f} ms",
    }


def _copy(record: TraceRecord) -> TraceRecord:
    trace = record.trace
    copied = Trace(id=uuid4(), question_id=trace.question_id, version=trace.version, final_answer=trace.final_answer)
    return replace(record, trace=copied)


def write_page(real: DemonstratedWorld) -> str:
    """Answers and refusals as Markdown, evenly chosen among those of all questions."""
    asked = ask_questions(real.questions, real.context, real.demonstrations)
    answered = [one for one in asked if one.outcome.answers]
    refused = [one for one in asked if one.outcome.ending == "refused"]
    lines = [
        "# Replay: ten answers and ten refusals",
        "",
        f"Written by `python -m showhow.benchmarks.replay --page FILE`: "
        f"{len(real.demonstrations)} demonstrations of real "
        f"questions, {len(asked)} other questions of the same kinds, {len(answered)} answered and {len(refused)} "
        "refused. The examples are evenly chosen among them. No model is used.",
        "",
        "## Answers",
    ]
    for one in _choose(answered):
        details = one.outcome.details["replay"]
        slots = "; ".join(f"{slot['there']} → {slot['here']}" for slot in details["alignment"]["slots"])
        gold, answer = one.question.gold_answers[0]["text"], one.outcome.answers and one.outcome.answers.final_answer
        is_right = (one.score.scores or {}).get("f1") == 1
        lines += [
            "",
            f"**{one.question.text}**",
            "",
            f"- Answer: {answer}; gold: {gold} ({'right' if is_right else 'wrong'})",
            f"- Aligned with: {details['demonstrations'][0]['question']}",
            f"- Slots: {slots}",
            f"- Derivation: {details['alignment']['derivation']}",
        ]
        if "confidence" in details:
            lines.append(f"- Confidence: {details['confidence']:.3f}; threshold: {details['threshold']:.3f}")
    lines += ["", "## Refusals"]
    for one in _choose(refused):
        lines += ["", f"**{one.question.text}**", "", f"- {one.outcome.failure}"]
    return "\n".join(lines) + "\n"


def _choose(asked: Sequence[AskedQuestion]) -> list[AskedQuestion]:
    count = min(PAGE_EXAMPLES, len(asked))
    return [asked[index * len(asked) // count] for index in range(count)]


def main() -> int:
    """Write the page of examples."""
    parser = argparse.ArgumentParser(prog="python -m showhow.benchmarks.replay", description=__doc__)
    parser.add_argument("--page", required=True, type=Path, help="the Markdown file to write")
    page = parser.parse_args().page
    if not DATA_FOLDER.is_dir():
        sys.stderr.write(f"the real world is not there: {DATA_FOLDER}\n")
        return 1
    with tempfile.TemporaryDirectory(prefix="showhow-replay-") as home:
        real = _open_real_world(Path(home), DATA_FOLDER / "world_2wiki", GRAPH, SentenceEncoder(BUNDLED_MODEL))
        page.write_text(write_page(real), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
