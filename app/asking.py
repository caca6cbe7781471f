"""Asking: a reasoner at work on one question, its trace in the store from the first moment on.

`begin`, `go_on` and `run_from` give an Ask; who has it lets it work here and now (`showhow ask`) or in the background
of the server (`asks().start`). The trace is what is true: the Ask only knows what the model says at the moment.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from threading import Lock, Thread
from typing import Any
from uuid import UUID

from app.resources import database, settings
from app.solving import REPLAY, Given, Way, bare_task, given
from app.worker import is_alive, this_worker
from db import projects, reading, runs
from db.database import StoreError
from db.models import Run, Step, Trace
from db.record import TraceRecord
from db.runs import Ended
from fewshot_library.selection import SelectionError
from reasoners.conversation import Conversation
from reasoners.fusion import NAME as FUSION
from reasoners.fusion import at_work
from reasoners.keepers import InStore
from reasoners.limits import Limits
from reasoners.pipeline import stage
from reasoners.prompting import Prompting
from reasoners.react import ReAct
from reasoners.reasoner import ReasonerError, Task
from reasoners.registry import UnknownReasoner
from reasoners.run import Reins, run
from reasoners.setup import Setup, SetupError
from reasoners.sources import limited
from tools.chat import Message
from tools.tool_error import ToolError
from worlds.folder import WorldError
from worlds.open import about_world
from worlds.source import SourceError

ASK = "ask"
"""The name of such a run."""
FAILURES = (ReasonerError, SelectionError, SetupError, UnknownReasoner, StoreError, ToolError, WorldError, SourceError)
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
class Wanted:
    """What is asked of which world, and how it is to be answered."""

    question: str
    world: str
    way: Way = field(default_factory=Way)
    limits: Limits = field(default_factory=Limits)


def _unseen(_step: Step) -> None:
    """Nobody looks."""


class Ask:
    """One run at work on one trace."""

    def __init__(self, trace_id: UUID, reins: Reins, on_step: Callable[[Step], None] = _unseen) -> None:
        self.trace_id = trace_id
        self.phase = "choosing demonstrations"
        """What it does before the first step; "" from then on."""
        self.said = ""
        """What the model has said since the last step."""
        self._began = time.monotonic()
        self.on_step = on_step
        """Hears of each step when it is begun and when it is completed."""
        self._reins = replace(reins, hear=self._hear)

    def stop(self) -> None:
        """Have it end at once."""
        self._reins.stop.set()

    @property
    def seconds(self) -> float:
        """Since it was begun or went on."""
        return time.monotonic() - self._began

    @property
    def stopping(self) -> bool:
        """Whether it was told to end."""
        return self._reins.stop.is_set()

    def work(self) -> Ended:
        """Choose the demonstrations, let the reasoner answer, and tell how that ended."""
        with database().read() as session:
            record = reading.open_trace(session, self.trace_id)
        ended = self._answer(record)
        if record.trace.run_id is not None:
            with database().begin() as session:
                runs.finish_run(session, record.trace.run_id)
        return ended

    def _answer(self, record: TraceRecord) -> Ended:
        way = Way.from_json(record.trace.configuration["way"])
        try:
            task = self._task(record, way)
            reasoner = way.make()
        except FAILURES as failed:
            return self._cannot(Ended("failed", str(failed)))
        self.phase = ""
        return run(reasoner, task, _Watched(self), self._reins)

    def step(self, step: Step) -> None:
        """A step was begun or completed."""
        self.said = ""
        self.on_step(step)

    def _hear(self, text: str) -> None:
        self.said += text

    def _task(self, record: TraceRecord, way: Way) -> Task:
        if "demonstrations" in record.trace.configuration:
            return _task_of(record, way)
        found = given(record.question, record.project, way)
        with database().begin() as session:
            runs.tell(session, self.trace_id, {"demonstrations": _told(found)})
        return found.task

    def _cannot(self, ended: Ended) -> Ended:
        with database().begin() as session:
            runs.conclude(session, self.trace_id, ended, seen=runs.seen_version(session, self.trace_id))
        return ended


class _Watched(InStore):
    """Keeps the run in the store and tells of its steps."""

    def __init__(self, ask: Ask) -> None:
        with database().read() as session:
            trace = reading.open_trace(session, ask.trace_id).trace
        super().__init__(database(), trace)
        self._ask = ask

    def begin(self, new: Any) -> Step:
        step = super().begin(new)
        self._ask.step(step)
        return step

    def complete(self, step: Step, observed: Any) -> Step:
        done = super().complete(step, observed)
        self._ask.step(done)
        return done


def begin(wanted: Wanted, reins: Reins | None = None) -> Ask:
    """Put the question and its trace into the store; one of FAILURES when it cannot be asked."""
    wanted.way.make()
    about_world(settings().worlds, wanted.world)
    made = _run(wanted.way, wanted.world, wanted.limits)
    asked = FreeQuestion(" ".join(wanted.question.split()))
    with database().begin() as session:
        project = projects.get_or_create_project(session, f"Asked of {wanted.world}", world=wanted.world)
        projects.add_questions(session, project.id, [asked])
        question = projects.question_like(session, project.id, asked)
        trace = runs.start_run_trace(session, runs.start_run(session, made), question.id, {})
    return Ask(trace.id, replace(reins or Reins(), limits=wanted.limits))


def go_on(trace_id: UUID, limits: Limits) -> Ask:
    """Let a run that was interrupted, stopped or not successful go on from its last finished step."""
    with database().begin() as session:
        runs.reopen(session, trace_id)
        runs.tell(session, trace_id, {"limits": limits.to_json(), "worker": this_worker()})
    return Ask(trace_id, Reins(limits))


def run_from(trace_id: UUID, position: int, way: Way, limits: Limits) -> Ask:
    """Run again from behind that step (0 from the start), everything before kept; the former trace stays as it is."""
    way.make()
    with database().read() as session:
        record = reading.open_trace(session, trace_id)
    with database().begin() as session:
        made = runs.start_run(session, _run(way, record.project.world, limits))
        trace = runs.fork_run(session, trace_id, position, made)
    return Ask(trace.id, Reins(limits))


def is_at_work(trace: Trace) -> bool:
    """Whether a run's trace is still being written, by this process or another one of this machine."""
    if trace.status != "draft" or trace.run_id is None:
        return False
    worker = trace.configuration.get("worker", "")
    return asks().at(trace.id) is not None if worker == this_worker() else is_alive(worker)


