"""Reservations of questions, and the number of people who have completed each."""

from datetime import timedelta
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from db.models import Assignment, Question, Trace, utc_now

RESERVATION_PERIOD = timedelta(hours=2)


def find_assignment(session: Session, question_id: UUID, user_id: UUID) -> Assignment | None:
    """Find the person's assignment of the question."""
    return session.scalar(
        select(Assignment).where(Assignment.question_id == question_id, Assignment.user_id == user_id)
    )


def reserve_question(session: Session, question_id: UUID, user_id: UUID) -> Assignment:
    """Reserve the question for the person for RESERVATION_PERIOD from now, also if it was skipped or done."""
    assignment = find_assignment(session, question_id, user_id)
    if assignment is None:
        assignment = Assignment(question_id=question_id, user_id=user_id)
        session.add(assignment)
    assignment.state, assignment.reason, assignment.until = "open", None, utc_now() + RESERVATION_PERIOD
    session.flush()
    return assignment


def complete_assignment(session: Session, question_id: UUID, user_id: UUID) -> None:
    """Mark the question as completed by the person and end the reservation."""
    assignment = reserve_question(session, question_id, user_id)
    assignment.state, assignment.until = "done", None
    session.flush()


def select_completed_traces() -> Select[Trace]:
    """Select the traces that count as a person's answer."""
    return select(Trace).where(Trace.status.in_(("submitted", "approved")), Trace.author_id.is_not(None))


def update_completed_count(session: Session, question_id: UUID) -> None:
    """Update the number of people who completed the question; the queue depends on it."""
    question = session.get_one(Question, question_id, with_for_update=True)
    traces = select_completed_traces().where(Trace.question_id == question_id)
    question.completed = session.scalar(traces.with_only_columns(func.count(Trace.author_id.distinct()))) or 0
    session.flush()
