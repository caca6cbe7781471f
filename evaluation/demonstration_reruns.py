"""Gold traces as demonstrations; and drift: demonstrations re-run in the worlds as they are now, and compared."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from db.libraries import DemonstrationFilter, find_version, list_matching_ids
from db.models import Project, Step, Trace
from db.trace_record import TraceRecord
from db.traces import load_trace, load_traces
from db.types import utc_now
from evaluation.datasets.record import QuestionRecord, parse_question
from evaluation.gold_reasoning import GoldReasoning
from evaluation.gold_skills import OracleResponder
from evaluation.gold_traces.traces import GoldWorld, build_question, make_gold_trace
from evaluation.scoring import score_outcome
from evaluation.selection_usage import Report, load_report, save_report
from fiction.generator.world_files import FACT_SOURCES_FILE
from fiction.questions.question_file import QUESTIONS_FILE
from reasoners.base import ReasonerError, Task
from reasoners.provenance import BrokenOrigin, Origin, resolve_origin
from reasoners.registry import REASONERS, find_reasoner, make_reasoner
from reasoners.replay.agent import ReplayReasoner
from reasoners.replay.compiler import build_program
from runs.budget import RunLimits
from runs.recorders import MemoryRecorder
from runs.runner import RunControl, run_reasoner
from runs.services import Services
from tools.registry import available_tools
from tools.tool import Tool, ToolContext, ToolResult
from worlds.folder import WorldError, world_folder
from worlds.source import SourceError

DriftState = Literal["same", "differs", "broken"]
IGNORED_FIELDS = frozenset({"score", "usage", "seconds"})
"""Fields of a tool's data that vary between identical calls and are not compared."""

StepData = Mapping[int, Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True)
class StepDrift:
    """One tool call with its stored and its current result; each is the observed text, or the error."""

    position: int
    tool: str
    arguments: dict[str, Any]
    state: DriftState
    before: str
    now: str
    why: str = ""
    """Why the step is broken; otherwise empty."""


@dataclass(frozen=True, slots=True)
class TraceDrift:
    """The drift of one trace; `steps` holds only the steps with a tool."""

    trace: str
    question: str
    world: str
    steps: tuple[StepDrift, ...]

    @property
    def state(self) -> DriftState:
        """The worst state of its steps."""
        states = {step.state for step in self.steps}
        return "broken" if "broken" in states else "differs" if "differs" in states else "same"

    def to_json(self) -> dict[str, Any]:
        """The drift as JSON; steps that are the same are counted, not listed."""
        changed = [asdict(step) for step in self.steps if step.state != "same"]
        data = {"trace": self.trace, "question": self.question, "world": self.world, "state": self.state}
        return {**data, "run": len(self.steps), "steps": changed}


def check_trace_drift(record: TraceRecord, context: ToolContext, find_tool: Callable[[str], Tool | None]) -> TraceDrift:
    """Re-run the tool calls of the trace; `find_tool` returns a tool by name, or None."""
    data_now: dict[int, Mapping[str, Any] | None] = {}
    drifts = list(_compare_steps(record.steps, context, find_tool, data_now))
    data_before = {step.position: step.data for step in record.steps}
    for step in record.steps:
        for name, origin in step.origins.items():
            changed_position = _find_changed_step(origin, record.question.full_text, data_before, data_now)
            if changed_position is not None:
                why = f"the value that step {step.position} took from here as its {name.replace('_', ' ')} has changed"
                drifts = [_mark_broken(drift, why) if drift.position == changed_position else drift for drift in drifts]
    return TraceDrift(str(record.trace.id), record.question.text, record.project.world, tuple(drifts))


def _compare_steps(
    steps: Sequence[Step],
    context: ToolContext,
    find_tool: Callable[[str], Tool | None],
    data_now: dict[int, Mapping[str, Any] | None],
) -> Iterator[StepDrift]:
    for step in steps:
        if step.tool is None or step.finished_at is None:
            continue
        tool = find_tool(step.tool)
        if tool is None:
            why = f"the tool {step.tool} is not available"
            yield StepDrift(step.position, step.tool, step.arguments, "broken", _observed_text(step), "", why)
            continue
        # A model is used only where the stored step used one: it would word the same result otherwise, and it costs.
        used_model = (step.data or {}).get("route") == "model"
        outcome = tool.call(context if used_model else replace(context, chat=None), step.arguments)
        data_now[step.position] = outcome.observation.data if outcome.observation is not None else None
        text_now = outcome.observation.text if outcome.observation is not None else outcome.error or ""
        fails_now = outcome.observation is None and step.error is None
        state: DriftState = "broken" if fails_now else "same" if _is_unchanged(step, outcome) else "differs"
        why = "it did not fail before" if fails_now else ""
        yield StepDrift(step.position, step.tool, step.arguments, state, _observed_text(step), text_now, why)


def _observed_text(step: Step) -> str:
    return step.error or step.observation or ""


def _is_unchanged(step: Step, outcome: ToolResult) -> bool:
    if outcome.observation is None or step.error is not None:
        return step.error == outcome.error
    # Imported traces may have texts without data.
    same_data = step.data is None or strip_ignored_fields(step.data) == strip_ignored_fields(outcome.observation.data)
    return step.observation == outcome.observation.text and same_data


