"""Reviews and judgements: approve or return submitted traces, and people's labels of the answers of runs."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, exists, func, null, select, tuple_
from sqlalchemy.orm import Session, aliased

from db.database import Conflict, RowNotFound
from db.libraries import MODELS, PEOPLE
from db.models import (
    Attempt,
    Edit,
    Judgement,
    Question,
    Score,
    Step,
    Trace,
    User,
)
from db.projects import update_completed_count
from db.traces import lock_step, lock_trace
from db.types import id_after
from db.users import ADMIN, REVIEWER, find_or_add_author, is_only_person, require_acting_role, require_role

STEP_NOTE_KINDS = ("comment", "wrong result", "missing tool", "expected result")
"""The values of judgements with the aspect STEP_NOTE_ASPECT; all but comments say what a tool lacks."""
STEP_NOTE_ASPECT = "step note"


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One row of the list of submitted traces."""

    trace_id: UUID
    question: str
    """With the beginning of its attachments."""
    author: str | None
    reasoner: str
    final_answer: str | None
    submitted_at: datetime | None
    active_seconds: float | None
    steps: int
    mean_rating: float | None


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """One page of the list; `next_cursor` is the `after` of the next page, None on the last page."""

    items: list[ReviewItem]
    next_cursor: tuple[datetime, UUID] | None


def list_for_review(  # noqa: PLR0913 - conditions and the page of the list
    session: Session,
    project_id: UUID,
    *,
    status: str = "submitted",
    by: str = PEOPLE,
    limit: int = 50,
    after: tuple[datetime, UUID] | None = None,
) -> ReviewPage:
    """List submitted traces of people, or of runs (MODELS), with this status, the oldest submission first."""
    query = (
        select(Trace, Question, User.name)
        .join(Question, Question.id == Trace.question_id)
        .outerjoin(User, User.id == Trace.author_id)
        .where(
            Question.project_id == project_id,
            Trace.status == status,
            Trace.submitted_at.is_not(None),
            _author_condition(by),
        )
        .order_by(Trace.submitted_at, Trace.id)
        .limit(limit + 1)
    )
    if after is not None:
        query = query.where(tuple_(Trace.submitted_at, Trace.id) > after)
    rows = session.execute(query).all()
    page = rows[:limit]
    counts = {
        trace_id: (steps, rating)
        for trace_id, steps, rating in session.execute(
            select(Step.trace_id, func.count(), func.avg(Step.rating))
            .where(Step.trace_id.in_([row[0].id for row in page]), Step.removed_at.is_(None))
            .group_by(Step.trace_id)
        )
    }
    items = [
        _review_item(trace, question.summary, name, *counts.get(trace.id, (0, None))) for trace, question, name in page
    ]
    last = items[-1] if len(rows) > limit else None
    return ReviewPage(items, (last.submitted_at, last.trace_id) if last is not None and last.submitted_at else None)


def _review_item(trace: Trace, question: str, author: str | None, steps: int, rating: float | None) -> ReviewItem:
    return ReviewItem(
        trace_id=trace.id,
        question=question,
        author=author,
        reasoner=trace.reasoner,
        final_answer=trace.final_answer,
        submitted_at=trace.submitted_at,
        active_seconds=trace.active_seconds,
        steps=steps,
        mean_rating=float(rating) if rating is not None else None,
    )


def _author_condition(by: str) -> ColumnElement[bool]:
    return Trace.run_id.is_not(None) if by == MODELS else Trace.run_id.is_(None)


def count_by_status(session: Session, project_id: UUID, *, by: str = PEOPLE) -> dict[str, int]:
    """Count the project's traces of people, or of runs (MODELS), by status."""
    query = (
        select(Trace.status, func.count())
        .join(Question, Question.id == Trace.question_id)
        .where(Question.project_id == project_id)
        .group_by(Trace.status)
    )
    run_counts = dict(session.execute(query.where(_author_condition(MODELS))).all())
    if by == MODELS:
        return run_counts
    # The total is counted from an index alone; a condition on the run would read every trace.
    total_counts = dict(session.execute(query).all())
    people_counts = {status: count - run_counts.get(status, 0) for status, count in total_counts.items()}
    return {status: count for status, count in people_counts.items() if count}


