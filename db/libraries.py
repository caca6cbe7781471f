"""Libraries of demonstrations: which approved traces there are to freeze, and the frozen, numbered versions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.bulk import insert_rows
from db.database import Conflict, Missing
from db.models import Library, LibraryItem, Project, Question, Step, Trace, User

PEOPLE, MODELS = "people", "models"
_HUMAN = "human"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which approved traces: every condition that is given must hold."""

    project: str | None = None
    kind: str | None = None
    """Of the question."""
    rating: float | None = None
    """The mean of the steps' stars is at least this; a trace without stars has none."""
    by: str | None = None
    """PEOPLE or MODELS."""

    def told(self) -> dict[str, Any]:
        """The conditions that are given, by name."""
        given = {"project": self.project, "kind": self.kind, "rating": self.rating, "by": self.by}
        return {name: value for name, value in given.items() if value is not None}


class Demonstration(NamedTuple):
    """An approved trace as a library knows it."""

    trace_id: UUID
    question_id: UUID
    question: str
    kind: str | None
    split: str | None
    project: str
    world: str
    reasoner: str
    author: str | None
    final_answer: str | None
    tools: tuple[str, ...] = ()
    """Of its steps, in order."""
    rating: float | None = None
    """The mean of its steps' stars."""


class Version(NamedTuple):
    """A library's version in a line."""

    id: UUID
    name: str
    number: int
    frozen_at: Any
    card: dict[str, Any]
    demonstrations: int


def candidates(session: Session, wanted: Wanted) -> list[Demonstration]:
    """The approved traces that fit, by id, so that their order is the same in every database."""
    chosen = _described().where(Trace.status == "approved")
    if wanted.project is not None:
        chosen = chosen.where(Project.name == wanted.project)
    if wanted.kind is not None:
        chosen = chosen.where(Question.kind == wanted.kind)
    if wanted.by is not None:
        chosen = chosen.where((Trace.reasoner == _HUMAN) == (wanted.by == PEOPLE))
    steps = _steps(select(Trace.id).where(Trace.status == "approved"))
    found = _with_steps(session, chosen.order_by(Trace.id), steps)
    if wanted.rating is None:
        return found
    return [each for each in found if each.rating is not None and each.rating >= wanted.rating]


def freeze(session: Session, name: str, traces: Sequence[UUID], card: dict[str, Any]) -> Library:
    """The next version of the library of that name, with the traces in their order."""
    if not name.strip() or "/" in name or ":" in name:
        raise Conflict(f"a library cannot be called {name!r}; give it a name without / and :")
    if not traces:
        raise Conflict(
            f"no approved trace fits, so that nothing was frozen as {name!r}; approve some on the Review page"
        )
    last = session.scalar(select(func.max(Library.number)).where(Library.name == name)) or 0
    library = Library(name=name, number=last + 1, card=card)
    session.add(library)
    session.flush()
    rows = [
        {"library_id": library.id, "position": place, "trace_id": trace} for place, trace in enumerate(traces, start=1)
    ]
    insert_rows(session, LibraryItem, rows)
    return library


def versions(session: Session, name: str | None = None) -> list[Version]:
    """Every version, by name, the latest of each first."""
    counted = (
        select(Library, func.count(LibraryItem.position))
        .outerjoin(LibraryItem, LibraryItem.library_id == Library.id)
        .group_by(Library.id)
        .order_by(Library.name, Library.number.desc())
    )
    if name is not None:
        counted = counted.where(Library.name == name)
    return [
        Version(each.id, each.name, each.number, each.frozen_at, each.card, count)
        for each, count in session.execute(counted)
    ]


def version(session: Session, reference: str) -> Library:
    """The version that NAME:NUMBER names, or the latest of NAME."""
    name, colon, number = reference.partition(":")
    chosen = select(Library).where(Library.name == name).order_by(Library.number.desc()).limit(1)
    if colon:
        if not (number.isascii() and number.isdecimal()):
            raise Missing(f"{reference!r} names no version; write {name}:1 for its first, or {name} for its latest")
        chosen = chosen.where(Library.number == int(number))
    found = session.scalar(chosen)
    if found is None:
        raise Missing(f"there is no library {reference!r}; `showhow library list` names those that there are")
    return found


def demonstrations(session: Session, library_id: UUID) -> list[Demonstration]:
    """What the version holds, in its order."""
    inside = select(LibraryItem.trace_id).where(LibraryItem.library_id == library_id)
    chosen = (
        _described()
        .join(LibraryItem, LibraryItem.trace_id == Trace.id)
        .where(LibraryItem.library_id == library_id)
        .order_by(LibraryItem.position)
    )
    return _with_steps(session, chosen, _steps(inside))


def split_questions(session: Session, split: str) -> list[tuple[UUID, str]]:
    """The id and the text of every question of that split."""
    rows = session.execute(select(Question.id, Question.text).where(Question.split == split).order_by(Question.id))
    return [(row.id, row.text) for row in rows]


def _described() -> Any:
    return (
        select(
            Trace.id,
            Trace.question_id,
            Question.text,
            Question.kind,
            Question.split,
            Project.name,
            Project.world,
            Trace.reasoner,
            User.name,
            Trace.final_answer,
        )
        .join(Question, Question.id == Trace.question_id)
        .join(Project, Project.id == Question.project_id)
        .outerjoin(User, User.id == Trace.author_id)
    )


def _steps(traces: Any) -> Any:
    return (
        select(Step.trace_id, Step.tool, Step.rating)
        .where(Step.trace_id.in_(traces), Step.removed_at.is_(None))
        .order_by(Step.trace_id, Step.position)
    )


def _with_steps(session: Session, chosen: Any, steps: Any) -> list[Demonstration]:
    tools: dict[UUID, list[str]] = {}
    stars: dict[UUID, list[int]] = {}
    for trace, tool, rating in session.execute(steps):
        if tool is not None:
            tools.setdefault(trace, []).append(tool)
        if rating is not None:
            stars.setdefault(trace, []).append(rating)
    return [
        each._replace(tools=tuple(tools.get(each.trace_id, ())), rating=_mean(stars.get(each.trace_id, ())))
        for each in (Demonstration(*row) for row in session.execute(chosen))
    ]


def _mean(numbers: Iterable[int]) -> float | None:
    found = list(numbers)
    return sum(found) / len(found) if found else None
