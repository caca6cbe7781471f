"""Asking: a reasoner at work on one question, its trace in the store from the first moment on.

`begin`, `go_on` and `run_from` give an Ask; who has it lets it work here and now (`showhow ask`) or in the background
of the server (`asks().start`). The trace is what is true: the Ask only knows what the model says at the moment.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from db import projects, runs, traces
from db.database import StoreError
from db.models import Run, Step, Trace
from db.runs import RunOutcome
from db.trace_record import TraceRecord
from fewshot_library.selection import SelectionError
from llm.errors import ChatError
from llm.types import Message
from reasoners.base import ReasonerError, Task
from reasoners.humaniq.late_fusion import FUSION_NAME as FUSION
from reasoners.humaniq.late_fusion import find_active_pipeline
from reasoners.humaniq.options import AgentOptions, AgentOptionsError
from reasoners.humaniq.tool_order import next_stage, restrict_to_sources
from reasoners.prompting.builder import PromptBuilder
from reasoners.prompting.chat_format import ChatFormat
from reasoners.prompting.react_format import ReActFormat
from reasoners.registry import UnknownReasoner
from runs.budget import RunLimits
from runs.preparation import REPLAY, PreparedTask, RunConfig, build_bare_task, prepare_task
from runs.process import current_worker_id, is_worker_alive
from runs.recorders import StoreRecorder
from runs.runner import RunControl, run_reasoner
from runs.services import Services
from tools.errors import ToolError
from worlds.folder import WorldError
from worlds.open import read_world_metadata
from worlds.source import SourceError

ASK_RUN_NAME = "ask"
"""The name of such a run."""
ASK_ERRORS = (
    ReasonerError,
    SelectionError,
    AgentOptionsError,
    UnknownReasoner,
    StoreError,
    ChatError,
    ToolError,
    WorldError,
    SourceError,
)
"""What may keep a question from being asked at all; each is one sentence."""


@dataclass(frozen=True, slots=True)
class FreeQuestion:
    """A question as somebody types it."""

    text: str
    source_id: None = None
    dataset: None = None
    split: None = None
    kind: None = None
    gold_answers: tuple[dict[str, Any], ...] = ()
    decomposition: tuple[dict[str, Any], ...] = ()
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AskRequest:
    """What is asked of which world, and how it is to be answered."""

    question: str
    world: str
    run_config: RunConfig = field(default_factory=RunConfig)
    limits: RunLimits = field(default_factory=RunLimits)


def _ignore_step(_step: Step) -> None:
    """Nobody looks."""


class ActiveRun:
    """One run at work on one trace."""

    def __init__(
        self,
        services: Services,
        trace_id: UUID,
        reins: RunControl,
        on_step: Callable[[Step], None] = _ignore_step,
    ) -> None:
        self.services = services
        self.trace_id = trace_id
        self.phase = "choosing demonstrations"
        """What it does before the first step; "" from then on."""
        self.streamed_text = ""
        """What the model has said since the last step."""
        self._began = time.monotonic()
        self.on_step = on_step
        """Hears of each step when it is begun and when it is completed."""
        self._reins = replace(reins, on_text=self._receive_text)

    def stop(self) -> None:
        """Have it end at once."""
        self._reins.stop.set()

    @property
    def elapsed_seconds(self) -> float:
        """Since it was begun or went on."""
        return time.monotonic() - self._began

    @property
    def stop_requested(self) -> bool:
        """Whether it was told to end."""
        return self._reins.stop.is_set()

    def execute(self) -> RunOutcome:
        """Choose the demonstrations, let the reasoner answer, and tell how that ended."""
        with self.services.database.read() as session:
            record = traces.load_trace(session, self.trace_id)
        ended = self._run_reasoner(record)
        if record.trace.run_id is not None:
            with self.services.database.begin() as session:
                runs.finish_run(session, record.trace.run_id)
        return ended

    def _run_reasoner(self, record: TraceRecord) -> RunOutcome:
        way = RunConfig.from_json(record.trace.configuration["way"])
        try:
            task = self._load_task(record, way)
            reasoner = way.make_reasoner()
        except ASK_ERRORS as failed:
            return self._record_failure(RunOutcome("failed", str(failed)))
        self.phase = ""
        return run_reasoner(reasoner, task, _NotifyingRecorder(self), self._reins)

    def handle_step(self, step: Step) -> None:
        """A step was begun or completed."""
        self.streamed_text = ""
        self.on_step(step)

    def _receive_text(self, text: str) -> None:
        self.streamed_text += text

    def _load_task(self, record: TraceRecord, way: RunConfig) -> Task:
        if "demonstrations" in record.trace.configuration:
            return _restore_task(self.services, record, way)
        found = prepare_task(self.services, record.question, record.project, way)
        with self.services.database.begin() as session:
            runs.update_configuration(session, self.trace_id, {"demonstrations": _demonstration_references(found)})
        return found.task

    def _record_failure(self, ended: RunOutcome) -> RunOutcome:
        with self.services.database.begin() as session:
            runs.finish_run_trace(session, self.trace_id, ended, seen=runs.trace_version(session, self.trace_id))
        return ended


class _NotifyingRecorder(StoreRecorder):
    """Keeps the run in the store and tells of its steps."""

    def __init__(self, ask: ActiveRun) -> None:
        with ask.services.database.read() as session:
            trace = traces.load_trace(session, ask.trace_id).trace
        super().__init__(ask.services.database, trace)
        self._ask = ask

    def begin(self, new: Any) -> Step:
        step = super().begin(new)
        self._ask.handle_step(step)
        return step

    def complete(self, step: Step, observed: Any) -> Step:
        done = super().complete(step, observed)
        self._ask.handle_step(done)
        return done


def begin_run(services: Services, wanted: AskRequest, reins: RunControl | None = None) -> ActiveRun:
    """Put the question and its trace into the store; one of FAILURES when it cannot be asked."""
    wanted.run_config.make_reasoner()
    read_world_metadata(services.settings.worlds_folder, wanted.world)
    made = _build_run(services, wanted.run_config, wanted.world, wanted.limits)
    asked = FreeQuestion(" ".join(wanted.question.split()))
    with services.database.begin() as session:
        project = projects.get_or_create_project(session, f"Asked of {wanted.world}", world=wanted.world)
        projects.add_questions(session, project.id, [asked])
        question = projects.find_matching_question(session, project.id, asked)
        trace = runs.start_run_trace(session, runs.start_run(session, made), question.id, {})
    return ActiveRun(services, trace.id, replace(reins or RunControl(), limits=wanted.limits))


def resume_run(services: Services, trace_id: UUID, limits: RunLimits) -> ActiveRun:
    """Let a run that was interrupted, stopped or not successful go on from its last finished step."""
    with services.database.begin() as session:
        runs.reopen_run_trace(session, trace_id)
        runs.update_configuration(session, trace_id, {"limits": limits.to_json(), "worker": current_worker_id()})
    return ActiveRun(services, trace_id, RunControl(limits))


def rerun_from_step(services: Services, trace_id: UUID, position: int, way: RunConfig, limits: RunLimits) -> ActiveRun:
    """Run again from behind that step (0 from the start), everything before kept; the former trace stays as it is."""
    way.make_reasoner()
    with services.database.read() as session:
        record = traces.load_trace(session, trace_id)
    with services.database.begin() as session:
        made = runs.start_run(session, _build_run(services, way, record.project.world, limits))
        trace = runs.fork_run_trace(session, trace_id, position, made)
    return ActiveRun(services, trace.id, RunControl(limits))


def is_running(services: Services, trace: Trace) -> bool:
    """Whether a run's trace is still being written, by this process or another one of this machine."""
    if trace.status != "draft" or trace.run_id is None:
        return False
    worker = trace.configuration.get("worker", "")
    return services.active_runs.get(trace.id) is not None if worker == current_worker_id() else is_worker_alive(worker)


