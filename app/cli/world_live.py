"""`showhow world add | check`: live worlds are described, and tried before anybody depends on them."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import AsOfOption, OfflineOption, apply_record_options
from app.cli.output import CommandError, emit
from app.services import services
from worlds.check import SearchProbe, SourceCallCheck, check_sources, choose_probe
from worlds.live.description import list_presets, read_preset
from worlds.live.world import add_live_world

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add(
    name: str,
    file: Annotated[Path | None, typer.Option(help="A description in TOML.")] = None,
    ready: Annotated[str, typer.Option("--read_preset", help=f"A ready one: {', '.join(list_presets())}.")] = "",
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Describe a live world anew; its answers stay.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add a live world: a wiki, a SPARQL endpoint, or both, described in a file."""
    if (file is None) == (not ready):
        raise CommandError("name a description with --file FILE, or a ready one with --preset NAME")
    written, place = (read_preset(ready), ready) if file is None else (_read_description(file), str(file))
    described = add_live_world(services().settings.worlds_folder, name, written, place, replace=replace)
    hosts = ", ".join(described.metadata["hosts"])
    told = f"{name}: asks {hosts}; `showhow world check {name}` tries it"
    if services().settings.contact is None:
        told += "\nset SHOWHOW_CONTACT to an e-mail address or a page before the first call"
    emit({"name": name, **described.metadata}, told, as_json=as_json)


def _read_description(file: Path) -> str:
    try:
        # Some editors begin a file with a mark of its encoding.
        return file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as failed:
        raise CommandError(f"{file} cannot be read ({failed})") from failed


def check_world(  # noqa: PLR0913 - every option of the verb is one parameter
    name: str,
    question: Annotated[str, typer.Option(help="What to search for among the articles.")] = "",
    called: Annotated[str, typer.Option("--name", help="A name that an article and an entity have.")] = "",
    as_of: AsOfOption = None,
    *,
    offline: OfflineOption = False,
    as_json: AsJson = False,
) -> None:
    """Call every function of every source once, and tell what works; exit status 1 if anything does not."""
    apply_record_options(as_of, offline=offline)
    world = services().open_world(name)
    wanted = SearchProbe(question or called, called or question) if question or called else choose_probe(world)
    tried = []
    for one in check_sources(world, wanted):
        tried.append(one)
        if not as_json:
            emit(one, _format_check(one), as_json=False)
    failed = [one for one in tried if not one.works]
    emit([asdict(one) for one in tried], f"{len(tried) - len(failed)} of {len(tried)} calls work", as_json=as_json)
    if failed:
        raise CommandError(f"the world {name} does not work whole: {', '.join(f'{f.source} {f.call}' for f in failed)}")


def _format_check(one: SourceCallCheck) -> str:
    return f"{'works' if one.works else 'FAILS'}  {one.source} {one.call}  {one.seconds:.2f} s  {one.told}"