def approve_trace(session: Session, trace_id: UUID, *, seen: int, by: UUID, comment: str = "") -> Trace:
    """Approve the trace: it becomes a demonstration. Only reviewers and administrators decide, never on their own.

    `seen` is the version of the trace that the reviewer read; Conflict if it was changed or decided on since.
    """
    return _record_decision(session, trace_id, "approved", seen, by, comment)


def reject_trace(session: Session, trace_id: UUID, *, seen: int, by: UUID, comment: str) -> Trace:
    """Return the trace to its author with a comment; its question is open again. `seen` is as for approve_trace."""
    if not comment.strip():
        raise Conflict("say what is wrong with the trace; its author reads it and can fix it")
    return _record_decision(session, trace_id, "rejected", seen, by, comment)


@dataclass(frozen=True, slots=True)
class ReturnedWork:
    """A trace that a reviewer returned to its author, with the reviewer's comment."""

    trace: Trace
    comment: str
    reviewer: str | None


def find_return(session: Session, trace_id: UUID) -> ReturnedWork | None:
    """Find the latest return of a trace with the status rejected; None for any other trace."""
    row = session.execute(
        select(Trace, Judgement.comment, User.name)
        .join(Judgement, Judgement.trace_id == Trace.id)
        .outerjoin(User, User.id == Judgement.judge_id)
        .where(Trace.id == trace_id, Trace.status == "rejected")
        .where(Judgement.aspect == "approval", Judgement.value == "rejected")
        .order_by(Judgement.id.desc())
        .limit(1)
    ).one_or_none()
    return ReturnedWork(*row) if row is not None else None


def _record_decision(  # noqa: PLR0913, PLR0917 - a decision, and the version of the trace that it is about
    session: Session, trace_id: UUID, status: str, seen: int, by: UUID, comment: str
) -> Trace:
    reviewer = require_role(session, by, REVIEWER, ADMIN)
    trace = lock_trace(session, trace_id)
    if trace.version != seen:
        raise Conflict(
            f"this trace was {_describe_newer_state(session, trace)} after you opened it; look at it, then decide"
        )
    if trace.author_id == by and not is_only_person(session, by):
        raise Conflict(f"{reviewer.name} recorded this trace; another reviewer decides on it")
    if trace.status not in ("submitted", "approved", "rejected"):
        raise Conflict(f"this trace is {trace.status}; only a submitted trace can be {status}")
    if trace.status == status:
        raise Conflict(f"this trace is already {status}; reload the list")
    session.add(Edit(trace_id=trace_id, action="status", before={"status": trace.status}, editor_id=by))
    last_id = session.scalar(select(Judgement.id).order_by(Judgement.id.desc()).limit(1))
    judgement = Judgement(trace_id=trace_id, aspect="approval", value=status, judge_id=by, comment=comment.strip())
    judgement.id = id_after(last_id)
    session.add(judgement)
    trace.status = status
    session.flush()
    update_completed_count(session, trace.question_id)
    return trace


def _describe_newer_state(session: Session, trace: Trace) -> str:
    """What happened to the trace last, and by whom."""
    last = session.execute(
        select(Judgement.value, User.name)
        .outerjoin(User, User.id == Judgement.judge_id)
        .where(Judgement.trace_id == trace.id, Judgement.aspect == "approval")
        .order_by(Judgement.id.desc())
        .limit(1)
    ).one_or_none()
    if last is None or last.value != trace.status:
        return "changed"
    return f"{'approved' if last.value == 'approved' else 'returned to its author'} by {last.name or 'somebody'}"


def add_step_note(session: Session, step_id: UUID, kind: str, text: str, *, by: UUID) -> Judgement:
    """Store a person's note on a step, of one of STEP_NOTE_KINDS; anybody may write one, whoever recorded the trace."""
    if kind not in STEP_NOTE_KINDS:
        raise Conflict(f"a note on a step is one of {', '.join(STEP_NOTE_KINDS)}, not {kind!r}")
    if kind not in ("wrong result", "missing tool") and not text.strip():
        raise Conflict("write the note, then save it")
    step, trace = lock_step(session, step_id)
    note = Judgement(
        trace_id=trace.id, step_id=step.id, aspect=STEP_NOTE_ASPECT, value=kind, judge_id=by, comment=text.strip()
    )
    session.add(note)
    session.flush()
    return note


