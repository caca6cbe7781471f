"""`showhow world add | check | import | generate | verify | export | list | info | search | article | query`.

The verbs of facts and questions are in world_questions.py.
"""

from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from showhow.app.cli import world_questions
from showhow.app.cli.consent import require_consent
from showhow.app.cli.drawn_options import draw_options
from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.cli.removals import add_removal_commands
from showhow.app.services import current_services
from showhow.db.removal.removal_kinds import Kind
from showhow.guard.files import open_regular
from showhow.runs.services import Services
from showhow.tasks import worlds as tasks
from showhow.tasks.progress import print_progress
from showhow.tasks.task import require_role
from showhow.tasks.worlds import ExportWorld, GenerateWorld, ImportWorld, VerifyWorld
from showhow.worlds.folder import world_folder
from showhow.worlds.live import list_presets, read_preset
from showhow.worlds.open import (
    SearchProbe,
    SourceCallCheck,
    check_sources,
    choose_probe,
    list_worlds,
    read_world_metadata,
)
from showhow.worlds.source import Cell, TextSource

app = typer.Typer(no_args_is_help=True, help="Import, generate, add, list and query worlds.")
add_removal_commands(app, Kind.WORLD)

OfflineOption = Annotated[bool, typer.Option("--offline", help="Live worlds answer from their recorded answers only.")]
AsOfOption = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="Live worlds answer as of then: 2026-11-21T14:00.")
]

app.command()(world_questions.around)
app.command("family")(world_questions.show_family)
app.command()(world_questions.questions)
app.command()(world_questions.trace)
app.command()(world_questions.traces)


@app.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """List the worlds of this machine."""
    worlds = list_worlds(current_services().settings.worlds_folder)
    lines = [f"{world['name']}: {_format_size(world)} ({world['kind']})" for world in worlds]
    emit(worlds, "\n".join(lines) or "no worlds yet", as_json=as_json)


def _format_size(metadata: dict[str, Any]) -> str:
    if "hosts" in metadata:
        return f"asks {', '.join(metadata['hosts'])}"
    return f"{metadata['articles']:,} articles, {metadata['triples']:,} triples"


@app.command()
def rename(name: str, new_name: str) -> None:
    """Rename a world; its projects and runs go on with it."""
    from showhow.app.removals import rename_world  # noqa: PLC0415 - other verbs start without the store

    services = current_services()
    require_role(services, tasks.ADMIN)
    rename_world(services, name, new_name)
    emit({"name": new_name}, f"the world {name} is called {new_name}", as_json=False)


@app.command()
def info(name: str, *, as_json: AsJson = False) -> None:
    """Show the metadata of a world: kind, sizes, seed, licence, content hash."""
    metadata = read_world_metadata(current_services().settings.worlds_folder, name)
    emit(metadata, "\n".join(f"{key}: {value}" for key, value in metadata.items()), as_json=as_json)


@app.command("import")
@draw_options
def import_(request: ImportWorld, *, as_json: AsJson = False) -> None:
    """Make a world from files; after a malformed line the import stops and removes the unfinished world."""
    imported = tasks.import_(current_services(), request)
    emit(imported.metadata, "\n".join(imported.lines), as_json=as_json)


@app.command()
def search(  # noqa: PLR0913 - every option of the verb is one parameter
    name: str,
    query: str,
    k: Annotated[int, typer.Option("-k", min=1, max=100)] = 5,
    as_of: AsOfOption = None,
    *,
    offline: OfflineOption = False,
    as_json: AsJson = False,
) -> None:
    """Print the most relevant articles for a name or a question."""
    services = apply_record_options(current_services(), as_of, offline=offline)
    hits = _text_source(services, name).search(query, k)
    emit(
        [asdict(hit) for hit in hits],
        "\n".join(f"{h.title}: {h.snippet}" for h in hits) or "nothing found",
        as_json=as_json,
    )


@app.command()
def article(
    name: str, title: str, as_of: AsOfOption = None, *, offline: OfflineOption = False, as_json: AsJson = False
) -> None:
    """Print an article by its title."""
    services = apply_record_options(current_services(), as_of, offline=offline)
    record = _text_source(services, name).article(title)
    text = "\n".join([f"{record.title} ({record.entity or 'no entity'})", *record.sentences])
    emit(asdict(record), text, as_json=as_json)


@app.command()
def query(
    name: str, sparql: str, as_of: AsOfOption = None, *, offline: OfflineOption = False, as_json: AsJson = False
) -> None:
    """Print the result of a SELECT or ASK query."""
    services = apply_record_options(current_services(), as_of, offline=offline)
    source = services.open_world(name).graph
    if source is None:
        raise CommandError(f"the world {name} has no graph")
    table = source.query(sparql)
    if table.boolean is not None:
        emit(asdict(table), "yes" if table.boolean else "no", as_json=as_json)
        return
    rows = ["\t".join(table.columns), *("\t".join(_cell_value(cell) for cell in row) for row in table.rows)]
    emit(asdict(table), "\n".join(rows) + ("\n(more rows exist)" if table.truncated else ""), as_json=as_json)


