"""Asks a reasoner one question: the trace is stored from the first moment, and steps are stored as they happen.

`begin_run`, and the functions of `runs.resume`, return an ActiveRun. The caller executes it (`showhow ask`) or starts
it in the background of the server (`services.active_runs.start`). The stored trace is authoritative; the ActiveRun only
adds the text that the model is streaming.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from showhow.db.database import StoreError
from showhow.db.models import Step, Trace
from showhow.db.questions import projects
from showhow.db.run_spec import MODEL_SKILLS, DemonstrationReference, RunSpec
from showhow.db.runs import runs
from showhow.db.runs.leases import Lease
from showhow.db.runs.runs import ASK_RUN_NAME, RunOutcome
from showhow.db.traces import traces
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.selection import SelectionError
from showhow.llm.errors import ChatError
from showhow.reasoners.answers.dates_and_numbers import DateNotation
from showhow.reasoners.base import ReasonerError, Task
from showhow.reasoners.humaniq.options import AgentOptionsError
from showhow.reasoners.registry import UnknownReasoner
from showhow.reasoners.skills.skill import RejectedReply, Responder
from showhow.runs.model_call_recorder import StoreModelCallRecorder
from showhow.runs.preparation import build_bare_task, build_reasoner, build_run, prepare_task
from showhow.runs.process import current_worker_id, is_worker_alive
from showhow.runs.recorders import StoreRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.runs.services import Services
from showhow.tools.arguments import ToolError
from showhow.worlds.folder import WorldError
from showhow.worlds.open import read_world_metadata
from showhow.worlds.source import SourceError

ASK_ERRORS = (
    ReasonerError,
    RejectedReply,
    SelectionError,
    AgentOptionsError,
    UnknownReasoner,
    StoreError,
    ChatError,
    ToolError,
    WorldError,
    SourceError,
)
"""The errors that prevent a question from being asked; each message is one sentence."""


@dataclass(frozen=True, slots=True)
class FreeQuestion:
    """A question typed by a user, without gold answers."""

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
    """A question or another task, the world to answer it in, and how it is answered."""

    question: str
    world: str
    """The name of the world; ignored if there is a project."""
    spec: RunSpec
    """How it is answered; its date_notation (answer_notation.py) is that of answers that are days."""
    project: str | None = None
    """The name of the project whose world, tools, instruction and answer format apply; None for the world alone."""


def _ignore_step(_step: Step) -> None:
    """The default callback, which does nothing."""


class ActiveRun:
    """A run of a reasoner on one trace."""

    def __init__(self, services: Services, trace_id: UUID, control: RunControl) -> None:
        self.services = services
        self.trace_id = trace_id
        self.phase = "choosing demonstrations"
        """What the run does before its first step; "" from then on."""
        self.streamed_text = ""
        """The text that the model has streamed since the last step."""
        self.on_step: Callable[[Step], None] = _ignore_step
        """Called with each step when it begins and when it is completed."""
        self.responder: Responder | None = None
        """Replies to skills in place of the model, as the configuration of the run says."""
        self._started = time.monotonic()
        self._control = replace(control, on_text=self._receive_text)

    def stop(self) -> None:
        """Stop the run immediately."""
        self._control.stop.set()

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the run was started or resumed."""
        return time.monotonic() - self._started

    @property
    def stop_requested(self) -> bool:
        """Whether `stop` was called."""
        return self._control.stop.is_set()

    def execute(self) -> RunOutcome:
        """Select demonstrations, run the reasoner, and return the stored outcome."""
        with self.services.database.read() as session:
            record = traces.load_trace(session, self.trace_id)
        outcome = self._run_reasoner(record)
        if record.trace.run_id is not None:
            with self.services.database.begin() as session:
                runs.finish_run(session, record.trace.run_id)
        return outcome

    def _run_reasoner(self, record: TraceRecord) -> RunOutcome:
        spec = record.spec
        try:
            if spec.skills != MODEL_SKILLS and self.responder is None:
                raise ReasonerError(f"The skills of this run are played by {spec.skills}: continue it on the Ask page.")
            notation = spec.date_notation and DateNotation(spec.date_notation)
            task = self._load_task(record, spec)
            task = replace(task, responder=self.responder, date_notation=notation or None)
            reasoner = build_reasoner(spec)
        except ASK_ERRORS as error:
            return self._record_failure(RunOutcome("failed", str(error)))
        self.phase = ""
        with self.services.database.read() as session:
            trace = traces.load_trace(session, self.trace_id).trace
        recorder = StoreRecorder(self.services.database, trace, self._handle_step)
        return run_reasoner(reasoner, record_model_calls(self.services, task, recorder), recorder, self._control)

    def _handle_step(self, step: Step) -> None:
        self.streamed_text = ""
        self.on_step(step)

    def _receive_text(self, text: str) -> None:
        self.streamed_text += text

    def _load_task(self, record: TraceRecord, spec: RunSpec) -> Task:
        """The task with the demonstrations that were selected when the run was started, or with a selection."""
        if (references := record.trace.result.demonstrations) is not None:
            with self.services.database.read() as session:
                selected = list(traces.load_traces(session, [reference.id for reference in references]))
            task = build_bare_task(self.services, record.question, record.project, spec)
            return replace(task, demonstrations=selected)
        task = prepare_task(self.services, record.question, record.project, spec, is_evaluated=False).task
        shown = tuple(
            DemonstrationReference(id=row.trace.id, question=row.question.text) for row in task.demonstrations
        )
        with self.services.database.begin() as session:
            runs.update_result(session, self.trace_id, demonstrations=shown)
        return task

    def _record_failure(self, outcome: RunOutcome) -> RunOutcome:
        with self.services.database.begin() as session:
            runs.finish_run_trace(session, self.trace_id, outcome, seen=runs.trace_version(session, self.trace_id))
        return outcome


