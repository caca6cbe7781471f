"""Libraries of demonstrations: the approved traces that can be frozen, and the frozen, numbered versions."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ForeignKey, case, func, or_, select, type_coerce
from sqlalchemy.orm import Mapped, Session, mapped_column

from showhow.db.database import Conflict, RowNotFound, StoreError
from showhow.db.models import (
    SPAN_SKILL,
    Judgement,
    Library,
    Project,
    Question,
    Step,
    Trace,
    User,
)
from showhow.db.people.users import ADMIN, REVIEWER, require_acting_role, require_role
from showhow.db.questions.question_index import FULL_TEXT_COLUMNS
from showhow.db.removed_rows import WITH_REMOVED
from showhow.db.serialization import insert_rows
from showhow.db.traces.trace_record import NOT_TRIED, REPETITION_ASPECT
from showhow.db.types import Base, ExactJson, join_attachments, summarize_task
from showhow.folder_names import explain_refused_name, shorten_name
from showhow.option_fields import option

APPROVED = ("approved",)
"""The statuses of traces that become demonstrations."""
FORMER_NAMES = "former_names"
"""The key of a version's card with the names that its library had before."""
PEOPLE, MODELS = "people", "models"
HUMAN = "human"


class LibraryItem(Base):
    """The position of a demonstration in a library version."""

    __tablename__ = "library_item"

    library_id: Mapped[UUID] = mapped_column(ForeignKey("library.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    trace_id: Mapped[UUID] = mapped_column(ForeignKey("trace.id"), index=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemonstrationFilter:
    """Conditions on approved traces; all that are set must hold."""

    project: str | None = option(None, "Only traces of this project.")
    kind: str | None = option(None, "Only traces of questions of this kind.")
    rating: float | None = option(None, "Only traces with at least this mean rating.", minimum=1, maximum=5)
    """The mean over the steps; a trace without ratings does not match."""
    by: str | None = option(None, f"Only traces by {PEOPLE} or {MODELS}.")
    repeats: str | None = None
    """Whether it can be repeated: one of REPETITION_STATES (db/runs/repetitions.py), or NOT_TRIED."""
    text: str | None = option(None, "Only traces of questions that contain these words.")
    """In any order."""

    def __post_init__(self) -> None:
        """StoreError for an unknown kind of author."""
        if self.by not in (None, PEOPLE, MODELS):
            raise StoreError(f"demonstrations are by {PEOPLE} or by {MODELS}, not by {self.by!r}")

    def active_conditions(self) -> dict[str, Any]:
        """Return the conditions that are set, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Demonstration(NamedTuple):
    """An approved trace as one row of a library."""

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
    """The tools of its steps, in order."""
    rating: float | None = None
    """The mean rating of its steps."""
    skills: frozenset[str] = frozenset()
    """The names of the skills that its steps called: a reasoner's plan, for instance."""
    attachments: Any = None
    """Those of the question: texts and JSON values by name; None if it has none."""
    imported_tools: tuple[str | None, ...] = ()
    """For each of the tools, its name in the file that the trace was imported from, where that is kept."""

    @property
    def full_text(self) -> str:
        """The question with its attachments."""
        return join_attachments(self.question, self.attachments)

    @property
    def summary(self) -> str:
        """The question for a list, with the beginning of its attachments."""
        return summarize_task(self.question, self.attachments)


class LibraryVersion(NamedTuple):
    """One row of the list of library versions."""

    id: UUID
    name: str
    number: int
    frozen_at: Any
    card: dict[str, Any]
    demonstrations: int


class DemonstrationFacets(NamedTuple):
    """The values that demonstrations can be filtered by, in alphabetical order."""

    projects: list[str]
    kinds: list[str]


def list_candidates(
    session: Session,
    conditions: DemonstrationFilter,
    statuses: Sequence[str] | None = APPROVED,
    version_id: UUID | None = None,
) -> list[Demonstration]:
    """List the traces with these statuses, or all, that match; ordered by id, as in every database."""
    chosen = _apply_filter(_select_pool(version_id, statuses), conditions)
    return _load_with_steps(session, chosen.order_by(Trace.id), _select_steps(chosen.with_only_columns(Trace.id)))


def list_demonstrations(  # noqa: PLR0913 - conditions and the page of the list
    session: Session,
    conditions: DemonstrationFilter,
    *,
    version_id: UUID | None = None,
    start: int = 0,
    limit: int = 20,
    first_project: str | None = None,
) -> list[Demonstration]:
    """List matching demonstrations of a version in its order, or of all approved ones, the latest first.

    Of all approved ones, those of `first_project` come before the others.
    """
    # The index of traces by status has this order, so that a page of one project needs no sorting.
    order: tuple[Any, ...] = (Trace.submitted_at.desc(), Trace.id.desc())
    if version_id is not None:
        order = (LibraryItem.position,)
    elif first_project is not None and conditions.project is None:
        order = (case((Project.name == first_project, 0), else_=1), *order)
    chosen = _apply_filter(_select_pool(version_id), conditions).order_by(*order).offset(start).limit(limit)
    ids = list(session.scalars(chosen.with_only_columns(Trace.id)))
    return _load_with_steps(
        session, _select_pool(version_id, None).where(Trace.id.in_(ids)), _select_steps(ids), order=ids
    )


def count_demonstrations(session: Session, conditions: DemonstrationFilter, version_id: UUID | None = None) -> int:
    """Count the matching demonstrations of a version, or of all approved traces."""
    matching = _apply_filter(_select_pool(version_id), conditions).with_only_columns(func.count(Trace.id))
    return session.scalar(matching) or 0


def list_matching_ids(
    session: Session,
    conditions: DemonstrationFilter,
    version_id: UUID | None = None,
    statuses: Sequence[str] | None = APPROVED,
) -> list[UUID]:
    """List the ids of matching traces of a version in its order, or of all with these statuses ordered by id."""
    order = Trace.id if version_id is None else LibraryItem.position
    matching = _apply_filter(_select_pool(version_id, statuses), conditions)
    return list(session.scalars(matching.with_only_columns(Trace.id).order_by(order)))


def list_facets(session: Session, version_id: UUID | None = None) -> DemonstrationFacets:
    """List the projects and question kinds of a version, or of all approved traces."""
    pool = _select_pool(version_id)
    names = set(session.scalars(pool.with_only_columns(Project.name).distinct()))
    kinds = set(session.scalars(pool.with_only_columns(Question.kind).distinct()))
    return DemonstrationFacets(sorted(names), sorted(kind for kind in kinds if kind is not None))


def approval_fingerprint(session: Session) -> tuple[int, UUID | None]:
    """Return a value that changes when a trace is approved, returned or imported, without reading traces."""
    approved = session.scalar(select(func.count()).select_from(Trace).where(Trace.status == "approved")) or 0
    return approved, session.scalar(select(Judgement.id).order_by(Judgement.id.desc()).limit(1))


def check_library_name(session: Session, name: str) -> None:
    """Conflict if the name is neither that of a library nor one that a new library may have."""
    existing = list(session.scalars(select(Library.name).distinct()))
    if name not in existing and (reason := explain_refused_name(name, existing)):
        raise Conflict(f"a library cannot be called {shorten_name(name)}: {reason}")


def store_version(
    session: Session, name: str, traces: Sequence[UUID], card: dict[str, Any], *, by: UUID | None = None
) -> Library:
    """Store the next version of the named library with these traces in this order.

    `by` is the person who freezes it, a reviewer or administrator; None on the command line.
    """
    require_acting_role(session, REVIEWER, ADMIN)
    if by is not None:
        require_role(session, by, REVIEWER, ADMIN)
    check_library_name(session, name)
    if not traces:
        raise Conflict(f"no approved trace matches, so nothing was frozen as {name!r}; approve some on the Review page")
    library = Library(name=name, number=_last_number(session, name) + 1, card=card)
    session.add(library)
    session.flush()
    rows = [
        {"library_id": library.id, "position": position, "trace_id": trace}
        for position, trace in enumerate(traces, start=1)
    ]
    insert_rows(session, LibraryItem, rows)
    return library


def _last_number(session: Session, name: str) -> int:
    """The last number under this name, of deleted versions and of renamed libraries, too: none is given again."""
    rows = session.execute(select(Library.name, Library.number, Library.card), execution_options=WITH_REMOVED)
    numbers = [number for own, number, card in rows if name in (own, *card.get(FORMER_NAMES, ()))]
    return max(numbers, default=0)


def list_versions(session: Session, name: str | None = None) -> list[LibraryVersion]:
    """List all versions by name, the latest of each library first."""
    query = (
        select(Library, func.count(LibraryItem.position))
        .outerjoin(LibraryItem, LibraryItem.library_id == Library.id)
        .group_by(Library.id)
        .order_by(Library.name, Library.number.desc())
    )
    if name is not None:
        query = query.where(Library.name == name)
    return [
        LibraryVersion(library.id, library.name, library.number, library.frozen_at, library.card, count)
        for library, count in session.execute(query)
    ]


def list_version_names(session: Session) -> tuple[tuple[UUID, str], ...]:
    """Return a value that changes when a version is frozen, renamed or removed."""
    return tuple((key, name) for key, name in session.execute(select(Library.id, Library.name).order_by(Library.id)))


def find_version(session: Session, reference: str) -> Library:
    """Find the version NAME:NUMBER, or the latest of NAME."""
    name, colon, number = reference.partition(":")
    if colon and not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise RowNotFound(f"{reference!r} names no version; write {name}:1 for its first, or {name} for its latest")
    chosen = select(Library).order_by(Library.number.desc())
    if colon:
        chosen = chosen.where(Library.number == int(number))
    library = session.scalar(chosen.where(Library.name == name).limit(1))
    if library is None:
        # Runs, scripts and links go on with the name that a library had before.
        library = next((row for row in session.scalars(chosen) if name in row.card.get(FORMER_NAMES, ())), None)
    if library is None:
        raise RowNotFound(f"there is no library {reference!r}; `showhow library list` lists the existing ones")
    return library


def list_library_worlds(session: Session, reference: str) -> list[str]:
    """The worlds of the demonstrations of a version, NAME:NUMBER, as its card names them; none if it was deleted."""
    try:
        return list(find_version(session, reference).card.get("worlds", ()))
    except RowNotFound:
        return []


def load_demonstrations(session: Session, library_id: UUID) -> list[Demonstration]:
    """Load the demonstrations of the version in its order."""
    chosen = _select_pool(library_id)
    return _load_with_steps(
        session, chosen.order_by(LibraryItem.position), _select_steps(chosen.with_only_columns(Trace.id))
    )


def load_skill_steps(session: Session, library_id: UUID, skill: str, limit: int | None = None) -> list[Step]:
    """The finished steps with this skill in the traces of the version, trace by trace."""
    chosen = (
        select(Step)
        .join(LibraryItem, LibraryItem.trace_id == Step.trace_id)
        .where(
            LibraryItem.library_id == library_id,
            Step.skill.startswith(f"{skill}/", autoescape=True),
            Step.finished_at.is_not(None),
            Step.removed_at.is_(None),
        )
        .order_by(Step.trace_id, Step.position)
        .limit(limit)
    )
    return list(session.scalars(chosen))


def list_split_questions(session: Session, split: str) -> list[tuple[UUID, str]]:
    """List the id of each question of the split, and its text with its attachments."""
    rows = select(Question.id, *FULL_TEXT_COLUMNS).where(Question.split == split).order_by(Question.id)
    return [(question_id, join_attachments(*texts)) for question_id, *texts in session.execute(rows)]


def _select_demonstrations() -> Any:
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
            Question.details["attachments"],
            type_coerce(Trace.result, ExactJson())["details", "humaniq", "written"],
        )
        .join(Question, Question.id == Trace.question_id)
        .join(Project, Project.id == Question.project_id)
        .outerjoin(User, User.id == Trace.author_id)
    )


