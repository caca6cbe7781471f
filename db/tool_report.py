"""What tools are worth: how often they are called, fail, how long they take, and how people rate what they find."""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from math import sqrt
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, func, select, text, type_coerce
from sqlalchemy.orm import Session
from sqlalchemy.types import JSON

from db.indexes import MODELLED
from db.models import Project, Question, Step, Trace
from db.tool_calls import Scope, conditions, narrowed

STARS = (1, 2, 3, 4, 5)
BOUNDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Seconds at which one class of latencies ends and the next begins; the last class has no end."""
WORST = 20


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds of the calls whose time is known; p50 and p95 are times that calls really took."""

    timed: int
    p50: float
    p95: float
    longest: float
    classes: tuple[int, ...]
    """How many lasted less than each of BOUNDS and not less than the one before; the last is the rest."""


@dataclass(frozen=True, slots=True)
class Ratings:
    """What people gave: `spread` is the standard deviation, which one rating alone does not have."""

    count: int
    mean: float
    spread: float | None
    stars: dict[int, int]


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What the tool's own calls of the language model took, as far as it is known; None where nobody told."""

    calls: int
    input_tokens: int | None
    output_tokens: int | None
    untold: int
    """Steps of which tokens are not known and not in these."""
    seconds: float | None
    cost: float | None
    """US dollars."""
    unpriced: int
    """Steps whose cost is not known and not in it."""


@dataclass(frozen=True, slots=True)
class ToolWorth:
    """One tool; what is not known of it is None and never 0."""

    tool: str
    calls: int
    interrupted: int
    """Of the calls: begun and never finished, so that they have neither a time nor an error."""
    undone: int
    """Calls that were taken back; they are counted nowhere else."""
    failures: dict[str, int]
    """Failed calls by kind, the most frequent first."""
    latency: Latency | None
    ratings: Ratings | None
    usage: ModelUse | None

    @property
    def failed(self) -> int:
        """Calls that ended in an error."""
        return sum(self.failures.values())


@dataclass(frozen=True, slots=True)
class Rated:
    """A step whose observation was rated, with what leads to it."""

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
class ToolReport:
    """Every tool that was called, by name, known here or not; and the ratings of observations, the lowest first."""

    tools: tuple[ToolWorth, ...]
    worst: tuple[Rated, ...]


def tool_report(session: Session, scope: Scope, kind_of: Callable[[str], str], *, worst: int = WORST) -> ToolReport:
    """The worth of every tool within the scope; `kind_of` gives the kind of an error."""
    scope = narrowed(session, scope)
    counted = {row.tool: row for row in session.execute(_counts(scope))}
    undone = {row.tool: row.calls for row in session.execute(_undone(scope))}
    failures = _failures(session, scope, kind_of)
    usages = {row.tool: row for row in session.execute(_usages(scope))}
    tools = []
    for name in sorted(counted.keys() | undone.keys()):
        row = counted.get(name)
        tools.append(
            ToolWorth(
                tool=name,
                calls=row.calls if row else 0,
                interrupted=row.interrupted if row else 0,
                undone=undone.get(name, 0),
                failures=failures.get(name, {}),
                latency=_latency(session, scope, row) if row else None,
                ratings=_ratings(row) if row else None,
                usage=_usage(usages[name]) if name in usages else None,
            )
        )
    return ToolReport(tuple(tools), tuple(_worst(session, scope, counted.values(), worst)))


def _counts(scope: Scope) -> Any:
    """All that can be counted in one walk along the index."""
    under = [func.count().filter(Step.latency < bound).label(f"under_{place}") for place, bound in enumerate(BOUNDS)]
    stars = [func.count().filter(Step.rating == star).label(f"stars_{star}") for star in STARS]
    return (
        select(
            Step.tool,
            func.count().label("calls"),
            func.count().filter(Step.finished_at.is_(None)).label("interrupted"),
            func.count(Step.latency).label("timed"),
            func.max(Step.latency).label("longest"),
            *under,
            *stars,
        )
        .where(*conditions(scope))
        .group_by(Step.tool)
    )


