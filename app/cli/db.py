"""`showhow db upgrade | check | backup FILE`: the care of the database."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.output import CommandError, emit
from app.services import services
from db import maintenance
from db.database import Database
from db.schema import current_revision
from db.schema import upgrade as bring_up_to_date

app = typer.Typer(no_args_is_help=True, help="Upgrade, check and back up the database.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def upgrade(*, as_json: AsJson = False) -> None:
    """Bring the database to the program's own schema; make it if there is none."""
    store = Database(services().settings.database_url)
    changed = bring_up_to_date(store)
    at = current_revision(store)
    text = f"the database is now at revision {at}" if changed else f"nothing to do: the database is at revision {at}"
    emit({"revision": at, "changed": changed}, text, as_json=as_json)


@app.command()
def check(*, as_json: AsJson = False) -> None:
    """Look for damage; exit status 1 when something is wrong."""
    store = Database(services().settings.database_url)
    if store.is_sqlite and not Path(store.url.database or "").is_file():
        raise CommandError(f"there is no database at {store.url.database}; `showhow db upgrade` makes one")
    found = maintenance.check_database(store)
    emit({"findings": found}, "\n".join(found) or "the database is sound", as_json=as_json)
    if found:
        raise CommandError(f"{len(found)} findings; restore a backup, or put them right before going on")


@app.command()
def backup(file: Annotated[Path, typer.Argument(help="A new file.")], *, as_json: AsJson = False) -> None:
    """Copy the whole database into a new file, while it is in use."""
    maintenance.back_up_database(services().database, file)
    emit({"file": str(file), "bytes": file.stat().st_size}, f"backed up to {file}", as_json=as_json)
