"""Reviews and judgements: approve or return submitted traces, and people's labels of the answers of runs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import exists, null, select, update
from sqlalchemy.orm import Session, aliased

from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import (
    Attempt,
    Draft,
    Edit,
    Judgement,
    Question,
    Score,
    Trace,
    User,
)
from showhow.db.people.users import (
    ADMIN,
    REVIEWER,
    find_or_add_author,
    is_only_person,
    require_acting_role,
    require_role,
)
from showhow.db.questions.projects import update_completed_count
from showhow.db.review.review_queue import REVIEW_STATUSES
from showhow.db.trace_states import has_successor
from showhow.db.traces.recording import PageCounter
from showhow.db.traces.trace_record import WITHDRAWAL
from showhow.db.traces.traces import lock_step, lock_trace
from showhow.db.types import id_after, utc_now

STEP_NOTE_KINDS = ("comment", "wrong result", "missing tool", "expected result")
"""The values of judgements with the aspect STEP_NOTE_ASPECT; all but comments say what a tool lacks."""
STEP_NOTE_ASPECT = "step note"
COMMENTS = "comments"
"""The field of a draft with the comments that reviewers are typing on a trace that is no draft any more."""


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
class BulkDecision:
    """What became of each trace: the versions of those that were decided, and why the others were not."""

    versions: dict[UUID, int]
    refusals: dict[UUID, str]


def approve_traces(session: Session, seen: Mapping[UUID, int], *, by: UUID) -> BulkDecision:
    """Approve several traces; `seen` has the version of each that the reviewer read. The others stay as they are."""
    require_role(session, by, REVIEWER, ADMIN)
    return _decide_on_all(seen, lambda trace_id, version: approve_trace(session, trace_id, seen=version, by=by))


def take_back_decisions(session: Session, seen: Mapping[UUID, int], *, by: UUID) -> BulkDecision:
    """Undo the person's own last decisions on several traces, of these versions."""
    require_role(session, by, REVIEWER, ADMIN)
    return _decide_on_all(seen, lambda trace_id, version: take_back_decision(session, trace_id, seen=version, by=by))


def _decide_on_all(seen: Mapping[UUID, int], decide: Callable[[UUID, int], Trace]) -> BulkDecision:
    done = BulkDecision({}, {})
    # In one order, so that two reviewers who lock the same traces do not wait for each other.
    for trace_id, version in sorted(seen.items()):
        try:
            done.versions[trace_id] = decide(trace_id, version).version
        except (Conflict, RowNotFound) as error:
            done.refusals[trace_id] = str(error)
    return done


def take_back_decision(session: Session, trace_id: UUID, *, seen: int, by: UUID) -> Trace:
    """Undo the person's own last decision: the trace has its former status again, and the history shows both.

    Conflict if the trace was changed since, if another reviewer decided last, or if its author has begun to fix it.
    """
    require_role(session, by, REVIEWER, ADMIN)
    trace = lock_trace(session, trace_id)
    _check_seen(session, trace, seen)
    former = find_own_decision(session, trace, by)
    if former is None:
        raise Conflict("only the reviewer who decided last can take the decision back")
    if session.scalar(select(Trace.id).where(Trace.id == trace_id, has_successor())):
        raise Conflict("its author has begun to fix this trace, so the return cannot be taken back")
    session.add(Edit(trace_id=trace_id, action=WITHDRAWAL, before={"status": trace.status}, editor_id=by))
    _set_status(session, trace, former)
    return trace


def find_own_decision(session: Session, trace: Trace, by: UUID) -> str | None:
    """The status before the person's decision, if it is the last one on the trace and stands; else None."""
    edits = session.scalars(
        select(Edit).where(Edit.trace_id == trace.id, Edit.action.in_(("status", WITHDRAWAL))).order_by(Edit.id.desc())
    )
    last = edits.first()
    is_own = last is not None and last.action == "status" and last.editor_id == by
    former = str(last.before.get("status")) if last is not None and is_own else ""
    return former if trace.status in ("approved", "rejected") and former in REVIEW_STATUSES else None


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
    _check_seen(session, trace, seen)
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
    _store_comment(session, trace_id, by, None)
    _set_status(session, trace, status)
    return trace


def _check_seen(session: Session, trace: Trace, seen: int) -> None:
    if trace.version != seen:
        raise Conflict(
            f"this trace was {_describe_newer_state(session, trace)} after you opened it; look at it, then decide"
        )


def _set_status(session: Session, trace: Trace, status: str) -> None:
    trace.status = status
    session.flush()
    update_completed_count(session, trace.question_id)


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


def save_comment(  # noqa: PLR0913 - a comment, and the page and the version of the trace that it is written on
    session: Session, trace_id: UUID, text: str, *, seen: int, by: UUID, page_number: int = 0
) -> datetime:
    """Store the comment that a reviewer is typing, apart from those of others; returns when it was stored.

    A decision takes it into its judgement. Conflict if the trace is not the one that was `seen`, since it was decided
    on meanwhile, or if the stored comment comes from a newer page (db/traces/recording.py).
    """
    require_role(session, by, REVIEWER, ADMIN)
    trace = lock_trace(session, trace_id)
    _check_seen(session, trace, seen)
    if trace.status not in REVIEW_STATUSES:
        raise Conflict(f"this trace is {trace.status}, so there is nothing to decide")
    stored = _load_comments(session, trace_id).get(by.hex)
    if stored is not None and stored["page"] > page_number:
        raise Conflict("this trace is open in a newer tab, which stores the comment; continue there")
    session.execute(update(PageCounter).where(PageCounter.value < page_number).values(value=page_number))
    return _store_comment(session, trace_id, by, {"text": text, "page": page_number})


def find_comment(session: Session, trace_id: UUID, by: UUID) -> str:
    """The comment on the trace that the reviewer has typed and not sent; empty if there is none."""
    return str(_load_comments(session, trace_id).get(by.hex, {"text": ""})["text"])


def _load_comments(session: Session, trace_id: UUID) -> dict[str, dict[str, Any]]:
    draft = session.get(Draft, trace_id)
    return dict(draft.content.get(COMMENTS, {})) if draft is not None else {}


def _store_comment(session: Session, trace_id: UUID, by: UUID, comment: dict[str, Any] | None) -> datetime:
    """Store or remove a reviewer's comment; the lock of the trace keeps the others' as they are."""
    comments = {name: kept for name, kept in _load_comments(session, trace_id).items() if name != by.hex}
    comments |= {by.hex: comment} if comment is not None else {}
    draft = session.get(Draft, trace_id)
    if draft is None:
        draft = Draft(trace_id=trace_id, content={})
        if comments:
            session.add(draft)
    elif not comments:
        session.delete(draft)
    draft.content, draft.saved_at = {COMMENTS: comments}, utc_now()
    session.flush()
    return draft.saved_at


def list_returns(session: Session, trace: Trace) -> list[ReturnedWork]:
    """The returned traces from which this one goes on, the latest return first."""
    returns: list[ReturnedWork] = []
    parent_id = trace.parent_id
    while parent_id is not None and (returned := find_return(session, parent_id)) is not None:
        if returned.trace.id in {trace.id, *(earlier.trace.id for earlier in returns)}:
            break  # a brought-in trace may name itself
        returns.append(returned)
        parent_id = returned.trace.parent_id
    return returns


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
    trace_id: UUID


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
            Trace.id,
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
            attempt, token, task.full_text, answer or "", [gold["text"] for gold in task.gold_answers], other, trace
        )
        for attempt, token, task, answer, other, trace in session.execute(query)
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
