"""Record a trace: every function is one change, on disk when its transaction ends.

`seen` is the version of the trace that the caller last read. If the trace was changed since, Conflict is raised: two
tabs cannot overwrite each other. Each change adds one to the version. Replaced values are stored as an Edit.

The step or answer that a person is typing is stored as a draft, before it is run or submitted. Each page that can store
a draft has a number, so that a newer page wins over an older one whatever the clocks of browser and server say. The
database has the highest number of a page that stored a draft; looking stores nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock
from typing import Any
from uuid import UUID

from sqlalchemy import Table, bindparam, delete, func, select, update
from sqlalchemy.orm import Mapped, Session, mapped_column
from sqlalchemy.orm.attributes import set_committed_value
from uuid_utils.compat import uuid7

from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import Draft, Edit, Project, Question, Step, Trace
from showhow.db.people.users import require_role
from showhow.db.questions.answer_formats import AnswerFormat
from showhow.db.questions.projects import complete_assignment, reserve_question, update_completed_count
from showhow.db.serialization import insert_row
from showhow.db.traces.model_calls import link_model_calls
from showhow.db.traces.traces import (
    increment_version,
    lock_draft,
    lock_step,
    raise_run_version,
    record_edit,
    require_author,
)
from showhow.db.types import Base, id_after, seconds_since, utc_now


@dataclass(frozen=True, slots=True)
class NewStep:
    """A step as composed, before its tool runs; seconds are None if they were not measured.

    `data` is for steps without a tool: a tool's data comes with its result.
    """

    thought: str
    tool: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Any] = field(default_factory=dict)
    wall_seconds: float | None = None
    active_seconds: float | None = None
    usage: dict[str, Any] | None = None
    """The usage of the model calls that decided it."""
    refusal: str | None = None
    """The reason why its tool is not run; the step is then finished at once with this error."""
    refusal_kind: str | None = None
    """The kind of this error."""
    parent: UUID | None = None
    """The id of the parent step."""
    node: str | None = None
    skill: str | None = None
    data: dict[str, Any] | None = None
    open: bool = False
    """Leave a step without a tool unfinished until complete_step, so that children can be written first."""
    id: UUID | None = None
    """The step's id; None for a new one."""

    @property
    def is_finished(self) -> bool:
        """Whether the step is complete when it is written."""
        return self.refusal is not None or (self.tool is None and not self.open)


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a tool call or of an open step: text and data, or the error; `latency` in seconds."""

    text: str | None
    data: dict[str, Any] | None
    error: str | None
    latency: float | None
    usage: dict[str, Any] | None = None
    """The usage of the tool's own model calls, or of those that completed an open step."""
    error_kind: str | None = None
    """The kind of the error, as the tool reports it."""


@dataclass(frozen=True, slots=True)
class TraceAnswers:
    """The answers of a trace by source; only the final answer is required."""

    final_answer: str
    answer_text: str | None = None
    answer_graph: str | None = None
    answer_model: str | None = None
    final_thought: str | None = None


_STEPS: Table = Step.__table__  # type: ignore[assignment]
# Built once for the steps of all runs. Redo follows the order of ids, so that a new id is higher than all others.
_LAST_STEP = select(
    select(_STEPS.c.id)
    .where(_STEPS.c.trace_id == bindparam("trace"))
    .order_by(_STEPS.c.id.desc())
    .limit(1)
    .scalar_subquery(),
    select(func.max(_STEPS.c.position))
    .where(_STEPS.c.trace_id == bindparam("trace"), _STEPS.c.removed_at.is_(None))
    .scalar_subquery(),
)
_RESULT_FIELDS = ("observation", "data", "error", "error_kind", "latency", "usage", "finished_at")
_COMPLETION = (
    update(_STEPS)
    .where(_STEPS.c.id == bindparam("step"), _STEPS.c.finished_at.is_(None), _STEPS.c.removed_at.is_(None))
    .values(version=_STEPS.c.version + 1, **{name: bindparam(name) for name in _RESULT_FIELDS})
)


def start_trace(
    session: Session,
    question_id: UUID,
    author_id: UUID,
    *,
    trace_id: UUID | None = None,
    opened_at: datetime | None = None,
) -> Trace:
    """Find or create the author's draft for the question, and reserve the question for the author.

    A new trace has the id `trace_id` and began when the author opened the question, if these are given.
    """
    require_role(session, author_id)
    if session.get(Question, question_id, with_for_update=True) is None:
        raise RowNotFound(f"there is no question {question_id} here; go back to the queue")
    reserve_question(session, question_id, author_id)
    trace = find_own_draft(session, question_id, author_id)
    if trace is None:
        trace = Trace(
            question_id=question_id,
            author_id=author_id,
            id=trace_id or uuid7(),
            started_at=min(opened_at, utc_now()) if opened_at else utc_now(),
        )
        session.add(trace)
        session.flush()
    return trace


