"""What a long import has added so far, in a file, so that the import can be undone as a whole, also after a kill.

A row is written to the journal before it is committed: the journal may name a row that was never stored, but misses
none. Rows that others have built on meanwhile stay, and so does what they archived or deleted: it can be restored.
"""

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from itertools import groupby, islice
from pathlib import Path
from uuid import UUID

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from showhow.db.batches import write_in_batches
from showhow.db.database import Database
from showhow.db.models import Attempt, Draft, Edit, Judgement, Project, Question, Run, Score, Step, Trace, User
from showhow.db.questions.projects import update_completed_count
from showhow.db.removed_rows import WITH_REMOVED
from showhow.db.types import Base

IMPORT_PREFIX = "import-"
REQUEST_FILE, UNDO_FILE, JOURNAL_FILE = "import.json", "undo", "added.jsonl"
"""In the folder of an import: what is imported, whether it has to be undone, and what was added."""
_KINDS: dict[str, type[Base]] = {kind.__name__: kind for kind in (Trace, Run, Question, Project, User)}
"""The kinds of rows that imports add, in the order in which they are removed."""
_Entry = tuple[type[Base], UUID, int]
"""A kind of rows, the key of one, and its version if it is a trace."""
_GROUP_SIZE = 200
"""Rows that are removed by one statement; where others refer to one of them, each gets its own."""


class ImportJournal:
    """The rows that one import has added; every row is added once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._pending: list[str] = []

    def note(self, row: Base) -> None:
        """Note a row that this transaction inserts."""
        self.note_key(type(row), row.id, row.version if isinstance(row, Trace) else 0)  # type: ignore[attr-defined]

    def note_key(self, kind: type[Base], key: UUID, version: int = 0) -> None:
        """Note the key of a row that this transaction inserts, with its version if it is a trace."""
        self._pending.append(json.dumps([kind.__name__, str(key), version]) + "\n")

    def save(self) -> None:
        """Write the noted rows to the file; call it right before the commit."""
        if self._pending:
            with self._file.open("a", encoding="utf-8") as stream:
                stream.writelines(self._pending)
                stream.flush()
                os.fsync(stream.fileno())
            self._pending = []

    def undo(self, database: Database, committed: Callable[[int], None] | None = None) -> int:
        """Remove the rows in short transactions, and return how many traces stay, changed or put away meanwhile.

        `committed` is called with the number of rows so far.
        """
        kept = done = 0

        def remove(session: Session, entries: list[_Entry]) -> None:
            nonlocal kept, done
            done += len(entries)
            if len(entries) > 1 and _try_without_references(session, partial(_remove_rows, session, entries)):
                return
            for kind, key, version in entries:
                if kind is Trace:
                    is_gone = _try_without_references(session, partial(_remove_trace, session, key, version))
                    kept += not is_gone
                else:
                    _try_without_references(session, partial(_remove_rows, session, [(kind, key, version)]))

        def report(_: int) -> None:
            if committed is not None:
                committed(done)

        write_in_batches(database, self._groups(), remove, committed=report)
        return kept

    def count(self) -> int:
        """The number of rows that were written to the journal."""
        return sum(1 for _ in self._entries())

    def _groups(self) -> Iterator[list[_Entry]]:
        """The rows in groups that one statement removes."""
        for kind, entries in groupby(self._entries(), key=lambda entry: entry[0]):
            yield from iter(partial(_take, entries, 1 if kind in {Trace, Run} else _GROUP_SIZE), [])

    def _entries(self) -> Iterator[_Entry]:
        """The rows, those first that refer to others; a line that was cut off names no committed row."""
        for name, kind in _KINDS.items():
            if not self._file.exists():
                return
            with self._file.open(encoding="utf-8") as stream:
                for line in stream:
                    if line.startswith(f'["{name}"') and line.endswith("\n"):
                        _, key, version = json.loads(line)
                        yield kind, UUID(key), version


def _take(entries: Iterator[_Entry], count: int) -> list[_Entry]:
    return list(islice(entries, count))


def _try_without_references(session: Session, remove: Callable[[], bool]) -> bool:
    """Remove rows; False, with everything as before, if others refer to them."""
    attempt = session.begin_nested()
    try:
        is_removed = remove()
        attempt.commit()
    except IntegrityError:
        attempt.rollback()
        return False
    return is_removed


def _remove_rows(session: Session, entries: list[_Entry]) -> bool:
    """Remove rows of one kind other than traces."""
    kind, keys = entries[0][0], [key for _, key, _ in entries]
    if kind is Run:
        # Attempts have no mark of their own: those of a run that was put away are restored with it.
        keys = list(session.scalars(select(Run.id).where(Run.id.in_(keys))))
        _remove_attempts(session, Attempt.run_id.in_(keys))
    session.execute(delete(kind).where(kind.id.in_(keys)))  # type: ignore[attr-defined]
    return True


def _remove_trace(session: Session, key: UUID, version: int) -> bool:
    """Remove a trace with its rows; False if somebody has changed it or put it away."""
    columns = select(Trace.question_id, Trace.version, Trace.removal_id).where(Trace.id == key)
    stored = session.execute(columns, execution_options=WITH_REMOVED).first()
    if stored is None:
        return True
    if stored.version != version or stored.removal_id is not None:
        return False
    _remove_attempts(session, Attempt.trace_id == key)
    for kind in (Judgement, Edit, Draft, Step):
        session.execute(delete(kind).where(kind.trace_id == key))
    session.execute(delete(Trace).where(Trace.id == key))
    update_completed_count(session, stored.question_id)
    return True


def _remove_attempts(session: Session, condition: ColumnElement[bool]) -> None:
    session.execute(delete(Score).where(Score.attempt_id.in_(select(Attempt.id).where(condition))))
    session.execute(delete(Attempt).where(condition))


def identify_database(database: Database) -> str:
    """Tell databases apart without naming them: the address may contain a password."""
    return sha256(database.url.render_as_string(hide_password=False).encode()).hexdigest()
