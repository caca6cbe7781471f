"""Drafts: the step or answer that a person is typing, before it is run or submitted.

Each page that can store a draft has a number, so that a newer page wins over an older one whatever the clocks of
browser and server say. The database has the highest number of a page that stored a draft; looking stores nothing.
"""

from threading import Lock
from typing import Any
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.database import Conflict, RowNotFound
from db.models import Draft, PageCounter, Trace, utc_now
from db.steady_clock import seconds_since
from db.traces import require_author


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
