"""Archive and delete projects, questions, drafts, runs, libraries and worlds, and bring them back.

Both mark the rows, which db/removed_rows.py hides. What others rest on stays readable there: the questions of a run,
the demonstrations of a frozen library. A deletion is final after KEPT_DAYS (purging.py). The folder of a world is
moved by app/removals.py.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, false, func, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute, Mapped, Session, mapped_column
from uuid_utils.compat import uuid7

from showhow.db.audit import record_act
from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import Attempt, Library, Project, Question, Run, Step, Trace, User
from showhow.db.people.users import ADMIN, REVIEWER, acting_person, require_acting_role
from showhow.db.questions.projects import find_assignment, find_project, get_project
from showhow.db.removal.removal_kinds import KEPT_DAYS, Kind
from showhow.db.removal.renaming import roles_for_run
from showhow.db.removed_rows import REMOVABLE, WITH_REMOVED
from showhow.db.runs.leases import count_leased_by_worker
from showhow.db.runs.runs import ASK_RUN_NAME
from showhow.db.traces.libraries import LibraryItem, find_version
from showhow.db.types import Base, Removable, utc_now

_NAME_CHARACTERS = 120
_LISTED_VERSIONS = 3
_KEYS_OF_A_QUERY = 500


_MODELS: dict[Kind, type[Removable]] = {
    Kind.PROJECT: Project,
    Kind.QUESTION: Question,
    Kind.DRAFT: Trace,
    Kind.RUN: Run,
    Kind.LIBRARY: Library,
}
_PLURALS = {
    Kind.PROJECT: "projects",
    Kind.QUESTION: "questions",
    Kind.DRAFT: "drafts",
    Kind.RUN: "runs",
    Kind.LIBRARY: "libraries",
    Kind.WORLD: "worlds",
}
_NOUNS: dict[type[Removable], str] = {Question: "question", Trace: "trace", Run: "run"}
_ROLES: dict[Kind, tuple[str, ...]] = {Kind.RUN: (REVIEWER, ADMIN), Kind.LIBRARY: (REVIEWER, ADMIN)}
"""Who may archive, delete and restore beside the author of a draft and the person who asked; else administrators."""


class Removal(Base):
    """Something that was archived or deleted, and can be restored."""

    __tablename__ = "removal"

    kind: Mapped[str]
    key: Mapped[str]
    """The id of its row; the name of a world."""
    name: Mapped[str]
    touched: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    """The number of rows that went with it, by noun."""
    removed_by: Mapped[str | None] = mapped_column(default=None)
    """The person's name; None for the command line."""
    kept_until: Mapped[datetime | None] = mapped_column(default=None)
    """When a deletion becomes final; None for what is archived."""
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    removed_at: Mapped[datetime] = mapped_column(default_factory=utc_now)

    @property
    def is_archived(self) -> bool:
        """Whether it stays until it is restored."""
        return self.kept_until is None


@dataclass(frozen=True, slots=True)
class RemovalEffect:
    """What archiving or deleting something does to the rest."""

    kind: Kind
    name: str
    touched: dict[str, int]
    """The number of rows that go with it, by noun."""
    stays: tuple[str, ...] = ()
    """What rests on it and stays, one sentence each."""

    @property
    def title(self) -> str:
        """What goes, in a sentence."""
        return f"{self.kind.capitalize()} {self.name}{format_touched(self.touched)}."

    def __str__(self) -> str:
        return " ".join([self.title, *self.stays])


def format_touched(touched: dict[str, int]) -> str:
    """The rows that go with something: "with 3 questions, 4 traces and 1 run"; nothing if there are none."""
    parts = [_count(number, noun) for noun, number in touched.items() if number]
    listed = ", ".join(parts[:-1])
    return f" with {listed}{' and ' if listed else ''}{parts[-1]}" if parts else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def find_key(session: Session, kind: Kind, text: str) -> UUID | str:
    """The key of what a person names: a project or world by its name, a library as NAME:NUMBER, a run also by its name.

    Others by their id or its beginning, and questions also as PROJECT:NUMBER.
    """
    if kind == Kind.WORLD:
        return text
    if kind == Kind.PROJECT:
        return get_project(session, text).id
    if kind == Kind.LIBRARY:
        if ":" not in text:
            raise RowNotFound(f"{text!r} names all versions of a library; name one as {text}:1")
        return find_version(session, text).id
    model: Any = _MODELS[kind]
    named = model.title == text if kind == Kind.RUN else false()
    project, _, number = text.rpartition(":")
    if kind == Kind.QUESTION and project and number.isdecimal():
        named = (Question.project_id == get_project(session, project).id) & (Question.position == int(number))
    keys: list[UUID] = list(session.scalars(select(model.id).where(named)))
    plain = text.lower().replace("-", "")
    keys = keys or [key for key in session.scalars(select(model.id)) if plain and key.hex.startswith(plain)]
    if len(keys) != 1:
        raise RowNotFound(f"{text!r} {'names several' if keys else 'is not the id of any'} {_PLURALS[kind]} here")
    return keys[0]