def find_own_draft(session: Session, question_id: UUID, author_id: UUID) -> Trace | None:
    """Find the author's latest draft for the question."""
    return session.scalar(
        select(Trace)
        .where(Trace.question_id == question_id, Trace.author_id == author_id, Trace.status == "draft")
        .order_by(Trace.started_at.desc())
        .limit(1)
    )


def begin_step(session: Session, trace_id: UUID, new: NewStep, *, seen: int, by: UUID | None = None) -> Step:
    """Store the step before its tool runs, so that it survives a crash; the author's draft of it is deleted."""
    if by is None and raise_run_version(session, trace_id, seen):
        step = _add_step(session, trace_id, new)
        link_model_calls(session, step)
        return step
    trace = lock_draft(session, trace_id, seen, by)
    step = _add_step(session, trace_id, new)
    if trace.run_id is not None:
        link_model_calls(session, step)
    if trace.author_id is not None:
        reserve_question(session, trace.question_id, trace.author_id)
        _delete_draft(session, trace_id)
    increment_version(trace)
    session.flush()
    return step


def _add_step(session: Session, trace_id: UUID, new: NewStep) -> Step:
    if new.parent is not None:
        _check_parent(session, trace_id, new.parent)
    last_id, last_position = session.connection().execute(_LAST_STEP, {"trace": trace_id}).one()
    step = build_step(trace_id, (last_position or 0) + 1, replace(new, id=new.id or id_after(last_id)))
    insert_row(session, step)
    return step


def complete_step(session: Session, step_id: UUID, result: StepResult, *, by: UUID | None = None) -> Step:
    """Store the result of a tool call or of an open step; a step is completed once."""
    step, trace = lock_step(session, step_id)
    require_author(session, trace, by)
    if trace.status != "draft":
        raise Conflict(f"this trace is already {trace.status}; the observation of step {step.position} came too late")
    _check_unfinished(step)
    apply_result(step, result)
    increment_version(trace)
    session.flush()
    return step


def complete_run_step(session: Session, step: Step, result: StepResult, *, seen: int) -> None:
    """Store the result of a run's step; Conflict if the run was taken over, since its trace has another version then.

    As complete_step, with fewer statements.
    """
    if not raise_run_version(session, step.trace_id, seen):
        increment_version(lock_draft(session, step.trace_id, seen))
    values = _result_values(step, result)
    if not session.connection().execute(_COMPLETION, {"step": step.id, **values}).rowcount:
        _check_unfinished(session.get_one(Step, step.id, populate_existing=True))
    for name, value in values.items():
        set_committed_value(step, name, value)
    set_committed_value(step, "version", step.version + 1)


def _check_unfinished(step: Step) -> None:
    if step.finished_at is not None or step.removed_at is not None:
        raise Conflict(f"step {step.position} is already finished or removed; look at the newer state")


def build_step(trace_id: UUID, position: int, new: NewStep) -> Step:
    """Build the row of the step as it is before its tool runs."""
    return Step(
        trace_id=trace_id,
        position=position,
        thought=new.thought,
        tool=new.tool,
        arguments=new.arguments,
        origins=new.origins,
        data=new.data,
        error=new.refusal,
        error_kind=new.refusal_kind,
        node=new.node,
        skill=new.skill,
        usage={"thought": new.usage} if new.usage else {},
        finished_at=utc_now() if new.is_finished else None,
        wall_seconds=new.wall_seconds,
        active_seconds=new.active_seconds,
        parent_id=new.parent,
        id=new.id or uuid7(),
    )


def apply_result(step: Step, result: StepResult) -> None:
    """Finish the step with this result; the data of a begun step stay unless the result has data."""
    for name, value in _result_values(step, result).items():
        setattr(step, name, value)


def _result_values(step: Step, result: StepResult) -> dict[str, Any]:
    return {
        "observation": result.text,
        "data": result.data if result.data is not None else step.data,
        "error": result.error,
        "error_kind": result.error_kind,
        "latency": result.latency,
        "usage": {**step.usage, "tool": result.usage} if result.usage else step.usage,
        "finished_at": utc_now(),
    }


