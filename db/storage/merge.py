"""Add a trace from another database: keys are UUIDs, so traces of two machines merge and nothing is overwritten.

The model calls of a trace are not merged; they stay in the database in which they were made.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from showhow.db.database import Conflict, Database
from showhow.db.models import Edit, Judgement, Project, Question, Run, Step, Trace, User
from showhow.db.people.users import ADMIN, require_acting_role
from showhow.db.questions.projects import COMPLETED_STATUSES, update_completed_counts
from showhow.db.questions.question_index import QuestionIndex
from showhow.db.removed_rows import WITH_REMOVED
from showhow.db.run_spec import StoredValue
from showhow.db.serialization import field_values, insert_rows
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.traces.traces import has_trace, load_trace
from showhow.db.types import Base

MergeOutcome = Literal["added", "same", "differs"]
_KEYS_OF_A_QUERY = 500


def merge_trace(session: Session, record: TraceRecord) -> MergeOutcome:
    """Add the trace with all its rows; a trace that is stored already is compared and not changed.

    Projects and people are matched by name, questions by id, or by text and attachments within their project. Only
    administrators bring in traces.
    """
    merger = TraceMerger()
    outcome = merger.merge(session, record)
    merger.end_batch(session)
    return outcome


class TraceMerger:
    """Merges many traces in several transactions; what it has read of questions serves the later ones."""

    def __init__(self, note: Callable[[Base], None] | None = None) -> None:
        self._note = note or (lambda _: None)
        self._questions: dict[UUID, QuestionIndex] = {}
        self._answered: set[UUID] = set()
        self._current: set[UUID] = set()
        """The projects whose questions were read in this transaction: others may have added some before."""
        self._names: dict[tuple[type[Base], str], UUID] = {}
        """The projects and people by name that were looked up in this transaction."""

    def prepare(self, session: Session, records: Iterable[TraceRecord]) -> None:
        """Read what merging these records needs, so that their transaction is short."""
        for name in {record.project.name for record in records}:
            project_id = session.scalar(select(Project.id).where(Project.name == name))
            if project_id is not None:
                self._index(project_id).refresh(session)

    def merge(self, session: Session, record: TraceRecord) -> MergeOutcome:
        """Merge one trace as `merge_trace` does; `end_batch` has to follow in the same transaction."""
        _identify_earlier_reading(session, record)
        if has_trace(session, record.trace.id):
            return _compare_with_stored(session, record)
        project_id = self._merge_project(session, record.project)
        question_id = self._merge_question(session, record.question, project_id)
        if record.run is not None and _is_new(session, record.run):
            self._insert(session, record.run)
        people = {key: self._find_or_merge_user(session, key, name) for key, name in record.people.items()}
        self._insert(session, record.trace, question_id=question_id, author_id=people.get(record.trace.author_id))  # type: ignore[arg-type]
        insert_rows(session, Step, [field_values(step) for step in _parents_first([*record.steps, *record.removed])])
        edits = [field_values(edit) | {"editor_id": people.get(edit.editor_id)} for edit in record.edits]  # type: ignore[arg-type]
        insert_rows(session, Edit, edits)
        judgements = [field_values(row) | {"judge_id": people.get(row.judge_id)} for row in record.judgements]  # type: ignore[arg-type]
        insert_rows(session, Judgement, judgements)
        if record.trace.status in COMPLETED_STATUSES and record.trace.author_id is not None:
            self._answered.add(question_id)
        return "added"

    def end_batch(self, session: Session) -> None:
        """Count the completed traces of the questions that got new ones; Conflict unless an administrator imports."""
        require_acting_role(session, ADMIN)
        update_completed_counts(session, self._answered)
        self._answered.clear()
        self._current.clear()
        self._names.clear()

    def _index(self, project_id: UUID) -> QuestionIndex:
        return self._questions.setdefault(project_id, QuestionIndex(project_id))

    def _merge_question(self, session: Session, question: Question, project_id: UUID) -> UUID:
        if not _is_new(session, question):
            return question.id
        index = self._index(project_id)
        if project_id not in self._current:
            index.refresh(session)
            self._current.add(project_id)
        existing = index.find_text(question.full_text)
        if existing is not None:
            return existing
        occupied = question.position <= index.last_position and session.scalar(
            select(Question.id).where(Question.project_id == project_id, Question.position == question.position)
        )
        position = index.last_position + 1 if occupied else question.position
        index.add(question.id, position, question.source_id, question.full_text, question.gold_answers)
        return self._insert(session, question, project_id=project_id, position=position, completed=0)

    def _merge_project(self, session: Session, project: Project) -> UUID:
        if (Project, project.name) not in self._names:
            stored = session.scalar(select(Project.id).where(Project.name == project.name))
            if stored is None and _is_new(session, project):
                stored = self._insert(session, project)
            self._names[Project, project.name] = stored or project.id
        return self._names[Project, project.name]

    def _find_or_merge_user(self, session: Session, key: UUID, name: str) -> UUID:
        if (User, name) not in self._names:
            self._names[User, name] = self._merge_user(session, key, name)
        return self._names[User, name]

    def _merge_user(self, session: Session, key: UUID, name: str) -> UUID:
        """Return the id of the user with this name here; a new user gets the id of the other database if it is free.

        A new user has no role until their first act here.
        """
        user_id = session.scalar(select(User.id).where(User.name == name))
        if user_id is not None:
            return user_id
        is_taken = session.scalar(select(User.id).where(User.id == key)) is not None
        return self._insert(session, User(name=name) if is_taken else User(name=name, id=key))

    def _insert(self, session: Session, source: "_Noun", **other: Any) -> UUID:
        # Without the mapper, which would set the version of a new row to 1.
        insert_rows(session, type(source), [{**field_values(source), **other}])
        self._note(source)
        return source.id


_Noun = Project | Question | Run | Trace | User


def _is_new(session: Session, source: Project | Question | Run) -> bool:
    """Whether there is no row with this id; Conflict if it is removed, since it would be brought back in part."""
    noun = type(source)
    rows = select(noun.removal_id).where(noun.id == source.id)
    stored = session.execute(rows, execution_options=WITH_REMOVED).first()
    if stored is not None and stored[0] is not None:
        raise Conflict(
            f"the {noun.__name__.lower()} {source.id} is archived or deleted here; restore it under Settings, then "
            "import again"
        )
    return stored is None


def _compare_with_stored(session: Session, record: TraceRecord) -> MergeOutcome:
    stored = load_trace(session, record.trace.id)
    if stored.trace.removal_id is not None:
        raise Conflict(
            f"the trace {record.trace.id} is archived or deleted here; restore it under Settings, then import again"
        )
    return "same" if is_same_trace(stored, record) else "differs"


def _parents_first(steps: list[Step]) -> list[Step]:
    """Order the steps so that each follows its parent, those of a depth by position."""
    children: dict[UUID | None, list[Step]] = defaultdict(list)
    for step in steps:
        children[step.parent_id].append(step)
    ordered: list[Step] = []
    layer = children[None]
    while layer:
        ordered += sorted(layer, key=lambda step: step.position)
        layer = [child for step in layer for child in children.get(step.id, ())]
    return ordered


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


_DERIVED = 5
"""The version of ids that are derived from the contents of a file, which has none."""


def _identify_earlier_reading(session: Session, record: TraceRecord) -> None:
    """Give a trace of a file without ids the id of the stored one that an earlier version read of it, if there is one.

    A version that reads more of a file, such as thoughts, derives other ids from it.
    """
    trace = record.trace
    if trace.id.version != _DERIVED or record.run is not None or has_trace(session, trace.id):
        return
    stored = select(Trace.id).where(Trace.question_id == record.question.id, Trace.reasoner == trace.reasoner)
    for trace_id in session.scalars(stored).all():
        if trace_id.version == _DERIVED and _is_earlier_reading(load_trace(session, trace_id), record):
            trace.id = trace_id
            return


def _is_earlier_reading(stored: TraceRecord, record: TraceRecord) -> bool:
    """Whether two traces have the same calls and results, and the stored one no thought or answer of its own."""
    pairs = list(zip(stored.steps, record.steps, strict=False))
    return (
        len(stored.steps) == len(record.steps)
        and all((a.tool, a.observation, a.error) == (b.tool, b.observation, b.error) for a, b in pairs)
        and all(_is_part(a.thought, b.thought) for a, b in pairs)
        and _is_part(record.trace.final_answer or "", stored.trace.final_answer or "")
    )


def _is_part(text: str, whole: str) -> bool:
    # Tags around a thought were part of the text.
    return text.strip() in whole or text.lstrip().startswith("<think")


class MergePreview:
    """What merging the traces of a file, one after the other, would make of each; nothing is written."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Digests in place of records, of which a file may have more than the memory holds.
        self._added: dict[UUID, bytes] = {}

    def merge(self, record: TraceRecord) -> MergeOutcome:
        """The outcome of merging the trace; StoreError if it cannot be stored."""
        digest = _digest(record)
        if record.trace.id in self._added:
            return "same" if self._added[record.trace.id] == digest else "differs"
        with self._database.read() as session:
            _identify_earlier_reading(session, record)
            if has_trace(session, record.trace.id):
                return _compare_with_stored(session, record)
            _refuse_stored_parts(session, record)
        self._added[record.trace.id] = digest
        return "added"


