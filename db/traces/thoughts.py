"""The thoughts and actions of runs and of people, for comparisons of their style."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import or_, select
from sqlalchemy.orm import Session, aliased

from showhow.db.models import SPAN_SKILL, Attempt, Question, Run, Step, Trace
from showhow.db.traces.libraries import HUMAN, LibraryItem
from showhow.db.types import dump_json


class TraceThoughts(NamedTuple):
    """What a trace consists of besides observations."""

    trace_id: UUID
    demonstrations: int
    """How many it was shown."""
    thoughts: list[str]
    actions: list[str]
    """The calls of tools with their arguments."""


def list_run_traces(session: Session, run_id: UUID) -> list[UUID]:
    """The ids of a run's traces, in the order of its attempts."""
    rows = select(Attempt.trace_id).where(Attempt.run_id == run_id).order_by(Attempt.position)
    return [trace_id for trace_id in session.scalars(rows) if trace_id is not None]


def list_traces_of_people(session: Session, run_ids: Sequence[UUID]) -> list[UUID]:
    """The ids of people's completed traces in the runs' projects or in their libraries, the oldest first.

    Repairs are left out, since they begin with steps of a run.
    """
    projects = select(Question.project_id).join(Attempt, Attempt.question_id == Question.id)
    libraries = select(Run.library_id).where(Run.id.in_(run_ids), Run.library_id.is_not(None))
    items = select(LibraryItem.trace_id).where(LibraryItem.library_id.in_(libraries))
    parent = aliased(Trace)
    rows = (
        select(Trace.id)
        .join(Question, Question.id == Trace.question_id)
        .outerjoin(parent, parent.id == Trace.parent_id)
        .where(Trace.reasoner == HUMAN, Trace.status.in_(("submitted", "approved")), parent.run_id.is_(None))
        .where(or_(Question.project_id.in_(projects.where(Attempt.run_id.in_(run_ids))), Trace.id.in_(items)))
        .order_by(Trace.id)
    )
    return list(session.scalars(rows))


def load_thoughts(session: Session, trace_ids: Sequence[UUID]) -> list[TraceThoughts]:
    """The thoughts and actions of these traces in their order, without steps that only contain others."""
    traces: dict[UUID, TraceThoughts] = {}
    for trace in session.scalars(select(Trace).where(Trace.id.in_(trace_ids))):
        chosen = len(trace.result.demonstrations or ())
        shown = trace.result.demonstrations_shown
        traces[trace.id] = TraceThoughts(trace.id, chosen if shown is None else shown, [], [])
    columns = (Step.trace_id, Step.thought, Step.tool, Step.arguments)
    steps = select(*columns).where(Step.trace_id.in_(trace_ids), Step.removed_at.is_(None))
    steps = steps.where(or_(Step.skill.is_(None), Step.skill != SPAN_SKILL)).order_by(Step.trace_id, Step.position)
    for trace_id, thought, tool, arguments in session.execute(steps):
        if thought.strip():
            traces[trace_id].thoughts.append(thought)
        if tool is not None:
            traces[trace_id].actions.append(f"{tool} {dump_json(arguments)}")
    return [traces[trace_id] for trace_id in trace_ids if trace_id in traces]
