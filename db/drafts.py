"""Drafts: the step or answer that is being typed, before it is run or submitted."""

from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from db.database import Conflict, RowNotFound
from db.models import Draft, Trace, utc_now


def save_draft(session: Session, trace_id: UUID, content: dict[str, Any]) -> Draft:
    """Store `content` as the draft of the trace; Conflict if the stored one comes from a page that was opened later."""
    trace = session.get(Trace, trace_id)
    if trace is None:
        raise RowNotFound("this trace is no longer there; go back to the queue")
    if trace.status != "draft":
        raise Conflict(f"this trace is {trace.status} and takes no more text; reload the page")
    draft = session.get(Draft, trace_id)
    if draft is None:
        draft = Draft(trace_id=trace_id, content=content)
        session.add(draft)
        return draft
    if (draft.content.get("opened") or 0) > (content.get("opened") or 0):
        raise Conflict("this trace is open in a newer tab, which stores the text; continue there")
    draft.content = content
    draft.saved_at = utc_now()
    return draft


def find_draft(session: Session, trace_id: UUID) -> Draft | None:
    """Find the draft of the trace."""
    return session.get(Draft, trace_id)
