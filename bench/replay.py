"""How many questions of other worlds are answered without a model, by following the default demonstrations."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.datasets import read_questions
from bench.evaluation import Scored, figures, sample, scored
from bench.gold.demonstrations import demonstrations
from bench.gold.traces import GoldWorld
from db.models import Project
from db.record import TraceRecord
from fewshot_library.encoder import BUNDLED, SentenceEncoder
from reasoners.following.walk import MOST_STEPS
from reasoners.keepers import InMemory
from reasoners.limits import Limits
from reasoners.reasoner import Task
from reasoners.replay import Replay
from reasoners.run import Reins, run
from tools.registry import TOOLS
from tools.tool import Context
from worlds.generator.build import generate_world
from worlds.open import open_world
from worlds.questions.question_file import QUESTIONS
from worlds.universe.options import Options

DEFAULT = Options(people=1000, seed=1, depth=6, per_template=4, split="text=50,graph=35,web=15")
DEMONSTRATIONS = 20
ASKED = 120
HYBRID = "text=50,graph=35,web=15"
WORLDS = {
    "everywhere, depth 20": Options(people=1000, seed=4711, depth=20, per_template=3),
    "everywhere, depth 20, another seed": Options(people=1000, seed=52, depth=20, per_template=3),
    "everywhere, depth 6": Options(people=1000, seed=53, depth=6, per_template=3),
    "everywhere, plain, depth 6": Options(people=1000, seed=54, depth=6, per_template=3, plain=True),
    "everywhere, namesakes, depth 6": Options(people=1000, seed=55, depth=6, per_template=3, collisions=0.2),
    "hybrid, depth 6": Options(people=1000, seed=56, depth=6, per_template=3, split=HYBRID),
    "hybrid, depth 20": Options(people=1000, seed=57, depth=20, per_template=3, split=HYBRID),
    "articles only, depth 10": Options(people=500, seed=58, depth=10, per_template=3, split="text=100"),
    "web pages only, depth 10": Options(people=500, seed=59, depth=10, per_template=3, split="web=100"),
}


def lines(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:  # noqa: ARG001 - the worlds are made here
    """A line a world: the share with F1 = 1; and a line a kind of question, over the worlds that are everywhere."""
    encoder = SentenceEncoder(BUNDLED)
    shown = _shown(home, encoder)
    every: list[Scored] = []
    for name, options in WORLDS.items():
        folder = name.replace(" ", "-").replace(",", "")
        generate_world(home, folder, options)
        context = Context(open_world(home, folder), encoder)
        found, seconds = _answered(home / folder, context, shown)
        every += found if name.startswith("everywhere") else ()
        yield _line(f"replay, {name}", options.people, figures(found), f"{seconds * 1000:.0f} ms a question")
    for kind, told in figures(every)["by_kind"].items():
        yield _line(f"replay, everywhere, {kind}", told["questions"], told, "all worlds whose sources each tell all")


def _shown(home: Path, encoder: SentenceEncoder) -> list[TraceRecord]:
    generate_world(home, "default", DEFAULT)
    gold = GoldWorld(home / "default", Context(open_world(home, "default"), encoder))
    asked = read_questions(home / "default" / QUESTIONS, "jsonl")
    return list(demonstrations(asked, gold, Project(name="default", world="default"), DEMONSTRATIONS))


def _answered(folder: Path, context: Context, shown: list[TraceRecord]) -> tuple[list[Scored], float]:
    """How a sample of the world's questions was answered, and the seconds of one."""
    asked = sample(read_questions(folder / QUESTIONS, "jsonl"), ASKED, seed=0)
    replay, started = Replay(), time.perf_counter()
    found = []
    for question in asked:
        task = Task(question.text, context, list(TOOLS.values()), shown)
        found.append(scored(question, run(replay, task, InMemory(), Reins(Limits(steps=MOST_STEPS)))))
    return found, (time.perf_counter() - started) / len(asked)


def _line(name: str, size: int, told: dict[str, Any], note: str) -> dict[str, Any]:
    answered = "-" if told["f1_answered"] is None else f"{told['f1_answered']:.3f}"
    parts = (
        f"{told['questions']} questions: {told['answered']} answered",
        f"{told['refused']} refused, {told['failed']} failed",
        f"F1 {told['f1']:.3f}, of the answered {answered}",
        note,
    )
    value = round(told["right"] / told["questions"], 4)
    return {"name": name, "size": size, "value": value, "unit": "share", "note": "; ".join(parts)}
