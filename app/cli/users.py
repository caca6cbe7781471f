"""`showhow users`: list people, add one, and change their roles. The command line is the machine's administrator."""

from typing import Annotated

import typer

from showhow.app.cli.output import AsJson, emit
from showhow.app.services import current_services
from showhow.db.people import users

app = typer.Typer(no_args_is_help=True, help="List people and change their roles.")

NO_ROLE = "none"
NameArgument = Annotated[str, typer.Argument(help="The person's name, as in ?you=NAME.")]
RolesArgument = Annotated[
    list[str], typer.Argument(help=f"{', '.join(users.ROLES)}; or {NO_ROLE} for an author who does not work here.")
]


@app.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """List every person with their roles."""
    with current_services().database.read() as session:
        people = users.list_users(session)
    lines = [f"{person.name}  {', '.join(person.roles) or NO_ROLE}" for person in people]
    text = "\n".join(lines) or "nobody yet; a person is stored at their first act, and the first one gets all roles"
    emit([{"name": person.name, "roles": person.roles} for person in people], text, as_json=as_json)


@app.command()
def add(name: NameArgument, *, as_json: AsJson = False) -> None:
    """Store a person before their first act; the first person gets all roles, others are annotators."""
    with current_services().database.begin() as session:
        person = users.register_user(session, name)
    emit({"name": person.name, "roles": person.roles}, f"{name}: {', '.join(person.roles)}", as_json=as_json)


@app.command()
def role(name: NameArgument, roles: RolesArgument, *, as_json: AsJson = False) -> None:
    """Replace the roles of a person."""
    with current_services().database.begin() as session:
        person = users.set_roles(session, name, [] if roles == [NO_ROLE] else roles)
    emit({"name": name, "roles": person.roles}, f"{name}: {', '.join(person.roles) or NO_ROLE}", as_json=as_json)
