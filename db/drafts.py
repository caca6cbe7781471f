"""Drafts: the step or answer that a person is typing in a trace, stored before it is run or submitted.

Each page that can store a draft has a number, so that a newer page wins over an older one whatever the clocks of
browser and server say. The database has the highest number of a page that stored a draft; looking stores nothing.
"""

from datetime import datetime
from threading import Lock
from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKey, delete, select, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from db.database import Conflict, RowNotFound
from db.models import Trace
from db.traces import require_author
from db.types import Base, seconds_since, utc_now


class Draft(Base):
    """The step or answer that a person is typing in a trace, before it is run or submitted."""

    __tablename__ = "draft"

    trace_id: Mapped[UUID] = mapped_column(ForeignKey("trace.id"), primary_key=True)
    content: Mapped[dict[str, Any]]
    page_number: Mapped[int] = mapped_column(default=0, server_default="0")
    """The number of the page that stored it; a page with a lower number does not replace it."""
    saved_at: Mapped[datetime] = mapped_column(default_factory=utc_now)


class PageCounter(Base):
    """One row: the highest number of a page that stored a draft. It orders drafts, since clocks may be set back."""

    __tablename__ = "page_counter"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, default=1)
    value: Mapped[int] = mapped_column(default=0)


class PageNumbers:
    """The numbers of the pages that a process opens."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last = 0

    def next(self, session: Session) -> int:
        """Return a number that is higher than those of the pages opened here before and of all that stored a draft."""
        stored = session.scalar(select(PageCounter.value)) or 0
        with self._lock:
            self._last = max(self._last, stored) + 1
            return self._last


def save_draft(session: Session, trace_id: UUID, content: dict[str, Any], *, by: UUID, page_number: int = 0) -> Draft:
    """Store `content` as the draft of the author's trace; Conflict if the stored one comes from a newer page."""
    trace = session.get(Trace, trace_id)
    if trace is None:
        raise RowNotFound("this trace no longer exists; go back to the queue")
    require_author(session, trace, by)
    if trace.status != "draft":
        raise Conflict(f"this trace is {trace.status} and cannot be changed any more; reload the page")
    session.execute(update(PageCounter).where(PageCounter.value < page_number).values(value=page_number))
    draft = session.get(Draft, trace_id)
    if draft is None:
        draft = Draft(trace_id=trace_id, content=content, page_number=page_number)
        session.add(draft)
        return draft
    if draft.page_number > page_number:
        raise Conflict("this trace is open in a newer tab, which stores the text; continue there")
    draft.content, draft.page_number, draft.saved_at = content, page_number, utc_now()
    seconds_since(draft.saved_at)  # counts from now on, whatever happens to the clock of the machine
    return draft


def find_draft(session: Session, trace_id: UUID) -> Draft | None:
    """Find the draft of the trace."""
    return session.get(Draft, trace_id)


def delete_draft(session: Session, trace_id: UUID) -> None:
    """Delete the draft of the trace, if there is one."""
    session.execute(delete(Draft).where(Draft.trace_id == trace_id))