def _select_pool(version_id: UUID | None, statuses: Sequence[str] | None = APPROVED) -> Any:
    """Select the traces of the version, removed ones too, or all with these statuses; None for any status."""
    if version_id is None:
        all_traces = _select_demonstrations()
        return all_traces if statuses is None else all_traces.where(or_(*(Trace.status == name for name in statuses)))
    return (
        _select_demonstrations()
        .join(LibraryItem, LibraryItem.trace_id == Trace.id)
        .where(LibraryItem.library_id == version_id)
        .execution_options(**WITH_REMOVED)
    )


def _apply_filter(chosen: Any, conditions: DemonstrationFilter) -> Any:
    if conditions.project is not None:
        chosen = chosen.where(Project.name == conditions.project)
    if conditions.kind is not None:
        chosen = chosen.where(Question.kind == conditions.kind)
    if conditions.by is not None:
        chosen = chosen.where((Trace.reasoner == HUMAN) == (conditions.by == PEOPLE))
    if conditions.rating is not None:
        is_current_step = Step.trace_id == Trace.id, Step.removed_at.is_(None)
        chosen = chosen.where(
            select(func.avg(Step.rating)).where(*is_current_step).scalar_subquery() >= conditions.rating
        )
    if conditions.repeats is not None:
        known = select(Judgement.id).where(Judgement.trace_id == Trace.id, Judgement.aspect == REPETITION_ASPECT)
        is_tried = conditions.repeats != NOT_TRIED
        chosen = chosen.where(
            known.where(Judgement.value == conditions.repeats).exists() if is_tried else ~known.exists()
        )
    for word in (conditions.text or "").split():
        chosen = chosen.where(Question.text.icontains(word, autoescape=True))
    return chosen