def find_removal(session: Session, kind: Kind, text: str) -> Removal:
    """The removal of that kind whose name, key or id is the text, or begins with it; RowNotFound unless it is one."""
    removals = list_removals(session, kind)
    matching = [row for row in removals if text in (row.name, row.key)]
    matching = matching or [
        row for row in removals if text and text in (row.name[: len(text)], row.id.hex[: len(text)])
    ]
    if len(matching) != 1:
        raise RowNotFound(f"{'several' if matching else 'no'} {_PLURALS[kind]} called {text!r} are archived or deleted")
    return matching[0]


def describe_removal(session: Session, kind: Kind, key: UUID | str, others: Sequence[UUID] = ()) -> RemovalEffect:
    """What archiving or deleting it would do, with `others` if it is a question; RowNotFound if it is not there."""
    if kind == Kind.WORLD:
        return RemovalEffect(kind, str(key), {}, tuple(_list_what_needs_world(session, str(key))))
    row = _get(session, kind, key)
    touched: Counter[str] = Counter()
    for model, condition in _rows_that_go(kind, row.id, others):
        noun = "other question" if kind == Kind.QUESTION and model is Question else _NOUNS[model]
        touched[noun] += session.scalar(select(func.count()).select_from(model).where(condition)) or 0
    if kind == Kind.DRAFT:
        steps = select(func.count()).select_from(Step).where(Step.trace_id == row.id, Step.removed_at.is_(None))
        touched["step"] = session.scalar(steps) or 0
    return RemovalEffect(kind, _name(session, row), dict(touched), tuple(_list_what_stays(session, kind, row, others)))


def remove(
    session: Session, kind: Kind, key: UUID | str, *, archives: bool = False, others: Sequence[UUID] = ()
) -> Removal:
    """Archive or delete it with all that goes with it; Conflict while a run of it is at work.

    `others` are further questions of the same project, which are restored together with it.
    """
    effect = describe_removal(session, kind, key, others)
    actor = acting_person(session)
    removal = Removal(
        kind=kind,
        key=str(key),
        name=effect.name,
        touched=dict(effect.touched),
        removed_by=actor.name if actor else None,
        kept_until=None if archives else utc_now() + timedelta(days=KEPT_DAYS),
    )
    if kind == Kind.WORLD:
        require_acting_role(session, ADMIN)
    else:
        row = _get(session, kind, key)
        _authorize(session, kind, row)
        _mark(session, kind, row, removal, others)
    session.add(removal)
    session.flush()
    details = {"with": removal.touched} | ({"others": [str(other) for other in others]} if others else {})
    record_act(session, "archived" if archives else "deleted", kind, removal.key, details)
    return removal


def _mark(session: Session, kind: Kind, row: Any, removal: Removal, others: Sequence[UUID]) -> None:
    session.refresh(row, with_for_update=True)
    if kind == Kind.DRAFT and (row.status != "draft" or row.author_id is None):
        raise Conflict(f"this trace is {row.status}, and only a person's draft can be deleted")
    if at_work := _list_runs_at_work(session, kind, row.id):
        raise Conflict(f"a run of it is at work ({at_work[0]}); stop it first, then try again")
    for model, condition in _rows_that_go(kind, row.id, others):
        change = update(model).where(condition).values(removal_id=removal.id)
        session.execute(change, execution_options={"synchronize_session": False})
    row.removal_id = removal.id
    if kind == Kind.PROJECT:
        # Another project may have the name meanwhile; libraries show whose demonstrations they were.
        row.name = f"{row.name} ({'archived' if removal.is_archived else 'deleted'} {removal.id.hex[-6:]})"
    session.flush()
    if kind == Kind.DRAFT:
        _open_question_of_draft(session, row)


def _open_question_of_draft(session: Session, draft: Trace) -> None:
    """End the reservation of a question of which its person has no other trace; one that was assigned stays."""
    author = draft.author_id
    assignment = find_assignment(session, draft.question_id, author) if author else None
    others = select(Trace.id).where(Trace.question_id == draft.question_id, Trace.author_id == author).limit(1)
    is_reservation = assignment is not None and assignment.state == "open" and assignment.until is not None
    if is_reservation and session.scalar(others) is None:
        session.delete(assignment)
        session.flush()


