"""`showhow world add | check`: adds a live world from its description, and calls each of its sources once."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from app.cli.output import CommandError, emit
from app.cli.record_options import AsOfOption, OfflineOption, apply_record_options
from app.services import services
from worlds.check import SearchProbe, SourceCallCheck, check_sources, choose_probe
from worlds.live.description import list_presets, read_preset
from worlds.live.world import add_live_world

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add(
    name: str,
    file: Annotated[Path | None, typer.Option(help="The description of the world in TOML.")] = None,
    preset: Annotated[str, typer.Option("--preset", help=f"A built-in description: {', '.join(list_presets())}.")] = "",
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the description of a live world; its recorded answers stay.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add a live world: a wiki, a SPARQL endpoint, or both, described in a file."""
    if (file is None) == (not preset):
        raise CommandError("name a description with --file FILE, or a built-in one with --preset NAME")
    settings = services().settings
    text, origin = (read_preset(preset), preset) if file is None else (_read_description(file), str(file))
    description = add_live_world(settings.worlds_folder, name, text, origin, replace=replace)
    hosts = ", ".join(description.metadata["hosts"])
    message = f"{name}: asks {hosts}; `showhow world check {name}` tries it"
    if settings.contact is None:
        message += "\nset SHOWHOW_CONTACT to an e-mail address or a page before the first call"
    emit({"name": name, **description.metadata}, message, as_json=as_json)


def _read_description(file: Path) -> str:
    try:
        # utf-8-sig: some editors write a byte order mark.
        return file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise CommandError(f"{file} cannot be read ({error})") from error


def check_world(  # noqa: PLR0913 - every option of the verb is one parameter
    name: str,
    question: Annotated[str, typer.Option(help="What to search for among the articles.")] = "",
    label: Annotated[str, typer.Option("--name", help="A name that an article and an entity have.")] = "",
    as_of: AsOfOption = None,
    *,
    offline: OfflineOption = False,
    as_json: AsJson = False,
) -> None:
    """Call every function of every source once; exit status 1 if one fails."""
    parts = apply_record_options(services(), as_of, offline=offline)
    world = parts.open_world(name)
    probe = SearchProbe(question or label, label or question) if question or label else choose_probe(world)
    checks = []
    for check in check_sources(world, probe):
        checks.append(check)
        if not as_json:
            emit(check, _format_check(check), as_json=False)
    failures = [check for check in checks if not check.works]
    summary = f"{len(checks) - len(failures)} of {len(checks)} calls work"
    emit([asdict(check) for check in checks], summary, as_json=as_json)
    if failures:
        calls = ", ".join(f"{check.source} {check.call}" for check in failures)
        raise CommandError(f"some calls to the world {name} failed: {calls}")


def _format_check(check: SourceCallCheck) -> str:
    return f"{'works' if check.works else 'FAILS'}  {check.source} {check.call}  {check.seconds:.2f} s  {check.told}"
