"""The gold trace of one question of a generated world."""

from typing import Any

from app.resources import settings, tool_context
from bench.datasets.plain import question_of
from bench.gold.traces import GoldWorld, gold_trace
from db.models import Project
from db.record import TraceRecord
from worlds.folder import world_folder
from worlds.questions.question_file import QUESTIONS


def trace_of(world: str, row: dict[str, Any]) -> TraceRecord:
    """Run the tools along the gold reasoning of that question (a row of questions.jsonl); nothing is stored."""
    folder = world_folder(settings().worlds, world)
    record = question_of(row, folder / QUESTIONS, None)
    return gold_trace(record, GoldWorld(folder, tool_context(world)), Project(name=world, world=world), position=1)
