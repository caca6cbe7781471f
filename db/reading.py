"""Opening traces: one with everything, or many one after the other."""

from collections.abc import Iterator
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
        select(Step).where(Step.trace_id == trace_id).order_by(Step.position, Step.started_at)
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
    people = dict(session.execute(select(User.id, User.name).where(User.id.in_(ids))).tuples().all()) if ids else {}
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
    wanted = select(Trace.id).join(Question, Question.id == Trace.question_id)
    if status is not None:
        wanted = wanted.where(Trace.status == status)
    if project is not None:
        wanted = wanted.join(Project, Project.id == Question.project_id).where(Project.name == project)
    for trace_id in session.scalars(wanted.order_by(Trace.started_at, Trace.id)).all():
        yield open_trace(session, trace_id)
        session.expunge_all()
