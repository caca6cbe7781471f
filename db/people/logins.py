"""How people log in: what proves who they are, the sessions in which they are logged in, and links that invite them.

Of tokens and passwords only hashes are stored. A person who is switched off, or has no role, is not let in.
"""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TypeGuard
from uuid import UUID

from sqlalchemy import ForeignKey, UniqueConstraint, delete, select, update
from sqlalchemy.orm import Mapped, Session, mapped_column
from uuid_utils.compat import uuid7

from showhow.db.audit import record_act
from showhow.db.database import Conflict
from showhow.db.models import User
from showhow.db.people.users import ADMIN, find_named, list_administrators, require_acting_role
from showhow.db.types import UNSTORABLE_CHARACTERS, Base, utc_now

LOGIN_DAYS = 14
"""How long a login lasts."""
INVITATION_DAYS = 7
"""How long the link of an invitation can be used."""
NOTED_USE = timedelta(minutes=5)
"""A login's last use is noted no more often."""
PASSWORD, PROVIDER = "password", "oidc"
"""The kinds of identities."""
TOKEN_BYTES = 32
INVALID_INVITATION = "this link was used already or has expired; ask an administrator for a new one"


class Identity(Base):
    """What proves who a person is: a password, or the person of that subject at an issuer of identities."""

    __tablename__ = "identity"
    __table_args__ = (UniqueConstraint("kind", "issuer", "subject"),)

    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id"), index=True)
    kind: Mapped[str]
    subject: Mapped[str]
    """Of a password, the id of its person: everybody has one."""
    issuer: Mapped[str] = mapped_column(default="")
    password_hash: Mapped[str | None] = mapped_column(default=None)
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    created_at: Mapped[datetime] = mapped_column(default_factory=utc_now)


class Login(Base):
    """A session in which a person is logged in, until it expires or is ended, which deletes it."""

    __tablename__ = "login"

    token_hash: Mapped[str] = mapped_column(unique=True)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id"), index=True)
    expires_at: Mapped[datetime]
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    created_at: Mapped[datetime] = mapped_column(default_factory=utc_now)
    used_at: Mapped[datetime] = mapped_column(default_factory=utc_now)


class Invitation(Base):
    """A link with which a person, who is stored with their roles, chooses a password, once and until it expires."""

    __tablename__ = "invitation"

    token_hash: Mapped[str] = mapped_column(unique=True)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id"), index=True)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None] = mapped_column(default=None)
    id: Mapped[UUID] = mapped_column(primary_key=True, default_factory=uuid7)
    created_at: Mapped[datetime] = mapped_column(default_factory=utc_now)


def hash_token(token: str) -> str:
    """What is stored of a token, which is too long to be guessed from it."""
    return sha256(token.encode(errors="replace")).hexdigest()


def may_enter(user: User | None) -> TypeGuard[User]:
    """Whether the person is let in: they are stored, not switched off, and have a role."""
    return user is not None and user.is_active and bool(user.roles)


def invite(session: Session, user_id: UUID) -> str:
    """The token of a new invitation of the person, in place of those before; Conflict unless an administrator asks."""
    require_acting_role(session, ADMIN)
    session.execute(delete(Invitation).where(Invitation.user_id == user_id, Invitation.used_at.is_(None)))
    token = secrets.token_urlsafe(TOKEN_BYTES)
    expires_at = utc_now() + timedelta(days=INVITATION_DAYS)
    session.add(Invitation(token_hash=hash_token(token), user_id=user_id, expires_at=expires_at))
    session.flush()
    record_act(session, "invited", "person", user_id)
    return token


def find_invited(session: Session, token: str) -> User | None:
    """The person whom a link invites; None if it was used, has expired or never was."""
    valid = Invitation.token_hash == hash_token(token), Invitation.used_at.is_(None), Invitation.expires_at > utc_now()
    user = session.scalar(select(User).join(Invitation, Invitation.user_id == User.id).where(*valid))
    return user if may_enter(user) else None


def use_invitation(session: Session, token: str) -> User:
    """Use the link of the person, who gets another identity in the same transaction, and end their logins.

    Conflict for a link that is not valid.
    """
    user = find_invited(session, token)
    used = update(Invitation).where(Invitation.token_hash == hash_token(token), Invitation.used_at.is_(None))
    # Of two who use a link at the same time, one changes its row.
    if user is None or session.execute(used.values(used_at=utc_now())).rowcount != 1:  # type: ignore[attr-defined]
        raise Conflict(INVALID_INVITATION)
    session.execute(delete(Login).where(Login.user_id == user.id))
    record_act(session, "used an invitation", "person", user.id, logged_in=user.id)
    return user


def set_password(session: Session, user_id: UUID, password_hash: str) -> None:
    """Store the hash of the person's password."""
    session.execute(delete(Identity).where(Identity.kind == PASSWORD, Identity.subject == str(user_id)))
    session.add(Identity(user_id=user_id, kind=PASSWORD, subject=str(user_id), password_hash=password_hash))
    session.flush()


def find_password(session: Session, name: str) -> tuple[User, str] | None:
    """The person of that name who may enter, and the hash of their password."""
    rows = select(User, Identity.password_hash).join(Identity, Identity.user_id == User.id)
    row = session.execute(rows.where(User.name == name, Identity.kind == PASSWORD)).first()
    return (row[0], row[1]) if row is not None and row[1] and may_enter(row[0]) else None