def _build_run(services: Services, way: RunConfig, world: str, limits: RunLimits) -> Run:
    version = way.library_version(services)
    told: dict[str, Any] = {
        "way": way.pin(services).to_json(),
        "limits": limits.to_json(),
        "worker": current_worker_id(),
    }
    if way.reasoner != REPLAY:
        told["model"] = services.settings.model
    library = version.id if version is not None else None
    return Run(name=ASK_RUN_NAME, reasoner=way.reasoner, world=world, configuration=told, library_id=library)


def _demonstration_references(found: PreparedTask) -> list[dict[str, Any]]:
    """The demonstrations as the trace keeps them: which, and how near they are."""
    return [{"id": str(record.trace.id), "question": record.question.text} for record in found.task.demonstrations]


def _restore_task(services: Services, record: TraceRecord, way: RunConfig) -> Task:
    """The task once more, with the demonstrations that were chosen then."""
    ids = [UUID(each["id"]) for each in record.trace.configuration.get("demonstrations", ())]
    with services.database.read() as session:
        shown = list(traces.load_traces(session, ids))
    return replace(build_bare_task(services, record.question, record.project, way), demonstrations=shown)


def rebuild_prompt(services: Services, record: TraceRecord, position: int) -> list[Message]:
    """The exact prompt that was sent for the step at that position, written once more from the record."""
    told = record.trace.configuration
    way = RunConfig.from_json(told["way"])
    setup, steps = AgentOptions.from_mapping(way.options), record.steps[: position - 1]
    if way.reasoner == FUSION:
        source, steps = find_active_pipeline(steps)
        setup = replace(setup, sources=source)
    task = restrict_to_sources(_restore_task(services, record, way), setup.sources)
    as_text = "text" in (setup.form, told.get("form"))
    now = next_stage(setup.pipeline, task.tools, steps)
    return PromptBuilder(ReActFormat() if as_text else ChatFormat(), task, setup).build_messages(
        steps, now.tools, now.instruction
    )