def _select_steps(traces: Any) -> Any:
    return (
        select(Step.trace_id, Step.position, Step.tool, Step.rating, Step.skill)
        .where(Step.trace_id.in_(traces), Step.removed_at.is_(None))
        .order_by(Step.trace_id, Step.position)
        .execution_options(**WITH_REMOVED)
    )


def _load_with_steps(session: Session, chosen: Any, steps: Any, order: Sequence[UUID] = ()) -> list[Demonstration]:
    tools: dict[UUID, dict[int, str]] = {}
    ratings: dict[UUID, list[int]] = {}
    skills: dict[UUID, set[str]] = {}
    for trace, position, tool, rating, skill in session.execute(steps):
        if skill is not None and skill != SPAN_SKILL:
            skills.setdefault(trace, set()).add(skill.partition("/")[0])
        if tool is not None:
            tools.setdefault(trace, {})[position] = tool
        if rating is not None:
            ratings.setdefault(trace, []).append(rating)
    demonstrations = []
    for *values, attachments, calls_as_imported in session.execute(chosen):
        demonstration = Demonstration(*values)
        own = tools.get(demonstration.trace_id, {})
        demonstrations.append(
            demonstration._replace(
                tools=tuple(own.values()),
                rating=_mean_or_none(ratings.get(demonstration.trace_id, ())),
                skills=frozenset(skills.get(demonstration.trace_id, ())),
                attachments=attachments,
                imported_tools=tuple(find_imported_tool(calls_as_imported, position) for position in own),
            )
        )
    if not order:
        return demonstrations
    positions = {trace: position for position, trace in enumerate(order)}
    return sorted(demonstrations, key=lambda demonstration: positions[demonstration.trace_id])


def find_imported_tool(calls: Any, position: int) -> str | None:
    """The name of a step's tool among the calls that an imported trace keeps in their first wording, by position."""
    match calls.get(str(position)) if isinstance(calls, dict) else None:
        case {"tool": str(name)}:
            return name
    return None


def _mean_or_none(ratings: Sequence[int]) -> float | None:
    return sum(ratings) / len(ratings) if ratings else None
