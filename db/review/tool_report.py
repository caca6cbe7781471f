"""Statistics of tool calls: counts, failures, latencies, ratings of observations, and usage of models.

A report counts steps that were not undone, of traces that are in lists; a step that forks copy counts once.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from math import sqrt
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, func, or_, select, text, type_coerce
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session, aliased
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import JSON

from showhow.db.models import CALLED_MODEL_CONDITION, Judgement, Project, Question, Step, Trace, User
from showhow.db.review.review import STEP_NOTE_ASPECT
from showhow.db.traces.libraries import HUMAN, PEOPLE

_TRACE = Trace.__table__


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallFilter:
    """Conditions on tool calls; all that are set must hold."""

    project: str | None = None
    tool: str | None = None
    by: str | None = None
    """PEOPLE or MODELS."""
    since: datetime | None = None
    until: datetime | None = None
    """The end of the period, exclusive."""


class _UnindexedColumn(FunctionElement[Any]):
    """A column whose index SQLite must not use: without statistics of sizes it would read every step in full."""

    inherit_cache = True


@compiles(_UnindexedColumn)
def _compile_unchanged(element: _UnindexedColumn, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(element.clauses, **kw)


@compiles(_UnindexedColumn, "sqlite")
def _compile_without_index(element: _UnindexedColumn, compiler: SQLCompiler, **kw: Any) -> str:
    return f"+{compiler.process(element.clauses, **kw)}"


def call_conditions(scope: ToolCallFilter, *, undone: bool = False) -> list[ColumnElement[bool]]:
    """Build the conditions on steps for the tool calls within the scope, or for the undone ones only."""
    conditions: list[ColumnElement[bool]] = [
        Step.tool.is_not(None) if scope.tool is None else Step.tool == scope.tool,
        Step.removed_at.is_not(None) if undone else Step.removed_at.is_(None),
    ]
    if scope.since is not None:
        conditions.append(Step.started_at >= scope.since)
    if scope.until is not None:
        conditions.append(Step.started_at < scope.until)
    if scope.project is not None or scope.by is not None:
        conditions.append(_UnindexedColumn(Step.trace_id).in_(_select_traces(scope)))
    # Of the table, since the removed rows of the class are hidden.
    removed = select(_TRACE.c.id).where(_TRACE.c.removal_id.is_not(None))
    return [*conditions, Step.trace_id.not_in(removed), _is_not_fork_copy()]


def drop_redundant_conditions(session: Session, scope: ToolCallFilter) -> ToolCallFilter:
    """Drop conditions that every trace meets: they change nothing and cost a lookup for each step."""
    for name in ("project", "by"):
        condition = ToolCallFilter(**{name: getattr(scope, name)})
        excluded = select(Trace.id).where(Trace.id.not_in(_select_traces(condition))).limit(1)
        if condition != ToolCallFilter() and session.scalar(excluded) is None:
            scope = replace(scope, **{name: None})
    return scope


def _select_traces(scope: ToolCallFilter) -> Select[UUID]:
    query = select(Trace.id)
    if scope.by is not None:
        query = query.where(Trace.reasoner == HUMAN if scope.by == PEOPLE else Trace.reasoner != HUMAN)
    if scope.project is not None:
        query = query.join(Question, Question.id == Trace.question_id)
        query = query.join(Project, Project.id == Question.project_id).where(Project.name == scope.project)
    return query


def _is_not_fork_copy() -> ColumnElement[bool]:
    """Condition: the step is not a fork's copy from a stored trace; copies started before their fork."""
    parent, fork = aliased(Trace), aliased(Trace)
    forks = select(Trace.id).where(Trace.parent_id.in_(select(parent.id)))
    fork_start = select(fork.started_at).where(fork.id == Step.trace_id).scalar_subquery()
    return or_(Step.trace_id.not_in(forks), Step.started_at >= fork_start)


RATING_VALUES = (1, 2, 3, 4, 5)
LATENCY_BUCKET_BOUNDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Upper bounds of the latency classes in seconds; the last class has none."""
LOWEST_RATED_COUNT = 20
LISTED_NOTES = 500
"""The newest notes on what tools lack that a report lists."""
OTHER_ERROR_KIND = "other"


@dataclass(frozen=True, slots=True)
class LatencyStatistics:
    """Latencies in seconds of the calls that have one; p50 and p95 are latencies of actual calls."""

    timed: int
    p50: float
    p95: float
    longest: float
    classes: tuple[int, ...]
    """The number of calls below each of LATENCY_BUCKET_BOUNDS and not below the previous one; the last is the rest."""


@dataclass(frozen=True, slots=True)
class RatingStatistics:
    """The ratings by people; `spread` is their standard deviation, None for a single rating."""

    count: int
    mean: float
    spread: float | None
    stars: dict[int, int]


@dataclass(frozen=True, slots=True)
class ToolModelUsage:
    """The usage of the tool's own model calls; an unknown value is None."""

    calls: int
    input_tokens: int | None
    output_tokens: int | None
    untold: int
    """Steps whose token counts are unknown and not included."""
    seconds: float | None
    cost: float | None
    """In US dollars."""
    unpriced: int
    """Steps whose cost is unknown and not included."""