def _text_source(services: Services, name: str) -> TextSource:
    source = services.open_world(name).text
    if source is None:
        raise CommandError(f"the world {name} has no articles")
    return source


def _cell_value(cell: Cell | None) -> Any:
    return "" if cell is None else cell.value


_MAX_SHORTFALLS = 3
"""How many templates with too few questions are printed."""


@app.command()
@draw_options
def generate(request: GenerateWorld, *, as_json: AsJson = False) -> None:
    """Generate a fictional world: families as articles, a graph and web pages, with questions and gold answers."""
    metadata = tasks.generate(current_services(), request)
    shortfalls = metadata["shortfalls"]
    for shortfall in shortfalls[:_MAX_SHORTFALLS]:
        print_progress(shortfall)
    if len(shortfalls) > _MAX_SHORTFALLS:
        print_progress(f"{len(shortfalls) - _MAX_SHORTFALLS} more templates have too few questions; see world.toml.")
    sizes = ", ".join(f"{metadata[unit]:,} {unit}" for unit in ("articles", "pages", "triples", "questions"))
    emit(metadata, f"{request.name}: {sizes}", as_json=as_json)


@app.command()
@draw_options
def verify(request: VerifyWorld, *, as_json: AsJson = False) -> None:
    """Derive every answer and fact of a world again; exit status 1 and the first differences if there are any."""
    result = tasks.verify(current_services(), request)
    counts = ", ".join(f"{check.checked:,} {check.name}" for check in result.checks if check.checked)
    if not result.different:
        undecided = f"; {result.undecided:,} could not be compared within the limits" if result.undecided else ""
        emit(result.to_row(), f"{request.name}: {counts}: all equal{undecided}", as_json=as_json)
        return
    differences = (f"  {difference}" for difference in result.first_differences)
    lines = [f"{request.name}: {result.different:,} differ of {counts}", *differences]
    emit(result.to_row(), "\n".join(lines), as_json=as_json)
    raise typer.Exit(1)


@app.command()
@draw_options
def export(request: ExportWorld, *, as_json: AsJson = False) -> None:
    """Write a generated world in PhantomWiki's file layout, so that its evaluator can run on it."""
    result, to = tasks.export(current_services(), request), request.to
    left_out = f"; {result.left_out:,} left out, since its grammar cannot express them" if result.left_out else ""
    rename = "" if to.name == result.split else f"; its evaluator expects the folder to be named {result.split}"
    text = f"{to}: {result.people:,} people and articles, {result.questions:,} questions{left_out}{rename}"
    emit(asdict(result), text, as_json=as_json)


@app.command()
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
    """Add a live world, described in a file: a wiki, a SPARQL endpoint, a web search, or several of them.

    If its headers send environment variables, each is shown with its server, and you are asked once.
    """
    if (file is None) == (not preset):
        raise CommandError("name a description with --file FILE, or a built-in one with --preset NAME")
    # The clients of live worlds take 0.4 s to import.
    from showhow.worlds.live.consent import list_sent_variables, load_former_consent  # noqa: PLC0415
    from showhow.worlds.live.description import parse_live_config  # noqa: PLC0415
    from showhow.worlds.live.world import add_live_world  # noqa: PLC0415

    services = current_services()
    settings = services.settings
    text, origin = (read_preset(preset), preset) if file is None else (_read_description(file), str(file))
    sent = list_sent_variables(parse_live_config(text, origin))
    former = load_former_consent(world_folder(settings.worlds_folder, name)) if sent else frozenset()
    require_consent(services.secret_table, name, [grant for grant in sent if grant not in former], yes=yes)
    description = add_live_world(settings.worlds_folder, name, text, origin, replace=replace)
    hosts = ", ".join(description.metadata["hosts"])
    message = f"{name}: queries {hosts}; `showhow world check {name}` checks its sources"
    message += "".join(f"\nsends the environment variable {variable}" for variable in sent)
    if settings.contact is None:
        message += "\nset SHOWHOW_CONTACT to an e-mail address or a web page before the first call"
    emit({"name": name, **description.metadata}, message, as_json=as_json)


def _read_description(file: Path) -> str:
    try:
        # utf-8-sig, since some editors write a byte order mark.
        with open_regular(file) as stream:
            return stream.read().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise CommandError(f"{file} cannot be read ({error})") from error


@app.command("check")
def check_world(  # noqa: PLR0913 - every option of the verb is one parameter
    name: str,
    question: Annotated[str, typer.Option(help="What to search for among the articles and web pages.")] = "",
    label: Annotated[str, typer.Option("--name", help="A name that an article and an entity have.")] = "",
    as_of: AsOfOption = None,
    *,
    offline: OfflineOption = False,
    as_json: AsJson = False,
) -> None:
    """Call every function of every source once; exit status 1 if one fails."""
    services = apply_record_options(current_services(), as_of, offline=offline)
    world = services.open_world(name)
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
