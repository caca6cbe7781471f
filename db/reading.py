"""Opening traces: one with everything, or many one after the other."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.database import Missing
from db.models import Edit, Judgement, Project, Question, Run, Step, Trace, User
from db.record import TraceRecord


def open_trace(session: Session, trace_id: UUID) -> TraceRecord:
    """The trace with its question, project, steps, edits, judgements and the names of people."""
    row = session.execute(
        select(Trace, Question, Project)
        .join(Question, Question.id == Trace.question_id)
        .join(Project, Project.id == Question.project_id)
        .where(Trace.id == trace_id)
    ).first()
    if row is None:
        raise Missing(f"there is no trace {trace_id}; go back to the queue")
    trace, question, project = row
    every = session.scalars(
        select(Step).where(Step.trace_id == trace_id).order_by(Step.position, Step.started_at, Step.id)
    ).all()
    edits = list(session.scalars(select(Edit).where(Edit.trace_id == trace_id).order_by(Edit.at, Edit.id)))
    judgements = list(
        session.scalars(
            select(Judgement).where(Judgement.trace_id == trace_id).order_by(Judgement.created_at, Judgement.id)
        )
    )
    ids = {trace.author_id, *(edit.editor_id for edit in edits), *(judgement.judge_id for judgement in judgements)} - {
        None
    }
    people = dict(session.execute(select(User.id, User.name).where(User.id.in_(ids))).all()) if ids else {}
    return TraceRecord(
        project=project,
        question=question,
        trace=trace,
        steps=[step for step in every if step.removed_at is None],
        removed=[step for step in every if step.removed_at is not None],
        edits=edits,
        judgements=judgements,
        run=session.get(Run, trace.run_id) if trace.run_id else None,
        people=people,
    )


def all_traces(session: Session, *, status: str | None = None, project: str | None = None) -> Iterator[TraceRecord]:
    """Every trace of that status and project, the oldest first, one in memory at a time."""
    wanted = _chosen(select(Trace.id), status, project)
    yield from traces(session, session.scalars(wanted.order_by(Trace.started_at, Trace.id)).all())


def traces(session: Session, ids: Iterable[UUID]) -> Iterator[TraceRecord]:
    """These traces in this order, one in memory at a time."""
    for trace_id in ids:
        yield open_trace(session, trace_id)
        session.expunge_all()


class Listed(NamedTuple):
    """A trace in a few words."""

    id: UUID
    status: str
    started_at: datetime
    project: str
    question: str
    final_answer: str | None


def list_traces(
    session: Session, *, status: str | None = None, project: str | None = None, limit: int = 50
) -> list[Listed]:
    """The latest traces of that status and project."""
    told = select(Trace.id, Trace.status, Trace.started_at, Project.name, Question.text, Trace.final_answer)
    wanted = _chosen(told, status, project).order_by(Trace.started_at.desc(), Trace.id.desc()).limit(limit)
    return [Listed(*row) for row in session.execute(wanted)]


def _chosen(wanted: Any, status: str | None, project: str | None) -> Any:
    wanted = wanted.join(Question, Question.id == Trace.question_id).join(Project, Project.id == Question.project_id)
    if status is not None:
        wanted = wanted.where(Trace.status == status)
    return wanted.where(Project.name == project) if project is not None else wanted
