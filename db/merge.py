"""Taking in a trace from elsewhere: keys are UUIDs, so traces of two machines merge and nothing is overwritten."""

from typing import Any, Literal, TypeVar
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.assignments import count_completed
from db.bulk import insert_rows, values
from db.models import Base, Project, Question, Run, Trace, User
from db.projects import get_or_create_user, project_by_name
from db.reading import open_trace
from db.record import TraceRecord

Outcome = Literal["added", "same", "differs"]
Noun = TypeVar("Noun", bound=Base)


def merge(session: Session, record: TraceRecord) -> Outcome:
    """Add the trace with all that belongs to it; one that is here already is compared and left as it is.

    Projects and people are matched by name, questions by id, or by text within their project.
    """
    if session.get(Trace, record.trace.id) is not None:
        return "same" if same(open_trace(session, record.trace.id), record) else "differs"
    project = project_by_name(session, record.project.name)
    if project is None:
        project = _put(session, Project, record.project)
    question = _question(session, record.question, project)
    if record.run is not None and session.get(Run, record.run.id) is None:
        _put(session, Run, record.run)
    people = {key: _person(session, key, name) for key, name in record.people.items()}
    _put(session, Trace, record.trace, question_id=question.id, author_id=people.get(record.trace.author_id))  # type: ignore[arg-type]
    for step in sorted([*record.steps, *record.removed], key=lambda step: (step.parent_id is not None, step.position)):
        _put(session, type(step), step)
    for edit in record.edits:
        _put(session, type(edit), edit, editor_id=people.get(edit.editor_id))  # type: ignore[arg-type]
    for judgement in record.judgements:
        _put(session, type(judgement), judgement, judge_id=people.get(judgement.judge_id))  # type: ignore[arg-type]
    count_completed(session, question.id)
    return "added"


def _person(session: Session, key: UUID, name: str) -> UUID:
    """The key of the person of that name here; a new one keeps the key from elsewhere if it is free."""
    known = session.scalar(select(User.id).where(User.name == name))
    if known is not None:
        return known
    if session.get(User, key) is not None:
        return get_or_create_user(session, name).id
    session.add(User(name=name, id=key))
    session.flush()
    return key


def _question(session: Session, question: Question, project: Project) -> Question:
    found = session.get(Question, question.id) or session.scalar(
        select(Question).where(Question.project_id == project.id, Question.text == question.text).limit(1)
    )
    if found is not None:
        return found
    taken = session.scalar(
        select(Question.id).where(Question.project_id == project.id, Question.position == question.position)
    )
    last = session.scalar(select(func.max(Question.position)).where(Question.project_id == project.id)) or 0
    position = last + 1 if taken else question.position
    return _put(session, Question, question, project_id=project.id, position=position, completed=0)


def _put(session: Session, kind: type[Noun], noun: Noun, **other: Any) -> Noun:
    # Past the mapper, which would number a new row's version from 1 and forget how often it was changed.
    row = {**values(noun), **other}
    insert_rows(session, kind, [row])
    return session.get_one(kind, row["id"])


def same(here: TraceRecord, there: TraceRecord) -> bool:
    """Whether two records tell the same trace, whatever keys their projects, questions and people have."""

    def told(record: TraceRecord) -> list[Any]:
        who = record.people
        trace = values(record.trace) | {"question_id": None, "author_id": record.author}
        edits = [values(edit) | {"editor_id": _name(who, edit.editor_id)} for edit in record.edits]
        said = [values(j) | {"judge_id": _name(who, j.judge_id)} for j in record.judgements]
        return [
            record.question.text,
            trace,
            [values(s) for s in record.steps],
            [values(s) for s in record.removed],
            edits,
            said,
        ]

    return told(here) == told(there)


def _name(people: dict[UUID, str], key: UUID | None) -> str | None:
    return people.get(key) if key else None
