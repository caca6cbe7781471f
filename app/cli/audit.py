"""`showhow audit verify | list | export FILE`: the log of who did what (db/audit.py)."""

import json
from dataclasses import dataclass
from pathlib import Path

import typer

from showhow.app.cli.drawn_options import draw_options
from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.services import current_services
from showhow.db.audit import check_chain, has_entry, iterate_entries, record_act
from showhow.db.people.users import ADMIN
from showhow.option_fields import option
from showhow.tasks.task import open_atomically, require_role

app = typer.Typer(no_args_is_help=True, help="Verify, list and export the log of who did what.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAudit:
    """Which entries are listed."""

    limit: int = option(50, "The last so many entries.", minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyAudit:
    """What the log must have, beside entries that follow each other."""

    digest: str = option("", "A digest that `verify` printed before; exit status 1 unless the log still has it.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportAudit:
    """Where the log is written to."""

    file: Path = option(help="The file to write, one entry a line as JSON.", is_argument=True)
    force: bool = option(default=False, help="Replace an existing file.")


@app.command()
@draw_options
def verify(request: VerifyAudit, *, as_json: AsJson = False) -> None:
    """Compute the digests of all entries anew; exit status 1 with the first one that does not follow the one before."""
    services = current_services()
    require_role(services, ADMIN)
    with services.database.read() as session:
        check = check_chain(session)
        is_cut = bool(request.digest) and not has_entry(session, request.digest)
    problem = f"the audit log is broken at position {check.entries + 1}: {check.problem}" if check.problem else ""
    if is_cut and not problem:
        problem = f"no entry of the audit log has the digest {request.digest}, so it was cut or replaced"
    text = f"{check.entries:,} entries follow each other; the digest of the last one is {check.digest or 'none'}"
    emit({"entries": check.entries, "digest": check.digest, "problem": problem}, text, as_json=as_json)
    if problem:
        raise CommandError(f"{problem}; compare it with an export or a backup")


@app.command("list")
@draw_options
def list_(request: ListAudit, *, as_json: AsJson = False) -> None:
    """List the last entries: when, who, how they came, what they did to what."""
    services = current_services()
    require_role(services, ADMIN)
    with services.database.read() as session:
        rows = list(iterate_entries(session, request.limit))
    lines = [
        f"{row['position']}  {row['at'][:19]}  {row['person'] or row['person_id'] or row['access']}  {row['action']}  "
        f"{row['object_kind']} {row['object_id']}  {json.dumps(row['details'], ensure_ascii=False)}"
        for row in rows
    ]
    emit(rows, "\n".join(lines) or "no entries yet", as_json=as_json)


@app.command()
@draw_options
def export(request: ExportAudit, *, as_json: AsJson = False) -> None:
    """Write all entries, that of this export too, to a file that appears when it is complete."""
    services = current_services()
    require_role(services, ADMIN)
    count = 0
    with open_atomically(request.file, force=request.force) as stream:
        with services.database.begin() as session:
            record_act(session, "exported", "audit log")
        with services.database.read() as session:
            for count, entry in enumerate(iterate_entries(session), 1):  # noqa: B007 - the number of the last one
                stream.write(f"{json.dumps(entry, ensure_ascii=False)}\n".encode())
    emit({"file": str(request.file), "entries": count}, f"{count:,} entries written to {request.file}", as_json=as_json)
