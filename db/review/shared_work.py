"""What several people did on the same question, and what they said of the same answer, for the agreement between them.

Only reviewers, administrators and the command line read it, since it has the answers of others.
"""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from showhow.db.models import Judgement, Question, Step, Trace, User
from showhow.db.people.users import ADMIN, REVIEWER, require_acting_role
from showhow.db.questions.projects import select_completed_traces
from showhow.db.questions.question_index import FULL_TEXT_COLUMNS
from showhow.db.types import summarize_task


class SharedQuestion(NamedTuple):
    """A question that several people worked on, or of which an answer was judged."""

    id: UUID
    position: int
    kind: str | None
    summary: str


class SharedTrace(NamedTuple):
    """The latest trace of a person, in review or approved, of a question that others have answered, too."""

    id: UUID
    question: SharedQuestion
    person: str
    answer: str
    submitted_at: datetime


class SharedStep(NamedTuple):
    """A step with a tool of a completed trace of such a question."""

    trace_id: UUID
    tool: str
    arguments: dict[str, Any]
    data: dict[str, Any] | None
    rating: int | None


class TraceLabel(NamedTuple):
    """What a person said of the answer of a trace, in one aspect."""

    trace_id: UUID
    question: SharedQuestion
    aspect: str
    value: str
    person: str
    at: datetime


def _select_shared_traces(project_id: UUID) -> Select[Any]:
    completed = select_completed_traces().join(Question, Question.id == Trace.question_id)
    completed = completed.where(Question.project_id == project_id)
    shared = completed.with_only_columns(Trace.question_id).group_by(Trace.question_id)
    return completed.where(Trace.question_id.in_(shared.having(func.count(Trace.author_id.distinct()) > 1)))


_QUESTION = (Question.id, Question.position, Question.kind, *FULL_TEXT_COLUMNS)


def list_shared_traces(session: Session, project_id: UUID) -> list[SharedTrace]:
    """List the latest completed trace of each person, of each question that two people or more have answered."""
    require_acting_role(session, REVIEWER, ADMIN)
    rows = session.execute(
        _select_shared_traces(project_id)
        .join(User, User.id == Trace.author_id)
        .with_only_columns(Trace.id, User.name, Trace.final_answer, Trace.submitted_at, Trace.started_at, *_QUESTION)
        .order_by(Question.position, Trace.submitted_at, Trace.id)
    )
    latest: dict[tuple[UUID, str], SharedTrace] = {}
    for trace_id, person, answer, submitted_at, started_at, *question in rows:
        shared = _make_question(question)
        latest[shared.id, person] = SharedTrace(trace_id, shared, person, answer or "", submitted_at or started_at)
    return list(latest.values())


def _make_question(columns: Any) -> SharedQuestion:
    question_id, position, kind, *texts = columns
    return SharedQuestion(question_id, position, kind, summarize_task(*texts))


def iterate_shared_steps(session: Session, project_id: UUID) -> Iterator[SharedStep]:
    """Iterate over the steps with tools of all completed traces of those questions, by trace and position."""
    require_acting_role(session, REVIEWER, ADMIN)
    rows = session.execute(
        select(Step.trace_id, Step.tool, Step.arguments, Step.data, Step.rating)
        .where(Step.trace_id.in_(_select_shared_traces(project_id).with_only_columns(Trace.id)))
        .where(Step.removed_at.is_(None), Step.tool.is_not(None))
        .order_by(Step.trace_id, Step.position)
        .execution_options(yield_per=1_000)
    )
    return (SharedStep(*row) for row in rows)


def list_trace_labels(session: Session, project_id: UUID, aspects: Collection[str]) -> list[TraceLabel]:
    """List what people said of the answers of the project's traces in these aspects, of people and of runs."""
    require_acting_role(session, REVIEWER, ADMIN)
    rows = session.execute(
        select(Trace.id, Judgement.aspect, Judgement.value, User.name, Judgement.created_at, *_QUESTION)
        .join(Trace, Trace.id == Judgement.trace_id)
        .join(Question, Question.id == Trace.question_id)
        .join(User, User.id == Judgement.judge_id)
        .where(Question.project_id == project_id, Judgement.aspect.in_(aspects), Judgement.step_id.is_(None))
        .order_by(Question.position, Trace.id, Judgement.created_at, Judgement.id)
    )
    return [
        TraceLabel(trace_id, _make_question(question), aspect, value, person, at)
        for trace_id, aspect, value, person, at, *question in rows
    ]


def describe_shared_work(session: Session, project_id: UUID) -> str:
    """What changes with every trace and every judgement of the project."""
    completed = select_completed_traces().join(Question, Question.id == Trace.question_id)
    traces = completed.where(Question.project_id == project_id)
    labels = select(func.count(), func.max(Judgement.created_at)).join(Trace, Trace.id == Judgement.trace_id)
    labels = labels.join(Question, Question.id == Trace.question_id).where(Question.project_id == project_id)
    counts = traces.with_only_columns(func.count(), func.sum(Trace.version), func.max(Trace.submitted_at))
    return repr([*session.execute(counts).one(), *session.execute(labels).one()])
