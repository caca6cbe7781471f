"""People and their roles. The functions of the store check what a person may do; pages only hide what is refused.

Without a login (logins.py), a person is a name. A person without a role is the author of imported traces who has not
acted here yet, or a visitor whom nobody has invited. The only person with a role may do everything, so that one person
on one machine can review their own traces.

Pages and the jobs that they start change a database that acts as their person (Database.acting_as). Without a person,
on the command line, everything is allowed.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

from sqlalchemy import exists, func, or_, select
from sqlalchemy.orm import Session

from showhow.db.audit import record_act
from showhow.db.database import Conflict, Database, RowNotFound
from showhow.db.models import Judgement, Trace, User

ROLES = ANNOTATOR, REVIEWER, ADMIN = ("annotator", "reviewer", "admin")
MAX_NAME_LENGTH = 80
_REGISTRATION_LOCK = 7_203_001
"""The key of PostgreSQL's advisory lock under which people are registered."""


@dataclass(frozen=True, slots=True)
class ActingPerson:
    """The person who changes the store through a page, or through a job that was started on one."""

    name: str
    """Empty for a visitor from elsewhere who has not said who they are."""
    is_local: bool
    """Whether they use this machine itself. Only there the first act of a new person gives them a role."""

    def admit(self, session: Session) -> None:
        """Conflict for who is switched off, or comes from elsewhere uninvited: they may look, and change nothing."""
        person = find_user(session, self.name)
        if person is not None and not person.is_active:
            raise Conflict(f"{self.name} is switched off here; an administrator can change that")
        if not self.is_local and (person is None or not person.roles):
            raise Conflict(self.invitation)

    @property
    def invitation(self) -> str:
        """What a person without a role has to do, in one sentence."""
        who = f"{self.name!r} has no role here" if self.name else "you have not said who you are"
        name = self.name or "NAME"
        return (
            f"you can look around, but nothing is stored or started for you, since {who}: ask an administrator for an "
            f"invitation (`showhow users add {shlex.quote(name)}` on the server), then open this page with "
            f"`?{urlencode({'you': name})}`"
        )


def acting_person(session: Session) -> ActingPerson | None:
    """The person whose changes the session stores; None on the command line."""
    actor: ActingPerson | None = session.info.get("actor")
    return actor


def require_acting_role(session: Session, *accepted: str) -> None:
    """Conflict unless the person who acts has one of these roles; the command line may do everything."""
    actor = acting_person(session)
    if actor is not None:
        _check_role(preview_user(session, actor.name), accepted)


def has_acting_role(session: Session, *accepted: str) -> bool:
    """Whether the person who acts has one of these roles, or any if none is named; the command line has all."""
    actor = acting_person(session)
    return actor is None or bool(set(accepted or ROLES) & set(preview_user(session, actor.name).roles))


def authorize(database: Database, *accepted: str) -> UUID | None:
    """The id of the person who acts, who is stored with it; None on the command line. Conflict without such a role."""
    with database.begin() as session:
        require_acting_role(session, *accepted)
        actor = acting_person(session)
        return None if actor is None else register_user(session, actor.name).id


def find_user(session: Session, name: str) -> User | None:
    """Find the user with this name."""
    return session.scalar(select(User).where(User.name == name))


def find_named(session: Session, name: str, *, for_update: bool = False) -> User:
    """Find the user with this name; RowNotFound if there is none."""
    rows = select(User).where(User.name == name)
    user = session.scalar(rows.with_for_update() if for_update else rows)
    if user is None:
        raise RowNotFound(f"there is no person {name!r}; `showhow users list` lists all")
    return user


def preview_user(session: Session, name: str) -> User:
    """The user with this name with the roles of their first act; nothing is stored."""
    user = find_user(session, name)
    actor = acting_person(session)
    first_roles = [] if actor is not None and not actor.is_local else _first_roles(session)
    if user is None:
        return User(name=name, roles=first_roles)
    if not user.roles:
        session.expunge(user)
        user.roles = first_roles
    return user


def register_user(session: Session, name: str) -> User:
    """Find the user with this name, or create one at their first act.

    The first person gets all roles, others are annotators. Conflict for the first act of a visitor from elsewhere: an
    administrator, or the command line, registers them.
    """
    user = find_user(session, name)
    if user is not None and user.roles:
        return user
    actor = acting_person(session)
    if actor is not None and actor.name != name:
        require_acting_role(session, ADMIN)
    elif actor is not None and not actor.is_local:
        raise Conflict(actor.invitation)
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
    record_act(session, "registered", "person", user.id, {"after": user.roles})
    return user


def _first_roles(session: Session) -> list[str]:
    return [ANNOTATOR] if _list_members(session) else list(ROLES)


def _list_members(session: Session) -> list[UUID]:
    """List the ids of the people with a role."""
    return [user_id for user_id, roles in session.execute(select(User.id, User.roles)) if roles]


def has_acted(session: Session, name: str) -> bool:
    """Whether the person has begun a trace or judged one; people who were only invited have not."""
    person = select(User.id).where(User.name == name).scalar_subquery()
    acts = exists().where(Trace.author_id == person), exists().where(Judgement.judge_id == person)
    return bool(session.scalar(select(or_(*acts))))


def list_users(session: Session) -> list[User]:
    """List all people by name."""
    return list(session.scalars(select(User).order_by(User.name)))


def list_administrators(session: Session) -> list[UUID]:
    """List the ids of the administrators who are not switched off."""
    return [other.id for other in list_users(session) if ADMIN in other.roles and other.is_active]


def set_roles(session: Session, name: str, roles: Sequence[str]) -> User:
    """Replace the person's roles, as an administrator; Conflict if nobody would be an administrator any more."""
    require_acting_role(session, ADMIN)
    user = find_named(session, name, for_update=True)
    unknown = [role for role in roles if role not in ROLES]
    if unknown:
        raise Conflict(f"there is no role {unknown[0]!r}; the roles are {', '.join(ROLES)}")
    if list_administrators(session) == [user.id] and ADMIN not in roles:
        raise Conflict(f"{name} is the only administrator; make somebody else an administrator first")
    before, user.roles = user.roles, [role for role in ROLES if role in roles]
    session.flush()
    if user.roles != before:
        record_act(session, "changed roles", "person", user.id, {"before": before, "after": user.roles})
    return user


def require_role(session: Session, user_id: UUID, *accepted: str) -> User:
    """Return the user; Conflict unless they have one of the accepted roles (any role if none is named)."""
    user = get_user(session, user_id)
    _check_role(user, accepted)
    return user


def get_user(session: Session, user_id: UUID) -> User:
    """Return the user with this id; RowNotFound if there is none."""
    user = session.get(User, user_id)
    if user is None:
        raise RowNotFound("this person is not stored any more; reload the page")
    return user


def _check_role(user: User, accepted: Sequence[str]) -> None:
    if not set(accepted or ROLES) & set(user.roles):
        if not user.roles:
            raise Conflict(ActingPerson(user.name, is_local=False).invitation)
        needed = " or ".join(accepted)
        article = "an" if needed.startswith("a") else "a"
        advice = f"an administrator can change that with `showhow users role {user.name} ...`"
        raise Conflict(f"{user.name} is not {article} {needed}; {advice}")


def find_or_add_author(session: Session, name: str) -> User:
    """Find the person with this name, or store one without a role, whose work is brought in by others."""
    user = find_user(session, name)
    if user is None:
        user = User(name=name, roles=[])
        session.add(user)
        session.flush()
    return user


def is_only_person(session: Session, user_id: UUID) -> bool:
    """Whether nobody else has a role here."""
    return _list_members(session) == [user_id]
