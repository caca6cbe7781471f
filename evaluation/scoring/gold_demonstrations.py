"""Gold traces as demonstrations: of a world's questions, as a person or a reasoner answers them; a varied choice."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from showhow.db.models import Project, Trace
from showhow.db.questions.question_record import QuestionRecord
from showhow.db.run_spec import RunLimits, RunResult
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import utc_now
from showhow.evaluation.datasets.record import parse_question
from showhow.evaluation.scoring.scoring import score_outcome
from showhow.fiction.questions.question_file import QUESTIONS_FILE
from showhow.oracles.gold_traces.traces import GoldWorld, build_question, make_gold_trace, open_gold_world
from showhow.oracles.reasoning import GoldReasoning
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.base import ReasonerError, Task
from showhow.reasoners.registry import REASONERS, find_reasoner, make_reasoner
from showhow.reasoners.replay.demonstration import build_program
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.runs.services import Services
from showhow.tools.registry import available_tools
from showhow.worlds.folder import world_folder


def make_world_gold_trace(services: Services, world: str, row: dict[str, Any]) -> TraceRecord:
    """Make the gold trace of a question, a row of questions.jsonl, without storing it."""
    return next(make_world_gold_traces(services, world, [row]))


def make_world_gold_traces(
    services: Services,
    world: str,
    rows: Iterable[dict[str, Any]],
    reasoner: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Iterator[TraceRecord]:
    """Yield the gold trace of each question: as a person would find the answer, or as a reasoner with gold skills."""
    gold, project = open_gold_world(services, world), Project(name=world, world=world)
    file = world_folder(services.settings.worlds_folder, world) / QUESTIONS_FILE
    for position, row in enumerate(rows, 1):
        record = parse_question(row, file, None)
        if reasoner is None:
            yield make_gold_trace(record, gold, project, position)
        else:
            yield make_reasoner_gold_trace(record, gold, project, position, reasoner, options)


def check_gold_skills(reasoner: str) -> None:
    """Raise UnknownReasoner for an unknown name, ReasonerError for a reasoner whose skills have no gold replies."""
    if not find_reasoner(reasoner).skills:
        names = ", ".join(entry.name for entry in REASONERS.values() if entry.skills)
        raise ReasonerError(f"The reasoner {reasoner} has no skills with gold replies; choose one of {names}.")


def make_reasoner_gold_trace(  # noqa: PLR0913, PLR0917 - a question at its place, and who answers it
    record: QuestionRecord,
    world: GoldWorld,
    project: Project,
    position: int,
    reasoner: str,
    options: Mapping[str, Any] | None = None,
) -> TraceRecord:
    """The trace of a reasoner whose skills reply with the gold reasoning; failed unless it has the gold answers."""
    question, run, recorder = build_question(record, project, position), world.run, MemoryRecorder()
    trace = Trace(
        id=recorder.trace_id,
        question_id=question.id,
        run_id=run.id,
        reasoner=reasoner,
        result=RunResult(generated=True),
        started_at=utc_now(),
    )
    oracle = OracleResponder(GoldReasoning(world, question.text, question.details))
    tools = available_tools(world.context.world)
    task = Task(question.text, world.context, tools, responder=oracle)
    outcome = run_reasoner(
        make_reasoner(reasoner, options), task, recorder, RunControl(RunLimits(steps=None, seconds=None))
    )
    scores = score_outcome(question, outcome).scores
    trace.submitted_at = utc_now()
    if outcome.answers is None or scores is None or scores["f1"] < 1:
        trace.status = "failed"
        trace.final_thought = f"No gold trace: {outcome.failure or 'it has other answers than the question'}."
    else:
        trace.status = "approved"
        for name, value in asdict(outcome.answers).items():
            setattr(trace, name, value)
        trace.result = trace.result.add({"calls": outcome.calls, **outcome.details})
    return TraceRecord(project, question, trace, recorder.steps, run=run)


GRAPH_SOURCE = "graph"
MAX_DEMONSTRATION_STEPS = 12
"""Longer traces are not used, since they are hard to read and do not fit a prompt."""


def make_demonstrations(
    records: Sequence[QuestionRecord], world: GoldWorld, project: Project, count: int
) -> list[TraceRecord]:
    """Make `count` gold traces, of every kind of question; fewer if too few succeed in few steps.

    Within a kind, questions whose template and whose combination of sources were not used yet come first. Traces that
    replay can follow on other questions are preferred; to choose them, at most twice as many traces are made.
    """
    followable: list[TraceRecord] = []
    others: list[TraceRecord] = []
    used: set[tuple[str, str]] = set()
    for position, record in _round_robin(records, used):
        if len(followable) == count or len(followable) + len(others) == 2 * count:
            break
        gold = make_gold_trace(record, world, project, position)
        if gold.trace.status != "approved" or not 1 < len(gold.steps) <= MAX_DEMONSTRATION_STEPS:
            continue
        if build_program(gold).problem is not None:
            others.append(gold)
        else:
            used.update(_novelties(record))
            followable.append(gold)
    kinds = {gold.question.kind for gold in followable}
    # Without them people and models would see no demonstration of these kinds.
    firsts = {gold.question.kind: gold for gold in reversed(others) if gold.question.kind not in kinds}
    return [*firsts.values(), *followable, *(gold for gold in others if gold not in firsts.values())][:count]


def _round_robin(records: Sequence[QuestionRecord], used: set[tuple[str, str]]) -> Iterator[tuple[int, QuestionRecord]]:
    """Yield the questions with their positions, one of each kind in turn."""
    remaining: dict[str | None, list[tuple[int, QuestionRecord]]] = {}
    for position, record in enumerate(records, 1):
        remaining.setdefault(record.kind, []).append((position, record))
    while any(remaining.values()):
        for entries in filter(None, remaining.values()):
            chosen = max(entries, key=lambda entry: _preference(entry[1], used))
            entries.remove(chosen)
            yield chosen


def _preference(record: QuestionRecord, used: set[tuple[str, str]]) -> tuple[int, bool]:
    """New ones first; among them those that the graph helps to answer, since its values need no reading."""
    return len(_novelties(record) - used), GRAPH_SOURCE in str(record.details["needs"][0])


def _novelties(record: QuestionRecord) -> set[tuple[str, str]]:
    """What a demonstration of the question may be the first to show: its template, and its sources in its kind."""
    return {("template", str(record.details["template"])), (str(record.kind), str(record.details["needs"]))}
