"""`showhow db upgrade | check | redact | purge | backup FILE | restore FILE | move TARGET`."""

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.removals import purge as purge_removals
from showhow.app.services import current_services
from showhow.db.database import Database
from showhow.db.questions.projects import list_world_hashes
from showhow.db.storage.backup import back_up_database, record_backup
from showhow.db.storage.move import move_database
from showhow.db.storage.prepared_database import RestoredDatabase
from showhow.db.storage.restore import restore_database
from showhow.db.storage.schema import check_database, current_revision
from showhow.db.storage.schema import upgrade as upgrade_schema
from showhow.db.storage.stored_secrets import remove_secrets
from showhow.settings import LIBPQ_PASSWORD, add_password
from showhow.tasks.backup import open_database
from showhow.worlds.folder import list_world_names

app = typer.Typer(no_args_is_help=True, help="Upgrade, check, back up, restore and move the database.")


@app.command()
def upgrade(*, as_json: AsJson = False) -> None:
    """Upgrade the database to the schema of this version; create it if there is none."""
    with open_database(current_services()) as database:
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
    with open_database(current_services()) as database:
        if database.is_sqlite and not Path(database.url.database or "").is_file():
            raise CommandError(f"there is no database at {database.url.database}; `showhow db upgrade` makes one")
        findings = check_database(database)
    emit({"findings": findings}, "\n".join(findings) or "the database is sound", as_json=as_json)
    if findings:
        raise CommandError(f"{len(findings)} findings; restore a backup, or repair them before you continue")


@app.command()
def redact(*, as_json: AsJson = False) -> None:
    """Remove keys of the environment from rows that were written before they were known; backups still have them."""
    with open_database(current_services()) as database:
        count = remove_secrets(database)
    emit({"rows": count}, f"removed keys from {count} rows" if count else "no row holds a key", as_json=as_json)


@app.command()
def purge(
    *,
    now: Annotated[bool, typer.Option("--now", help="Also what could still be restored.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete for good what was deleted more than 30 days ago, as each start of the server does."""
    report = purge_removals(current_services(), now=now)
    emit({"removed": list(report.names)}, "\n".join(report.names) or "nothing to do", as_json=as_json)


@app.command("backup")
def back_up_file(file: Annotated[Path, typer.Argument(help="A new file.")], *, as_json: AsJson = False) -> None:
    """Copy the database into a new file; the server may keep running. `showhow backup` copies the worlds too."""
    # Not upgraded before: a backup may be made in order to upgrade.
    with open_database(current_services()) as database:
        record_backup(database, file.name)
        back_up_database(database, file)
    emit({"file": str(file), "bytes": file.stat().st_size}, f"backed up to {file}", as_json=as_json)


@app.command("restore")
def restore_file(
    file: Annotated[Path, typer.Argument(help="A file that `showhow db backup` made.")], *, as_json: AsJson = False
) -> None:
    """Replace the database by a backup, which is checked before; the former database is kept aside."""
    if file.is_dir():
        raise CommandError(f"{file} is a folder; `showhow restore {file}` restores the database and the worlds in it")
    with open_database(current_services()) as database:
        report = report_restore(restore_database(database, file))
    emit(report, format_restore(file, report), as_json=as_json)


@app.command()
def move(
    target: Annotated[str, typer.Argument(help="The address of an empty database: sqlite:///FILE or postgresql://...")],
    *,
    as_json: AsJson = False,
) -> None:
    """Copy every row into an empty database of another kind, and compare both; the former one stays as it is."""
    services = current_services()
    address = add_password(target, services.environ.get(LIBPQ_PASSWORD)) or target
    with open_database(services) as source, closing(Database(address)) as empty:
        moved = move_database(source, empty)
        shown = empty.url.set(drivername=empty.url.get_backend_name()).render_as_string()
    lines = [f"moved {moved.rows:,} rows of {len(moved.tables)} tables to {shown}; their digests are equal in both"]
    lines += [*moved.findings, "to work with it, set SHOWHOW_DATABASE_URL to its address and start Showhow again"]
    tables = {name: asdict(contents) for name, contents in moved.tables.items()}
    emit({"target": shown, "tables": tables, "findings": moved.findings}, "\n".join(lines), as_json=as_json)


def report_restore(restored: RestoredDatabase) -> dict[str, Any]:
    """Collect what was restored, and the worlds that the restored database needs and this home lacks."""
    with open_database(current_services()) as database, database.read() as session:
        needed = list_world_hashes(session)
    names = list_world_names(current_services().settings.worlds_folder)
    missing = [{"name": name, "hash": content_hash} for name, content_hash in needed.items() if name not in names]
    return {
        "revision": restored.revision,
        "former": restored.former,
        "findings": restored.findings,
        "missing_worlds": missing,
    }


def format_restore(source: Path, report: dict[str, Any]) -> str:
    """Describe the restore in lines for people."""
    lines = [f"restored {source}; the database is at revision {report['revision']}"]
    if report["former"]:
        lines.append(f"the former database is kept as {report['former']}")
    for world in report["missing_worlds"]:
        content = f" (content hash {world['hash']})" if world["hash"] else ""
        lines.append(f"missing world: {world['name']}{content}; restore it from a backup, or import or generate it")
    lines += [f"the backup has a finding: {finding}" for finding in report["findings"]]
    return "\n".join(lines)
