"""The options of verbs that say which approved traces are meant."""

from typing import Annotated, Any

import typer

from app.verbs.output import CommandFailed
from db.libraries import MODELS, PEOPLE, Wanted

OfProject = Annotated[str | None, typer.Option("--project", help="Only traces of this project.")]
Kind = Annotated[str | None, typer.Option(help="Only of questions of this kind.")]
Rating = Annotated[float | None, typer.Option(min=1, max=5, help="Only with at least this mean of stars.")]
By = Annotated[str | None, typer.Option(help=f"Only by {PEOPLE} or {MODELS}.")]
Text = Annotated[str | None, typer.Option(help="Only of questions that have these words.")]


def conditions(**given: Any) -> Wanted:
    """The options as conditions; CommandFailed for one that cannot be."""
    if given.get("by") not in (None, PEOPLE, MODELS):
        raise CommandFailed(f"demonstrations are by {PEOPLE} or by {MODELS}, not by {given['by']!r}")
    return Wanted(**given)
