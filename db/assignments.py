"""Who holds which question until when, and how many people's traces of it stand."""

from datetime import timedelta
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from db.models import Assignment, Question, Trace, now

RESERVED_FOR = timedelta(hours=2)


def assignment(session: Session, question_id: UUID, user_id: UUID) -> Assignment | None:
    """What the person has to do with the question, if anything."""
    return session.scalar(
        select(Assignment).where(Assignment.question_id == question_id, Assignment.user_id == user_id)
    )


def hold(session: Session, question_id: UUID, user_id: UUID) -> Assignment:
    """Reserve the question for the person for two hours from now, whatever the person did with it before."""
    place = assignment(session, question_id, user_id)
    if place is None:
        place = Assignment(question_id=question_id, user_id=user_id)
        session.add(place)
    place.state, place.reason, place.until = "open", None, now() + RESERVED_FOR
    session.flush()
    return place


def finish(session: Session, question_id: UUID, user_id: UUID) -> None:
    """The person has answered the question and holds it no longer."""
    place = hold(session, question_id, user_id)
    place.state, place.until = "done", None
    session.flush()


def standing() -> Select[Trace]:
    """The traces that count as a person's answer."""
    return select(Trace).where(Trace.status.in_(("submitted", "approved")), Trace.author_id.is_not(None))


def count_completed(session: Session, question_id: UUID) -> None:
    """Write anew how many people's traces of the question stand, which the queue goes by."""
    question = session.get_one(Question, question_id, with_for_update=True)
    people = standing().where(Trace.question_id == question_id)
    question.completed = session.scalar(people.with_only_columns(func.count(Trace.author_id.distinct()))) or 0
    session.flush()