@dataclass(frozen=True, slots=True)
class ToolStatistics:
    """The statistics of one tool; an unknown value is None, never 0."""

    tool: str
    calls: int
    interrupted: int
    """Calls that were begun and never finished; they have neither a latency nor an error."""
    undone: int
    """Calls that were undone; no other value includes them."""
    failures: dict[str, int]
    """Failed calls by kind, the most frequent first."""
    latency: LatencyStatistics | None
    ratings: RatingStatistics | None
    usage: ToolModelUsage | None

    @property
    def failed(self) -> int:
        """Calls that ended in an error."""
        return sum(self.failures.values())


@dataclass(frozen=True, slots=True)
class RatedStep:
    """A step whose observation was rated, with its question and trace."""

    trace_id: UUID
    position: int
    tool: str
    rating: int
    project: str
    question: str
    thought: str
    arguments: dict[str, Any]
    started_at: datetime


@dataclass(frozen=True, slots=True)
class NotedStep:
    """A person's note on what a tool lacks, with its step, question and trace."""

    trace_id: UUID
    position: int
    tool: str | None
    """None for a step without a tool."""
    kind: str
    """One of STEP_NOTE_KINDS, never a comment."""
    note: str
    author: str | None
    project: str
    question: str
    written_at: datetime


@dataclass(frozen=True, slots=True)
class ToolReport:
    """The statistics of every tool that was called, by name, and the rated steps, the lowest rating first.

    The notes on what tools lack are in the order of tools and kinds, the newest first.
    """

    tools: tuple[ToolStatistics, ...]
    worst: tuple[RatedStep, ...]
    notes: tuple[NotedStep, ...] = ()


def build_tool_report(session: Session, scope: ToolCallFilter, *, worst: int = LOWEST_RATED_COUNT) -> ToolReport:
    """Build the report of every tool within the scope; a failed call without a stored error kind counts as "other"."""
    scope = drop_redundant_conditions(session, scope)
    counts = {row.tool: row for row in session.execute(_select_counts(scope))}
    undone = {row.tool: row.calls for row in session.execute(_select_undone_counts(scope))}
    failures = _count_failures(session, scope)
    usages = {row.tool: row for row in session.execute(_select_usage(scope))}
    tools = []
    for name in sorted(counts.keys() | undone.keys()):
        row = counts.get(name)
        tools.append(
            ToolStatistics(
                tool=name,
                calls=row.calls if row else 0,
                interrupted=row.interrupted if row else 0,
                undone=undone.get(name, 0),
                failures=failures.get(name, {}),
                latency=_latency_statistics(session, scope, row) if row else None,
                ratings=_rating_statistics(row) if row else None,
                usage=_model_usage(usages[name]) if name in usages else None,
            )
        )
    lowest_rated = _lowest_rated_steps(session, scope, counts.values(), worst)
    return ToolReport(tuple(tools), tuple(lowest_rated), tuple(_list_noted_steps(session, scope)))


def _select_counts(scope: ToolCallFilter) -> Any:
    """Select all counts that one scan of the index gives."""
    latency_counts = [
        func.count().filter(Step.latency < bound).label(f"under_{number}")
        for number, bound in enumerate(LATENCY_BUCKET_BOUNDS)
    ]
    rating_counts = [func.count().filter(Step.rating == star).label(f"stars_{star}") for star in RATING_VALUES]
    return (
        select(
            Step.tool,
            func.count().label("calls"),
            func.count().filter(Step.finished_at.is_(None)).label("interrupted"),
            func.count(Step.latency).label("timed"),
            func.max(Step.latency).label("longest"),
            *latency_counts,
            *rating_counts,
        )
        .where(*call_conditions(scope))
        .group_by(Step.tool)
    )


def _select_undone_counts(scope: ToolCallFilter) -> Any:
    return (
        select(Step.tool, func.count().label("calls")).where(*call_conditions(scope, undone=True)).group_by(Step.tool)
    )


def _count_failures(session: Session, scope: ToolCallFilter) -> dict[str, dict[str, int]]:
    query: Any = select(Step.tool, Step.error_kind, func.count()).where(
        Step.error.is_not(None), *call_conditions(scope)
    )
    counts: dict[str, Counter[str]] = {}
    for tool, kind, count in session.execute(query.group_by(Step.tool, Step.error_kind)):
        counts.setdefault(tool, Counter())[kind or OTHER_ERROR_KIND] += count
    # Ties are in alphabetical order, so that two reports of one database are equal.
    return {tool: dict(sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))) for tool, kinds in counts.items()}


def _latency_statistics(session: Session, scope: ToolCallFilter, row: Row[Any]) -> LatencyStatistics | None:
    if not row.timed:
        return None
    cumulative = [0, *(getattr(row, f"under_{number}") for number in range(len(LATENCY_BUCKET_BOUNDS))), row.timed]
    conditions = [*call_conditions(replace(scope, tool=row.tool)), Step.latency.is_not(None)]
    p50, p95 = (_latency_percentile(session, conditions, row.timed, percent) for percent in (50, 95))
    classes = tuple(upper - lower for lower, upper in pairwise(cumulative))
    return LatencyStatistics(row.timed, p50, p95, row.longest, classes)


