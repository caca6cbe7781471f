"""The audit log: who did what, as a chain in which each entry has the digest of the one before.

record_act(session, "roles changed", "person", user.id, {"before": [...], "after": [...]})

An entry is stored in the transaction of its act, so neither is there without the other. The triggers of revision 0016
refuse every change of an entry. An entry has the id of a person and never their name, which can thus be removed without
a break of the chain. Nothing that people type or think is in it.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import event, func, select
from sqlalchemy.orm import Mapped, Session, SessionTransaction, mapped_column

from showhow.db.models import User
from showhow.db.types import Base, redactor_of_dialect, utc_now

COMMAND_LINE, THIS_MACHINE, LOGIN = "command line", "this machine", "login"
"""How somebody came: on the command line or as the server itself, by a page without a login, or logged in."""
_AUDIT_LOCK = 7_203_004
"""The key of PostgreSQL's advisory lock under which entries are appended."""
_PENDING = "audit_entries"
_ENTRIES_AT_ONCE = 500


class AuditEntry(Base):
    """An act that was committed."""

    __tablename__ = "audit_entry"

    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """1 for the first entry; there are no gaps."""
    at: Mapped[datetime]
    person_id: Mapped[UUID | None]
    """No foreign key: the entry outlives the person's row."""
    access: Mapped[str]
    action: Mapped[str]
    object_kind: Mapped[str]
    object_id: Mapped[str]
    details: Mapped[dict[str, Any]]
    """What was before and is after, or digests of both."""
    previous: Mapped[str]
    """The digest of the entry before; empty for the first one."""
    digest: Mapped[str] = mapped_column(default="")

    @property
    def contents(self) -> dict[str, Any]:
        """What the digest is made of, as JSON."""
        return {
            "position": self.position,
            "at": self.at.astimezone(UTC).isoformat(timespec="microseconds"),
            "person_id": None if self.person_id is None else str(self.person_id),
            "access": self.access,
            "action": self.action,
            "object_kind": self.object_kind,
            "object_id": self.object_id,
            "details": self.details,
            "previous": self.previous,
        }

    def compute_digest(self) -> str:
        """The SHA-256 of the contents."""
        return digest_value(self.contents)


class _Act(NamedTuple):
    action: str
    object_kind: str
    object_id: str
    details: dict[str, Any]
    logged_in: UUID | None
    is_stranger: bool


class ChainCheck(NamedTuple):
    """How many entries follow each other, the digest of the last of them, and what is wrong with the next one."""

    entries: int
    digest: str
    problem: str = ""


def digest_value(value: Any) -> str:
    """The SHA-256 of a JSON value in its canonical form, in place of a value that is too long for an entry."""
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(canonical.encode()).hexdigest()


def record_act(  # noqa: PLR0913 - what an entry says
    session: Session,
    action: str,
    object_kind: str = "",
    object_id: UUID | str = "",
    details: dict[str, Any] | None = None,
    *,
    logged_in: UUID | None = None,
    is_stranger: bool = False,
) -> None:
    """Have the act in the log once the transaction is committed, as one of the session's person.

    `logged_in` is the person of an act of the login itself, where nobody acts yet; a stranger failed to log in.
    """
    act = _Act(action, object_kind, str(object_id), details or {}, logged_in, is_stranger)
    session.info.setdefault(_PENDING, []).append((session.get_nested_transaction(), act))


@event.listens_for(Session, "after_soft_rollback")
def _forget(session: Session, transaction: SessionTransaction) -> None:
    """Forget the acts of a savepoint that was undone."""
    if _PENDING in session.info:
        session.info[_PENDING] = [entry for entry in session.info[_PENDING] if entry[0] is not transaction]


@event.listens_for(Session, "before_commit")
def _append(session: Session) -> None:
    """Store the acts of the transaction behind the last entry.

    This is the last that the transaction does: who waits for the lock here has all others that they need.
    """
    if session.in_nested_transaction() or not (acts := session.info.pop(_PENDING, None)):
        return
    session.flush()
    dialect = session.get_bind().dialect
    if dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(_AUDIT_LOCK)))
    columns = select(AuditEntry.position, AuditEntry.digest)
    last = session.execute(columns.order_by(AuditEntry.position.desc()).limit(1)).first()
    position, previous = last or (0, "")
    redactor = redactor_of_dialect(dialect)
    for _, act in acts:
        position += 1
        person_id, access = _identify(session, act)
        entry = AuditEntry(
            position=position,
            at=utc_now(),
            person_id=person_id,
            access=access,
            action=act.action,
            object_kind=act.object_kind,
            # As it is stored.
            object_id=redactor.redact(act.object_id),
            details=redactor.redact_json(act.details),
            previous=previous,
        )
        entry.digest = previous = entry.compute_digest()
        session.add(entry)
    session.flush()


def _identify(session: Session, act: _Act) -> tuple[UUID | None, str]:
    """The person who acts, if they are stored, and how they came."""
    actor = session.info.get("actor")
    if act.logged_in is not None or act.is_stranger:
        return act.logged_in, LOGIN
    if actor is None:
        return None, COMMAND_LINE
    person_id = session.scalar(select(User.id).where(User.name == actor.name))
    return person_id, THIS_MACHINE if actor.is_local else LOGIN


def check_chain(session: Session) -> ChainCheck:
    """Compute the digests of all entries anew."""
    check = ChainCheck(0, "")
    rows = select(AuditEntry).order_by(AuditEntry.position).execution_options(yield_per=_ENTRIES_AT_ONCE)
    try:
        for entry in session.scalars(rows):
            expected = check.entries + 1
            if entry.position != expected:
                return check._replace(problem=f"the entry {expected} is missing")
            if entry.previous != check.digest:
                return check._replace(problem=f"the entry {expected} does not follow the one before")
            if entry.digest != entry.compute_digest():
                return check._replace(problem=f"the entry {expected} was changed")
            check = ChainCheck(expected, entry.digest)
            session.expunge(entry)
    except (ValueError, TypeError, AttributeError) as error:
        return check._replace(problem=f"an entry after {check.entries} cannot be read ({error})")
    return check


def has_entry(session: Session, digest: str) -> bool:
    """Whether an entry has that digest."""
    return session.scalar(select(AuditEntry.position).where(AuditEntry.digest == digest).limit(1)) is not None


def iterate_entries(session: Session, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """All entries, or so many of the last ones, as JSON in their order; each with the person's present name."""
    rows = select(AuditEntry, User.name).outerjoin(User, User.id == AuditEntry.person_id)
    if limit is None:
        ordered = rows.order_by(AuditEntry.position)
    else:
        lowest = select(func.coalesce(func.max(AuditEntry.position), 0) - limit).scalar_subquery()
        ordered = rows.where(AuditEntry.position > lowest).order_by(AuditEntry.position)
    for entry, name in session.execute(ordered.execution_options(yield_per=_ENTRIES_AT_ONCE)):
        yield entry.contents | {"digest": entry.digest, "person": name}
