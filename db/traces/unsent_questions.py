"""What people have typed on the Ask page and not asked yet; one text a person, as Draft is for traces."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, delete, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from showhow.db.database import Conflict
from showhow.db.people.users import require_role
from showhow.db.traces.recording import PageCounter
from showhow.db.types import Base, utc_now


class UnsentQuestion(Base):
    """The text of a person's field."""

    __tablename__ = "unsent_question"

    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id"), primary_key=True)
    text: Mapped[str]
    page_number: Mapped[int] = mapped_column(default=0)
    """The number of the page that stored it; a page with a lower number does not replace it."""
    saved_at: Mapped[datetime] = mapped_column(default_factory=utc_now)


def save_unsent_question(session: Session, user_id: UUID, text: str, *, page_number: int = 0) -> datetime:
    """Store the text in place of the person's former one; Conflict if that comes from a newer page."""
    require_role(session, user_id)
    session.execute(update(PageCounter).where(PageCounter.value < page_number).values(value=page_number))
    stored = session.get(UnsentQuestion, user_id, with_for_update=True)
    if stored is None:
        stored = UnsentQuestion(user_id=user_id, text=text, page_number=page_number)
        session.add(stored)
    elif stored.page_number > page_number:
        raise Conflict("the Ask page is open in a newer tab, which stores the text; continue there")
    stored.text, stored.page_number, stored.saved_at = text, page_number, utc_now()
    session.flush()
    return stored.saved_at


def find_unsent_question(session: Session, user_id: UUID) -> str:
    """The text that the person has not asked yet; empty without one."""
    stored = session.get(UnsentQuestion, user_id)
    return stored.text if stored is not None else ""


def forget_unsent_question(session: Session, user_id: UUID) -> None:
    """Delete the text, as when it is asked."""
    session.execute(delete(UnsentQuestion).where(UnsentQuestion.user_id == user_id))
