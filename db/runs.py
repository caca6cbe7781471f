"""Runs of reasoners: their traces are started, finished, forked and reopened here.

The trace of a run is a draft without an author while the run works on it. A draft on which no process works was
interrupted; reopen_run_trace lets the run continue after its last finished step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.database import Conflict, RowNotFound
from db.model_calls import mark_lost_model_calls
from db.models import Edit, Question, Run, Step, Trace, utc_now
from db.recording import TraceAnswers
from db.traces import fork_trace, increment_version, lock_draft, lock_step, lock_trace, record_edit


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended: `ending` is one of RUN_ENDINGS; with answers, or with the reason why there are none."""

    ending: str
    failure: str | None = None
    answers: TraceAnswers | None = None
    details: dict[str, Any] = field(default_factory=dict)
    """Added to the trace's configuration: the response, the agreement of the sources ..."""
    usage: dict[str, Any] = field(default_factory=dict)
    """The total usage of its model calls."""
    seconds: float = 0.0
    """Seconds of work since it was started or resumed."""


def start_run(session: Session, run: Run) -> Run:
    """Store a run before its first trace."""
    session.add(run)
    session.flush()
    return run


def finish_run(session: Session, run_id: UUID) -> None:
    """Mark the run as finished."""
    session.get_one(Run, run_id).finished_at = utc_now()
    session.flush()


def start_run_trace(session: Session, run: Run, question_id: UUID, configuration: Mapping[str, Any]) -> Trace:
    """Start a trace of the run for the question."""
    if session.get(Question, question_id) is None:
        raise RowNotFound(f"there is no question {question_id} here; ask it again")
    trace = Trace(
        question_id=question_id,
        run_id=run.id,
        reasoner=run.reasoner,
        configuration={**run.configuration, **configuration},
    )
    session.add(trace)
    session.flush()
    return trace


def update_configuration(session: Session, trace_id: UUID, details: Mapping[str, Any]) -> Trace:
    """Add the details to the configuration of a running trace."""
    trace = lock_trace(session, trace_id)
    if trace.run_id is None or trace.status != "draft":
        raise Conflict("this trace does not belong to a run that is at work")
    trace.configuration = {**trace.configuration, **details}
    session.flush()
    return trace


def trace_version(session: Session, trace_id: UUID) -> int:
    """Return the version of the trace after the changes of this transaction."""
    return session.execute(select(Trace.version).where(Trace.id == trace_id)).scalar_one()


def fork_run_trace(session: Session, trace_id: UUID, position: int, run: Run) -> Trace:
    """Start a trace of the run that continues from copies of steps 1 to `position` of another one."""
    trace = fork_trace(session, trace_id, position, None)
    trace.run_id, trace.reasoner, trace.configuration = run.id, run.reasoner, dict(run.configuration)
    session.flush()
    return trace


def finish_run_trace(session: Session, trace_id: UUID, ended: RunOutcome, *, seen: int) -> Trace:
    """Store how the run ended: an answered trace is submitted, any other one failed."""
    trace = lock_draft(session, trace_id, seen)
    answers = ended.answers
    if (ended.ending == "answered") != (answers is not None and bool(answers.final_answer.strip())):
        raise Conflict(f"a run has an answer if and only if its ending is answered, not {ended.ending}")
    for name in TraceAnswers.__dataclass_fields__:
        setattr(trace, name, getattr(answers, name) if answers else None)
    trace.status = "submitted" if ended.ending == "answered" else "failed"
    trace.ending, trace.failure = ended.ending, ended.failure
    trace.submitted_at = utc_now()
    trace.wall_seconds = (trace.wall_seconds or 0.0) + ended.seconds
    trace.cost = dict(ended.usage)
    trace.configuration = {**trace.configuration, **ended.details}
    session.add(Edit(trace_id=trace_id, action="status", before={"status": "draft"}))
    session.flush()
    return trace


def reopen_run_trace(session: Session, trace_id: UUID) -> Trace:
    """Reopen the trace of a run that was interrupted or found no answer; a process still working on it gets a Conflict.

    Its unfinished steps stay as they are, and its open model calls are lost.
    """
    trace = lock_trace(session, trace_id)
    if trace.run_id is None:
        raise Conflict("this trace does not belong to a run; fork it to continue from it")
    if trace.status not in ("draft", "failed"):
        raise Conflict(f"this trace is {trace.status}; run it again from one of its steps instead")
    if trace.status == "failed":
        before = {"status": "failed", "ending": trace.ending, "failure": trace.failure}
        session.add(Edit(trace_id=trace_id, action="status", before=before))
    trace.status, trace.ending, trace.failure, trace.submitted_at = "draft", None, None, None
    mark_lost_model_calls(session, trace_id)
    increment_version(trace)
    session.flush()
    return trace


def rate_run_step(session: Session, step_id: UUID, rating: int, *, by: UUID) -> Step:
    """Rate the observation of a step of a run's trace from 1 to 5, whether or not the run is still at work."""
    if not 1 <= rating <= 5:
        raise Conflict(f"a rating is a whole number from 1 to 5, not {rating}")
    step, _ = lock_step(session, step_id)
    if session.scalar(select(Trace.run_id).where(Trace.id == step.trace_id)) is None:
        raise Conflict("this is the trace of a person; its author rates it")
    if step.rating is not None:
        record_edit(session, step, "rating", {"rating": step.rating}, by)
    step.rating = rating
    session.flush()
    return step


class RunTraceSummary(NamedTuple):
    """One row of the list of runs."""

    trace_id: UUID
    question: str
    world: str
    reasoner: str
    started_at: datetime
    ending: str | None
    final_answer: str | None


def list_latest_traces(session: Session, name: str, *, limit: int = 20) -> list[RunTraceSummary]:
    """List the latest traces of runs of that name by start time."""
    columns = select(
        Trace.id, Question.text, Run.world, Trace.reasoner, Trace.started_at, Trace.ending, Trace.final_answer
    )
    joined = columns.join(Run, Run.id == Trace.run_id).join(Question, Question.id == Trace.question_id)
    rows = joined.where(Run.name == name).order_by(Run.started_at.desc(), Trace.id.desc()).limit(limit)
    return [RunTraceSummary(*row) for row in session.execute(rows)]
