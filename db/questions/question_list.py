"""The list of a project's questions: filters, pages, tags, and questions that are assigned to people.

A lead changes many at once. Nothing here reads all questions of a project, unless a filter on texts or states needs it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Case,
    ColumnElement,
    Index,
    Select,
    Text,
    and_,
    case,
    cast,
    delete,
    func,
    literal_column,
    or_,
    select,
    type_coerce,
    update,
)
from sqlalchemy.orm import Session
from uuid_utils.compat import uuid7

from showhow.db.database import Conflict
from showhow.db.models import Assignment, Project, Question, Trace, User
from showhow.db.people.users import ADMIN, REVIEWER, get_user, require_acting_role
from showhow.db.questions.projects import COMPLETED_STATUSES, RESERVATION_PERIOD
from showhow.db.serialization import insert_rows
from showhow.db.trace_states import is_held, is_kept_draft, is_open_return
from showhow.db.types import MAX_TAG_CHARACTERS, MAX_TAGS, dump_json, utc_now
from showhow.db.unanswerable import CANNOT_BE_ANSWERED, gold_says_unanswerable

QUESTION_STATES = {"approved": "approved", "submitted": "in review", "rejected": "returned", "draft": "begun"}
"""The state of a question by the status of its furthest trace."""
OPEN = "open"
_GOLD = cast(Question.gold_answers, Text)
_SAYS_UNANSWERABLE = gold_says_unanswerable(Question.gold_answers)
ANSWERABLE: dict[str, ColumnElement[bool]] = {
    "answerable": and_(_GOLD != "[]", ~_SAYS_UNANSWERABLE),
    CANNOT_BE_ANSWERED: _SAYS_UNANSWERABLE,
    "no gold answer": _GOLD == "[]",
}
"""What the gold answer says of a question, with the condition."""
_BATCH_SIZE = 500
_IS_TAGGED: ColumnElement[bool] = literal_column("tags <> '[]'", Boolean)
"""Condition: the question has tags. Queries use the same text, so that SQLite uses the index."""
_STORED_TAGS = type_coerce(Question.tags, Text)
"""The tags of a question as their column has them, for comparisons."""
_TAG_COLUMNS = [Question.__table__.c[name] for name in ("project_id", "tags", "position")]
Index("ix_question_tagged", *_TAG_COLUMNS, sqlite_where=_IS_TAGGED, postgresql_where=_IS_TAGGED)


@dataclass(frozen=True, slots=True)
class QuestionConditions:
    """Which questions of a project are listed; all conditions that are set must hold."""

    text: str = ""
    """What the question contains."""
    kind: str | None = None
    state: str | None = None
    """OPEN, or one of QUESTION_STATES."""
    tag: str | None = None
    person: str | None = None
    """The name of a person who has a trace of it, or to whom it is assigned."""
    answerable: str | None = None
    """One of ANSWERABLE."""
    ids: tuple[UUID, ...] | None = None


@dataclass(frozen=True, slots=True)
class QuestionState:
    """A question in the list of a project: its state, the people with traces of it, and those it is assigned to."""

    question: Question
    state: str
    """approved, in review, returned, begun or open: the furthest that a person's trace of it came."""
    people: tuple[str, ...]
    assigned: tuple[str, ...]
    """The people who are to answer it and have not begun."""


def count_question_states(session: Session, project_id: UUID) -> dict[str, int]:
    """Count the project's questions by state."""
    reached = _reached_state()
    counts = select(reached, func.count()).where(Question.project_id == project_id).group_by(reached)
    # Questions without a trace are counted from an index alone.
    traced = select(Trace.question_id).where(Trace.author_id.is_not(None))
    stored: dict[str, int] = dict(session.execute(counts.where(Question.id.in_(traced))).all())
    total = count_listed_questions(session, project_id, QuestionConditions())
    counted = {state: stored.get(state, 0) for state in QUESTION_STATES.values()}
    return counted | {OPEN: total - sum(counted.values())}


