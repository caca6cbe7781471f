"""Which question a person answers next: nobody is given one that others hold, and nobody waits for the idle."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session, aliased

from db.database import Conflict
from db.models import Assignment, Draft, Judgement, Project, Question, Step, Trace, now

RESERVED_FOR = timedelta(hours=2)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a project is: `done` of `total` questions, `mine` by this person, `skipped` by this person."""

    done: int
    total: int
    mine: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Open:
    """A draft or a returned trace in a person's queue."""

    trace: Trace
    question: Question
    comment: str = ""
    """What the reviewer wrote when the trace was returned."""


def drafts(session: Session, project_id: UUID, user_id: UUID) -> list[Open]:
    """The person's drafts, the latest first, without those of skipped questions."""
    rows = session.execute(
        select(Trace, Question)
        .join(Question, Question.id == Trace.question_id)
        .outerjoin(Assignment, (Assignment.question_id == Trace.question_id) & (Assignment.user_id == user_id))
        .where(Trace.author_id == user_id, Trace.status == "draft", Question.project_id == project_id)
        .where(func.coalesce(Assignment.state, "open") != "skipped")
        .order_by(Trace.started_at.desc())
        .limit(50)
    )
    return [Open(trace, question) for trace, question in rows]


def returned(session: Session, project_id: UUID, user_id: UUID) -> list[Open]:
    """The person's rejected traces that nobody has forked yet, the latest first, with the reviewer's comment."""
    child = aliased(Trace)
    rows = session.execute(
        select(Trace, Question, Judgement.comment)
        .join(Question, Question.id == Trace.question_id)
        .join(Judgement, (Judgement.trace_id == Trace.id) & (Judgement.aspect == "approval"))
        .where(Trace.author_id == user_id, Trace.status == "rejected", Question.project_id == project_id)
        .where(~select(child.id).where(child.parent_id == Trace.id).exists())
        .order_by(Trace.submitted_at.desc(), Judgement.created_at.desc())
        .limit(50)
    )
    seen: dict[UUID, Open] = {}
    for trace, question, comment in rows:
        seen.setdefault(trace.id, Open(trace, question, comment))
    return list(seen.values())


def next_question(session: Session, project_id: UUID, user_id: UUID) -> Question | None:
    """The first open question, reserved for the person for two hours; None when nothing is left for them."""
    project = session.get_one(Project, project_id, with_for_update=True)
    held = _held(session, project_id, user_id)
    if held is not None:
        return held
    mine = select(Assignment.id).where(Assignment.question_id == Question.id, Assignment.user_id == user_id)
    answered = select(Trace.id).where(Trace.question_id == Question.id, Trace.author_id == user_id)
    others = select(func.count(Assignment.id)).where(
        Assignment.question_id == Question.id,
        Assignment.user_id != user_id,
        Assignment.state == "open",
        Assignment.until > now(),
    )
    question = session.scalar(
        select(Question)
        .where(Question.project_id == project_id, Question.completed < project.overlap)
        .where(~mine.exists(), ~answered.exists())
        .where(Question.completed + others.scalar_subquery() < project.overlap)
        .order_by(Question.completed.desc(), Question.position)
        .limit(1)
    )
    if question is not None:
        session.add(Assignment(question_id=question.id, user_id=user_id, until=now() + RESERVED_FOR))
        session.flush()
    return question


def _held(session: Session, project_id: UUID, user_id: UUID) -> Question | None:
    """The question that the person holds already and has not begun, with its time renewed."""
    row = session.execute(
        select(Assignment, Question)
        .join(Question, Question.id == Assignment.question_id)
        .where(Assignment.user_id == user_id, Assignment.state == "open", Question.project_id == project_id)
        .where(~select(Trace.id).where(Trace.question_id == Question.id, Trace.author_id == user_id).exists())
        .order_by(Question.position)
        .limit(1)
    ).first()
    if row is None:
        return None
    assignment, question = row
    assignment.until = now() + RESERVED_FOR
    session.flush()
    return question


def skip(session: Session, question_id: UUID, user_id: UUID, reason: str) -> None:
    """Leave the question to others; a draft without steps goes, one with steps is kept for a later return."""
    if not reason.strip():
        raise Conflict("say in a few words why the question is skipped; the reason helps whoever wrote it")
    place = session.scalar(
        select(Assignment).where(Assignment.question_id == question_id, Assignment.user_id == user_id)
    )
    if place is None:
        place = Assignment(question_id=question_id, user_id=user_id)
        session.add(place)
    place.state, place.reason, place.until = "skipped", reason.strip(), None
    empty = [
        trace.id
        for trace in session.scalars(
            select(Trace).where(Trace.question_id == question_id, Trace.author_id == user_id, Trace.status == "draft")
        )
        if session.scalar(select(func.count(Step.id)).where(Step.trace_id == trace.id)) == 0
    ]
    session.execute(delete(Draft).where(Draft.trace_id.in_(empty)))
    session.execute(delete(Trace).where(Trace.id.in_(empty)))
    session.flush()


def skipped(session: Session, project_id: UUID, user_id: UUID) -> list[tuple[Question, str]]:
    """The questions that the person skipped, each with the reason."""
    rows = session.execute(
        select(Question, Assignment.reason)
        .join(Assignment, Assignment.question_id == Question.id)
        .where(Question.project_id == project_id, Assignment.user_id == user_id, Assignment.state == "skipped")
        .order_by(Question.position)
        .limit(50)
    )
    return [(question, reason or "") for question, reason in rows]


def unskip(session: Session, question_id: UUID, user_id: UUID) -> None:
    """Take a skipped question back."""
    place = session.scalar(
        select(Assignment).where(Assignment.question_id == question_id, Assignment.user_id == user_id)
    )
    if place is not None and place.state == "skipped":
        place.state, place.reason, place.until = "open", None, now() + RESERVED_FOR
        session.flush()


def progress(session: Session, project_id: UUID, user_id: UUID) -> Progress:
    """How far the project is."""
    total, done = session.execute(
        select(func.count(), func.count().filter(Question.completed >= Project.overlap))
        .select_from(Question)
        .join(Project, Project.id == Question.project_id)
        .where(Question.project_id == project_id)
    ).one()
    states = dict(
        session.execute(
            select(Assignment.state, func.count())
            .join(Question, Question.id == Assignment.question_id)
            .where(Assignment.user_id == user_id, Question.project_id == project_id)
            .group_by(Assignment.state)
        )
        .tuples()
        .all()
    )
    return Progress(done=done, total=total, mine=states.get("done", 0), skipped=states.get("skipped", 0))
