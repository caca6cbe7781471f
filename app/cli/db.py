"""`showhow db upgrade | check | backup FILE`: maintenance of the database."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.output import CommandError, emit
from app.services import services
from db import maintenance
from db.database import Database
from db.schema import current_revision
from db.schema import upgrade as upgrade_schema

app = typer.Typer(no_args_is_help=True, help="Upgrade, check and back up the database.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def upgrade(*, as_json: AsJson = False) -> None:
    """Upgrade the database to the schema of this version; create it if there is none."""
    database = Database(services().settings.database_url)
    changed = upgrade_schema(database)
    revision = current_revision(database)
    text = (
        f"the database is now at revision {revision}"
        if changed
        else f"nothing to do: the database is at revision {revision}"
    )
    emit({"revision": revision, "changed": changed}, text, as_json=as_json)


@app.command()
def check(*, as_json: AsJson = False) -> None:
    """Check the database for damage; exit status 1 if there is any."""
    database = Database(services().settings.database_url)
    if database.is_sqlite and not Path(database.url.database or "").is_file():
        raise CommandError(f"there is no database at {database.url.database}; `showhow db upgrade` makes one")
    findings = maintenance.check_database(database)
    emit({"findings": findings}, "\n".join(findings) or "the database is sound", as_json=as_json)
    if findings:
        raise CommandError(f"{len(findings)} findings; restore a backup, or repair them before you continue")


@app.command()
def backup(file: Annotated[Path, typer.Argument(help="A new file.")], *, as_json: AsJson = False) -> None:
    """Copy the database into a new file; it may be in use meanwhile."""
    maintenance.back_up_database(services().database, file)
    emit({"file": str(file), "bytes": file.stat().st_size}, f"backed up to {file}", as_json=as_json)
