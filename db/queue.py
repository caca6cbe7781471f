"""The queue of questions of a person: reservations keep two people from the same question and expire."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.orm import Session, aliased

from db.assignments import find_assignment, reserve_question, select_completed_traces
from db.database import Conflict
from db.models import Assignment, Draft, Judgement, ModelCall, Project, Question, Step, Trace, utc_now


@dataclass(frozen=True, slots=True)
class ProjectProgress:
    """The progress of a project: `done` of `total` questions, and how many a person completed and skipped."""

    done: int
    total: int
    completed_by_user: int
    skipped: int


@dataclass(frozen=True, slots=True)
class OpenTrace:
    """A draft or returned trace in a person's queue."""

    trace: Trace
    question: Question
    comment: str = ""
    """The reviewer's comment on a returned trace."""


def list_drafts(session: Session, project_id: UUID, user_id: UUID) -> list[OpenTrace]:
    """List the person's drafts, the latest first, except those of skipped questions."""
    rows = session.execute(
        select(Trace, Question)
        .join(Question, Question.id == Trace.question_id)
        .outerjoin(Assignment, (Assignment.question_id == Trace.question_id) & (Assignment.user_id == user_id))
        .where(Trace.author_id == user_id, Trace.status == "draft", Question.project_id == project_id)
        .where(func.coalesce(Assignment.state, "open") != "skipped")
        .order_by(Trace.started_at.desc())
        .limit(50)
    )
    return [OpenTrace(trace, question) for trace, question in rows]


def list_returned_traces(session: Session, project_id: UUID, user_id: UUID) -> list[OpenTrace]:
    """List the person's rejected traces without a fork, the latest first, with the reviewer's comment."""
    child = aliased(Trace)
    rows = session.execute(
        select(Trace, Question, Judgement.comment)
        .join(Question, Question.id == Trace.question_id)
        .outerjoin(Judgement, (Judgement.trace_id == Trace.id) & (Judgement.aspect == "approval"))
        .where(Trace.author_id == user_id, Trace.status == "rejected", Question.project_id == project_id)
        .where(~select(child.id).where(child.parent_id == Trace.id).exists())
        .order_by(Trace.submitted_at.desc(), Judgement.created_at.desc())
        .limit(50)
    )
    seen: dict[UUID, OpenTrace] = {}
    for trace, question, comment in rows:
        seen.setdefault(trace.id, OpenTrace(trace, question, comment or ""))
    return list(seen.values())


def next_question(session: Session, project_id: UUID, user_id: UUID) -> Question | None:
    """Reserve the first open question for the person for two hours; None when there is none."""
    # The lock makes concurrent transactions choose one after the other.
    project = session.get_one(Project, project_id, with_for_update=True)
    question = _find_reserved_question(session, project, user_id)
    if question is None:
        untouched = (
            ~select(Assignment.id).where(Assignment.question_id == Question.id, Assignment.user_id == user_id).exists()
        )
        # One query for each level, so that the index gives its first question without sorting.
        firsts = [
            session.scalar(
                select(Question)
                .where(Question.project_id == project_id, Question.completed == level)
                .where(untouched, *_availability_conditions(user_id, project))
                .order_by(Question.position)
                .limit(1)
            )
            for level in range(project.overlap)
        ]
        question = min(filter(None, firsts), key=lambda first: first.position, default=None)
    if question is not None:
        reserve_question(session, question.id, user_id)
    return question


def _find_reserved_question(session: Session, project: Project, user_id: UUID) -> Question | None:
    """Find the first question that the person has reserved but not begun, unless others completed it meanwhile."""
    # By key only: with a condition on the project, SQLite would scan all of its questions.
    mine = session.scalars(
        select(Assignment.question_id).where(Assignment.user_id == user_id, Assignment.state == "open")
    ).all()
    if not mine:
        return None
    held = session.scalars(select(Question).where(Question.id.in_(mine), *_availability_conditions(user_id, project)))
    return min((q for q in held if q.project_id == project.id), key=lambda q: q.position, default=None)


def _availability_conditions(user_id: UUID, project: Project) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Conditions: the person has no trace of the question, and others have not completed or reserved it."""
    answered = select(Trace.id).where(Trace.question_id == Question.id, Trace.author_id == user_id)
    other = aliased(Assignment)
    others = select(func.count(other.id)).where(
        other.question_id == Question.id, other.user_id != user_id, other.state == "open", other.until > utc_now()
    )
    return ~answered.exists(), Question.completed + others.scalar_subquery() < project.overlap


def skip_question(session: Session, question_id: UUID, user_id: UUID, reason: str) -> None:
    """Skip the question: a draft without steps is deleted, one with steps stays for later."""
    if not reason.strip():
        raise Conflict("say in a few words why the question is skipped; the reason helps its author")
    place = reserve_question(session, question_id, user_id)
    place.state, place.reason, place.until = "skipped", reason.strip(), None
    empty = [
        trace.id
        for trace in session.scalars(
            select(Trace).where(Trace.question_id == question_id, Trace.author_id == user_id, Trace.status == "draft")
        )
        if session.scalar(select(func.count(Step.id)).where(Step.trace_id == trace.id)) == 0
    ]
    session.execute(delete(Draft).where(Draft.trace_id.in_(empty)))
    session.execute(update(ModelCall).where(ModelCall.trace_id.in_(empty)).values(trace_id=None))
    session.execute(delete(Trace).where(Trace.id.in_(empty)))
    session.flush()


def list_skipped_questions(session: Session, project_id: UUID, user_id: UUID) -> list[tuple[Question, str]]:
    """List the questions that the person skipped, with the reasons."""
    rows = session.execute(
        select(Question, Assignment.reason)
        .join(Assignment, Assignment.question_id == Question.id)
        .where(Question.project_id == project_id, Assignment.user_id == user_id, Assignment.state == "skipped")
        .order_by(Question.position)
        .limit(50)
    )
    return [(question, reason or "") for question, reason in rows]


def unskip_question(session: Session, question_id: UUID, user_id: UUID) -> None:
    """Reserve a skipped question again."""
    place = find_assignment(session, question_id, user_id)
    if place is not None and place.state == "skipped":
        reserve_question(session, question_id, user_id)


def measure_progress(session: Session, project_id: UUID, user_id: UUID) -> ProjectProgress:
    """Measure the progress of the project and of the person in it."""
    total, done = session.execute(
        select(func.count(), func.count().filter(Question.completed >= Project.overlap))
        .select_from(Question)
        .join(Project, Project.id == Question.project_id)
        .where(Question.project_id == project_id)
    ).one()
    mine = session.scalar(
        select_completed_traces()
        .join(Question, Question.id == Trace.question_id)
        .where(Trace.author_id == user_id, Question.project_id == project_id)
        .with_only_columns(func.count(Trace.question_id.distinct()))
    )
    skipped_ones = session.scalar(
        select(func.count(Assignment.id))
        .join(Question, Question.id == Assignment.question_id)
        .where(Assignment.user_id == user_id, Assignment.state == "skipped", Question.project_id == project_id)
    )
    return ProjectProgress(done=done, total=total, completed_by_user=mine or 0, skipped=skipped_ones or 0)