def restore(session: Session, removal_id: UUID) -> Removal:
    """Bring back what the removal took away; Conflict if what it belongs to is removed, too, or its name is used."""
    removal = session.get(Removal, removal_id, with_for_update=True)
    if removal is None:
        raise RowNotFound("this was restored, or removed for good, meanwhile; reload the page")
    kind = Kind(removal.kind)
    if kind == Kind.WORLD:
        require_acting_role(session, ADMIN)
    else:
        row = session.get_one(_MODELS[kind], UUID(removal.key), with_for_update=True, execution_options=WITH_REMOVED)
        _authorize(session, kind, row)
        _require_owner(session, kind, row)
        if isinstance(row, Project):
            if find_project(session, removal.name) is not None:
                raise Conflict(f"there is another project {removal.name!r} now; rename it, then restore this one")
            row.name = removal.name
            session.flush()
        for model in REMOVABLE:
            change = update(model).where(model.removal_id == removal.id).values(removal_id=None)
            session.execute(change, execution_options={**WITH_REMOVED, "synchronize_session": False})
        session.expire(row)
    session.delete(removal)
    session.flush()
    record_act(session, "restored", kind, removal.key)
    return removal


def list_removals(session: Session, kind: Kind | None = None) -> list[Removal]:
    """List what is archived or deleted, the latest first."""
    rows = select(Removal).order_by(Removal.removed_at.desc(), Removal.id.desc())
    return list(session.scalars(rows if kind is None else rows.where(Removal.kind == kind)))


def may_restore(session: Session, removal: Removal) -> bool:
    """Whether the person who acts may restore it."""
    actor = acting_person(session)
    try:
        is_own = actor is not None and actor.name == removal.removed_by
        require_acting_role(session, *(() if is_own else _ROLES.get(Kind(removal.kind), (ADMIN,))))
    except Conflict:
        return False
    return True


def _get(session: Session, kind: Kind, key: UUID | str) -> Any:
    row: Any = session.get(_MODELS[kind], UUID(str(key)))
    # The session may have read a removed one for something that rests on it.
    if row is None or row.removal_id is not None:
        raise RowNotFound(f"there is no {kind} {key}; it may be deleted already: Settings lists it then")
    return row


def _name(session: Session, row: Any) -> str:
    if isinstance(row, Library):
        return f"{row.name}:{row.number}"
    if isinstance(row, Run) and row.name == ASK_RUN_NAME and not row.title:
        row = session.scalar(select(Trace).where(Trace.run_id == row.id).limit(1)) or row
    if isinstance(row, Trace):
        row = session.get_one(Question, row.question_id, execution_options=WITH_REMOVED)
    if isinstance(row, Question):
        return row.text if len(row.text) <= _NAME_CHARACTERS else f"{row.text[:_NAME_CHARACTERS]} …"
    if isinstance(row, Run):
        described = row.title or ", ".join(filter(None, (row.reasoner, row.spec.library, row.spec.model)))
        return f"{described} of {row.started_at:%Y-%m-%d %H:%M}"
    return str(row.name)


def _authorize(session: Session, kind: Kind, row: Any) -> None:
    """Conflict unless the person who acts has the role, wrote the draft or asked the question."""
    accepted = roles_for_run(session, row) if isinstance(row, Run) else _ROLES.get(kind, (ADMIN,))
    actor = acting_person(session)
    if isinstance(row, Trace) and row.author_id is not None and actor is not None:
        accepted = () if session.get_one(User, row.author_id).name == actor.name else accepted
    require_acting_role(session, *accepted)


def _require_owner(session: Session, kind: Kind, row: Any) -> None:
    """Conflict if what the row belongs to is removed."""
    owner: type[Any] = Question if kind == Kind.DRAFT else Project
    keys = {Kind.QUESTION: "project_id", Kind.DRAFT: "question_id"}
    key = row.spec.project_id if kind == Kind.RUN else getattr(row, keys.get(kind, ""), None)
    marks = select(owner.removal_id).where(owner.id == UUID(str(key))) if key else None
    if marks is not None and session.scalar(marks, execution_options=WITH_REMOVED) is not None:
        raise Conflict(f"the {owner.__name__.lower()} of this {kind} is archived or deleted; restore that first")


