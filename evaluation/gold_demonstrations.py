"""Makes the gold traces of a world's questions, and selects short ones of all kinds as demonstrations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from db.models import Project, Trace
from db.trace_record import TraceRecord
from db.types import utc_now
from evaluation.datasets.record import QuestionRecord, parse_question
from evaluation.gold_reasoning import GoldReasoning
from evaluation.gold_skills import OracleResponder
from evaluation.gold_traces.traces import GoldWorld, build_question, make_gold_trace
from evaluation.scoring import score_outcome
from fiction.generator.world_files import FACT_SOURCES_FILE
from fiction.questions.question_file import QUESTIONS_FILE
from reasoners.base import ReasonerError, Task
from reasoners.registry import REASONERS, find_reasoner, make_reasoner
from runs.budget import RunLimits
from runs.recorders import MemoryRecorder
from runs.runner import RunControl, run_reasoner
from runs.services import Services
from tools.registry import available_tools
from worlds.folder import WorldError, world_folder


def open_gold_world(services: Services, name: str) -> GoldWorld:
    """Open a generated world with its universe; WorldError for any other world."""
    folder = world_folder(services.settings.worlds_folder, name)
    # Gold traces need no model, and its calls would cost.
    context = replace(services.tool_context(name), chat=None)
    if not (folder / FACT_SOURCES_FILE).is_file():
        raise WorldError(f"The world {name} has no universe; only generated worlds have gold traces.")
    return GoldWorld(folder, context)


def make_world_gold_trace(services: Services, world: str, row: dict[str, Any]) -> TraceRecord:
    """Make the gold trace of a question, a row of questions.jsonl, without storing it."""
    return next(make_world_gold_traces(services, world, [row]))


def make_world_gold_traces(
    services: Services, world: str, rows: Iterable[dict[str, Any]], reasoner: str | None = None
) -> Iterator[TraceRecord]:
    """Yield the gold trace of each question: as a person would find the answer, or as a reasoner with gold skills."""
    gold, project = open_gold_world(services, world), Project(name=world, world=world)
    file = world_folder(services.settings.worlds_folder, world) / QUESTIONS_FILE
    for position, row in enumerate(rows, 1):
        record = parse_question(row, file, None)
        if reasoner is None:
            yield make_gold_trace(record, gold, project, position)
        else:
            yield make_reasoner_gold_trace(record, gold, project, position, reasoner)


def check_gold_skills(reasoner: str) -> None:
    """Raise UnknownReasoner for an unknown name, ReasonerError for a reasoner whose skills have no gold replies."""
    if not find_reasoner(reasoner).skills:
        names = ", ".join(entry.name for entry in REASONERS.values() if entry.skills)
        raise ReasonerError(f"The reasoner {reasoner} has no skills with gold replies; choose one of {names}.")


def make_reasoner_gold_trace(
    record: QuestionRecord, world: GoldWorld, project: Project, position: int, reasoner: str
) -> TraceRecord:
    """The trace of a reasoner whose skills reply with the gold reasoning; failed unless it has the gold answers."""
    question, run, recorder = build_question(record, project, position), world.run, MemoryRecorder()
    trace = Trace(
        id=recorder.trace_id,
        question_id=question.id,
        run_id=run.id,
        reasoner=reasoner,
        configuration={"generated": True},
        started_at=utc_now(),
    )
    oracle = OracleResponder(GoldReasoning(world, question.text, question.details))
    tools = available_tools(world.context.world)
    task = Task(question.text, world.context, tools, responder=oracle)
    outcome = run_reasoner(make_reasoner(reasoner), task, recorder, RunControl(RunLimits(steps=None, seconds=None)))
    scores = score_outcome(question, outcome).scores
    trace.submitted_at = utc_now()
    if outcome.answers is None or scores is None or scores["f1"] < 1:
        trace.status = "failed"
        trace.final_thought = f"No gold trace: {outcome.failure or 'it has other answers than the question'}."
    else:
        trace.status = "approved"
        for name, value in asdict(outcome.answers).items():
            setattr(trace, name, value)
        trace.configuration |= {"calls": outcome.calls, **outcome.details}
    return TraceRecord(project, question, trace, recorder.steps, run=run)


MAX_DEMONSTRATION_STEPS = 12
"""Longer traces are not used, since they are hard to read and do not fit a prompt."""


def make_demonstrations(
    records: Sequence[QuestionRecord], world: GoldWorld, project: Project, count: int
) -> Iterator[TraceRecord]:
    """Yield `count` gold traces, of each kind of question in turn; fewer if too few succeed in few steps.

    Within a kind, questions with a combination of sources that was not used yet come first.
    """
    made = 0
    used_sources: set[str] = set()
    for position, record in _round_robin(records, used_sources):
        if made == count:
            return
        gold = make_gold_trace(record, world, project, position)
        if gold.trace.status == "approved" and 1 < len(gold.steps) <= MAX_DEMONSTRATION_STEPS:
            used_sources.add(_required_sources(record))
            made += 1
            yield gold


def _round_robin(records: Sequence[QuestionRecord], used_sources: set[str]) -> Iterator[tuple[int, QuestionRecord]]:
    """Yield the questions with their positions, one of each kind in turn."""
    remaining: dict[str | None, list[tuple[int, QuestionRecord]]] = {}
    for position, record in enumerate(records, 1):
        remaining.setdefault(record.kind, []).append((position, record))
    while any(remaining.values()):
        for entries in filter(None, remaining.values()):
            chosen = next((entry for entry in entries if _required_sources(entry[1]) not in used_sources), entries[0])
            entries.remove(chosen)
            yield chosen


def _required_sources(record: QuestionRecord) -> str:
    return str(record.details["needs"])
