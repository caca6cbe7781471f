"""Which calls of tools a report is about: steps as they stand, each counted once although forks copy it."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session, aliased
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from db.libraries import HUMAN, PEOPLE
from db.models import Project, Question, Step, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which calls: every condition that is given must hold."""

    project: str | None = None
    tool: str | None = None
    by: str | None = None
    """PEOPLE or MODELS."""
    since: datetime | None = None
    until: datetime | None = None
    """The first moment that does not count any more."""


class _Unsought(FunctionElement[Any]):
    """A column by whose index SQLite must not look rows up: it knows no sizes, and would read every whole step."""

    inherit_cache = True


@compiles(_Unsought)
def _as_it_is(element: _Unsought, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(element.clauses, **kw)


@compiles(_Unsought, "sqlite")
def _without_index(element: _Unsought, compiler: SQLCompiler, **kw: Any) -> str:
    return f"+{compiler.process(element.clauses, **kw)}"


def conditions(scope: Scope, *, undone: bool = False) -> list[ColumnElement[bool]]:
    """What holds of the steps that are the scope's calls, or of those of them that were undone."""
    found: list[ColumnElement[bool]] = [
        Step.tool.is_not(None) if scope.tool is None else Step.tool == scope.tool,
        Step.removed_at.is_not(None) if undone else Step.removed_at.is_(None),
    ]
    if scope.since is not None:
        found.append(Step.started_at >= scope.since)
    if scope.until is not None:
        found.append(Step.started_at < scope.until)
    if scope.project is not None or scope.by is not None:
        found.append(_Unsought(Step.trace_id).in_(_traces(scope)))
    return [*found, _own()]


def narrowed(session: Session, scope: Scope) -> Scope:
    """The same calls by fewer conditions: one that every trace meets tells nothing and costs a look-up a step."""
    for name in ("project", "by"):
        alone = Scope(**{name: getattr(scope, name)})
        outside = select(Trace.id).where(Trace.id.not_in(_traces(alone))).limit(1)
        if alone != Scope() and session.scalar(outside) is None:
            scope = replace(scope, **{name: None})
    return scope


def _traces(scope: Scope) -> Select[UUID]:
    wanted = select(Trace.id)
    if scope.by is not None:
        wanted = wanted.where(Trace.reasoner == HUMAN if scope.by == PEOPLE else Trace.reasoner != HUMAN)
    if scope.project is not None:
        wanted = wanted.join(Question, Question.id == Trace.question_id)
        wanted = wanted.join(Project, Project.id == Question.project_id).where(Project.name == scope.project)
    return wanted


def _own() -> ColumnElement[bool]:
    """The step is no copy that a fork took over from a trace that is here too: copies began before their fork did."""
    parent, fork = aliased(Trace), aliased(Trace)
    forks = select(Trace.id).where(Trace.parent_id.in_(select(parent.id)))
    began = select(fork.started_at).where(fork.id == Step.trace_id).scalar_subquery()
    return or_(Step.trace_id.not_in(forks), Step.started_at >= began)