def find_subject(session: Session, issuer: str, subject: str) -> User | None:
    """The person who may enter and is known by that subject of a provider."""
    rows = select(User).join(Identity, Identity.user_id == User.id)
    known = Identity.kind == PROVIDER, Identity.issuer == issuer, Identity.subject == subject
    user = session.scalar(rows.where(*known))
    return user if may_enter(user) else None


def link_subject(session: Session, user_id: UUID, issuer: str, subject: str) -> None:
    """Have the person known by that subject, in place of another one of this provider; Conflict if it is another's."""
    rows = Identity.kind == PROVIDER, Identity.issuer == issuer
    owner = session.scalar(select(Identity.user_id).where(*rows, Identity.subject == subject))
    if owner is not None and owner != user_id:
        raise Conflict("this account belongs to somebody else here; log out at the provider, and open the link again")
    session.execute(delete(Identity).where(*rows, Identity.user_id == user_id))
    session.add(Identity(user_id=user_id, kind=PROVIDER, issuer=issuer, subject=subject))
    session.flush()


def has_identity(session: Session, kind: str, user_id: UUID | None = None) -> bool:
    """Whether the person, or anybody, has an identity of that kind."""
    rows = select(Identity.id).where(Identity.kind == kind)
    return session.scalar((rows if user_id is None else rows.where(Identity.user_id == user_id)).limit(1)) is not None


def begin_login(session: Session, user_id: UUID, former: str = "") -> str:
    """The token of a new login; what the browser was logged in with before, and all that has expired, ends."""
    session.execute(delete(Login).where((Login.token_hash == hash_token(former)) | (Login.expires_at <= utc_now())))
    token = secrets.token_urlsafe(TOKEN_BYTES)
    expires_at = utc_now() + timedelta(days=LOGIN_DAYS)
    login = Login(token_hash=hash_token(token), user_id=user_id, expires_at=expires_at)
    session.add(login)
    session.flush()
    record_act(session, "logged in", "login", login.id, logged_in=user_id)
    return token


def record_failure(session: Session, name: str, address: str) -> None:
    """Store that a login failed, from which address, and whose it was if the name is anybody's.

    No other name is stored: people type their passwords in the wrong field. An attempt that is refused as one too many
    (app/login_pages.py) has no entry, so that their number is bounded for a name and for an address.
    """
    user = None if UNSTORABLE_CHARACTERS.search(name) else session.scalar(select(User).where(User.name == name))
    kind, key = ("person", str(user.id)) if user is not None else ("", "")
    record_act(session, "failed to log in", kind, key, {"address": address}, is_stranger=True)


def find_login(session: Session, token: str) -> tuple[Login, User] | None:
    """The login with that token and its person; None if it has ended, or they may not enter."""
    rows = select(Login, User).join(User, User.id == Login.user_id)
    row = session.execute(rows.where(Login.token_hash == hash_token(token), Login.expires_at > utc_now())).first()
    return (row[0], row[1]) if row is not None and may_enter(row[1]) else None


def note_use(session: Session, login_id: UUID) -> None:
    """Store that the login is used now."""
    session.execute(update(Login).where(Login.id == login_id).values(used_at=utc_now()))


def end_login(session: Session, token: str) -> None:
    """End the login with that token."""
    login = session.scalar(select(Login).where(Login.token_hash == hash_token(token)))
    if login is not None:
        session.delete(login)
        record_act(session, "logged out", "login", login.id, logged_in=login.user_id)


def list_logins(session: Session, user_id: UUID) -> Sequence[Login]:
    """The person's logins that have not expired, the one that was used last first."""
    rows = select(Login).where(Login.user_id == user_id, Login.expires_at > utc_now())
    return session.scalars(rows.order_by(Login.used_at.desc(), Login.id)).all()


def end_logins(session: Session, user_id: UUID, login_id: UUID | None = None) -> int:
    """End that login of the person, or all of theirs; returns how many. Conflict unless an administrator asks."""
    require_acting_role(session, ADMIN)
    rows = delete(Login).where(Login.user_id == user_id)
    ended = session.execute(rows if login_id is None else rows.where(Login.id == login_id))
    count = int(ended.rowcount)  # type: ignore[attr-defined]
    if count:
        record_act(session, "ended logins", "person", user_id, {"logins": count})
    return count


def switch(session: Session, name: str, *, on: bool) -> User:
    """Switch a person on, or off, which ends their logins and invitations; Conflict for the only administrator."""
    require_acting_role(session, ADMIN)
    user = find_named(session, name, for_update=True)
    if not on and list_administrators(session) == [user.id]:
        raise Conflict(f"{name} is the only administrator; make somebody else an administrator first")
    user.is_active = on
    if not on:
        end_logins(session, user.id)
        session.execute(delete(Invitation).where(Invitation.user_id == user.id, Invitation.used_at.is_(None)))
    session.flush()
    record_act(session, f"switched {'on' if on else 'off'}", "person", user.id)
    return user


def close_all(session: Session) -> None:
    """End every login and void every link: what a restored backup holds of them was valid when it was made."""
    session.execute(delete(Login))
    session.execute(delete(Invitation).where(Invitation.used_at.is_(None)))
