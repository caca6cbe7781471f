"""Runs of reasoners: start, finish, fork and reopen their traces.

The trace of a run is a draft without an author while the run works on it. A draft on which no process works was
interrupted; reopen_run_trace lets the run continue after its last finished step.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import exists, func, select, update
from sqlalchemy.orm import Session

from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import SPAN_SKILL, WAITING, Edit, ModelCall, Question, Run, Step, Trace
from showhow.db.people.users import ADMIN, REVIEWER, acting_person, require_acting_role
from showhow.db.removed_rows import WITH_REMOVED
from showhow.db.run_spec import RunResult
from showhow.db.runs.attempts import end_attempt_of_trace
from showhow.db.traces.model_calls import mark_lost_model_calls
from showhow.db.traces.recording import TraceAnswers, change_rating
from showhow.db.traces.traces import fork_trace, increment_version, lock_draft, lock_step, lock_trace, record_edit
from showhow.db.types import utc_now

ASK_RUN_NAME = "ask"
"""The name of a run over a single question."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result of a run on one question: an ending of RUN_ENDINGS, with answers or with the failure."""

    ending: str
    failure: str | None = None
    answers: TraceAnswers | None = None
    details: dict[str, Any] = field(default_factory=dict)
    """Values for the trace's result (RunResult.add): the response, the agreement of the sources ..."""
    usage: dict[str, Any] = field(default_factory=dict)
    """The total usage of its model calls."""
    seconds: float = 0.0
    """Seconds since the run was started or resumed."""
    calls: dict[str, Any] = field(default_factory=dict)
    """Its calls of models and tools, and the seconds that it had to wait for them, by name."""
    refusal_reason: str | None = None
    """Why it refused, as a clause that is counted over questions; None for other endings."""


def start_run(session: Session, run: Run) -> Run:
    """Store a run before its first trace, with the person who started it.

    Whoever has a role asks one question; only reviewers and administrators have a reasoner answer many.
    """
    require_acting_role(session, *(() if run.name == ASK_RUN_NAME else (REVIEWER, ADMIN)))
    person = acting_person(session)
    if person is not None:
        run.spec = run.spec.replace(asked_by=person.name)
    session.add(run)
    session.flush()
    return run


def finish_run(session: Session, run_id: UUID) -> None:
    """Mark the run as finished."""
    run = session.get_one(Run, run_id)
    run.finished_at, run.concurrency, run.is_paused = utc_now(), None, False
    session.flush()


def set_concurrency(session: Session, run_id: UUID, concurrency: int | None) -> None:
    """Change how many attempts of the run are worked on at the same time; None for as many as its workers can."""
    require_acting_role(session, REVIEWER, ADMIN)
    session.execute(update(Run).where(Run.id == run_id).values(concurrency=concurrency))


def pause_run(session: Session, run_id: UUID, *, is_paused: bool = True) -> None:
    """Have the workers of the run begin no attempt, or end that pause."""
    require_acting_role(session, REVIEWER, ADMIN)
    session.execute(update(Run).where(Run.id == run_id).values(is_paused=is_paused))


def get_concurrency(session: Session, run_id: UUID) -> int | None:
    """Return how many attempts may be at work now, 0 while it is paused; None if no number was set."""
    concurrency, is_paused = session.execute(select(Run.concurrency, Run.is_paused).where(Run.id == run_id)).one()
    return 0 if is_paused else concurrency


def start_run_trace(session: Session, run: Run, question_id: UUID, worker: str) -> Trace:
    """Start a trace of the run for the question, on which this process works."""
    if session.get(Question, question_id, execution_options=WITH_REMOVED) is None:
        raise RowNotFound(f"there is no question {question_id} here; ask it again")
    trace = Trace(question_id=question_id, run_id=run.id, reasoner=run.reasoner, result=RunResult(worker=worker))
    session.add(trace)
    session.flush()
    return trace


def update_result(session: Session, trace_id: UUID, **changes: Any) -> Trace:
    """Change values of the result of a running trace."""
    trace = lock_trace(session, trace_id)
    if trace.run_id is None or trace.status != "draft":
        raise Conflict("this trace does not belong to an unfinished run")
    trace.result = trace.result.replace(**changes)
    session.flush()
    return trace


def trace_version(session: Session, trace_id: UUID) -> int:
    """Return the version of the trace after the changes of this transaction."""
    return session.execute(select(Trace.version).where(Trace.id == trace_id)).scalar_one()


@dataclass(frozen=True, slots=True)
class RevisedReply:
    """A skill's reply that a person has written in place of the recorded one: its text, and the data of its step."""

    text: str
    data: dict[str, Any]
    editor_id: UUID


def fork_run_trace(
    session: Session, trace_id: UUID, position: int, run: Run, revised: RevisedReply | None = None
) -> Trace:
    """Start a trace of the run with copies of steps 1 to `position` of another trace.

    The last of them gets the revised reply; what it replaces is stored as an Edit, and the run takes the results of
    later steps of the other trace where they apply. Conflict if that step calls no skill.
    """
    trace = fork_trace(session, trace_id, position, None)
    trace.run_id, trace.reasoner = run.id, run.reasoner
    trace.result = RunResult(reuses_parent_steps=revised is not None)
    if revised is not None:
        _revise_reply(session, trace, position, revised)
    session.flush()
    return trace


def complete_awaited_step(session: Session, trace_id: UUID, position: int, written: RevisedReply) -> Trace:
    """Store the reply for which a waiting run left the step open; Conflict if it does not wait any more."""
    trace = lock_trace(session, trace_id)
    if trace.ending != WAITING:
        raise Conflict("this run does not wait for a reply; look at its newer state")
    _revise_reply(session, trace, position, written, must_be_open=True)
    increment_version(trace)
    session.flush()
    return trace


