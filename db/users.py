"""People and their roles. The functions of the store check what a person may do; pages only hide what is refused.

Until there is a login, a person is a name. A person without a role is the author of imported traces who has not acted
here yet. The only person with a role may do everything, so that one person on one machine can review their own traces.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.database import Conflict, RowNotFound
from db.models import User

ROLES = ANNOTATOR, REVIEWER, ADMIN = ("annotator", "reviewer", "admin")
MAX_NAME_LENGTH = 80
_REGISTRATION_LOCK = 7_203_001
"""The key of PostgreSQL's advisory lock under which people are registered."""


def find_user(session: Session, name: str) -> User | None:
    """Find the user with this name."""
    return session.scalar(select(User).where(User.name == name))


def preview_user(session: Session, name: str) -> User:
    """The user with this name with the roles of their first act; nothing is stored."""
    user = find_user(session, name)
    if user is None:
        return User(name=name, roles=_first_roles(session))
    if not user.roles:
        session.expunge(user)
        user.roles = _first_roles(session)
    return user


def register_user(session: Session, name: str) -> User:
    """Find the user with this name, or create one at their first act.

    The first person gets all roles, others are annotators.
    """
    user = find_user(session, name)
    if user is not None and user.roles:
        return user
    if not name.strip() or len(name) > MAX_NAME_LENGTH:
        raise Conflict(f"a person's name has 1 to {MAX_NAME_LENGTH} characters; choose another name")
    if session.get_bind().dialect.name == "postgresql":
        # Two first persons at the same moment must not both get all roles; SQLite has one writer at a time.
        session.execute(select(func.pg_advisory_xact_lock(_REGISTRATION_LOCK)))
        user = find_user(session, name)
    if user is None:
        user = User(name=name, roles=_first_roles(session))
        session.add(user)
    elif not user.roles:
        user.roles = _first_roles(session)
    session.flush()
    return user


def _first_roles(session: Session) -> list[str]:
    return [ANNOTATOR] if _list_members(session) else list(ROLES)


def _list_members(session: Session) -> list[UUID]:
    """List the ids of the people with a role."""
    return [user_id for user_id, roles in session.execute(select(User.id, User.roles)) if roles]


def list_users(session: Session) -> list[User]:
    """List all people by name."""
    return list(session.scalars(select(User).order_by(User.name)))


def set_roles(session: Session, name: str, roles: Sequence[str]) -> User:
    """Replace the person's roles; Conflict if nobody would be an administrator any more."""
    user = session.scalar(select(User).where(User.name == name).with_for_update())
    if user is None:
        raise RowNotFound(f"there is no person {name!r}; `showhow users list` lists all")
    unknown = [role for role in roles if role not in ROLES]
    if unknown:
        raise Conflict(f"there is no role {unknown[0]!r}; the roles are {', '.join(ROLES)}")
    administrators = [other.id for other in list_users(session) if ADMIN in other.roles]
    if administrators == [user.id] and ADMIN not in roles:
        raise Conflict(f"{name} is the only administrator; make somebody else an administrator first")
    user.roles = [role for role in ROLES if role in roles]
    session.flush()
    return user


def require_role(session: Session, user_id: UUID, *accepted: str) -> User:
    """Return the user; Conflict unless they have one of the accepted roles (any role if none is named)."""
    user = session.get(User, user_id)
    if user is None:
        raise RowNotFound("this person is not stored any more; reload the page")
    if not set(accepted or ROLES) & set(user.roles):
        needed = " or ".join(accepted) if accepted else "some role"
        raise Conflict(
            f"{user.name} is not a {needed}; an administrator can change that with `showhow users role {user.name} ...`"
        )
    return user


def is_only_person(session: Session, user_id: UUID) -> bool:
    """Whether nobody else has a role here."""
    return _list_members(session) == [user_id]
