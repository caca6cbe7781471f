"""`archive`, `delete` and `restore`: the same commands for projects, questions, traces, runs, libraries and worlds."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.services import current_services
from showhow.db.removal.removal_kinds import KEPT_DAYS, Kind

if TYPE_CHECKING:
    from showhow.db.removal.removals import Removal

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
_NAMED_BY = {
    Kind.PROJECT: "The project's name.",
    Kind.QUESTION: "The question's id, or PROJECT:NUMBER.",
    Kind.DRAFT: "The id of a person's draft.",
    Kind.RUN: "The run's id, its beginning, or its name.",
    Kind.LIBRARY: "A version, NAME:NUMBER.",
    Kind.WORLD: "The world's name.",
}


def add_removal_commands(app: typer.Typer, kind: Kind) -> None:
    """Add the commands for this kind to a verb."""
    what_argument = Annotated[str, typer.Argument(help=_NAMED_BY[kind])]
    restored_argument = Annotated[
        str | None, typer.Argument(help="Its name or id; without it, lists what can be restored.")
    ]

    def archive(what: what_argument, *, as_json: AsJson = False) -> None:
        _remove(kind, what, archives=True, as_json=as_json)

    def delete(what: what_argument, *, yes: YesOption = False, as_json: AsJson = False) -> None:
        if not yes:
            _confirm(kind, what)
        _remove(kind, what, archives=False, as_json=as_json)

    def restore(what: restored_argument = None, *, as_json: AsJson = False) -> None:
        _restore(kind, what, as_json=as_json)

    app.command("archive", help=f"Take a {kind} out of all lists, until `restore`.")(archive)
    app.command("delete", help=f"Delete a {kind}; `restore` brings it back for {KEPT_DAYS} days.")(delete)
    app.command("restore", help=f"Bring back an archived or deleted {kind}, or list them.")(restore)


# The functions below import the store, since other commands of a verb start without it.


def _confirm(kind: Kind, what: str) -> None:
    from showhow.app import removals  # noqa: PLC0415

    effect = removals.describe(current_services(), kind, _find(kind, what))
    question = f"{effect} {removals.DELETION_NOTE}"
    if not sys.stdin.isatty():
        raise CommandError(f"{question} Delete it with --yes")
    if not typer.confirm(f"{question} Delete it?", err=True):
        raise CommandError("nothing was deleted")


def _find(kind: Kind, what: str) -> Any:
    from showhow.db.removal.removals import find_key  # noqa: PLC0415

    with current_services().database.read() as session:
        return find_key(session, kind, what)


def _restore(kind: Kind, what: str | None, *, as_json: bool) -> None:
    from showhow.app import removals  # noqa: PLC0415
    from showhow.db.removal.removals import find_removal, format_touched, list_removals  # noqa: PLC0415

    services = current_services()
    with services.database.read() as session:
        listed = list_removals(session, kind) if what is None else [find_removal(session, kind, what)]
    if what is None:
        lines = "\n".join(map(_format, listed)) or f"no {kind} is archived or deleted"
        emit(list(map(_to_json, listed)), lines, as_json=as_json)
        return
    restored = removals.restore(services, listed[0].id)
    emit(_to_json(restored), f"restored: {kind} {restored.name}{format_touched(restored.touched)}", as_json=as_json)


def _remove(kind: Kind, what: str, *, archives: bool, as_json: bool) -> None:
    from showhow.app import removals  # noqa: PLC0415

    removal = removals.remove(current_services(), kind, _find(kind, what), archives=archives)
    emit(_to_json(removal), _format(removal), as_json=as_json)


def _format(removal: "Removal") -> str:
    from showhow.db.removal.removals import format_touched  # noqa: PLC0415

    until = "archived" if removal.kept_until is None else f"deleted, can be restored until {removal.kept_until:%F}"
    return f"{removal.kind} {removal.name}{format_touched(removal.touched)}: {until}"


def _to_json(removal: "Removal") -> dict[str, Any]:
    return {
        "id": str(removal.id),
        "kind": removal.kind,
        "name": removal.name,
        "touched": removal.touched,
        "removed_by": removal.removed_by,
        "removed_at": removal.removed_at,
        "kept_until": removal.kept_until,
    }