def _reached_state() -> Case[str]:
    """The state of a question."""
    conditions = {status: Trace.status == status for status in COMPLETED_STATUSES}
    conditions |= {"rejected": is_open_return(), "draft": is_kept_draft()}
    has_status = {
        status: select(Trace.id)
        .where(Trace.question_id == Question.id, Trace.author_id.is_not(None), condition)
        .exists()
        for status, condition in conditions.items()
    }
    return case(*((has_status[status], name) for status, name in QUESTION_STATES.items()), else_=OPEN)


def count_listed_questions(session: Session, project_id: UUID, conditions: QuestionConditions) -> int:
    """Count the questions that meet the conditions."""
    matching = _select_ids(session, project_id, conditions).with_only_columns(func.count(Question.id))
    return session.scalar(matching) or 0


def list_question_ids(
    session: Session, project_id: UUID, conditions: QuestionConditions, *, start: int = 0, limit: int | None = None
) -> list[UUID]:
    """List the ids of the questions that meet the conditions, in the order of the project, from an offset."""
    matching = _select_ids(session, project_id, conditions).order_by(Question.position)
    return list(session.scalars(matching.offset(start).limit(limit)))


def list_question_states(
    session: Session, project_id: UUID, conditions: QuestionConditions, *, start: int = 0, limit: int = 25
) -> list[QuestionState]:
    """List the questions that meet the conditions, in the order of the project, from an offset."""
    # Ids first: an index has them, and the rows before the page are not read.
    ids = list_question_ids(session, project_id, conditions, start=start, limit=limit)
    rows = session.execute(select(Question, _reached_state()).where(Question.id.in_(ids)).order_by(Question.position))
    authors = select(Trace.question_id, User.name).join(User, User.id == Trace.author_id)
    people = _group_names(session, authors.where(Trace.question_id.in_(ids)).order_by(Trace.started_at))
    holders = select(Assignment.question_id, User.name).join(User, User.id == Assignment.user_id)
    holders = holders.where(Assignment.question_id.in_(ids), is_held()).order_by(User.name)
    assigned = _group_names(session, holders)
    return [
        QuestionState(
            question,
            state,
            tuple(people.get(question.id, ())),
            tuple(name for name in assigned.get(question.id, ()) if name not in people.get(question.id, ())),
        )
        for question, state in rows
    ]


def _group_names(session: Session, rows: Select[UUID, str]) -> dict[UUID, dict[str, None]]:
    names: dict[UUID, dict[str, None]] = {}
    for question_id, name in session.execute(rows):
        names.setdefault(question_id, {})[name] = None
    return names


def _select_ids(session: Session, project_id: UUID, chosen: QuestionConditions) -> Select[UUID]:
    """Select the ids of the questions that meet the conditions."""
    conditions: list[ColumnElement[bool]] = [Question.project_id == project_id]
    if chosen.text:
        conditions.append(Question.text.icontains(chosen.text, autoescape=True))
    if chosen.kind is not None:
        conditions.append(Question.kind == chosen.kind)
    if chosen.state is not None:
        conditions.append(_reached_state() == chosen.state)
    if chosen.tag is not None:
        # The different sets of tags are few, and so the index answers.
        stored = [tags for tags in _list_sets_of_tags(session, project_id) if chosen.tag in tags]
        conditions += [_IS_TAGGED, _STORED_TAGS.in_(list(map(dump_json, stored)))]
    if chosen.person is not None:
        person = select(User.id).where(User.name == chosen.person).scalar_subquery()
        assigned = select(Assignment.question_id).where(Assignment.user_id == person, is_held())
        traced = select(Trace.question_id).where(Trace.author_id == person)
        conditions.append(or_(Question.id.in_(traced), Question.id.in_(assigned)))
    if chosen.answerable is not None:
        conditions.append(ANSWERABLE[chosen.answerable])
    if chosen.ids is not None:
        conditions.append(Question.id.in_(chosen.ids))
    return select(Question.id).where(and_(*conditions))


def list_question_kinds(session: Session, names: Sequence[str]) -> list[str]:
    """List the question kinds of these projects in alphabetical order."""
    kinds = select(Question.kind).join(Project, Project.id == Question.project_id).where(Project.name.in_(names))
    return sorted(kind for kind in session.scalars(kinds.distinct()) if kind is not None)


