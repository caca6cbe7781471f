"""The list of the Review page: questions with the traces of people and runs to decide on, and their counts."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, String, and_, func, or_, select, true
from sqlalchemy.orm import Session

from showhow.db.models import Question, Step, Trace, User
from showhow.db.questions.projects import COMPLETED_STATUSES
from showhow.db.trace_states import has_successor, is_open_return
from showhow.db.traces.libraries import MODELS, PEOPLE

EVERYBODY = "everybody"
"""People and runs."""
REVIEW_STATUSES = (*COMPLETED_STATUSES, "rejected")
MAX_OUTLINE_CHARACTERS = 400
"""Characters of an observation in an outline."""


@dataclass(frozen=True, slots=True)
class ReviewFilter:
    """Which questions are listed: those with a trace that meets all of these."""

    status: str = "submitted"
    by: str = PEOPLE
    """PEOPLE, MODELS or EVERYBODY."""
    text: str = ""
    """What the question or the answer contains."""
    author: str = ""
    """The name of a person, or of a reasoner; empty for all."""


@dataclass(frozen=True, slots=True)
class QuestionToReview:
    """A question of the list; times and number of the traces that meet the filter."""

    id: UUID
    position: int
    first_submitted_at: datetime
    last_submitted_at: datetime
    traces: int
    completed: int
    """The traces in review or approved, whoever made them."""
    answers: int
    """The different texts of their answers."""


@dataclass(frozen=True, slots=True)
class TraceToReview:
    """A trace of a question of the list, without its steps."""

    id: UUID
    question_id: UUID
    author: str
    """The name of the person, or of the reasoner."""
    status: str
    answer: str
    version: int
    seconds: float | None
    steps: int
    mean_rating: float | None
    is_resubmitted: bool
    """Whether it goes on from a trace that was returned."""


@dataclass(frozen=True, slots=True)
class StepOutline:
    """A step as traces are compared by it; the beginning of its observation or error."""

    position: int
    thought: str
    tool: str | None
    arguments: dict[str, Any]
    result: str
    is_error: bool


def count_by_status(session: Session, project_id: UUID, *, by: str = PEOPLE) -> dict[str, int]:
    """Count the project's traces by status; a returned trace whose author went on from it counts no more."""
    query = (
        select(Trace.status, func.count())
        .join(Question, Question.id == Trace.question_id)
        .where(Question.project_id == project_id)
        .group_by(Trace.status)
    )
    mended = dict(session.execute(query.where(Trace.status == "rejected", has_successor(), _is_by(by))).all())
    if by == PEOPLE:
        # The total is counted from an index alone; a condition on the run would read every trace.
        run_counts = dict(session.execute(query.where(_is_by(MODELS))).all())
        mended = {status: run_counts.get(status, 0) + mended.get(status, 0) for status in {*run_counts, *mended}}
        counts = dict(session.execute(query).all())
    else:
        counts = dict(session.execute(query.where(_is_by(by))).all())
    left = {status: count - mended.get(status, 0) for status, count in counts.items()}
    return {status: count for status, count in left.items() if count}


def list_questions_to_review(session: Session, project_id: UUID, chosen: ReviewFilter) -> list[QuestionToReview]:
    """List all questions with a trace that meets the filter, in the order of the project."""
    submitted_at = func.coalesce(Trace.submitted_at, Trace.started_at)
    meets = and_(_has_status(chosen.status), *_conditions(chosen))
    count = func.count().filter(meets)
    answers = func.count(Trace.final_answer.distinct()).filter(Trace.status.in_(COMPLETED_STATUSES))
    rows = session.execute(
        select(
            Question.id,
            Question.position,
            func.min(submitted_at).filter(meets),
            func.max(submitted_at).filter(meets),
            count,
            func.count().filter(Trace.status.in_(COMPLETED_STATUSES)),
            answers,
        )
        .join(Trace, Trace.question_id == Question.id)
        .outerjoin(User, User.id == Trace.author_id)
        .where(Question.project_id == project_id, _is_by(chosen.by), Trace.status.in_(REVIEW_STATUSES))
        .group_by(Question.id, Question.position)
        .having(count > 0)
        .order_by(Question.position)
    )
    return [QuestionToReview(*row) for row in rows]


