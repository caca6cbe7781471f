"""Runs that go on: after a stop or a crash, from a step of another run, or with a reply that a person has written.

Runs on which no process works any more, since it was killed, are ended at the next start, so that they can go on.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from showhow.db.database import Conflict
from showhow.db.models import WAITING, Run, Step
from showhow.db.people import users
from showhow.db.run_spec import RunLimits, RunSpec
from showhow.db.runs import runs
from showhow.db.runs.runs import ASK_RUN_NAME, RunOutcome, UnfinishedTrace
from showhow.db.traces import traces
from showhow.db.traces.model_calls import mark_lost_model_calls
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import utc_now
from showhow.reasoners.registry import find_reasoner
from showhow.reasoners.skills.skill import check_written_reply, skill_name, written_step_data
from showhow.runs.ask import ActiveRun
from showhow.runs.preparation import build_reasoner, build_run, check_pins, find_entry
from showhow.runs.process import current_worker_id, is_worker_gone, is_worker_local
from showhow.runs.runner import RunControl
from showhow.runs.services import Services

IDLE_TIME = timedelta(days=1)
"""A process of another host cannot be seen; its run is ended once it has written nothing for as long."""
_SHOWN_CHARACTERS = 80


def resume_run(services: Services, trace_id: UUID, limits: RunLimits) -> ActiveRun:
    """Resume an interrupted, stopped or failed run after its last finished step.

    Conflict if the model or the world changed since the run was started.
    """
    with services.database.read() as session:
        record = traces.load_trace(session, trace_id)
    if record.run is not None:
        check_pins(services, record.run)
    with services.database.begin() as session:
        runs.reopen_run_trace(session, trace_id)
        is_own = record.run is not None and record.run.spec.limits == limits
        runs.update_result(session, trace_id, limits=None if is_own else limits, worker=current_worker_id())
    return ActiveRun(services, trace_id, RunControl(limits))


def rerun_from_step(services: Services, trace_id: UUID, position: int, spec: RunSpec) -> ActiveRun:
    """Start a new run with a copy of the steps up to `position` (0 for none); the original trace is unchanged."""
    build_reasoner(spec)
    with services.database.read() as session:
        record = traces.load_trace(session, trace_id)
    run = _build_rerun(services, spec, record)
    with services.database.begin() as session:
        started = runs.start_run(session, run)
        trace = runs.fork_run_trace(session, trace_id, position, started)
        runs.update_result(session, trace.id, worker=current_worker_id())
    return ActiveRun(services, trace.id, RunControl(spec.limits))


@dataclass(frozen=True, slots=True)
class WrittenReply:
    """A skill's reply as JSON that a person writes in place of that of the step at this position."""

    position: int
    document: dict[str, Any]
    author: str
    """The name of the person."""


def _build_rerun(services: Services, spec: RunSpec, record: TraceRecord) -> Run:
    """The run that asks the trace's question again."""
    spec = spec.replace(date_notation=record.spec.date_notation)
    return build_run(services, spec, name=ASK_RUN_NAME, project=record.project)


def rerun_with_reply(services: Services, trace_id: UUID, written: WrittenReply, spec: RunSpec) -> ActiveRun:
    """Start a new run that goes on from a step with the reply that a person has written.

    The run takes the results of the trace's later steps where the same is asked. RejectedReply if the skill cannot use
    the reply; the original trace is unchanged.
    """
    build_reasoner(spec)
    with services.database.read() as session:
        record = traces.load_trace(session, trace_id)
    step = next((step for step in record.steps if step.position == written.position), None)
    skill = None if step is None else find_entry(spec).find_skill(step.skill)
    if step is None or skill is None:
        raise Conflict(f"step {written.position} calls no skill of {spec.reasoner}, so it has no reply to change")
    reply = check_written_reply(skill, step.arguments, written.document)
    run = _build_rerun(services, spec, record)
    with services.database.begin() as session:
        editor_id = users.register_user(session, written.author).id
        revised = runs.RevisedReply(str(reply), written_step_data(reply, written.author), editor_id)
        started = runs.start_run(session, run)
        trace = runs.fork_run_trace(session, trace_id, step.position, started, revised)
        runs.update_result(session, trace.id, worker=current_worker_id())
    return ActiveRun(services, trace.id, RunControl(spec.limits))


def list_awaited_steps(record: TraceRecord) -> list[Step]:
    """The steps of a waiting run whose replies a person has to write, in order; none of a run with another ending."""
    if record.trace.ending != WAITING:
        return []
    names = record.spec.person_skills
    return [
        step for step in record.steps if step.finished_at is None and step.tool is None and skill_name(step) in names
    ]


def resume_with_reply(services: Services, trace_id: UUID, written: WrittenReply, limits: RunLimits) -> ActiveRun | None:
    """Store the reply for which a run waits, and resume the run; None if it waits for other replies too.

    RejectedReply if the skill cannot use the reply; Conflict if the step does not wait, or the run cannot be resumed.
    """
    with services.database.read() as session:
        record = traces.load_trace(session, trace_id)
    if record.run is not None:
        check_pins(services, record.run)
    awaited = list_awaited_steps(record)
    step = next((step for step in awaited if step.position == written.position), None)
    skill = None if step is None else find_reasoner(record.trace.reasoner).find_skill(step.skill)
    if step is None or skill is None:
        raise Conflict(f"step {written.position} does not wait for a reply; look at the newer state of the run")
    reply = check_written_reply(skill, step.arguments, written.document)
    with services.database.begin() as session:
        editor_id = users.register_user(session, written.author).id
        revised = runs.RevisedReply(str(reply), written_step_data(reply, written.author), editor_id)
        runs.complete_awaited_step(session, trace_id, step.position, revised)
    return resume_run(services, trace_id, limits) if len(awaited) == 1 else None


def end_interrupted_runs(services: Services) -> list[str]:
    """End the runs on which no process works any more, and return a sentence about each; they can be continued.

    Runs of living processes stay as they are, whichever process calls this.
    """
    with services.database.read() as session:
        unfinished = runs.list_unfinished_traces(session)
    ended = [trace for trace in unfinished if _is_abandoned(trace) and _end_run(services, trace)]
    with services.database.begin() as session:
        runs.finish_runs_without_drafts(session, ASK_RUN_NAME)
    return [
        f"Ended the run on {_shorten(trace.question)!r}, whose process was killed; continue it "
        + ("on the Ask page." if trace.run_name == ASK_RUN_NAME else "with `showhow verify`.")
        for trace in ended
    ]


def _is_abandoned(trace: UnfinishedTrace) -> bool:
    if is_worker_local(trace.worker):
        return is_worker_gone(trace.worker)
    return utc_now() - trace.last_written_at > IDLE_TIME


def _end_run(services: Services, trace: UnfinishedTrace) -> bool:
    """End the run, unless another process has changed it since it was listed."""
    outcome = RunOutcome("interrupted", usage=trace.cost)
    try:
        with services.database.begin() as session:
            runs.finish_run_trace(session, trace.trace_id, outcome, seen=trace.version)
            mark_lost_model_calls(session, trace.trace_id)
    except Conflict:
        return False
    return True


def _shorten(question: str) -> str:
    return question if len(question) <= _SHOWN_CHARACTERS else f"{question[:_SHOWN_CHARACTERS]}…"