def restart_step(session: Session, step_id: UUID, *, seen: int, by: UUID, typed: dict[str, Any] | None = None) -> Step:
    """Reset the last step so that its tool runs again, with these arguments changed; an Edit has what was replaced."""
    step = _lock_last_step(session, step_id, seen, by)
    changes: dict[str, Any] = dict.fromkeys(("observation", "data", "error", "error_kind", "rating", "latency"))
    changes["usage"] = {name: part for name, part in step.usage.items() if name != "tool"}
    if typed:
        changes["arguments"] = {**step.arguments, **typed}
        changes["origins"] = {**step.origins, **{name: {"from": "typed"} for name in typed}}
    before = {name: getattr(step, name) for name in changes} | {"started_at": step.started_at.isoformat()}
    record_edit(session, step, "run again", before, by)
    for name, value in (changes | {"started_at": utc_now(), "finished_at": None}).items():
        setattr(step, name, value)
    session.flush()
    return step


def edit_thought(session: Session, step_id: UUID, thought: str, *, seen: int, by: UUID) -> Step:
    """Replace the step's thought."""
    step, _ = lock_step(session, step_id)
    trace = lock_draft(session, step.trace_id, seen, by)
    if thought != step.thought:
        record_edit(session, step, "thought", {"thought": step.thought}, by)
        step.thought = thought
        increment_version(trace)
        session.flush()
    return step


def rate_step(session: Session, step_id: UUID, rating: int | None, *, seen: int, by: UUID) -> Step:
    """Rate the step's observation from 1 to 5."""
    step, _ = lock_step(session, step_id)
    increment_version(lock_draft(session, step.trace_id, seen, by))
    return change_rating(session, step, rating, by)


def change_rating(session: Session, step: Step, rating: int | None, by: UUID) -> Step:
    """Rate a locked step, and keep the former rating; Conflict unless the rating is from 1 to 5, or None."""
    if rating is not None and not 1 <= rating <= 5:
        raise Conflict(f"a rating is a whole number from 1 to 5, not {rating}")
    if step.rating is not None:
        record_edit(session, step, "rating", {"rating": step.rating}, by)
    step.rating = rating
    session.flush()
    return step


def undo_step(session: Session, trace_id: UUID, *, seen: int, by: UUID) -> Step:
    """Remove the last step; redo_step restores it until another step is recorded."""
    trace = lock_draft(session, trace_id, seen, by)
    step = session.scalar(
        select(Step).where(Step.trace_id == trace_id, Step.removed_at.is_(None)).order_by(Step.position.desc()).limit(1)
    )
    if step is None:
        raise RowNotFound("there is no step to undo")
    record_edit(session, step, "undo", {"removed_at": None}, by)
    step.removed_at = utc_now()
    increment_version(trace)
    session.flush()
    return step


def redo_step(session: Session, trace_id: UUID, *, seen: int, by: UUID) -> Step:
    """Restore the step that was undone last, unless another one was recorded in its place."""
    trace = lock_draft(session, trace_id, seen, by)
    step = find_undone_step(session, trace_id)
    if step is None:
        raise RowNotFound("there is no undone step to restore")
    record_edit(session, step, "redo", {"removed_at": step.removed_at.isoformat() if step.removed_at else None}, by)
    step.removed_at = None
    increment_version(trace)
    session.flush()
    return step


def find_undone_step(session: Session, trace_id: UUID) -> Step | None:
    """Find the step that redo_step would restore."""
    steps = select(Step).where(Step.trace_id == trace_id)
    # Of the steps that were begun at a position, each was undone before the next one was begun.
    undone = session.scalar(
        steps.where(Step.removed_at.is_not(None), Step.position == _last_position(session, trace_id) + 1)
        .order_by(Step.id.desc())
        .limit(1)
    )
    if undone is None:
        return None
    later = session.scalar(steps.where(Step.removed_at.is_(None), Step.id > undone.id).limit(1))
    return undone if later is None else None