def _conditions(chosen: ReviewFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if chosen.text:
        parts = (Question.text, Trace.final_answer)
        conditions.append(or_(*(part.icontains(chosen.text, autoescape=True) for part in parts)))
    if chosen.author:
        conditions.append(func.coalesce(User.name, Trace.reasoner, type_=String) == chosen.author)
    return conditions


def _is_by(by: str) -> ColumnElement[bool]:
    if by == EVERYBODY:
        return true()
    return Trace.run_id.is_not(None) if by == MODELS else Trace.run_id.is_(None)


def _has_status(status: str) -> ColumnElement[bool]:
    return is_open_return() if status == "rejected" else Trace.status == status


def list_answers(session: Session, question_ids: Collection[UUID], by: str) -> dict[UUID, dict[str, str]]:
    """The answers in review or approved of each question, by the id of their trace."""
    answers: dict[UUID, dict[str, str]] = {}
    ids = list(question_ids)
    for start in range(0, len(ids), 500):
        rows = select(Trace.question_id, Trace.id, Trace.final_answer).where(
            Trace.question_id.in_(ids[start : start + 500]), Trace.status.in_(COMPLETED_STATUSES), _is_by(by)
        )
        for question_id, trace_id, answer in session.execute(rows.order_by(Trace.id)):
            answers.setdefault(question_id, {})[str(trace_id)] = answer or ""
    return answers


def list_authors(session: Session, project_id: UUID, by: str) -> list[str]:
    """The names of the people and reasoners with traces to review."""
    name = func.coalesce(User.name, Trace.reasoner, type_=String)
    rows = (
        select(name)
        .select_from(Trace)
        .join(Question, Question.id == Trace.question_id)
        .outerjoin(User, User.id == Trace.author_id)
        .where(Question.project_id == project_id, _is_by(by), Trace.status.in_(REVIEW_STATUSES))
    )
    return sorted(session.scalars(rows.distinct()))


def load_questions(session: Session, question_ids: Collection[UUID]) -> dict[UUID, Question]:
    """Load these questions by their ids."""
    return {row.id: row for row in session.scalars(select(Question).where(Question.id.in_(question_ids)))}


def list_traces_to_review(session: Session, question_ids: Collection[UUID], by: str) -> list[TraceToReview]:
    """List the traces of these questions that are in review, approved or returned, the one submitted first first."""
    rows = session.execute(
        select(Trace, User.name)
        .outerjoin(User, User.id == Trace.author_id)
        .where(Trace.question_id.in_(question_ids), _is_by(by))
        .where(or_(Trace.status.in_(COMPLETED_STATUSES), is_open_return()))
        .order_by(func.coalesce(Trace.submitted_at, Trace.started_at), Trace.id)
    ).all()
    ids = [trace.id for trace, _ in rows]
    counts = {
        trace_id: (steps, rating)
        for trace_id, steps, rating in session.execute(
            select(Step.trace_id, func.count(), func.avg(Step.rating))
            .where(Step.trace_id.in_(ids), Step.removed_at.is_(None))
            .group_by(Step.trace_id)
        )
    }
    parents = {trace.parent_id for trace, _ in rows if trace.parent_id}
    returned = set(session.scalars(select(Trace.id).where(Trace.id.in_(parents), Trace.status == "rejected")))
    return [
        TraceToReview(
            id=trace.id,
            question_id=trace.question_id,
            author=name or trace.reasoner,
            status=trace.status,
            answer=trace.final_answer or "",
            version=trace.version,
            seconds=trace.active_seconds,
            steps=counts.get(trace.id, (0, None))[0],
            mean_rating=None if counts.get(trace.id, (0, None))[1] is None else float(counts[trace.id][1]),
            is_resubmitted=trace.parent_id in returned,
        )
        for trace, name in rows
    ]


def list_outlines(session: Session, trace_ids: Collection[UUID]) -> dict[UUID, list[StepOutline]]:
    """The outlines of the steps of each trace, in order."""
    result = func.substr(func.coalesce(Step.error, Step.observation, ""), 1, MAX_OUTLINE_CHARACTERS, type_=String)
    rows = (
        select(Step.trace_id, Step.position, Step.thought, Step.tool, Step.arguments, result, Step.error.is_not(None))
        .where(Step.trace_id.in_(trace_ids), Step.removed_at.is_(None))
        .order_by(Step.position)
    )
    outlines: dict[UUID, list[StepOutline]] = {trace_id: [] for trace_id in trace_ids}
    for trace_id, *outline in session.execute(rows):
        outlines[trace_id].append(StepOutline(*outline))
    return outlines
