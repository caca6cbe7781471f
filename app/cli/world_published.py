"""`showhow world verify | export`, and the import of published PhantomWiki instances."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.output import CommandError, emit, fail_on_interrupt
from app.progress import print_progress
from app.services import services

INSTANCE_FORMAT = "phantomwiki"


def import_published_instance(  # noqa: PLR0913 - every option of the verb is one parameter
    worlds_folder: Path,
    name: str,
    folder: Path | None,
    graph: Path | None,
    options: Mapping[str, str | None],
    *,
    replace: bool,
) -> dict[str, Any]:
    """Make a world from an instance of PhantomWiki; returns the metadata of its world.toml."""
    # Loaded only by this verb, since the Parquet library is large.
    from fiction.phantomwiki.instance import import_instance  # noqa: PLC0415

    if folder is None or graph is not None:
        raise CommandError("name the folder of the instance with --articles; its graph is made from its facts")
    unknown_options = sorted(set(options) - {"licence", "split"})
    if unknown_options:
        raise CommandError(f"an instance takes only --where split=NAME, not {unknown_options[0]!r}")
    print_progress(f"importing {name} ...")
    with fail_on_interrupt(f"The import was stopped; the world {name} was not made."):
        return import_instance(worlds_folder, name, folder, options, replace=replace)


def format_instance_counts(metadata: Mapping[str, Any]) -> str:
    """The counts of an imported instance in one line."""
    units = ("people", "articles", "triples", "questions")
    return f"{metadata['name']}: " + ", ".join(f"{metadata[unit]:,} {unit}" for unit in units)


def verify(name: str, *, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Derive every answer and fact of a world again; exit status 1 and the first differences if there are any."""
    # Loaded only by this verb, since its libraries are large.
    from fiction.verification.verify import verify_world  # noqa: PLC0415

    result = verify_world(services().settings.worlds_folder, name, lambda check: print_progress(str(check)))
    counts = ", ".join(f"{check.checked:,} {check.name}" for check in result.checks if check.checked)
    if not result.different:
        emit(result.to_row(), f"{name}: {counts}: all equal{_format_undecided(result.undecided)}", as_json=as_json)
        return
    differences = (f"  {difference}" for difference in result.first_differences)
    lines = [f"{name}: {result.different:,} differ of {counts}", *differences]
    emit(result.to_row(), "\n".join(lines), as_json=as_json)
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
    """Write a generated world in PhantomWiki's file layout, so that its evaluator can run on it."""
    # Loaded only by this verb.
    from fiction.phantomwiki.export import export_instance  # noqa: PLC0415

    if form != INSTANCE_FORMAT:
        raise CommandError(f"there is no export format {form!r} for worlds; use {INSTANCE_FORMAT}")
    result = export_instance(services().settings.worlds_folder, name, to)
    left_out = f"; {result.left_out:,} left out, since its grammar cannot express them" if result.left_out else ""
    rename = "" if to.name == result.split else f"; its evaluator expects the folder to be named {result.split}"
    text = f"{to}: {result.people:,} people and articles, {result.questions:,} questions{left_out}{rename}"
    emit(asdict(result), text, as_json=as_json)