def _revise_reply(
    session: Session, trace: Trace, position: int, revised: RevisedReply, *, must_be_open: bool = False
) -> None:
    steps = select(Step).where(Step.trace_id == trace.id, Step.position == position, Step.removed_at.is_(None))
    step = session.scalars(steps).one_or_none()
    if step is None or step.skill in (None, SPAN_SKILL) or step.tool is not None:
        raise Conflict(f"step {position} is not the call of a skill, so it has no reply to change")
    if must_be_open and step.finished_at is not None:
        raise Conflict(f"step {position} has a reply by now; look at the newer state of the run")
    names = ("observation", "data", "error", "error_kind", "usage")
    record_edit(session, step, "reply", {name: getattr(step, name) for name in names}, revised.editor_id)
    step.observation, step.data, step.usage = revised.text, revised.data, {}
    step.error = step.error_kind = step.latency = None
    step.finished_at = utc_now()


def finish_run_trace(session: Session, trace_id: UUID, outcome: RunOutcome, *, seen: int) -> Trace:
    """Store the outcome: an answered trace becomes submitted, any other one failed."""
    trace = lock_draft(session, trace_id, seen)
    answers = outcome.answers
    if (outcome.ending == "answered") != (answers is not None):
        raise Conflict(f"a run has an answer if and only if its ending is answered, not {outcome.ending}")
    for name in TraceAnswers.__dataclass_fields__:
        setattr(trace, name, getattr(answers, name) if answers else None)
    trace.status = "submitted" if outcome.ending == "answered" else "failed"
    trace.ending, trace.failure = outcome.ending, outcome.failure
    trace.submitted_at = utc_now()
    trace.wall_seconds = (trace.wall_seconds or 0.0) + outcome.seconds
    trace.cost = dict(outcome.usage)
    trace.result = trace.result.add(outcome.details | ({"calls": outcome.calls} if outcome.calls else {}))
    session.add(Edit(trace_id=trace_id, action="status", before={"status": "draft"}))
    session.flush()
    end_attempt_of_trace(session, trace)
    return trace


def reopen_run_trace(session: Session, trace_id: UUID) -> Trace:
    """Reopen the trace of a run that was interrupted or failed; a process that still works on it gets a Conflict.

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


def rate_run_step(session: Session, step_id: UUID, rating: int | None, *, by: UUID) -> Step:
    """Rate the observation of a step of a run's trace from 1 to 5, during or after the run; None removes the rating."""
    step, _ = lock_step(session, step_id)
    if session.scalar(select(Trace.run_id).where(Trace.id == step.trace_id)) is None:
        raise Conflict("this is the trace of a person; its author rates it")
    return change_rating(session, step, rating, by)


class UnfinishedTrace(NamedTuple):
    """A trace of a run that has not ended, as far as the store knows."""

    trace_id: UUID
    version: int
    question: str
    run_name: str
    worker: str
    cost: dict[str, Any]
    last_written_at: datetime
    """The time at which its trace, its last step or its last model call began."""


def list_unfinished_traces(session: Session) -> list[UnfinishedTrace]:
    """List the traces of runs that have not ended, by start time."""
    last_step = select(func.max(Step.started_at)).where(Step.trace_id == Trace.id).scalar_subquery()
    last_call = select(func.max(ModelCall.created_at)).where(ModelCall.trace_id == Trace.id).scalar_subquery()
    rows = session.execute(
        select(Trace, Question.text, Run.name, last_step, last_call)
        .join(Run, Run.id == Trace.run_id)
        .join(Question, Question.id == Trace.question_id)
        .where(Trace.status == "draft")
        .order_by(Trace.started_at, Trace.id)
    )
    return [
        UnfinishedTrace(
            trace.id,
            trace.version,
            question,
            run,
            trace.result.worker,
            trace.cost,
            max(time for time in (trace.started_at, step, call) if time is not None),
        )
        for trace, question, run, step, call in rows
    ]


def finish_runs_without_drafts(session: Session, name: str) -> None:
    """Mark the runs of that name as finished whose traces have all ended."""
    traces = select(Trace.id).where(Trace.run_id == Run.id)
    session.execute(
        update(Run)
        .where(
            Run.name == name, Run.finished_at.is_(None), exists(traces), ~exists(traces.where(Trace.status == "draft"))
        )
        .values(finished_at=utc_now())
    )


class RunTraceSummary(NamedTuple):
    """One row of the list of runs."""

    trace_id: UUID
    question: str
    world: str
    reasoner: str
    started_at: datetime
    ending: str | None
    final_answer: str | None
    asked_by: str | None
    """The name of the person who asked on a page; None for a question of the command line."""


def list_latest_traces(session: Session, name: str, *, limit: int = 20) -> list[RunTraceSummary]:
    """List the latest traces of runs with this name, by start time."""
    columns = select(
        Trace.id,
        Question.text,
        Run.world,
        Trace.reasoner,
        Trace.started_at,
        Trace.ending,
        Trace.final_answer,
        Run.spec["asked_by"].as_string(),
    )
    joined = columns.join(Run, Run.id == Trace.run_id).join(Question, Question.id == Trace.question_id)
    rows = joined.where(Run.name == name).order_by(Run.started_at.desc(), Trace.id.desc()).limit(limit)
    return [RunTraceSummary(*row) for row in session.execute(rows)]