def record_model_calls(services: Services, task: Task, steps: StoreRecorder, lease: Lease | None = None) -> Task:
    """Return the task with a client that stores requests and replies for the recorder's trace.

    With the lease of an attempt, requests are sent only while it holds (StoreModelCallRecorder).
    """
    chat = task.context.chat
    if chat is None:
        return task
    recorder = StoreModelCallRecorder(services.database, steps, lease)
    return replace(task, context=replace(task.context, chat=chat.recording(recorder)))


def begin_run(services: Services, request: AskRequest, control: RunControl | None = None) -> ActiveRun:
    """Store the question with a new run and trace; raises one of ASK_ERRORS if it cannot be asked."""
    build_reasoner(request.spec)
    text = request.question.strip()
    if not any(map(str.isalnum, text)):
        raise ReasonerError(f"the question is {text!r}, which has no word; write a question")
    with services.database.read() as session:
        asked = projects.asked_questions_project(session, request.world, request.project)
    read_world_metadata(services.settings.worlds_folder, asked.world)
    run = build_run(services, request.spec, name=ASK_RUN_NAME, project=asked)
    question = FreeQuestion(" ".join(text.split()) if request.project is None else text)
    with services.database.begin() as session:
        project = projects.collect_asked_questions(session, asked)
        projects.add_question(session, project.id, question)
        stored = projects.find_matching_question(session, project.id, question)
        trace = runs.start_run_trace(session, runs.start_run(session, run), stored.id, current_worker_id())
    return ActiveRun(services, trace.id, replace(control or RunControl(), limits=request.spec.limits))


def is_running(services: Services, trace: Trace) -> bool:
    """Whether a run of this process, or of another process on this host, is still working on the trace."""
    if trace.status != "draft" or trace.run_id is None:
        return False
    worker = trace.result.worker
    return services.active_runs.get(trace.id) is not None if worker == current_worker_id() else is_worker_alive(worker)