def strip_ignored_fields(data: Any) -> Any:
    """The data without the fields that are not compared."""
    if isinstance(data, Mapping):
        return {name: strip_ignored_fields(value) for name, value in data.items() if name not in IGNORED_FIELDS}
    return [strip_ignored_fields(value) for value in data] if isinstance(data, list | tuple) else data


def _find_changed_step(origin: Origin, question: str, data_before: StepData, data_now: StepData) -> int | None:
    """The position of the step whose data the origin points into, if the value there has changed."""
    if origin["from"] == "parts":
        changed_steps = (
            _find_changed_step(part["origin"], question, data_before, data_now) for part in origin["parts"]
        )
        return next((step for step in changed_steps if step is not None), None)
    if origin["from"] != "step" or origin["step"] not in data_now:
        return None
    try:
        value_before = resolve_origin(origin, question, data_before)
    except BrokenOrigin:
        # The origin was already broken when the trace was stored, so the world did not change it.
        return None
    try:
        return origin["step"] if resolve_origin(origin, question, data_now) != value_before else None
    except BrokenOrigin:
        return int(origin["step"])


def _mark_broken(step: StepDrift, why: str) -> StepDrift:
    return step if step.state == "broken" else replace(step, state="broken", why=why)


def check_repetition(record: TraceRecord, context: ToolContext, tools: Sequence[Tool]) -> str | None:
    """Why replay does not repeat a demonstration on its own question; None if it does, with the same answer."""
    recorder = MemoryRecorder()
    task = Task(record.question.full_text, replace(context, chat=None), tools, [record])
    outcome = run_reasoner(ReplayReasoner(), task, recorder, RunControl(RunLimits(steps=None, seconds=None)))
    if outcome.answers is None:
        return outcome.failure or outcome.ending
    shown = [(step.tool, step.arguments) for step in record.steps if step.tool is not None]
    made = [(step.tool, step.arguments) for step in recorder.steps]
    if made != shown:
        place = next((at for at, pair in enumerate(zip(made, shown, strict=False), 1) if pair[0] != pair[1]), len(made))
        return f"call {place} is another one than in the demonstration"
    if outcome.answers.final_answer != record.trace.final_answer:
        return f"it answers {outcome.answers.final_answer!r} in place of {record.trace.final_answer!r}"
    return None


def check_repetitions(services: Services, library: str) -> Report:
    """Have replay answer the own question of each demonstration of a library version; counts, and why some differ."""
    with services.database.read() as session:
        records = list(
            load_traces(session, list_matching_ids(session, DemonstrationFilter(), find_version(session, library).id))
        )
    failures = []
    for record in records:
        try:
            context = services.tool_context(record.project.world)
        except (WorldError, SourceError) as error:
            failures.append({"id": str(record.trace.id), "why": str(error)})
            continue
        tools = services.tool_registry().offered_tools(context.world, record.project.tools)
        if (why := check_repetition(record, context, tools)) is not None:
            failures.append({"id": str(record.trace.id), "why": why})
    return {"demonstrations": len(records), "repeat": len(records) - len(failures), "not": failures}


_STATES_BY_SEVERITY = ("broken", "differs")


def list_demonstration_ids(services: Services, library: str | None, chosen: DemonstrationFilter) -> list[UUID]:
    """The ids of the matching traces of a library version (NAME or NAME:NUMBER), or of all approved traces."""
    with services.database.read() as session:
        return list_matching_ids(session, chosen, find_version(session, library).id if library is not None else None)


def compute_drift(services: Services, ids: Sequence[UUID], done: Callable[[int, int], None]) -> Report:
    """Check every trace; `done` is called with the number of finished traces and their total."""
    drifts: list[TraceDrift] = []
    for finished, trace_id in enumerate(ids, 1):
        drifts.append(_check_trace(services, trace_id))
        done(finished, len(ids))
    counts = {state: sum(drift.state == state for drift in drifts) for state in ("same", "differs", "broken")}
    changed = [drift.to_json() for state in _STATES_BY_SEVERITY for drift in drifts if drift.state == state]
    return {"at": datetime.now(UTC).isoformat(timespec="seconds"), "traces": len(drifts), **counts, "changed": changed}


def _check_trace(services: Services, trace_id: UUID) -> TraceDrift:
    with services.database.read() as session:
        record = load_trace(session, trace_id)
    try:
        context = services.tool_context(record.project.world)
    except (WorldError, SourceError) as error:
        # No tool can run without the world, so every step is broken for the same reason.
        steps = [
            StepDrift(s.position, s.tool, s.arguments, "broken", s.error or s.observation or "", "", str(error))
            for s in record.steps
            if s.tool is not None
        ]
        return TraceDrift(str(trace_id), record.question.text, record.project.world, tuple(steps))
    return check_trace_drift(record, context, services.tool_registry().find)


def load_drift(services: Services, library: str | None) -> Report | None:
    """The last report about a library version, or about all approved traces; None if there is none."""
    return load_report(_drift_path(services, library))


def save_drift(services: Services, library: str | None, report: Report) -> None:
    """Store the report in place of the previous one."""
    save_report(_drift_path(services, library), report)


def _drift_path(services: Services, library: str | None) -> Path:
    if library is None:
        return services.settings.home / "drift.json"
    with services.database.read() as session:
        version = find_version(session, library)
    return services.library_folder(version.id) / "drift.json"


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
