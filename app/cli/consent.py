"""Asks once, on the terminal, whether a variable may be sent to a server."""

import sys
from collections.abc import Sequence

import typer

from showhow.app.cli.output import CommandError
from showhow.guard.destinations import Grant, SecretTable


def require_consent(table: SecretTable, sender: str, sent: Sequence[Grant], *, yes: bool) -> None:
    """Ask for what may not be sent yet, and record it; CommandError if it is not allowed, or never can be."""
    if any(unsafe := [table.find_unsafe(grant.variable, grant.destination) for grant in sent]):
        raise CommandError(next(filter(None, unsafe)).rstrip("."))
    missing = [grant for grant in sent if table.find_refusal(grant.variable, grant.destination)]
    question = f"{sender} would send the environment variable {' and '.join(map(str, missing))}"
    if missing and not yes:
        if not sys.stdin.isatty():
            raise CommandError(f"{question}; if you trust the server with it, allow it with --yes")
        if not typer.confirm(f"{question} with every request. Allow this?", err=True):
            raise CommandError(f"{' and '.join(map(str, missing))} is not allowed, and nothing was changed")
    if missing:
        table.allow(missing)
