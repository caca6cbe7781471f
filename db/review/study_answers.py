"""What a study may compare: the answers of a run, and those of people."""

from collections import defaultdict
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from showhow.db.models import Attempt, Question, Score, Trace
from showhow.db.questions.projects import select_completed_traces


class GivenAnswer(NamedTuple):
    """An answer to a question; `response` is the written one, if there is one."""

    question_id: UUID
    trace_id: UUID
    author_id: UUID | None
    answer: str
    response: str | None
    scores: dict[str, float]


def list_run_answers(session: Session, run_id: UUID) -> list[GivenAnswer]:
    """The answers of a run, of each question the first one, with their scores."""
    scores: dict[UUID, dict[str, float]] = defaultdict(dict)
    for attempt_id, metric, value in session.execute(
        select(Score.attempt_id, Score.metric, Score.value).where(Score.run_id == run_id)
    ):
        scores[attempt_id][metric] = value
    rows = session.execute(
        select(Trace, Attempt.question_id, Attempt.id)
        .join(Attempt, Attempt.trace_id == Trace.id)
        .where(Attempt.run_id == run_id, Attempt.repetition == 1, Attempt.ending == "answered")
        .order_by(Attempt.position)
    )
    return [
        GivenAnswer(question_id, trace.id, None, trace.final_answer or "", trace.result.response, scores[attempt_id])
        for trace, question_id, attempt_id in rows
    ]


def list_people_answers(session: Session, project_id: UUID) -> list[GivenAnswer]:
    """The answers of people in a project, approved ones before others, and the first ones first."""
    of_project = select_completed_traces().join(Question, Question.id == Trace.question_id)
    traces = session.scalars(
        of_project.where(Question.project_id == project_id).order_by(Trace.status, Trace.submitted_at, Trace.id)
    )
    return [
        GivenAnswer(trace.question_id, trace.id, trace.author_id, trace.final_answer or "", None, {})
        for trace in traces
    ]
