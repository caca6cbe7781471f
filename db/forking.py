"""Going on from an earlier trace: a copy up to a step, which knows where it came from."""

from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.assignments import hold
from db.database import Missing
from db.models import Step, Trace

COPIED = (
    "position",
    "thought",
    "tool",
    "arguments",
    "origins",
    "observation",
    "data",
    "error",
    "rating",
    "latency",
    "usage",
    "started_at",
    "finished_at",
    "wall_seconds",
    "active_seconds",
)


def fork(session: Session, trace_id: UUID, position: int, author_id: UUID | None) -> Trace:
    """A new draft of the author's (of nobody's for a run) with copies of steps 1 to `position` (0 for none)."""
    parent = session.get(Trace, trace_id)
    if parent is None:
        raise Missing(f"there is no trace {trace_id} to fork")
    steps = session.scalars(
        select(Step)
        .where(Step.trace_id == trace_id, Step.removed_at.is_(None), Step.position <= position)
        .order_by(Step.position)
    ).all()
    if len(steps) != position:
        raise Missing(f"the trace has no step {position} to fork from; look at the newer state")
    if author_id is not None:
        hold(session, parent.question_id, author_id)
    child = Trace(question_id=parent.question_id, author_id=author_id, parent_id=parent.id, parent_position=position)
    session.add(child)
    session.flush()
    copies: dict[UUID, UUID] = {}
    for step in steps:
        copy = Step(trace_id=child.id, **{name: getattr(step, name) for name in COPIED})
        copy.parent_id = copies.get(step.parent_id) if step.parent_id else None
        copies[step.id] = copy.id
        session.add(copy)
        session.flush()
    return child
