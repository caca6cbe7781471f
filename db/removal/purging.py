"""Delete for good what was deleted too long ago to be restored, and what nothing refers to any more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from showhow.db.audit import record_act
from showhow.db.database import Database
from showhow.db.models import Assignment, Attempt, Library, Project, Question, Run, Score, Trace
from showhow.db.people.users import ADMIN, require_acting_role
from showhow.db.removal.removal_kinds import Kind
from showhow.db.removal.removals import Removal
from showhow.db.removed_rows import WITH_REMOVED
from showhow.db.review.studies import Study, delete_studies
from showhow.db.runs.leases import WorkerRun
from showhow.db.traces.libraries import LibraryItem
from showhow.db.traces.traces import delete_traces
from showhow.db.types import utc_now

_TRACES_OF_A_TRANSACTION = 200


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """What a purge has deleted for good."""

    names: tuple[str, ...]
    """The names of the deletions that are final, with their kinds."""
    worlds: tuple[UUID, ...]
    """The ids of those of worlds, whose folders are to be deleted."""


def purge(database: Database, *, now: bool = False) -> PurgeReport:
    """Delete for good what was deleted more than KEPT_DAYS ago, or all deletions now; what others rest on stays hidden.

    A purge that was interrupted is completed by the next one.
    """
    with database.begin() as session:
        require_acting_role(session, ADMIN)
        is_final = Removal.kept_until.is_not(None) if now else Removal.kept_until < utc_now()
        final = list(session.scalars(select(Removal).where(is_final).order_by(Removal.id)))
        for removal in final:
            session.delete(removal)
            record_act(session, "deleted for good", removal.kind, removal.key)
    _delete_waiting_rows(database)
    worlds = tuple(removal.id for removal in final if removal.kind == Kind.WORLD)
    return PurgeReport(tuple(f"{removal.kind} {removal.name}" for removal in final), worlds)


def _delete_waiting_rows(database: Database) -> None:
    """Delete the marked rows whose removal is not stored any more, those first that refer to others."""
    with database.read() as session:
        runs = _list_waiting(session, Run)
        libraries = _list_waiting(session, Library)
        traces = _list_waiting(session, Trace)
        others = _list_waiting(session, Question) or _list_waiting(session, Project)
    for run_id in runs:
        with database.begin() as session:
            for kind in (Score, Attempt, WorkerRun):
                session.execute(delete(kind).where(kind.run_id == run_id))
    if libraries:
        with database.begin() as session:
            session.execute(delete(LibraryItem).where(LibraryItem.library_id.in_(libraries)))
            session.execute(delete(Library).where(Library.id.in_(libraries)), execution_options=WITH_REMOVED)
    for start in range(0, len(traces), _TRACES_OF_A_TRANSACTION):
        batch = traces[start : start + _TRACES_OF_A_TRANSACTION]
        with database.begin() as session:
            held = {*session.scalars(select(LibraryItem.trace_id).where(LibraryItem.trace_id.in_(batch)))}
            held |= {*session.scalars(select(Attempt.trace_id).where(Attempt.trace_id.in_(batch)))}
            delete_traces(session, [key for key in batch if key not in held])
    if runs or others:
        with database.begin() as session:
            _delete_unreferenced(session)


def _list_waiting(session: Session, kind: type[Any]) -> Sequence[UUID]:
    return session.scalars(select(kind.id).where(_is_waiting(kind)), execution_options=WITH_REMOVED).all()


def _is_waiting(kind: type[Any]) -> ColumnElement[bool]:
    condition: ColumnElement[bool] = kind.removal_id.is_not(None) & kind.removal_id.not_in(select(Removal.id))
    return condition


def _delete_unreferenced(session: Session) -> None:
    is_free = (
        _is_waiting(Question),
        ~select(Trace.id).where(Trace.question_id == Question.id).exists(),
        ~select(Attempt.id).where(Attempt.question_id == Question.id).exists(),
    )
    options = {**WITH_REMOVED, "synchronize_session": False}
    free = select(Question.id).where(*is_free)
    session.execute(delete(Assignment).where(Assignment.question_id.in_(free)), execution_options=options)
    session.execute(delete(Question).where(*is_free), execution_options=options)
    is_free_run = _is_waiting(Run), ~select(Trace.id).where(Trace.run_id == Run.id).exists()
    session.execute(delete(Run).where(*is_free_run), execution_options=options)
    is_free_project = _is_waiting(Project), ~select(Question.id).where(Question.project_id == Project.id).exists()
    gone = select(Study.id).join(Project, Project.id == Study.project_id).where(*is_free_project)
    delete_studies(session, session.scalars(gone, execution_options=options).all())
    session.execute(delete(Project).where(*is_free_project), execution_options=options)
