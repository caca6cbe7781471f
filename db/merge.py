"""Add a trace from another database: keys are UUIDs, so traces of two machines merge and nothing is overwritten.

The model calls of a trace are not merged; they stay in the database in which they were made.
"""

import json
from hashlib import sha256
from typing import Any, Literal, TypeVar
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.database import Database
from db.models import Project, Question, Run, Step, Trace, User
from db.projects import find_equal_question, find_project, update_completed_count
from db.serialization import field_values, insert_rows
from db.trace_record import TraceRecord
from db.traces import load_trace
from db.types import Base
from db.users import ADMIN, require_acting_role

MergeOutcome = Literal["added", "same", "differs"]
ModelType = TypeVar("ModelType", bound=Base)


def merge_trace(session: Session, record: TraceRecord) -> MergeOutcome:
    """Add the trace with all its rows; a trace that is stored already is compared and not changed.

    Projects and people are matched by name, questions by id, or by text and attachments within their project. Only
    administrators bring in traces.
    """
    require_acting_role(session, ADMIN)
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
    for step in _parents_first([*record.steps, *record.removed]):
        _insert_row(session, Step, step)
    for edit in record.edits:
        _insert_row(session, type(edit), edit, editor_id=people.get(edit.editor_id))  # type: ignore[arg-type]
    for judgement in record.judgements:
        _insert_row(session, type(judgement), judgement, judge_id=people.get(judgement.judge_id))  # type: ignore[arg-type]
    update_completed_count(session, question.id)
    return "added"


def _parents_first(steps: list[Step]) -> list[Step]:
    """Order the steps so that each follows its parent."""
    by_id = {step.id: step for step in steps}

    def depth(step: Step) -> int:
        parent = by_id.get(step.parent_id) if step.parent_id else None
        return 0 if parent is None else depth(parent) + 1

    return sorted(steps, key=lambda step: (depth(step), step.position))


def _merge_user(session: Session, key: UUID, name: str) -> UUID:
    """Return the id of the user with this name here; a new user gets the id of the other database if it is free.

    A new user has no role until their first act here.
    """
    user_id = session.scalar(select(User.id).where(User.name == name))
    if user_id is not None:
        return user_id
    user = User(name=name) if session.get(User, key) is not None else User(name=name, id=key)
    session.add(user)
    session.flush()
    return user.id


def _merge_question(session: Session, question: Question, project: Project) -> Question:
    existing = session.get(Question, question.id) or find_equal_question(session, project.id, question)
    if existing is not None:
        return existing
    occupant = session.scalar(
        select(Question.id).where(Question.project_id == project.id, Question.position == question.position)
    )
    last = session.scalar(select(func.max(Question.position)).where(Question.project_id == project.id)) or 0
    position = last + 1 if occupant else question.position
    return _insert_row(session, Question, question, project_id=project.id, position=position, completed=0)


def _insert_row(session: Session, kind: type[ModelType], source: ModelType, **other: Any) -> ModelType:
    # Without the mapper, which would set the version of a new row to 1.
    row = {**field_values(source), **other}
    insert_rows(session, kind, [row])
    return session.get_one(kind, row["id"])


def is_same_trace(here: TraceRecord, there: TraceRecord) -> bool:
    """Whether two records contain the same trace, ignoring the keys of their projects, questions and people.

    An error without a kind, as earlier versions recorded it, equals the same error with one.
    """

    def steps(record: TraceRecord, other: TraceRecord) -> list[dict[str, Any]]:
        kinds = {step.id: step.error_kind for step in (*other.steps, *other.removed)}
        return [
            field_values(step) | {"error_kind": kinds.get(step.id) and step.error_kind}
            for step in (*record.steps, *record.removed)
        ]

    return _content(here) == _content(there) and steps(here, there) == steps(there, here)


def _content(record: TraceRecord) -> list[Any]:
    """What is compared beside the steps."""
    people = record.people
    edits = [field_values(edit) | {"editor_id": _person_name(people, edit.editor_id)} for edit in record.edits]
    judgements = [field_values(row) | {"judge_id": _person_name(people, row.judge_id)} for row in record.judgements]
    trace = field_values(record.trace) | {"question_id": None, "author_id": record.author}
    return [record.question.full_text, trace, edits, judgements]


class MergePreview:
    """What merging the traces of a file, one after the other, would make of each; nothing of it is stored.

    No transaction is open between two traces, so that others can write while a long file is read.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        # Digests in place of records, of which a file may have more than the memory holds.
        self._added: dict[UUID, bytes] = {}

    def merge(self, record: TraceRecord) -> MergeOutcome:
        """Merge the trace and undo it; StoreError if it cannot be stored."""
        digest = _digest(record)
        if record.trace.id in self._added:
            return "same" if self._added[record.trace.id] == digest else "differs"
        with self._database.begin() as session:
            attempt = session.begin_nested()
            outcome = merge_trace(session, record)
            attempt.rollback()
        if outcome == "added":
            self._added[record.trace.id] = digest
        return outcome


def _digest(record: TraceRecord) -> bytes:
    """Equal for the records of the same trace, whatever the kinds of its errors are."""
    steps = [field_values(step) | {"error_kind": None} for step in (*record.steps, *record.removed)]
    return sha256(json.dumps([_content(record), steps], sort_keys=True, default=str).encode(errors="replace")).digest()


def _person_name(people: dict[UUID, str], key: UUID | None) -> str | None:
    return people.get(key) if key else None