def _refuse_stored_parts(session: Session, record: TraceRecord) -> None:
    """Raise Conflict for a new trace that has a step, an edit or a judgement of a stored one."""
    parts: tuple[tuple[Any, Sequence[Any]], ...] = (
        (Step, [*record.steps, *record.removed]),
        (Edit, record.edits),
        (Judgement, record.judgements),
    )
    for kind, rows in parts:
        for start in range(0, len(rows), _KEYS_OF_A_QUERY):
            keys = [row.id for row in rows[start : start + _KEYS_OF_A_QUERY]]
            if session.scalar(select(kind.id).where(kind.id.in_(keys)).limit(1)) is not None:
                name = kind.__name__.lower()
                raise Conflict(
                    f"the trace {record.trace.id} contradicts the stored data: a {name} of it is that of another trace"
                )


def _digest(record: TraceRecord) -> bytes:
    """Equal for the records of the same trace, whatever the kinds of its errors are."""
    steps = [field_values(step) | {"error_kind": None} for step in (*record.steps, *record.removed)]
    return sha256(
        json.dumps([_content(record), steps], sort_keys=True, default=_plain).encode(errors="replace")
    ).digest()


def _plain(value: Any) -> Any:
    return value.to_json() if isinstance(value, StoredValue) else str(value)


def _person_name(people: dict[UUID, str], key: UUID | None) -> str | None:
    return people.get(key) if key else None
