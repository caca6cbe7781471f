"""The options of verbs by which live worlds answer from what they have answered before."""

import os
from typing import Annotated

import typer

Offline = Annotated[bool, typer.Option("--offline", help="Live worlds answer from their record only.")]
AsOf = Annotated[
    str | None, typer.Option("--as-of", metavar="MOMENT", help="As they answered at that moment: 2026-11-21T14:00.")
]


def only_the_record(as_of: str | None, *, offline: bool) -> None:
    """Have this process answer from the record where that is wished; called before anything reads the settings."""
    if offline:
        os.environ["SHOWHOW_OFFLINE"] = "1"
    if as_of:
        os.environ["SHOWHOW_AS_OF"] = as_of
