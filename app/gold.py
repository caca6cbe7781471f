"""Gold traces of the questions of generated worlds, made when they are asked for."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from app.resources import settings, tool_context
from bench.datasets.plain import question_of
from bench.gold.traces import GoldWorld, gold_trace
from db.models import Project
from db.record import TraceRecord
from worlds.folder import WorldError, world_folder
from worlds.generator.blocks import TOLD
from worlds.questions.question_file import QUESTIONS


def gold_world(name: str) -> GoldWorld:
    """The generated world of that name with the facts behind it."""
    folder = world_folder(settings().worlds, name)
    # What the facts say needs no model, and nobody wants to pay for it.
    context = replace(tool_context(name), chat=None)
    if not (folder / TOLD).is_file():
        raise WorldError(f"The world {name} does not hold the facts behind its sources; only generated worlds do.")
    return GoldWorld(folder, context)


def trace_of(world: str, row: dict[str, Any]) -> TraceRecord:
    """Run the tools along the gold reasoning of that question (a row of questions.jsonl); nothing is stored."""
    return next(traces_of(world, [row]))


def traces_of(world: str, rows: Iterable[dict[str, Any]]) -> Iterator[TraceRecord]:
    """The gold trace of every question, one by one."""
    gold, project = gold_world(world), Project(name=world, world=world)
    file = world_folder(settings().worlds, world) / QUESTIONS
    for position, row in enumerate(rows, 1):
        yield gold_trace(question_of(row, file, None), gold, project, position)
