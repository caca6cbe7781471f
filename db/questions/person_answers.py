"""What people have answered in a project: the rows of one table, and what was submitted in each day or week."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from statistics import median
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.orm import Session

from showhow.db.models import Judgement, Question, Trace, User
from showhow.db.questions.projects import COMPLETED_STATUSES, select_completed_traces
from showhow.db.trace_states import is_kept_draft, is_open_return
from showhow.db.unanswerable import says_unanswerable

COMPLETED = "completed"
"""Traces in review and approved ones."""
ANSWER_STATUSES: dict[str, ColumnElement[bool]] = {
    COMPLETED: Trace.status.in_(COMPLETED_STATUSES),
    "submitted": Trace.status == "submitted",
    "approved": Trace.status == "approved",
    "rejected": is_open_return(),
    "draft": is_kept_draft(),
}
"""The conditions of the statuses that can be chosen; those of all lists."""
_seconds = func.coalesce(Trace.active_seconds, Trace.wall_seconds)


@dataclass(frozen=True, slots=True)
class AnswerConditions:
    """Which traces of people are listed; all conditions that are set must hold."""

    status: str | None = COMPLETED
    """One of ANSWER_STATUSES; None for all of them."""
    person: str | None = None
    text: str = ""
    """What the question or the answer contains."""


class PersonAnswer(NamedTuple):
    """A person's trace as a row of the table."""

    trace_id: UUID
    question: Question
    person: str
    status: str
    answer: str | None
    seconds: float | None
    submitted_at: datetime | None
    comment: str | None
    """The last comment of a reviewer who decided on it."""


def list_answer_ids(
    session: Session, project_id: UUID, conditions: AnswerConditions, *, start: int = 0, limit: int | None = None
) -> list[UUID]:
    """List the ids of the traces that meet the conditions, by question, from an offset."""
    chosen = _select_answers(project_id, conditions).order_by(Question.position, Trace.submitted_at, Trace.id)
    return list(session.scalars(chosen.offset(start).limit(limit)))


def count_answers(session: Session, project_id: UUID, conditions: AnswerConditions) -> int:
    """Count the traces that meet the conditions."""
    return session.scalar(_select_answers(project_id, conditions).with_only_columns(func.count())) or 0


def _select_answers(project_id: UUID, chosen: AnswerConditions) -> Select[UUID]:
    answers = select(Trace.id).join(Question, Question.id == Trace.question_id)
    answers = answers.where(Question.project_id == project_id, Trace.author_id.is_not(None))
    if chosen.status is None:
        answers = answers.where(or_(*ANSWER_STATUSES.values()))
    else:
        answers = answers.where(ANSWER_STATUSES[chosen.status])
    if chosen.person is not None:
        person = select(User.id).where(User.name == chosen.person).scalar_subquery()
        answers = answers.where(Trace.author_id == person)
    if chosen.text:
        parts = (Question.text, Trace.final_answer)
        answers = answers.where(or_(*(part.icontains(chosen.text, autoescape=True) for part in parts)))
    return answers


def load_answers(session: Session, ids: Sequence[UUID]) -> list[PersonAnswer]:
    """Load these traces as rows, in this order."""
    comment = (
        select(Judgement.comment)
        .where(Judgement.trace_id == Trace.id, Judgement.aspect == "approval", Judgement.comment != "")
        .order_by(Judgement.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    rows = session.execute(
        select(Trace.id, Question, User.name, Trace.status, Trace.final_answer, _seconds, Trace.submitted_at, comment)
        .join(Question, Question.id == Trace.question_id)
        .join(User, User.id == Trace.author_id)
        .where(Trace.id.in_(ids))
    )
    answers = {answer.trace_id: answer for answer in (PersonAnswer(*row) for row in rows)}
    return [answers[trace_id] for trace_id in ids if trace_id in answers]


def list_answers_by_person(session: Session, question_ids: Sequence[UUID]) -> dict[UUID, dict[str, str]]:
    """The latest answer in review or approved of each person to each of the questions."""
    answers: dict[UUID, dict[str, str]] = defaultdict(dict)
    rows = select_completed_traces().join(User, User.id == Trace.author_id).where(Trace.question_id.in_(question_ids))
    columns = rows.with_only_columns(Trace.question_id, User.name, Trace.final_answer)
    for question_id, name, answer in session.execute(columns.order_by(Trace.submitted_at, Trace.id)):
        answers[question_id][name] = answer or ""
    return answers


@dataclass(frozen=True, slots=True)
class PeriodProgress:
    """What a person submitted in a day or a week: how much of it is approved and returned now."""

    begins: date
    person: str
    submitted: int
    unanswerable: int
    """Of the submitted, those that say that the question cannot be answered."""
    approved: int
    returned: int
    median_seconds: float | None
    """None if none was timed."""


def _begin_week(day: date) -> date:
    return day - timedelta(days=day.weekday())


PERIODS: dict[str, Callable[[date], date]] = {"day": lambda day: day, "week": _begin_week}
"""The first day of the period of a day."""


def list_progress(session: Session, project_id: UUID, period: str, zone: tzinfo) -> list[PeriodProgress]:
    """List what each person submitted in each period of PERIODS, the latest first; days begin in that time zone."""
    rows = session.execute(
        select(
            Trace.submitted_at,
            User.name,
            Trace.status,
            is_open_return(),
            _seconds,
            says_unanswerable(Trace.final_answer),
        )
        .join(Question, Question.id == Trace.question_id)
        .join(User, User.id == Trace.author_id)
        .where(Question.project_id == project_id)
        .where(Trace.status.in_((*COMPLETED_STATUSES, "rejected")))
    )
    parts: dict[tuple[date, str], list[tuple[str, float | None, bool | None]]] = defaultdict(list)
    for submitted_at, name, status, is_open, seconds, is_unanswerable in rows:
        if submitted_at is not None:
            counted = "mended" if status == "rejected" and not is_open else status
            begins = PERIODS[period](submitted_at.astimezone(zone).date())
            parts[begins, name].append((counted, seconds, is_unanswerable))
    return [
        _summarize_period(begins, name, entries)
        for (begins, name), entries in sorted(parts.items(), key=lambda part: (-part[0][0].toordinal(), part[0][1]))
    ]


def _summarize_period(
    begins: date, name: str, entries: Sequence[tuple[str, float | None, bool | None]]
) -> PeriodProgress:
    statuses = [status for status, _, _ in entries]
    times = [seconds for _, seconds, _ in entries if seconds is not None]
    return PeriodProgress(
        begins,
        name,
        len(entries),
        sum(bool(is_unanswerable) for _, _, is_unanswerable in entries),
        statuses.count("approved"),
        statuses.count("rejected"),
        median(times) if times else None,
    )
