"""A person's queue of questions: reservations, which expire, keep two people from one; and how far a project is."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from uuid import UUID

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session, aliased

from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import Assignment, Judgement, Project, Question, Step, Trace, User
from showhow.db.people.users import require_role
from showhow.db.questions.projects import COMPLETED_STATUSES, find_assignment, reserve_question, select_completed_traces
from showhow.db.trace_states import is_held, is_kept_draft, is_open_return
from showhow.db.traces.recording import find_own_draft, start_trace
from showhow.db.traces.traces import delete_traces
from showhow.db.unanswerable import says_unanswerable


@dataclass(frozen=True, slots=True)
class ProjectProgress:
    """The progress of a project: `done` of `total` questions, and the numbers of a person and of the others."""

    done: int
    total: int
    completed_by_user: int
    skipped: int
    held: int
    """The questions that are not done and that others have reserved now."""


@dataclass(frozen=True, slots=True)
class OpenTrace:
    """A trace in a person's list of work."""

    trace: Trace
    question: Question
    comment: str = ""
    """The reviewer's comment on a returned trace."""


def list_drafts(session: Session, project_id: UUID, user_id: UUID) -> list[OpenTrace]:
    """List the person's drafts, the latest first, except those of skipped questions."""
    rows = session.execute(
        select(Trace, Question)
        .join(Question, Question.id == Trace.question_id)
        .where(Trace.author_id == user_id, is_kept_draft(), Question.project_id == project_id)
        .order_by(Trace.started_at.desc())
        .limit(50)
    )
    return [OpenTrace(trace, question) for trace, question in rows]


def list_work_to_resume(session: Session, project_id: UUID, user_id: UUID) -> list[OpenTrace]:
    """List the returned traces, then the drafts, that the queue comes back to by itself.

    Those of questions that the person has answered in another trace wait in the person's lists.
    """
    work = [*list_returned_traces(session, project_id, user_id), *list_drafts(session, project_id, user_id)]
    answered = find_answered_questions(session, {item.question.id for item in work}, user_id)
    return [item for item in work if item.question.id not in answered]


def find_answered_questions(session: Session, question_ids: Collection[UUID], user_id: UUID) -> set[UUID]:
    """Find those of the questions to which the person has an answer in review or approved."""
    answers = select_completed_traces().where(Trace.author_id == user_id, Trace.question_id.in_(question_ids))
    return set(session.scalars(answers.with_only_columns(Trace.question_id)))


def list_returned_traces(session: Session, project_id: UUID, user_id: UUID) -> list[OpenTrace]:
    """List the person's returned traces, the one returned last first, with the reviewer's comment."""
    is_return = (Judgement.aspect == "approval") & (Judgement.value == "rejected")
    rows = session.execute(
        select(Trace, Question, Judgement.comment)
        .join(Question, Question.id == Trace.question_id)
        .outerjoin(Judgement, (Judgement.trace_id == Trace.id) & is_return)
        .where(Trace.author_id == user_id, is_open_return(), Question.project_id == project_id)
        .order_by(Judgement.id.desc().nulls_last(), Trace.id.desc())
        .limit(50)
    )
    returned: dict[UUID, OpenTrace] = {}
    for trace, question, comment in rows:
        returned.setdefault(trace.id, OpenTrace(trace, question, comment or ""))
    return list(returned.values())


def list_completed_traces(session: Session, project_id: UUID, user_id: UUID, status: str) -> list[OpenTrace]:
    """List the person's traces with that status, the one submitted last first."""
    rows = session.execute(
        select(Trace, Question)
        .join(Question, Question.id == Trace.question_id)
        .where(Trace.author_id == user_id, Trace.status == status, Question.project_id == project_id)
        .order_by(Trace.submitted_at.desc(), Trace.id.desc())
        .limit(50)
    )
    return [OpenTrace(trace, question) for trace, question in rows]


def count_own_work(session: Session, project_id: UUID, user_id: UUID) -> dict[str, int]:
    """Count the person's returned, drafts, submitted and approved traces in the project, and the skipped questions."""
    conditions = {"returned": is_open_return(), "drafts": is_kept_draft()}
    conditions |= {status: Trace.status == status for status in COMPLETED_STATUSES}
    row = session.execute(
        select(*(func.count().filter(condition) for condition in conditions.values()))
        .select_from(Trace)
        .join(Question, Question.id == Trace.question_id)
        .where(Trace.author_id == user_id, Question.project_id == project_id)
    ).one()
    skipped = session.scalar(
        select(func.count())
        .select_from(Assignment)
        .join(Question, Question.id == Assignment.question_id)
        .where(Assignment.user_id == user_id, Assignment.state == "skipped", Question.project_id == project_id)
    )
    return dict(zip(conditions, row, strict=True)) | {"skipped": skipped or 0}


