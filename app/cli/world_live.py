"""`showhow world add | check`: adds a live world from its description, and calls each of its sources once."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.offline_options import AsOfOption, OfflineOption, apply_record_options
from app.cli.output import CommandError, emit
from app.services import services
from worlds.folder import world_folder
from worlds.importers.files import open_regular_file
from worlds.live import list_presets, read_preset
from worlds.open import SearchProbe, SourceCallCheck, check_sources, choose_probe

if TYPE_CHECKING:
    from worlds.live.consent import SentVariable

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add(  # noqa: PLR0913 - every option of the verb is one parameter
    name: str,
    file: Annotated[Path | None, typer.Option(help="The description of the world in TOML.")] = None,
    preset: Annotated[str, typer.Option("--preset", help=f"A built-in description: {', '.join(list_presets())}.")] = "",
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the description of a live world; its recorded answers are kept.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Allow it to send the environment variables that its headers name.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add a live world: a wiki, a SPARQL endpoint, or both, described in a file.

    If its headers send environment variables, each is shown with its server, and you are asked once.
    """
    if (file is None) == (not preset):
        raise CommandError("name a description with --file FILE, or a built-in one with --preset NAME")
    # The clients of live worlds take 0.4 s to import.
    from worlds.live.consent import sent_variables, store_consent  # noqa: PLC0415
    from worlds.live.description import parse_live_config  # noqa: PLC0415
    from worlds.live.world import add_live_world  # noqa: PLC0415

    settings = services().settings
    text, origin = (read_preset(preset), preset) if file is None else (_read_description(file), str(file))
    sent = sent_variables(parse_live_config(text, origin))
    _require_consent(world_folder(settings.worlds_folder, name), sent, yes=yes)
    description = add_live_world(settings.worlds_folder, name, text, origin, replace=replace)
    store_consent(world_folder(settings.worlds_folder, name), sent)
    hosts = ", ".join(description.metadata["hosts"])
    message = f"{name}: queries {hosts}; `showhow world check {name}` checks its sources"
    message += "".join(f"\nsends the environment variable {variable}" for variable in sent)
    if settings.contact is None:
        message += "\nset SHOWHOW_CONTACT to an e-mail address or a web page before the first call"
    emit({"name": name, **description.metadata}, message, as_json=as_json)


def _require_consent(folder: Path, sent: "Sequence[SentVariable]", *, yes: bool) -> None:
    """Ask once for what the world in this folder may not send yet; CommandError if it is not allowed."""
    from worlds.live.consent import load_consent  # noqa: PLC0415 - as above

    missing = [] if yes or not sent else [variable for variable in sent if variable not in load_consent(folder)]
    if not missing:
        return
    question = f"{folder.name} would send the environment variable {' and '.join(map(str, missing))}"
    if not sys.stdin.isatty():
        raise CommandError(f"{question}; if you trust the server with it, add the world with --yes")
    if not typer.confirm(f"{question} with every request. Allow this?", err=True):
        raise CommandError(f"the world {folder.name} was not added")


def _read_description(file: Path) -> str:
    try:
        # utf-8-sig, since some editors write a byte order mark.
        with open_regular_file(file) as stream:
            return stream.read().decode("utf-8-sig")
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