def list_tags(session: Session, project_id: UUID) -> list[str]:
    """List the tags of the project's questions in alphabetical order."""
    return sorted({tag for tags in _list_sets_of_tags(session, project_id) for tag in tags})


def _list_sets_of_tags(session: Session, project_id: UUID) -> list[list[str]]:
    rows = select(Question.tags).where(Question.project_id == project_id, _IS_TAGGED).distinct()
    return list(session.scalars(rows))


def add_tag(session: Session, project_id: UUID, chosen: QuestionConditions, tag: str) -> int:
    """Give the questions a tag, as an administrator; returns how many did not have it."""
    name = " ".join(tag.split())
    if not 0 < len(name) <= MAX_TAG_CHARACTERS:
        raise Conflict(f"a tag has 1 to {MAX_TAG_CHARACTERS} characters; choose another one")
    return _change_tags(session, project_id, chosen, {name}, set())


def remove_tag(session: Session, project_id: UUID, chosen: QuestionConditions, tag: str) -> int:
    """Take a tag from the questions, as an administrator; returns how many had it."""
    return _change_tags(session, project_id, chosen, set(), {tag})


def _change_tags(
    session: Session, project_id: UUID, chosen: QuestionConditions, added: set[str], removed: set[str]
) -> int:
    require_acting_role(session, ADMIN)
    matching = _select_ids(session, project_id, chosen).correlate(None)
    stored = session.scalars(matching.with_only_columns(Question.tags).distinct()).all()
    if any(len({*tags, *added}) > MAX_TAGS for tags in stored):
        raise Conflict(f"a question has at most {MAX_TAGS} tags; take one of them away first")
    count = 0
    for tags in stored:
        new = sorted(({*tags} | added) - removed)
        if new != tags:
            of_set = update(Question).where(Question.id.in_(matching), _STORED_TAGS.in_([dump_json(tags)]))
            written = of_set.values(tags=new).execution_options(synchronize_session=False)
            count += session.connection().execute(written).rowcount
    return count


def assign_questions(session: Session, ids: Sequence[UUID], people: Collection[UUID]) -> None:
    """Have these people answer the questions, in place of those to whom they were assigned.

    Nobody means that anybody may answer them again. What people have begun or answered stays theirs; reviewers and
    administrators assign. Who assigns very many does it in several transactions, so that others can write meanwhile.
    """
    require_acting_role(session, REVIEWER, ADMIN)
    for person in people:
        if not get_user(session, person).roles:
            raise Conflict(f"{get_user(session, person).name} has no role here; invite them with Members first")
    for start in range(0, len(ids), _BATCH_SIZE):
        _assign_batch(session, ids[start : start + _BATCH_SIZE], people)


def _assign_batch(session: Session, ids: Sequence[UUID], people: Collection[UUID]) -> None:
    # Who begins one of them at this moment locks its question, too.
    session.execute(select(Question.id).where(Question.id.in_(ids)).order_by(Question.id).with_for_update())
    of_questions = Assignment.question_id.in_(ids)
    released = (of_questions, Assignment.user_id.not_in(people), Assignment.state == "open")
    own = select(Trace.id).where(Trace.question_id == Assignment.question_id, Trace.author_id == Assignment.user_id)
    session.execute(delete(Assignment).where(*released, ~own.exists()))
    # Who has begun keeps the question as long as with a reservation of their own.
    begun = update(Assignment).where(*released, Assignment.until.is_(None))
    session.execute(begun.values(until=utc_now() + RESERVATION_PERIOD))
    is_free = and_(Assignment.user_id.in_(people), Assignment.state != "done")
    session.execute(update(Assignment).where(of_questions, is_free).values(state="open", reason=None, until=None))
    rows = session.execute(select(Assignment.question_id, Assignment.user_id).where(of_questions))
    stored = {(question_id, user_id) for question_id, user_id in rows}
    new = [(question_id, person) for question_id in ids for person in people if (question_id, person) not in stored]
    insert_rows(
        session,
        Assignment,
        [
            {
                "question_id": question_id,
                "user_id": person,
                "state": "open",
                "reason": None,
                "until": None,
                "id": uuid7(),
                "created_at": utc_now(),
            }
            for question_id, person in new
        ],
    )