def submit_trace(session: Session, trace_id: UUID, answers: TraceAnswers, *, seen: int, by: UUID) -> Trace:
    """Submit the trace: set its answers, sum its times, count its question and end the author's reservation.

    InvalidAnswer if its answer does not have the project's format; Conflict if it has no step, no thought at all, or
    an unfinished step.
    """
    trace = lock_draft(session, trace_id, seen, by)
    steps = list(session.scalars(select(Step).where(Step.trace_id == trace_id, Step.removed_at.is_(None))))
    question = session.get_one(Question, trace.question_id)
    project = session.get_one(Project, question.project_id)
    final_answer = AnswerFormat.from_json(project.answer_format).normalize(answers.final_answer)
    answers = replace(answers, final_answer=final_answer)
    _check_complete(steps, answers)
    for name in TraceAnswers.__dataclass_fields__:
        setattr(trace, name, getattr(answers, name))
    trace.status, trace.submitted_at = "submitted", utc_now()
    trace.wall_seconds = seconds_since(trace.started_at)
    active_seconds = [step.active_seconds for step in steps if step.active_seconds is not None]
    trace.active_seconds = sum(active_seconds) if active_seconds else None
    session.add(Edit(trace_id=trace_id, action="status", before={"status": "draft"}, editor_id=by))
    _delete_draft(session, trace_id)
    session.flush()
    if trace.author_id is not None:
        complete_assignment(session, trace.question_id, trace.author_id)
    update_completed_count(session, trace.question_id)
    return trace


def _check_complete(steps: Sequence[Step], answers: TraceAnswers) -> None:
    if not steps:
        raise Conflict("Run at least one step before you submit: a demonstration shows how the answer is found.")
    if not any(text.strip() for text in (*(step.thought for step in steps), answers.final_thought or "")):
        raise Conflict("Write a thought to at least one step, or a final thought, then submit.")
    unfinished = [step.position for step in steps if step.finished_at is None]
    if unfinished:
        raise Conflict(f"step {unfinished[0]} was never finished; run it again or undo it, then submit")


def _last_position(session: Session, trace_id: UUID) -> int:
    last_position = select(func.max(Step.position)).where(Step.trace_id == trace_id, Step.removed_at.is_(None))
    return session.scalar(last_position) or 0


def _lock_last_step(session: Session, step_id: UUID, seen: int, by: UUID) -> Step:
    step, _ = lock_step(session, step_id)
    trace = lock_draft(session, step.trace_id, seen, by)
    if step.removed_at is not None or step.position != _last_position(session, trace.id):
        raise Conflict(f"step {step.position} has later steps that depend on it; fork from it to run it again")
    if step.tool is None:
        raise Conflict(f"step {step.position} has no tool to run")
    increment_version(trace)
    return step


def _check_parent(session: Session, trace_id: UUID, parent_id: UUID) -> None:
    parent = session.get(Step, parent_id)
    if parent is None or parent.trace_id != trace_id or parent.removed_at is not None:
        raise Conflict(f"the parent step {parent_id} is not in this trace, or was undone; look at the newer state")


def _delete_draft(session: Session, trace_id: UUID) -> None:
    session.execute(delete(Draft).where(Draft.trace_id == trace_id))


class PageCounter(Base):
    """One row: the highest number of a page that stored a draft. It orders drafts, since clocks may be set back."""

    __tablename__ = "page_counter"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, default=1)
    value: Mapped[int] = mapped_column(default=0)


class PageNumbers:
    """The numbers of the pages that a process opens."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last = 0

    def next(self, session: Session) -> int:
        """Return a number that is higher than those of the pages opened here before and of all that stored a draft."""
        stored = session.scalar(select(PageCounter.value)) or 0
        with self._lock:
            self._last = max(self._last, stored) + 1
            return self._last


def save_draft(session: Session, trace_id: UUID, content: dict[str, Any], *, by: UUID, page_number: int = 0) -> Draft:
    """Store `content` as the draft of the author's trace; Conflict if the stored one comes from a newer page."""
    trace = session.get(Trace, trace_id)
    if trace is None:
        raise RowNotFound("this trace no longer exists; go back to the queue")
    require_author(session, trace, by)
    if trace.status != "draft":
        raise Conflict(f"this trace is {trace.status} and cannot be changed any more; reload the page")
    session.execute(update(PageCounter).where(PageCounter.value < page_number).values(value=page_number))
    draft = session.get(Draft, trace_id)
    if draft is None:
        draft = Draft(trace_id=trace_id, content=content, page_number=page_number)
        session.add(draft)
        return draft
    if draft.page_number > page_number:
        raise Conflict("this trace is open in a newer tab, which stores the text; continue there")
    draft.content, draft.page_number, draft.saved_at = content, page_number, utc_now()
    seconds_since(draft.saved_at)  # counts from now on, whatever happens to the clock of the machine
    return draft


def find_draft(session: Session, trace_id: UUID) -> Draft | None:
    """Find the draft of the trace."""
    return session.get(Draft, trace_id)
