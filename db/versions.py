"""The version of a trace: who may change it, and what a person is told when somebody else did meanwhile."""

from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import flag_modified

from db.database import Conflict, Missing
from db.models import Edit, Step, Trace, User


def find_trace(session: Session, trace_id: UUID) -> Trace:
    """The trace, locked until the transaction ends."""
    trace = session.get(Trace, trace_id, with_for_update=True)
    if trace is None:
        raise Missing(f"there is no trace {trace_id} here; it may be in another database")
    return trace


def find_step(session: Session, step_id: UUID) -> tuple[Step, Trace]:
    """The step and its trace, locked: the lock is always the trace's, so that no two wait for each other in a ring."""
    trace_id = session.scalar(select(Step.trace_id).where(Step.id == step_id))
    if trace_id is None:
        raise Missing(f"there is no step {step_id} here; look at the newer state")
    trace = find_trace(session, trace_id)
    return session.get_one(Step, step_id, populate_existing=True), trace


def draft_trace(session: Session, trace_id: UUID, seen: int, by: UUID | None = None) -> Trace:
    """The trace if it is a draft of the version that was seen, and the person's own where one is named."""
    trace = find_trace(session, trace_id)
    if trace.status != "draft":
        raise Conflict(
            f"this trace is {trace.status} since {_last_change(session, trace)} and cannot be changed any more; what "
            "you typed is still here, fork the trace to go on from it"
        )
    if by is not None and trace.author_id != by:
        author = session.get(User, trace.author_id) if trace.author_id else None
        raise Conflict(f"this trace is {author.name if author else 'a model'}'s; fork it to go on from it")
    if trace.version != seen:
        raise Conflict(
            f"this trace was changed in another tab ({_last_change(session, trace)}); nothing was overwritten and what "
            "you typed is still here. Look at the newer state, then do it again"
        )
    return trace


def touch(trace: Trace) -> None:
    """Count a change of the trace's steps as a change of the trace."""
    flag_modified(trace, "status")


def keep_edit(session: Session, step: Step, action: str, before: dict[str, Any], by: UUID) -> None:
    """Keep what a change of the step replaced."""
    session.add(Edit(trace_id=step.trace_id, step_id=step.id, action=action, before=before, editor_id=by))


def _last_change(session: Session, trace: Trace) -> str:
    """What happened to the trace last, and when, in a few words."""
    happened = [(trace.started_at, "started")]
    for step in session.scalars(select(Step).where(Step.trace_id == trace.id)):
        happened.append((step.started_at, f"step {step.position} was written"))
        if step.finished_at is not None:
            happened.append((step.finished_at, f"step {step.position} was completed"))
    for edit, position in session.execute(
        select(Edit, Step.position).outerjoin(Step, Step.id == Edit.step_id).where(Edit.trace_id == trace.id)
    ):
        happened.append((edit.at, f"{edit.action} of step {position}" if position else f"its {edit.action} changed"))
    at, what = max(happened)
    return f"{what} at {at:%H:%M:%S} UTC"