def _latency_percentile(session: Session, conditions: list[ColumnElement[bool]], count: int, percent: int) -> float:
    """Find the smallest latency that `percent` of the calls do not exceed, from the nearer end of the index."""
    rank = max(1, -(-count * percent // 100))
    order, offset = (Step.latency, rank - 1) if rank <= count / 2 else (Step.latency.desc(), count - rank)
    seconds = session.scalars(select(Step.latency).where(*conditions).order_by(order).offset(offset).limit(1)).one()
    return float(seconds or 0.0)


def _rating_statistics(row: Row[Any]) -> RatingStatistics | None:
    stars = {star: int(getattr(row, f"stars_{star}")) for star in RATING_VALUES}
    count = sum(stars.values())
    if not count:
        return None
    mean = sum(star * times for star, times in stars.items()) / count
    squares = sum(times * (star - mean) ** 2 for star, times in stars.items())
    return RatingStatistics(count, mean, sqrt(squares / (count - 1)) if count > 1 else None, stars)


def _select_usage(scope: ToolCallFilter) -> Any:
    usage = type_coerce(Step.usage, JSON)["tool"]
    cost = usage["cost"].as_float()
    input_tokens, output_tokens = usage["input_tokens"].as_integer(), usage["output_tokens"].as_integer()
    return (
        select(
            Step.tool,
            func.sum(usage["calls"].as_integer()).label("calls"),
            func.sum(input_tokens).label("input_tokens"),
            func.sum(output_tokens).label("output_tokens"),
            func.count().filter(input_tokens.is_(None) | output_tokens.is_(None)).label("untold"),
            func.sum(usage["seconds"].as_float()).label("seconds"),
            func.sum(cost).label("cost"),
            func.count().filter(cost.is_(None)).label("unpriced"),
        )
        .where(text(CALLED_MODEL_CONDITION), *call_conditions(scope))
        .group_by(Step.tool)
    )


def _model_usage(row: Row[Any]) -> ToolModelUsage:
    tokens = (row.input_tokens, row.output_tokens, row.untold)
    return ToolModelUsage(row.calls or 0, *tokens, row.seconds, row.cost, row.unpriced)


def _lowest_rated_steps(
    session: Session, scope: ToolCallFilter, counts: Collection[Row[Any]], limit: int
) -> list[RatedStep]:
    """Select the steps with the lowest ratings; ratings above the limit are excluded before sorting."""
    highest, remaining = RATING_VALUES[-1], limit
    for star in RATING_VALUES:
        remaining -= sum(getattr(row, f"stars_{star}") for row in counts)
        if remaining <= 0:
            highest = star
            break
    order = (Step.rating, Step.started_at.desc(), Step.trace_id, Step.position.desc())
    chosen = (
        select(Step.trace_id, Step.position)
        .where(Step.rating <= highest, *call_conditions(scope))
        .order_by(*order)
        .limit(limit)
        .subquery()
    )
    query: Any = (
        select(
            Step.trace_id,
            Step.position,
            Step.tool,
            Step.rating,
            Project.name,
            Question.text,
            Step.thought,
            Step.arguments,
            Step.started_at,
        )
        .join(chosen, (chosen.c.trace_id == Step.trace_id) & (chosen.c.position == Step.position))
        .join(Trace, Trace.id == Step.trace_id)
        .join(Question, Question.id == Trace.question_id)
        .join(Project, Project.id == Question.project_id)
        .where(Step.removed_at.is_(None))
        .order_by(*order)
    )
    return [RatedStep(*row) for row in session.execute(query)]


def _list_noted_steps(session: Session, scope: ToolCallFilter) -> list[NotedStep]:
    """Select the newest notes on what tools lack; a note is within a period by the time at which it was written."""
    notes: Any = (
        select(
            Step.trace_id,
            Step.position,
            Step.tool,
            Judgement.value,
            Judgement.comment,
            User.name,
            Project.name,
            Question.text,
            Judgement.created_at,
        )
        .join(Step, Step.id == Judgement.step_id)
        .join(Trace, Trace.id == Judgement.trace_id)
        .join(Question, Question.id == Trace.question_id)
        .join(Project, Project.id == Question.project_id)
        .outerjoin(User, User.id == Judgement.judge_id)
        .where(Judgement.step_id.is_not(None), Judgement.aspect == STEP_NOTE_ASPECT, Judgement.value != "comment")
        .where(Step.removed_at.is_(None), Judgement.trace_id.in_(_select_traces(scope)))
    )
    if scope.tool is not None:
        notes = notes.where(Step.tool == scope.tool)
    if scope.since is not None:
        notes = notes.where(Judgement.created_at >= scope.since)
    if scope.until is not None:
        notes = notes.where(Judgement.created_at < scope.until)
    newest = session.execute(notes.order_by(Judgement.created_at.desc(), Judgement.id.desc()).limit(LISTED_NOTES))
    return sorted((NotedStep(*row) for row in newest), key=lambda note: (note.tool or "", note.kind))
