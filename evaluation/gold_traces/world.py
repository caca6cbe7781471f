"""Gold traces of the questions of generated worlds, made when they are asked for."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from db.models import Project
from db.trace_record import TraceRecord
from evaluation.datasets.plain import parse_question
from evaluation.gold_traces.traces import GoldWorld, make_gold_trace
from fiction.generator.world_files import FACT_SOURCES_FILE
from fiction.questions.question_file import QUESTIONS_FILE
from runs.services import Services
from worlds.folder import WorldError, world_folder


def open_gold_world(services: Services, name: str) -> GoldWorld:
    """The generated world of that name with the facts behind it."""
    folder = world_folder(services.settings.worlds_folder, name)
    # What the facts say needs no model, and nobody wants to pay for it.
    context = replace(services.tool_context(name), chat=None)
    if not (folder / FACT_SOURCES_FILE).is_file():
        raise WorldError(f"The world {name} does not hold the facts behind its sources; only generated worlds do.")
    return GoldWorld(folder, context)


def make_world_gold_trace(services: Services, world: str, row: dict[str, Any]) -> TraceRecord:
    """Run the tools along the gold reasoning of that question (a row of questions.jsonl); nothing is stored."""
    return next(make_world_gold_traces(services, world, [row]))


def make_world_gold_traces(services: Services, world: str, rows: Iterable[dict[str, Any]]) -> Iterator[TraceRecord]:
    """The gold trace of every question, one by one."""
    gold, project = open_gold_world(services, world), Project(name=world, world=world)
    file = world_folder(services.settings.worlds_folder, world) / QUESTIONS_FILE
    for position, row in enumerate(rows, 1):
        yield make_gold_trace(parse_question(row, file, None), gold, project, position)
