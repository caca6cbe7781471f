"""Traces: load, list, lock for a change, and fork at a step.

A change names the version of the trace that it is based on. If the trace was changed in the meantime, Conflict says
when and how, and nothing is overwritten.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import Table, bindparam, delete, func, select, update
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import flag_modified

from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import SPAN_SKILL, Draft, Edit, Judgement, ModelCall, Project, Question, Run, Step, Trace, User
from showhow.db.people.users import ADMIN, REVIEWER, acting_person, has_acting_role, require_role
from showhow.db.questions.projects import reserve_question
from showhow.db.removed_rows import WITH_REMOVED
from showhow.db.traces.trace_record import TraceRecord

_NO_TRACE = "there is no trace {}; go back to the queue"
_LOADED_AT_ONCE = 32
"""The traces that one query loads; a long one has megabytes."""


def lock_trace(session: Session, trace_id: UUID) -> Trace:
    """Load the trace and lock it until the transaction ends."""
    trace = session.get(Trace, trace_id, with_for_update=True)
    if trace is None:
        raise RowNotFound(f"there is no trace {trace_id} here; it was deleted, or is in another database")
    return trace


def lock_step(session: Session, step_id: UUID) -> tuple[Step, Trace]:
    """Load the step and lock its trace; only traces are locked, so that there is no deadlock."""
    trace_id = session.scalar(select(Step.trace_id).where(Step.id == step_id))
    if trace_id is None:
        raise RowNotFound(f"there is no step {step_id} here; look at the newer state")
    trace = lock_trace(session, trace_id)
    return session.get_one(Step, step_id, populate_existing=True), trace


def lock_draft(session: Session, trace_id: UUID, seen: int, by: UUID | None = None) -> Trace:
    """Lock a draft that has the version `seen` and the author `by` (None for a run); Conflict otherwise."""
    trace = lock_trace(session, trace_id)
    if trace.status != "draft":
        last_change = _describe_last_change(session, trace)
        raise Conflict(
            f"this trace is {trace.status} since {last_change} and cannot be changed any more; what you typed is still "
            "here, fork the trace to continue from it"
        )
    require_author(session, trace, by)
    if trace.version != seen:
        last_change = _describe_last_change(session, trace)
        raise Conflict(
            f"this trace was changed in another tab ({last_change}); nothing was overwritten and what you typed is "
            "still here. Look at the newer state, then do it again"
        )
    return trace


def require_author(session: Session, trace: Trace, by: UUID | None) -> None:
    """Raise Conflict unless `by` is the author of the trace (None for a run)."""
    if trace.author_id != by:
        author = session.get(User, trace.author_id) if trace.author_id else None
        raise Conflict(f"this trace is {author.name if author else 'a model'}'s; fork it to continue from it")


def increment_version(trace: Trace) -> None:
    """Add one to the version of the trace for a change of its steps."""
    flag_modified(trace, "status")


_DRAFTS: Table = Trace.__table__  # type: ignore[assignment]
# Built once for the steps of all runs.
_NEXT_RUN_VERSION = (
    update(_DRAFTS)
    .where(_DRAFTS.c.id == bindparam("trace"), _DRAFTS.c.version == bindparam("seen"), _DRAFTS.c.status == "draft")
    .where(_DRAFTS.c.author_id.is_(None), _DRAFTS.c.run_id.is_not(None))
    .values(version=_DRAFTS.c.version + 1)
)


def raise_run_version(session: Session, trace_id: UUID, seen: int) -> bool:
    """Lock the draft of a run that has the version `seen`, and add one to it; False if there is no such draft."""
    raised = session.connection().execute(_NEXT_RUN_VERSION, {"trace": trace_id, "seen": seen})
    return bool(raised.rowcount)


def record_edit(session: Session, step: Step, action: str, before: dict[str, Any], by: UUID) -> None:
    """Store the values that a change of the step replaced."""
    session.add(Edit(trace_id=step.trace_id, step_id=step.id, action=action, before=before, editor_id=by))


def _describe_last_change(session: Session, trace: Trace) -> str:
    """Describe the last change of the trace and its time in a phrase."""
    changes = [(trace.started_at, "started")]
    for step in session.scalars(select(Step).where(Step.trace_id == trace.id)):
        changes.append((step.started_at, f"step {step.position} was written"))
        if step.finished_at is not None:
            changes.append((step.finished_at, f"step {step.position} was completed"))
    for edit, position in session.execute(
        select(Edit, Step.position).outerjoin(Step, Step.id == Edit.step_id).where(Edit.trace_id == trace.id)
    ):
        changes.append((edit.at, f"{edit.action} of step {position}" if position else f"its {edit.action} changed"))
    time, description = max(changes)
    return f"{description} at {time:%H:%M:%S} UTC"


COPIED_FIELDS = (
    "position",
    "thought",
    "tool",
    "arguments",
    "origins",
    "observation",
    "data",
    "error",
    "error_kind",
    "node",
    "skill",
    "rating",
    "latency",
    "usage",
    "started_at",
    "finished_at",
    "wall_seconds",
    "active_seconds",
)


def fork_trace(session: Session, trace_id: UUID, position: int, author_id: UUID | None) -> Trace:
    """Start a draft of the author, or of a run, with copies of steps 1 to `position` (0 for none).

    A step without a tool that has children after `position` is copied without its result. In a run's fork it is open
    again, and so is every span, since what it concludes may rest on later steps that are not its children; in a
    person's fork it is finished, since only reasoners complete open steps.
    """
    parent = session.get(Trace, trace_id)
    if parent is None:
        raise RowNotFound(f"there is no trace {trace_id} to fork")
    steps = session.scalars(
        select(Step)
        .where(Step.trace_id == trace_id, Step.removed_at.is_(None), Step.position <= position)
        .order_by(Step.position)
    ).all()
    if len(steps) != position:
        raise RowNotFound(f"the trace has no step {position} to fork from; look at the newer state")
    if author_id is not None:
        require_role(session, author_id)
        reserve_question(session, parent.question_id, author_id)
    child = Trace(question_id=parent.question_id, author_id=author_id, parent_id=parent.id, parent_position=position)
    session.add(child)
    session.flush()
    copies: dict[UUID, UUID] = {}
    cut_step_ids = _steps_with_later_children(session, trace_id, steps)
    for step in steps:
        copy = Step(trace_id=child.id, **{name: getattr(step, name) for name in COPIED_FIELDS})
        is_reopened_span = step.skill == SPAN_SKILL and author_id is None
        if is_reopened_span:
            copy.data = None
        if step.tool is None and (is_reopened_span or step.id in cut_step_ids or step.finished_at is None):
            copy.observation = copy.error = copy.error_kind = copy.latency = None
            copy.finished_at = None if author_id is None else copy.started_at
        copy.parent_id = copies.get(step.parent_id) if step.parent_id else None
        copies[step.id] = copy.id
        session.add(copy)
        session.flush()
    return child


def _steps_with_later_children(session: Session, trace_id: UUID, steps: Sequence[Step]) -> set[UUID]:
    """Find the ids of the steps that have a descendant after the last of them."""
    position = steps[-1].position if steps else 0
    later = select(Step.parent_id).where(
        Step.trace_id == trace_id,
        Step.removed_at.is_(None),
        Step.position > position,
        Step.parent_id.is_not(None),
    )
    parents = {step.id: step.parent_id for step in steps}
    ancestors: set[UUID] = set()
    for parent in session.scalars(later):
        ancestor = parent
        while ancestor in parents and ancestor not in ancestors:
            ancestors.add(ancestor)
            ancestor = parents[ancestor]
    return ancestors


def load_trace(session: Session, trace_id: UUID) -> TraceRecord:
    """Load the trace with its question, project, steps, edits, judgements and the names of people.

    A removed one too, since others rest on it; a change of it is refused.
    """
    (record,) = _load_records(session, [trace_id])
    return record


def load_linked_trace(session: Session, trace_id: UUID) -> TraceRecord:
    """Load the trace that a link names; RowNotFound also for the draft of another person, unless a reviewer asks.

    On this machine itself anybody may be anybody, so that nothing is hidden there.
    """
    record = load_trace(session, trace_id)
    actor = acting_person(session)
    is_others = actor is not None and not actor.is_local and record.author not in (None, actor.name)
    if is_others and record.trace.status == "draft" and not has_acting_role(session, REVIEWER, ADMIN):
        raise RowNotFound(_NO_TRACE.format(trace_id))
    return record


def _load_records(session: Session, ids: Sequence[UUID]) -> list[TraceRecord]:
    """Load these traces in this order with one query for each kind of row; RowNotFound if one does not exist."""
    trace_rows = session.execute(
        select(Trace, Question, Project)
        .join(Question, Question.id == Trace.question_id)
        .join(Project, Project.id == Question.project_id)
        .where(Trace.id.in_(ids))
        .execution_options(**WITH_REMOVED)
    )
    rows = {trace.id: (trace, question, project) for trace, question, project in trace_rows}
    if (missing := next((trace_id for trace_id in ids if trace_id not in rows), None)) is not None:
        raise RowNotFound(_NO_TRACE.format(missing))
    steps = _group_by_trace(
        session.scalars(select(Step).where(Step.trace_id.in_(ids)).order_by(Step.position, Step.id))
    )
    edits = _group_by_trace(session.scalars(select(Edit).where(Edit.trace_id.in_(ids)).order_by(Edit.at, Edit.id)))
    judgements = _group_by_trace(
        session.scalars(select(Judgement).where(Judgement.trace_id.in_(ids)).order_by(Judgement.id))
    )
    run_ids = {trace.run_id for trace, _, _ in rows.values() if trace.run_id}
    known_runs = select(Run).where(Run.id.in_(run_ids)).execution_options(**WITH_REMOVED)
    runs = {run.id: run for run in session.scalars(known_runs)} if run_ids else {}
    people = {trace_id: {trace.author_id} if trace.author_id else set() for trace_id, (trace, _, _) in rows.items()}
    for trace_id in rows:
        people[trace_id] |= {edit.editor_id for edit in edits[trace_id] if edit.editor_id}
        people[trace_id] |= {judgement.judge_id for judgement in judgements[trace_id] if judgement.judge_id}
    named = set[UUID]().union(*people.values())
    names = dict(session.execute(select(User.id, User.name).where(User.id.in_(named))).all()) if named else {}
    return [
        TraceRecord(
            project=project,
            question=question,
            trace=trace,
            steps=[step for step in steps[trace.id] if step.removed_at is None],
            removed=[step for step in steps[trace.id] if step.removed_at is not None],
            edits=edits[trace.id],
            judgements=judgements[trace.id],
            run=runs[trace.run_id] if trace.run_id else None,
            people={person: names[person] for person in people[trace.id]},
        )
        for trace, question, project in (rows[trace_id] for trace_id in ids)
    ]


_Row = TypeVar("_Row", Step, Edit, Judgement)


def _group_by_trace(rows: Iterable[_Row]) -> Mapping[UUID, list[_Row]]:
    groups: dict[UUID, list[_Row]] = defaultdict(list)
    for row in rows:
        groups[row.trace_id].append(row)
    return groups


def has_trace(session: Session, trace_id: UUID) -> bool:
    """Whether the trace is stored, be it removed."""
    stored = select(Trace.id).where(Trace.id == trace_id)
    return session.scalar(stored, execution_options=WITH_REMOVED) is not None


def is_removed(session: Session, trace_id: UUID) -> bool:
    """Whether the trace is archived or deleted, and still stored."""
    stored = select(Trace.id).where(Trace.id == trace_id, Trace.removal_id.is_not(None))
    return session.scalar(stored, execution_options=WITH_REMOVED) is not None


def delete_traces(session: Session, ids: Collection[UUID]) -> None:
    """Delete the traces with all that belongs to them; calls of models stay, for what they cost."""
    session.execute(update(ModelCall).where(ModelCall.trace_id.in_(ids)).values(trace_id=None, step_id=None))
    for belonging in (Draft, Edit, Judgement):
        session.execute(delete(belonging).where(belonging.trace_id.in_(ids)))
    # Children before their parents, of whichever depth.
    session.execute(update(Step).where(Step.trace_id.in_(ids)).values(parent_id=None))
    session.execute(delete(Step).where(Step.trace_id.in_(ids)))
    session.execute(delete(Trace).where(Trace.id.in_(ids)), execution_options=WITH_REMOVED)
    session.flush()


def count_stored_traces(session: Session, ids: Sequence[UUID]) -> int:
    """Count those of the traces that are stored, removed ones too."""
    batches = (ids[start : start + 500] for start in range(0, len(ids), 500))
    counts = (select(func.count()).select_from(Trace).where(Trace.id.in_(batch)) for batch in batches)
    return sum(session.scalar(count, execution_options=WITH_REMOVED) or 0 for count in counts)


def preview_trace(session: Session, trace: Trace) -> TraceRecord:
    """The record of a trace that its author has not begun; nothing is stored."""
    row = session.execute(
        select(Question, Project)
        .join(Project, Project.id == Question.project_id)
        .where(Question.id == trace.question_id)
    ).first()
    if row is None:
        raise RowNotFound(f"there is no question {trace.question_id} here; go back to the queue")
    question, project = row
    return TraceRecord(project, question, trace, [])


def iterate_traces(session: Session, *, status: str | None = None, project: str | None = None) -> Iterator[TraceRecord]:
    """Iterate over the traces with this status and project, the oldest first, a few in memory at a time."""
    query = _apply_filters(select(Trace.id), None if status is None else [status], project)
    yield from load_traces(session, session.scalars(query.order_by(Trace.started_at, Trace.id)).all())


def load_traces(session: Session, ids: Iterable[UUID]) -> Iterator[TraceRecord]:
    """Iterate over these traces in this order, a few in memory at a time."""
    waiting = iter(ids)
    while batch := list(islice(waiting, _LOADED_AT_ONCE)):
        yield from _load_records(session, batch)
        session.expunge_all()


def count_traces(session: Session, project_id: UUID) -> dict[str, int]:
    """Count the project's traces by status."""
    counts = (
        select(Trace.status, func.count())
        .join(Question, Question.id == Trace.question_id)
        .where(Question.project_id == project_id)
        .group_by(Trace.status)
    )
    return dict(session.execute(counts).tuples().all())


class TraceSummary(NamedTuple):
    """One row of the list of traces."""

    id: UUID
    status: str
    started_at: datetime
    project: str
    question: str
    final_answer: str | None


def list_trace_summaries(
    session: Session, *, statuses: Sequence[str] | None = None, project: str | None = None, limit: int = 50
) -> list[TraceSummary]:
    """List the latest traces with these statuses and this project."""
    columns = select(Trace.id, Trace.status, Trace.started_at, Project.name, Question.text, Trace.final_answer)
    query = _apply_filters(columns, statuses, project).order_by(Trace.started_at.desc(), Trace.id.desc()).limit(limit)
    return [TraceSummary(*row) for row in session.execute(query)]


def _apply_filters(query: Any, statuses: Sequence[str] | None, project: str | None) -> Any:
    query = query.join(Question, Question.id == Trace.question_id).join(Project, Project.id == Question.project_id)
    if statuses is not None:
        query = query.where(Trace.status.in_(statuses))
    return query.where(Project.name == project) if project is not None else query