def _rows_that_go(kind: Kind, key: UUID, others: Sequence[UUID] = ()) -> list[tuple[type[Any], ColumnElement[bool]]]:
    """The rows that go with it, those first that are found by the others."""
    if kind == Kind.RUN:
        return [(Trace, Trace.run_id == key)]
    if kind == Kind.QUESTION:
        keys = [key, *others]
        rest = [condition & (Question.id != key) for condition in _in_batches(Question.id, keys)]
        return [
            *((Trace, condition) for condition in _in_batches(Trace.question_id, keys)),
            *((Question, condition) for condition in rest),
        ]
    if kind != Kind.PROJECT:
        return []
    questions = select(Question.id).where(Question.project_id == key)
    asked = select(Attempt.run_id).where(Attempt.question_id.in_(questions))
    traced = select(Trace.run_id).where(Trace.question_id.in_(questions), Trace.run_id.is_not(None))
    is_of_project = Run.spec["project_id"].as_string() == str(key)
    return [
        (Run, or_(is_of_project, Run.id.in_(asked), Run.id.in_(traced))),
        (Trace, Trace.question_id.in_(questions)),
        (Question, Question.project_id == key),
    ]


def _in_batches(column: InstrumentedAttribute[UUID], keys: Sequence[UUID]) -> list[ColumnElement[bool]]:
    """Conditions that together choose the rows with these keys: a query has a limit of keys."""
    starts = range(0, len(keys), _KEYS_OF_A_QUERY)
    return [column.in_(keys[start : start + _KEYS_OF_A_QUERY]) for start in starts]


def _list_runs_at_work(session: Session, kind: Kind, key: UUID) -> list[str]:
    conditions = [condition for model, condition in _rows_that_go(kind, key) if model is Run]
    conditions += [Run.id == key] if kind == Kind.RUN else []
    runs = session.scalars(select(Run).where(*conditions, Run.finished_at.is_(None))) if conditions else ()
    return [_name(session, run) for run in runs if count_leased_by_worker(session, run.id)]


def _list_what_stays(session: Session, kind: Kind, row: Any, others: Sequence[UUID]) -> list[str]:
    going = _rows_that_go(kind, row.id, others)
    traces = [select(Trace.id).where(condition) for model, condition in going if model is Trace]
    kept: Counter[tuple[str, int]] = Counter()
    for gone in traces:
        items = select(Library.name, Library.number, func.count()).join(
            LibraryItem, LibraryItem.library_id == Library.id
        )
        items = items.where(LibraryItem.trace_id.in_(gone)).group_by(Library.name, Library.number)
        for name, number, count in session.execute(items):
            kept[name, number] += count
    versions = sorted(kept, key=lambda version: (version[0], -version[1]))
    sentences = [
        f"The library {name}:{number} keeps its {_count(kept[name, number], 'demonstration')} of it."
        for name, number in versions[:_LISTED_VERSIONS]
    ]
    if len(versions) > _LISTED_VERSIONS:
        sentences.append(f"So do {_count(len(versions) - _LISTED_VERSIONS, 'other version')}.")
    if kind == Kind.RUN:
        repairs = select(func.count()).select_from(Trace).where(Trace.parent_id.in_(traces[0]))
        again = Run.spec["repeats"].as_string() == str(row.id)
        sentences += _stay(session.scalar(repairs.where(Trace.author_id.is_not(None))), "repair", "by people", "stays")
        later = select(func.count()).select_from(Run).where(again)
        sentences += _stay(session.scalar(later), "verification", "of its failures", "stays")
    elif kind == Kind.QUESTION:
        of_questions = _in_batches(Attempt.question_id, [row.id, *others])
        asked = {run for condition in of_questions for run in session.scalars(select(Attempt.run_id).where(condition))}
        sentences += _stay(len(asked), "run", "that asked it", "keeps its answer")
    elif kind == Kind.LIBRARY:
        using = select(func.count()).select_from(Run).where(Run.library_id == row.id)
        sentences += _stay(session.scalar(using), "run", "that used it", "stays as it is")
    return sentences


def _list_what_needs_world(session: Session, world: str) -> list[str]:
    over = select(func.count()).select_from(Project).where(Project.world == world)
    return _stay(session.scalar(over), "project", "over it", "stays, and its tools answer once the world is restored")


def _stay(number: int | None, noun: str, which: str, stays: str) -> list[str]:
    """A sentence about that number of rows; none for none."""
    number = number or 0
    if number > 1:
        stays = {"stays": "stay", "keeps its answer": "keep their answers", "stays as it is": "stay as they are"}.get(
            stays, "stay, and their tools answer once the world is restored"
        )
    return [f"{_count(number, noun)} {which} {stays}."] if number else []
