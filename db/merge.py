"""Taking in a trace from elsewhere: keys are UUIDs, so traces of two machines merge and nothing is overwritten."""

from typing import Any, Literal, TypeVar
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.assignments import update_completed_count
from db.bulk_insert import field_values, insert_rows
from db.models import Base, Project, Question, Run, Trace, User
from db.projects import find_project, get_or_create_user
from db.trace_record import TraceRecord
from db.traces import load_trace

MergeOutcome = Literal["added", "same", "differs"]
ModelType = TypeVar("ModelType", bound=Base)


def merge_trace(session: Session, record: TraceRecord) -> MergeOutcome:
    """Add the trace with all that belongs to it; one that is here already is compared and left as it is.

    Projects and people are matched by name, questions by id, or by text within their project.
    """
    if session.get(Trace, record.trace.id) is not None:
        return "same" if is_same_trace(load_trace(session, record.trace.id), record) else "differs"
    project = find_project(session, record.project.name)
    if project is None:
        project = _insert_row(session, Project, record.project)
    question = _merge_question(session, record.question, project)
    if record.run is not None and session.get(Run, record.run.id) is None:
        _insert_row(session, Run, record.run)
    people = {key: _merge_user(session, key, name) for key, name in record.people.items()}
    _insert_row(session, Trace, record.trace, question_id=question.id, author_id=people.get(record.trace.author_id))  # type: ignore[arg-type]
    for step in sorted([*record.steps, *record.removed], key=lambda step: (step.parent_id is not None, step.position)):
        _insert_row(session, type(step), step)
    for edit in record.edits:
        _insert_row(session, type(edit), edit, editor_id=people.get(edit.editor_id))  # type: ignore[arg-type]
    for judgement in record.judgements:
        _insert_row(session, type(judgement), judgement, judge_id=people.get(judgement.judge_id))  # type: ignore[arg-type]
    update_completed_count(session, question.id)
    return "added"


def _merge_user(session: Session, key: UUID, name: str) -> UUID:
    """The key of the person of that name here; a new one keeps the key from elsewhere if it is free."""
    known = session.scalar(select(User.id).where(User.name == name))
    if known is not None:
        return known
    if session.get(User, key) is not None:
        return get_or_create_user(session, name).id
    session.add(User(name=name, id=key))
    session.flush()
    return key


def _merge_question(session: Session, question: Question, project: Project) -> Question:
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
    return _insert_row(session, Question, question, project_id=project.id, position=position, completed=0)


def _insert_row(session: Session, kind: type[ModelType], noun: ModelType, **other: Any) -> ModelType:
    # Past the mapper, which would number a new row's version from 1 and forget how often it was changed.
    row = {**field_values(noun), **other}
    insert_rows(session, kind, [row])
    return session.get_one(kind, row["id"])


def is_same_trace(here: TraceRecord, there: TraceRecord) -> bool:
    """Whether two records tell the same trace, whatever keys their projects, questions and people have."""

    def told(record: TraceRecord) -> list[Any]:
        who = record.people
        trace = field_values(record.trace) | {"question_id": None, "author_id": record.author}
        edits = [field_values(edit) | {"editor_id": _person_name(who, edit.editor_id)} for edit in record.edits]
        said = [field_values(j) | {"judge_id": _person_name(who, j.judge_id)} for j in record.judgements]
        return [
            record.question.text,
            trace,
            [field_values(s) for s in record.steps],
            [field_values(s) for s in record.removed],
            edits,
            said,
        ]

    return told(here) == told(there)


def _person_name(people: dict[UUID, str], key: UUID | None) -> str | None:
    return people.get(key) if key else None