def next_question(
    session: Session,
    project_id: UUID,
    user_id: UUID,
    *,
    last_shown: UUID | None = None,
    shown_to_others: Collection[UUID] = (),
) -> Question | None:
    """Find the person's open question: reserved, else `last_shown`, else the first; None if there is none.

    One of `shown_to_others` is returned only if no other is open. begin_question reserves the question.
    """
    project = session.get_one(Project, project_id)
    question = _find_reserved_question(session, project, user_id)
    if question is None and last_shown is not None:
        question = _find_first_question(session, project, user_id, Question.id == last_shown)
    if question is None:
        question = _find_first_question(session, project, user_id, Question.id.not_in(shown_to_others))
    if question is None and shown_to_others:
        question = _find_first_question(session, project, user_id)
    return question


def _find_first_question(
    session: Session, project: Project, user_id: UUID, *conditions: ColumnElement[bool]
) -> Question | None:
    """Find the first question that is open for the person, is not assigned to them, and meets the conditions."""
    unassigned = (
        ~select(Assignment.id).where(Assignment.question_id == Question.id, Assignment.user_id == user_id).exists()
    )
    # One query per number of completions, so that the index returns its first question without sorting.
    candidates = [
        session.scalar(
            select(Question)
            .where(Question.project_id == project.id, Question.completed == completed)
            .where(unassigned, *_availability_conditions(user_id, project), *conditions)
            .order_by(Question.position)
            .limit(1)
        )
        for completed in range(project.overlap)
    ]
    return min(filter(None, candidates), key=lambda candidate: candidate.position, default=None)


def begin_question(
    session: Session,
    question_id: UUID,
    user_id: UUID,
    *,
    trace_id: UUID | None = None,
    opened_at: datetime | None = None,
) -> Trace:
    """Reserve the question for the person and start their trace, or return their draft of it.

    Conflict if others have completed or reserved it since it was offered to the person.
    """
    # The lock serializes those who begin the same question, in several tabs too.
    question = session.get(Question, question_id, with_for_update=True, populate_existing=True)
    if question is None:
        raise RowNotFound(f"there is no question {question_id} here; go back to the queue")
    if find_own_draft(session, question_id, user_id) is None:
        assignment = find_assignment(session, question_id, user_id)
        if assignment is not None and assignment.state == "skipped":
            raise Conflict("you have skipped this question; My work returns it to your queue")
        project = session.get_one(Project, question.project_id)
        available = select(Question.id).where(Question.id == question_id, *_availability_conditions(user_id, project))
        if session.scalar(available) is None:
            raise Conflict(
                "this question is not open any more: somebody else has begun it, or you have answered it in another "
                "tab. What you typed is still on this page; copy what you need, then reload it for the next question"
            )
    return start_trace(session, question_id, user_id, trace_id=trace_id, opened_at=opened_at)


def find_own_trace(session: Session, question_id: UUID, user_id: UUID) -> Trace | None:
    """Find the person's draft of the question, else their latest trace of it."""
    own = select(Trace).where(Trace.question_id == question_id, Trace.author_id == user_id)
    return find_own_draft(session, question_id, user_id) or session.scalar(
        own.order_by(Trace.started_at.desc(), Trace.id.desc()).limit(1)
    )


def _find_reserved_question(session: Session, project: Project, user_id: UUID) -> Question | None:
    """Find the first question that the person has reserved, or was assigned, and not begun; not one that is done."""
    # A minimum, since SQLite would go through all questions of the project in their order to find the first one.
    first = session.scalar(
        select(func.min(Question.position))
        .join(Assignment, Assignment.question_id == Question.id)
        .where(Assignment.user_id == user_id, Assignment.state == "open", Question.project_id == project.id)
        .where(*_availability_conditions(user_id, project))
    )
    return session.scalar(select(Question).where(Question.project_id == project.id, Question.position == first))


