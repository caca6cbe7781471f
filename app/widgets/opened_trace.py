"""The trace on an Annotate page. Opening a question stores nothing: its author's first act begins the trace."""

import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from db import queue, traces, users
from db.database import Conflict, Database
from db.models import Trace, User, utc_now
from db.trace_record import TraceRecord


@cache
def signing_key() -> bytes:
    """The secret of this process, from which tokens and the ids of new traces are derived."""
    return secrets.token_bytes(32)


@dataclass(frozen=True, slots=True)
class OpenedTrace:
    """A trace that a person opened; `question_id` and `opened_at` are those of a trace that was new when it opened."""

    id: UUID
    person: str
    question_id: UUID | None = None
    opened_at: datetime | None = None

    @classmethod
    def of_question(cls, question_id: UUID, person: str, opened_at: datetime) -> "OpenedTrace":
        """The trace that the person will begin; its id is the same in all tabs, so that they notice each other."""
        digest = hmac.digest(signing_key(), f"{question_id} {person}".encode(), "sha256")
        return cls(UUID(bytes=digest[:16], version=4), person, question_id, opened_at)

    def load(self, database: Database, person: User) -> TraceRecord:
        """Load the trace, or make the record of one that is not begun."""
        with database.read() as session:
            if self.question_id is None or traces.has_trace(session, self.id):
                return traces.load_trace(session, self.id)
            new_trace = Trace(
                question_id=self.question_id,
                author_id=person.id,
                started_at=self.opened_at or utc_now(),
                id=self.id,
            )
            return traces.preview_trace(session, new_trace)

    def begin(self, session: Any) -> None:
        """Begin the trace, unless it is begun: register its author, reserve its question and store it."""
        if self.question_id is None or traces.has_trace(session, self.id):
            return
        author = users.register_user(session, self.person)
        trace = queue.begin_question(session, self.question_id, author.id, trace_id=self.id, opened_at=self.opened_at)
        if trace.id != self.id:
            raise Conflict(
                "you have begun this question in another tab; what you typed is still on this page. Continue in the "
                "other tab, or reload this page"
            )