def remove_step_note(session: Session, note_id: UUID, *, by: UUID) -> None:
    """Delete a note of one's own."""
    note = session.get(Judgement, note_id)
    if note is None or note.aspect != STEP_NOTE_ASPECT:
        raise RowNotFound("this note was removed in the meantime")
    if note.judge_id != by:
        raise Conflict("only the person who wrote a note can remove it")
    session.delete(note)
    session.flush()


class AnswerToJudge(NamedTuple):
    """An answer of a run that a judge has not judged; `other` is that of the run it is compared with."""

    attempt_id: UUID
    lease_token: int
    question: str
    """With its attachments."""
    answer: str
    references: list[str]
    """The texts of the gold answers."""
    other: str | None


def list_answers_to_judge(
    session: Session, run_id: UUID, metric: str, version: int, against: UUID | None = None
) -> list[AnswerToJudge]:
    """List the run's answers without a score by this metric; with `against`, those that this run has answered too."""
    scored = exists().where(Score.attempt_id == Attempt.id, Score.metric == metric, Score.metric_version == version)
    other, other_trace = aliased(Attempt), aliased(Trace)
    query = (
        select(
            Attempt.id,
            Attempt.lease_token,
            Question,
            Trace.final_answer,
            other_trace.final_answer if against is not None else null(),
        )
        .join(Trace, Trace.id == Attempt.trace_id)
        .join(Question, Question.id == Attempt.question_id)
        .where(Attempt.run_id == run_id, Attempt.ending == "answered", ~scored)
        .order_by(Attempt.position, Attempt.repetition)
    )
    if against is not None:
        query = query.join(
            other,
            (other.run_id == against)
            & (other.question_id == Attempt.question_id)
            & (other.repetition == Attempt.repetition)
            & (other.ending == "answered"),
        ).join(other_trace, other_trace.id == other.trace_id)
    return [
        AnswerToJudge(
            attempt, token, task.full_text, answer or "", [gold["text"] for gold in task.gold_answers], other_answer
        )
        for attempt, token, task, answer, other_answer in session.execute(query)
    ]


def add_labels(session: Session, run_id: UUID, labels: Iterable[tuple[str, str, str, str]]) -> int:
    """Store labels (question, aspect, value, person) of a run's answers, and return how many are new.

    A person's label of an answer replaces the one that they gave before. A question is named by its text, with its
    attachments where several have that text; RowNotFound for one that the run has not answered, or that is not clear.
    Only reviewers and administrators bring in labels; a person who is named in them and not known gets no role.
    """
    require_acting_role(session, REVIEWER, ADMIN)
    traces: dict[str, list[UUID]] = {}
    tasks: dict[str, set[UUID]] = {}
    for question, trace_id in session.execute(
        select(Question, Trace.id)
        .join(Attempt, Attempt.question_id == Question.id)
        .join(Trace, Trace.id == Attempt.trace_id)
        .where(Attempt.run_id == run_id, Attempt.ending == "answered")
    ):
        for text in {question.text, question.full_text}:
            traces.setdefault(text, []).append(trace_id)
            tasks.setdefault(text, set()).add(question.id)
    added = 0
    for text, aspect, value, person in labels:
        if text not in traces:
            raise RowNotFound(f"the run has not answered {text!r}; name questions as they were asked")
        if len(tasks[text]) > 1:
            raise RowNotFound(f"{len(tasks[text])} questions say {text!r}; name them with their attachments")
        judge = find_or_add_author(session, person)
        for trace_id in traces[text]:
            stored = session.scalars(
                select(Judgement).where(
                    Judgement.trace_id == trace_id, Judgement.aspect == aspect, Judgement.judge_id == judge.id
                )
            ).one_or_none()
            if stored is None:
                session.add(Judgement(trace_id=trace_id, aspect=aspect, value=value, judge_id=judge.id))
                added += 1
            else:
                stored.value = value
    session.flush()
    return added


def list_labels(session: Session, run_id: UUID, aspect: str) -> dict[UUID, list[str]]:
    """The labels that people gave the run's answers, by attempt."""
    labels: dict[UUID, list[str]] = {}
    for attempt_id, value in session.execute(
        select(Attempt.id, Judgement.value)
        .join(Judgement, Judgement.trace_id == Attempt.trace_id)
        .where(Attempt.run_id == run_id, Judgement.aspect == aspect, Judgement.judge_id.is_not(None))
        .order_by(Judgement.created_at, Judgement.id)
    ):
        labels.setdefault(attempt_id, []).append(value)
    return labels
