"""`showhow users`: people, their roles, their logins. The command line is the machine's administrator."""

from typing import Annotated
from uuid import UUID

import typer

from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.services import current_services
from showhow.db.people import logins, users
from showhow.settings import LINKED_LOGINS

app = typer.Typer(no_args_is_help=True, help="List people, change their roles, invite them, and end their logins.")

NO_ROLE = "none"
NameArgument = Annotated[str, typer.Argument(help="The person's name, as they log in, or as in ?you=NAME.")]
RolesArgument = Annotated[
    list[str], typer.Argument(help=f"{', '.join(users.ROLES)}; or {NO_ROLE} for an author who does not work here.")
]
RoleOption = Annotated[
    list[str] | None,
    typer.Option("--role", help=f"{', '.join(users.ROLES)}; may be given several times; default: as for others."),
]
EndOption = Annotated[str, typer.Option("--end", help="End the login of this id, or `all`.")]


@app.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """List every person with their roles."""
    with current_services().database.read() as session:
        people = users.list_users(session)
    lines = [
        f"{person.name}  {', '.join(person.roles) or NO_ROLE}{'' if person.is_active else '  (switched off)'}"
        for person in people
    ]
    text = "\n".join(lines) or "nobody yet; a person is stored at their first act, and the first one gets all roles"
    listed = [{"name": person.name, "roles": person.roles, "is_active": person.is_active} for person in people]
    emit(listed, text, as_json=as_json)


@app.command()
def add(name: NameArgument, roles: RoleOption = None, *, as_json: AsJson = False) -> None:
    """Store a person, and print the link with which they get in, where people log in.

    Without --role, the first person gets all roles, others are annotators.
    """
    services = current_services()
    with services.database.begin() as session:
        person = users.register_user(session, name)
        if roles:
            person = users.set_roles(session, name, roles)
        token = logins.invite(session, person.id) if services.settings.login in LINKED_LOGINS else ""
    stored = {"name": person.name, "roles": person.roles} | ({"link": _link(token)} if token else {})
    text = f"{name}: {', '.join(person.roles)}" + (f"\n{_explain_link(name, token)}" if token else "")
    emit(stored, text, as_json=as_json)


@app.command("invite")
def invite_(name: NameArgument, *, as_json: AsJson = False) -> None:
    """Print a link with which a stored person chooses a new password or account; links from before end."""
    services = current_services()
    if services.settings.login not in LINKED_LOGINS:
        raise CommandError(
            "nobody is invited by a link here; set SHOWHOW_LOGIN=password (or oidc) to have people log in"
        )
    with services.database.begin() as session:
        token = logins.invite(session, users.find_named(session, name).id)
    emit({"name": name, "link": _link(token)}, _explain_link(name, token), as_json=as_json)


def _link(token: str) -> str:
    return f"{current_services().settings.url}/invite/{token}"


def _explain_link(name: str, token: str) -> str:
    return f"With this link {name} gets in, once and within {logins.INVITATION_DAYS} days:\n{_link(token)}"


@app.command()
def role(name: NameArgument, roles: RolesArgument, *, as_json: AsJson = False) -> None:
    """Replace the roles of a person."""
    with current_services().database.begin() as session:
        person = users.set_roles(session, name, [] if roles == [NO_ROLE] else roles)
    emit({"name": name, "roles": person.roles}, f"{name}: {', '.join(person.roles) or NO_ROLE}", as_json=as_json)


@app.command()
def disable(name: NameArgument, *, as_json: AsJson = False) -> None:
    """Switch a person off: their logins and links end, and they change nothing more; what they made stays."""
    _switch(name, on=False, as_json=as_json)


@app.command()
def enable(name: NameArgument, *, as_json: AsJson = False) -> None:
    """Switch a person on again; they log in anew."""
    _switch(name, on=True, as_json=as_json)


def _switch(name: str, *, on: bool, as_json: bool) -> None:
    with current_services().database.begin() as session:
        logins.switch(session, name, on=on)
    emit({"name": name, "is_active": on}, f"{name}: switched {'on' if on else 'off'}", as_json=as_json)


@app.command("logins")
def logins_(name: NameArgument, end: EndOption = "", *, as_json: AsJson = False) -> None:
    """List the logins of a person with their ids, the one that was used last first; or end them."""
    with current_services().database.begin() as session:
        person = users.find_named(session, name)
        if end:
            count = logins.end_logins(session, person.id, None if end == "all" else _parse_id(end))
            if not count and end != "all":
                raise CommandError(f"{name} has no login {end}; `showhow users logins {name}` lists all")
        rows = logins.list_logins(session, person.id)
    listed = [
        {"id": str(row.id), "since": row.created_at, "used": row.used_at, "expires": row.expires_at} for row in rows
    ]
    lines = [
        f"{row['id']}  since {row['since']:%Y-%m-%d %H:%M}, used {row['used']:%Y-%m-%d %H:%M} UTC" for row in listed
    ]
    emit(listed, "\n".join(lines) or f"{name} is not logged in", as_json=as_json)


def _parse_id(written: str) -> UUID:
    try:
        return UUID(written)
    except ValueError:
        raise CommandError(f"{written!r} is not the id of a login; write one that is listed, or all") from None
