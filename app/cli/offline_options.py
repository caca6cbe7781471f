"""Options of verbs that read live worlds, --offline and --as-of; a module of its own, which loads no reasoner."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated

import typer

from app.cli.output import CommandError
from runs.services import Services

OfflineOption = Annotated[bool, typer.Option("--offline", help="Live worlds answer from their recorded answers only.")]
AsOfOption = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="Live worlds answer as of then: 2026-11-21T14:00.")
]


def apply_record_options(services: Services, as_of: str | None, *, offline: bool) -> Services:
    """Return services whose live worlds use recorded answers; the same services if no option is set."""
    settings = services.settings
    if offline:
        settings = replace(settings, offline=True)
    if as_of:
        try:
            settings = replace(settings, as_of=datetime.fromisoformat(as_of).astimezone())
        except ValueError as error:
            raise CommandError(f"--as-of is {as_of!r}; write a time such as 2026-11-21T14:00") from error
    return services if settings == services.settings else Services(settings, services.environ)