def _undone(scope: Scope) -> Any:
    return select(Step.tool, func.count().label("calls")).where(*conditions(scope, undone=True)).group_by(Step.tool)


def _failures(session: Session, scope: Scope, kind_of: Callable[[str], str]) -> dict[str, dict[str, int]]:
    errors: Any = (
        select(Step.tool, Step.error, func.count())
        .where(Step.error.is_not(None), *conditions(scope))
        .group_by(Step.tool, Step.error)
    )
    found: dict[str, Counter[str]] = {}
    for tool, error, count in session.execute(errors):
        found.setdefault(tool, Counter())[kind_of(error)] += count
    # Ties stand in the order of the alphabet, so that two reports of one store are the same.
    return {tool: dict(sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))) for tool, kinds in found.items()}


def _latency(session: Session, scope: Scope, row: Row[Any]) -> Latency | None:
    if not row.timed:
        return None
    under = [0, *(getattr(row, f"under_{place}") for place in range(len(BOUNDS))), row.timed]
    timed = [*conditions(replace(scope, tool=row.tool)), Step.latency.is_not(None)]
    p50, p95 = (_percentile(session, timed, row.timed, percent) for percent in (50, 95))
    classes = tuple(upper - lower for lower, upper in pairwise(under))
    return Latency(row.timed, p50, p95, row.longest, classes)


def _percentile(session: Session, timed: list[ColumnElement[bool]], count: int, percent: int) -> float:
    """The smallest latency that so many of a hundred do not exceed, walked to from the nearer end."""
    place = max(1, -(-count * percent // 100))
    order, behind = (Step.latency, place - 1) if place <= count / 2 else (Step.latency.desc(), count - place)
    found = session.scalars(select(Step.latency).where(*timed).order_by(order).offset(behind).limit(1)).one()
    return float(found or 0.0)


def _ratings(row: Row[Any]) -> Ratings | None:
    stars = {star: int(getattr(row, f"stars_{star}")) for star in STARS}
    count = sum(stars.values())
    if not count:
        return None
    mean = sum(star * times for star, times in stars.items()) / count
    squares = sum(times * (star - mean) ** 2 for star, times in stars.items())
    return Ratings(count, mean, sqrt(squares / (count - 1)) if count > 1 else None, stars)


def _usages(scope: Scope) -> Any:
    took = type_coerce(Step.usage, JSON)["tool"]
    cost = took["cost"].as_float()
    taken, given = took["input_tokens"].as_integer(), took["output_tokens"].as_integer()
    return (
        select(
            Step.tool,
            func.sum(took["calls"].as_integer()).label("calls"),
            func.sum(taken).label("input_tokens"),
            func.sum(given).label("output_tokens"),
            func.count().filter(taken.is_(None) | given.is_(None)).label("untold"),
            func.sum(took["seconds"].as_float()).label("seconds"),
            func.sum(cost).label("cost"),
            func.count().filter(cost.is_(None)).label("unpriced"),
        )
        .where(text(MODELLED), *conditions(scope))
        .group_by(Step.tool)
    )


def _usage(row: Row[Any]) -> ModelUse:
    tokens = (row.input_tokens, row.output_tokens, row.untold)
    return ModelUse(row.calls or 0, *tokens, row.seconds, row.cost, row.unpriced)


def _worst(session: Session, scope: Scope, counted: Collection[Row[Any]], most: int) -> list[Rated]:
    """Ratings above those that fill the list are not sorted."""
    highest, left = STARS[-1], most
    for star in STARS:
        left -= sum(getattr(row, f"stars_{star}") for row in counted)
        if left <= 0:
            highest = star
            break
    order = (Step.rating, Step.started_at.desc(), Step.trace_id, Step.position.desc())
    chosen = (
        select(Step.trace_id, Step.position)
        .where(Step.rating <= highest, *conditions(scope))
        .order_by(*order)
        .limit(most)
        .subquery()
    )
    told: Any = (
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
    return [Rated(*row) for row in session.execute(told)]