def _run(way: Way, world: str, limits: Limits) -> Run:
    version = way.version()
    told: dict[str, Any] = {"way": way.to_json(), "limits": limits.to_json(), "worker": this_worker()}
    if way.reasoner != REPLAY:
        told["model"] = settings().model
    library = version.id if version is not None else None
    return Run(name=ASK, reasoner=way.reasoner, world=world, configuration=told, library_id=library)


def _told(found: Given) -> list[dict[str, Any]]:
    """The demonstrations as the trace keeps them: which, and how near they are."""
    return [{"id": str(record.trace.id), "question": record.question.text} for record in found.task.demonstrations]


def _task_of(record: TraceRecord, way: Way) -> Task:
    """The task once more, with the demonstrations that were chosen then."""
    ids = [UUID(each["id"]) for each in record.trace.configuration.get("demonstrations", ())]
    with database().read() as session:
        shown = list(reading.traces(session, ids))
    return replace(bare_task(record.question, record.project, way), demonstrations=shown)


def prompt_of(record: TraceRecord, position: int) -> list[Message]:
    """The exact prompt that was sent for the step at that position, written once more from the record."""
    told = record.trace.configuration
    way = Way.from_json(told["way"])
    setup, steps = Setup.read(way.options), record.steps[: position - 1]
    if way.reasoner == FUSION:
        source, steps = at_work(steps)
        setup = replace(setup, sources=source)
    task = limited(_task_of(record, way), setup.sources)
    as_text = "text" in (setup.form, told.get("form"))
    now = stage(setup.pipeline, task.tools, steps)
    return Prompting(ReAct() if as_text else Conversation(), task, setup).messages(steps, now.tools, now.cue)


class Asks:
    """The asks at work in this process."""

    def __init__(self) -> None:
        self._at_work: dict[UUID, Ask] = {}
        self._lock = Lock()

    def at(self, trace_id: UUID) -> Ask | None:
        """The one at work on that trace, if there is one."""
        return self._at_work.get(trace_id)

    def start(self, ask: Ask) -> UUID:
        """Let it work in the background."""
        with self._lock:
            self._at_work[ask.trace_id] = ask
        Thread(target=self._work, args=(ask,), name=f"ask {ask.trace_id}", daemon=True).start()
        return ask.trace_id

    def _work(self, ask: Ask) -> None:
        try:
            ask.work()
        finally:
            with self._lock:
                del self._at_work[ask.trace_id]


@cache
def asks() -> Asks:
    """The asks of this process."""
    return Asks()
