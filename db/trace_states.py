"""Which traces count as drafts and as returned, and which questions as held: the conditions of all lists and counts."""

from typing import Any

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import aliased

from showhow.db.models import Assignment, Trace
from showhow.db.types import utc_now


def is_held(assignment: Any = Assignment) -> ColumnElement[bool]:
    """Condition: the person has the question for now, reserved for a while or assigned to them by the team's lead."""
    return and_(assignment.state == "open", or_(assignment.until.is_(None), assignment.until > utc_now()))


def is_open_return() -> ColumnElement[bool]:
    """Condition: the trace waits for its author to fix it. A fork of theirs counts in its place."""
    return and_(Trace.status == "rejected", ~has_successor())


def has_successor() -> ColumnElement[bool]:
    """Condition: the author of the trace has forked it, or anybody has if it is a run's."""
    fork = aliased(Trace)
    is_successor = or_(fork.author_id == Trace.author_id, Trace.author_id.is_(None))
    return select(fork.id).where(fork.parent_id == Trace.id, is_successor).correlate(Trace).exists()


def is_kept_draft() -> ColumnElement[bool]:
    """Condition: the trace is a draft that its author has not left by skipping its question."""
    skipped = select(Assignment.id).where(
        Assignment.question_id == Trace.question_id,
        Assignment.user_id == Trace.author_id,
        Assignment.state == "skipped",
    )
    return and_(Trace.status == "draft", ~skipped.correlate(Trace).exists())
