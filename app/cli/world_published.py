"""`showhow world import --format phantomwiki | verify | export`: gold answers in and out, and derived once more."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.output import CommandError, emit, print_progress
from app.services import services

INSTANCE_FORMAT = "phantomwiki"


def import_published_instance(
    name: str, folder: Path | None, graph: Path | None, told: Mapping[str, str | None], *, replace: bool
) -> dict[str, Any]:
    """Make a world from an instance of PhantomWiki; gives what its world.toml says."""
    from fiction.phantomwiki.instance import import_instance  # noqa: PLC0415 - Parquet's library serves this verb only

    if folder is None or graph is not None:
        raise CommandError("name the folder of the instance with --articles; its graph is made from its facts")
    unknown = sorted(set(told) - {"licence", "split"})
    if unknown:
        raise CommandError(f"of an instance only a split can be chosen (--where split=NAME), not {unknown[0]!r}")
    print_progress(f"importing {name} ...")
    return import_instance(services().settings.worlds_folder, name, folder, told, replace=replace)


def format_instance_counts(about: Mapping[str, Any]) -> str:
    """The counts of an imported instance in one line."""
    counts = ("people", "articles", "triples", "questions")
    return f"{about['name']}: " + ", ".join(f"{about[each]:,} {each}" for each in counts)


def verify(name: str, *, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Derive every answer and fact of a world once more; exit status 1 and the first differences if there are any."""
    from fiction.verification.verify import verify_world as verify_world  # noqa: PLC0415 - its libraries serve this verb only

    found = verify_world(services().settings.worlds_folder, name, print_progress)
    counts = ", ".join(f"{check.checked:,} {check.name}" for check in found.checks if check.checked)
    if not found.different:
        emit(found.to_row(), f"{name}: {counts}: all equal{_format_undecided(found.undecided)}", as_json=as_json)
        return
    lines = [f"{name}: {found.different:,} differ of {counts}", *(f"  {each}" for each in found.first_differences)]
    emit(found.to_row(), "\n".join(lines), as_json=as_json)
    raise typer.Exit(1)


def _format_undecided(count: int) -> str:
    return f"; {count:,} could not be compared within the limits" if count else ""


def export(
    name: str,
    to: Annotated[Path, typer.Option(help="A new or empty folder.")],
    form: Annotated[str, typer.Option("--format", help="phantomwiki.")] = INSTANCE_FORMAT,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a generated world in another generator's layout, so that its evaluator runs on it."""
    from fiction.phantomwiki.export import export_instance  # noqa: PLC0415 - serves this verb only

    if form != INSTANCE_FORMAT:
        raise CommandError(f"there is no format {form!r} of whole worlds; there is {INSTANCE_FORMAT}")
    told = export_instance(services().settings.worlds_folder, name, to)
    left_out = f"; {told.left_out:,} left out, which its grammar cannot ask" if told.left_out else ""
    named = "" if to.name == told.split else f"; its evaluator wants the folder to be called {told.split}"
    text = f"{to}: {told.people:,} people and articles, {told.questions:,} questions{left_out}{named}"
    emit(asdict(told), text, as_json=as_json)