def _availability_conditions(user_id: UUID, project: Project) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Conditions: the person has no trace of the question, and others have not completed or reserved it."""
    own_traces = select(Trace.id).where(Trace.question_id == Question.id, Trace.author_id == user_id)
    other = aliased(Assignment)
    reservations = select(func.count(other.id)).where(
        other.question_id == Question.id, other.user_id != user_id, is_held(other)
    )
    return ~own_traces.exists(), Question.completed + reservations.scalar_subquery() < project.overlap


def skip_question(session: Session, question_id: UUID, user_id: UUID, reason: str) -> None:
    """Skip the question: the person's draft without steps is deleted, one with steps stays."""
    if not reason.strip():
        raise Conflict("say in a few words why the question is skipped; the reason helps its author")
    require_role(session, user_id)
    if find_answered_questions(session, [question_id], user_id):
        raise Conflict("you have answered this question, so it cannot be skipped; discard this draft under My work")
    assignment = reserve_question(session, question_id, user_id)
    assignment.state, assignment.reason, assignment.until = "skipped", reason.strip(), None
    empty_traces = [
        trace.id
        for trace in session.scalars(
            select(Trace).where(Trace.question_id == question_id, Trace.author_id == user_id, Trace.status == "draft")
        )
        if session.scalar(select(func.count(Step.id)).where(Step.trace_id == trace.id)) == 0
    ]
    delete_traces(session, empty_traces)


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
    assignment = find_assignment(session, question_id, user_id)
    if assignment is not None and assignment.state == "skipped":
        reserve_question(session, question_id, user_id)


def measure_progress(session: Session, project_id: UUID, user_id: UUID) -> ProjectProgress:
    """Measure the progress of the project and of the person in it."""
    total, done = session.execute(
        select(func.count(), func.count().filter(Question.completed >= Project.overlap))
        .select_from(Question)
        .join(Project, Project.id == Question.project_id)
        .where(Question.project_id == project_id)
    ).one()
    completed_by_user = session.scalar(
        select_completed_traces()
        .join(Question, Question.id == Trace.question_id)
        .where(Trace.author_id == user_id, Question.project_id == project_id)
        .with_only_columns(func.count(Trace.question_id.distinct()))
    )
    skipped = session.scalar(
        select(func.count(Assignment.id))
        .join(Question, Question.id == Assignment.question_id)
        .where(Assignment.user_id == user_id, Assignment.state == "skipped", Question.project_id == project_id)
    )
    held = session.scalar(
        select(func.count(Assignment.question_id.distinct()))
        .join(Question, Question.id == Assignment.question_id)
        .join(Project, Project.id == Question.project_id)
        .where(Question.project_id == project_id, Question.completed < Project.overlap)
        .where(Assignment.user_id != user_id, is_held())
    )
    return ProjectProgress(done, total, completed_by_user or 0, skipped or 0, held or 0)


def describe_done(project: Project) -> str:
    """What it takes that a question of the project is done, as a phrase."""
    return "done" if project.overlap == 1 else f"done by {project.overlap} people each"


@dataclass(frozen=True, slots=True)
class AnnotatorProgress:
    """What one person has done in a project; `median_seconds` of completed traces, None if none was timed.

    The counts are those of the person's own lists (db/trace_states.py).
    """

    name: str
    completed: int
    unanswerable: int
    """Of the completed, those that say that the question cannot be answered."""
    returned: int
    drafts: int
    median_seconds: float | None
    last_seen: datetime


def list_annotators(session: Session, project_id: UUID) -> list[AnnotatorProgress]:
    """List the people with traces in the project, the one seen last first."""
    seconds = func.coalesce(Trace.active_seconds, Trace.wall_seconds)
    last_seen = func.coalesce(Trace.submitted_at, Trace.started_at)
    rows = session.execute(
        select(
            User.name,
            Trace.status,
            or_(is_open_return(), is_kept_draft()),
            says_unanswerable(Trace.final_answer),
            seconds,
            last_seen,
        )
        .join(Question, Question.id == Trace.question_id)
        .join(User, User.id == Trace.author_id)
        .where(Question.project_id == project_id)
    )
    people: dict[str, list[tuple[str, bool, float | None, datetime]]] = {}
    for name, status, is_open, is_unanswerable, spent, seen in rows:
        is_counted = is_open or status in COMPLETED_STATUSES
        people.setdefault(name, []).append((status if is_counted else "", bool(is_unanswerable), spent, seen))
    progress = [_summarize_person(name, entries) for name, entries in people.items()]
    return sorted(progress, key=lambda person: person.last_seen, reverse=True)


def _summarize_person(name: str, entries: Sequence[tuple[str, bool, float | None, datetime]]) -> AnnotatorProgress:
    statuses = Counter(status for status, *_ in entries)
    times = [spent for status, _, spent, _ in entries if status in COMPLETED_STATUSES and spent is not None]
    return AnnotatorProgress(
        name,
        completed=sum(statuses[status] for status in COMPLETED_STATUSES),
        unanswerable=sum(says for status, says, *_ in entries if status in COMPLETED_STATUSES),
        returned=statuses["rejected"],
        drafts=statuses["draft"],
        median_seconds=median(times) if times else None,
        last_seen=max(seen for *_, seen in entries),
    )
