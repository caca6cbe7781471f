"""`showhow world add | check | import | generate | verify | export | list | info | search | article | query`.

The verbs of facts and questions are in world_questions.py.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli import world_questions
from app.cli.consent import require_consent
from app.cli.output import CommandError, emit, fail_on_interrupt
from app.cli.removals import add_removal_commands
from app.progress import make_stage_printer, print_progress
from app.services import authorize_verb, current_services
from db.removal_kinds import Kind
from fiction.universe.options import GenerationOptions
from guard.files import open_regular
from runs.services import Services
from worlds.article_files import read_articles
from worlds.build import WorldContents, build_world
from worlds.folder import world_folder
from worlds.live import list_presets, read_preset
from worlds.open import SearchProbe, SourceCallCheck, check_sources, choose_probe, list_worlds, read_world_metadata
from worlds.source import Cell, TextSource

app = typer.Typer(no_args_is_help=True, help="Import, generate, add, list and query worlds.")
add_removal_commands(app, Kind.WORLD)

OfflineOption = Annotated[bool, typer.Option("--offline", help="Live worlds answer from their recorded answers only.")]
AsOfOption = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="Live worlds answer as of then: 2026-11-21T14:00.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
INSTANCE_FORMAT = "phantomwiki"
_FORMAT_HELP = "auto, jsonl, hotpotqa, 2wiki, document or phantomwiki; auto recognizes each."
_ARTICLES_HELP = "A file, a folder or a zip archive: JSON Lines, or documents (.txt, .md, .html, .pdf, .docx)."
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Replace an existing world of that name.")]

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
    from app.removals import rename_world  # noqa: PLC0415 - other verbs start without the store

    authorize_verb("admin")
    rename_world(current_services(), name, new_name)
    emit({"name": new_name}, f"the world {name} is called {new_name}", as_json=False)


@app.command()
def info(name: str, *, as_json: AsJson = False) -> None:
    """Show the metadata of a world: kind, sizes, seed, licence, content hash."""
    metadata = read_world_metadata(current_services().settings.worlds_folder, name)
    emit(metadata, "\n".join(f"{key}: {value}" for key, value in metadata.items()), as_json=as_json)


@app.command("import")
def import_(  # noqa: PLR0913, PLR0917 - every option of the verb is one parameter
    name: str,
    articles: Annotated[Path | None, typer.Option(help=_ARTICLES_HELP)] = None,
    graph: Annotated[Path | None, typer.Option(help="A Turtle or N-Triples file, plain or .gz.")] = None,
    form: Annotated[str, typer.Option("--format", help=_FORMAT_HELP)] = "auto",
    where: Annotated[list[str] | None, typer.Option(help="Only articles with FIELD=VALUE; may be repeated.")] = None,
    licence: Annotated[str | None, typer.Option(help="The licence of the texts.")] = None,
    project: Annotated[str | None, typer.Option(help="Also make a project of this name over the world.")] = None,
    questions: Annotated[Path | None, typer.Option(help="A file with the questions of the project.")] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="As of `showhow questions import`: question=Frage; may be repeated.")
    ] = None,
    *,
    replace: ReplaceOption = False,
    as_json: AsJson = False,
) -> None:
    """Make a world from files; after a malformed line the import stops and removes the unfinished world."""
    authorize_verb("admin")
    folder = current_services().settings.worlds_folder
    plan = None
    if project is not None or questions is not None:
        from app.cli.world_project import plan_project  # noqa: PLC0415 - a world alone needs no store

        plan = plan_project(name, project, questions, column or [])
    if articles is None and graph is None:
        raise CommandError("name what to import: --articles, --graph or both")
    conditions = dict(_parse_condition(text) for text in where or [])
    if form == INSTANCE_FORMAT or (form == "auto" and graph is None and _is_instance_folder(articles)):
        options = {"licence": licence, **conditions}
        metadata = import_published_instance(folder, name, articles, graph, options, replace=replace)
        emit(metadata, format_instance_counts(metadata), as_json=as_json)
        return
    left_out: list[str] = []
    description = {
        "licence": licence,
        "where": [f"{k}={v}" for k, v in conditions.items()] or None,
        # It is filled while the documents are read, and written after that.
        "left_out": left_out,
    }
    records = read_articles(articles, form, conditions, left_out) if articles is not None else None
    print_progress(f"importing {name} ...")
    with fail_on_interrupt(f"The import was stopped; the world {name} was not made."):
        metadata = build_world(folder, name, WorldContents(records, graph, description), replace=replace)
    added = ""
    if plan is not None:
        from app.cli.world_project import make_project  # noqa: PLC0415 - as above

        added = make_project(plan, questions)
    omitted = "".join(f"\nleft out: {sentence}" for sentence in left_out)
    counts = f"{name}: {metadata['articles']:,} articles, {metadata['triples']:,} triples"
    emit(metadata, f"{counts}{omitted}{added}", as_json=as_json)


def _is_instance_folder(articles: Path | None) -> bool:
    if articles is None or not articles.is_dir():
        return False
    # Loaded for folders only, since the Parquet library is large.
    from fiction.phantomwiki.instance import is_instance_folder  # noqa: PLC0415

    return is_instance_folder(articles)


def _parse_condition(text: str) -> tuple[str, str]:
    field, equals, value = text.partition("=")
    if not equals or not field:
        raise CommandError(f"--where takes FIELD=VALUE, not {text!r}")
    return field, value


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


_SPLIT_HELP = (
    "How the facts are split: everywhere, or percentages of text, graph and web as in text=50,graph=35,web=15."
)
_SPLIT_BY_HELP = "Split the facts by entity, by relation, or by both."
_EACH_COUNT_HELP = 'The answer to "how many" is the set of the counts of each person, as in the paper.'
_COLLISIONS_HELP = "The share of people who share their full name with another person, from 0 to 0.5."
_PAIRS_HELP = "Pairs of a question with and without a fact in the sources, for each of two kinds of facts."
_MAX_SHORTFALLS = 3
"""How many templates with too few questions are printed."""


@app.command()
def generate(  # noqa: PLR0913, PLR0917 - every option of the verb is one parameter
    name: str,
    people: Annotated[int, typer.Option(help="Number of people.")] = 1000,
    seed: Annotated[int, typer.Option(help="Random seed; the same seed and options give the same world.")] = 1,
    depth: Annotated[int, typer.Option(help="Depth of the question grammar; the longest chain is half of it.")] = 20,
    per_template: Annotated[int, typer.Option(help="Questions of each template.")] = 10,
    family_size: Annotated[int, typer.Option(help="People per family.")] = 25,
    generations: Annotated[int, typer.Option(help="Maximum generations of a family.")] = 5,
    branching: Annotated[int, typer.Option(help="Maximum children of a couple.")] = 5,
    friends: Annotated[float, typer.Option(help="Mean number of friends of a person.")] = 3.0,
    collisions: Annotated[float, typer.Option(help=_COLLISIONS_HELP)] = 0.0,
    split: Annotated[str, typer.Option(help=_SPLIT_HELP)] = "everywhere",
    split_by: Annotated[str, typer.Option(help=_SPLIT_BY_HELP)] = "both",
    pairs: Annotated[int, typer.Option(help=_PAIRS_HELP)] = 0,
    processes: Annotated[
        int, typer.Option(min=0, max=64, help="Processes that write articles; 0 chooses the number.")
    ] = 0,
    *,
    plain: Annotated[bool, typer.Option("--plain", help="One phrasing for each fact, as in the paper.")] = False,
    each_count: Annotated[bool, typer.Option("--each-count", help=_EACH_COUNT_HELP)] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing world of that name.")] = False,
    as_json: AsJson = False,
) -> None:
    """Generate a fictional world: families as articles, a graph and web pages, with questions and gold answers."""
    options = GenerationOptions(
        people=people,
        seed=seed,
        family_size=family_size,
        generations=generations,
        branching=branching,
        friends=friends,
        collisions=collisions,
        depth=depth,
        per_template=per_template,
        plain=plain,
        split=split,
        split_by=split_by,
        each=each_count,
        pairs=pairs,
    )
    _generate(name, options, processes or None, replace=replace, as_json=as_json)


def _generate(name: str, options: GenerationOptions, processes: int | None, *, replace: bool, as_json: bool) -> None:
    """Generate the world, and print its sizes and shortfalls."""
    authorize_verb("admin")
    # Loaded only by this verb, since its libraries are large.
    from fiction.generator.build import generate_world  # noqa: PLC0415

    folder, progress = current_services().settings.worlds_folder, make_stage_printer()
    with fail_on_interrupt(f"The generation was stopped; the world {name} was not made."):
        metadata = generate_world(folder, name, options, progress=progress, replace=replace, processes=processes)
    _print_shortfalls(metadata["shortfalls"])
    sizes = ", ".join(f"{metadata[unit]:,} {unit}" for unit in ("articles", "pages", "triples", "questions"))
    emit(metadata, f"{name}: {sizes}", as_json=as_json)


def _print_shortfalls(shortfalls: list[str]) -> None:
    for shortfall in shortfalls[:_MAX_SHORTFALLS]:
        print_progress(shortfall)
    if len(shortfalls) > _MAX_SHORTFALLS:
        print_progress(f"{len(shortfalls) - _MAX_SHORTFALLS} more templates have too few questions; see world.toml.")


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


@app.command()
def verify(name: str, *, as_json: AsJson = False) -> None:
    """Derive every answer and fact of a world again; exit status 1 and the first differences if there are any."""
    # Loaded only by this verb, since its libraries are large.
    from fiction.verification import verify_world  # noqa: PLC0415

    result = verify_world(current_services().settings.worlds_folder, name, lambda check: print_progress(str(check)))
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


@app.command()
def export(
    name: str,
    to: Annotated[Path, typer.Option(help="A new or empty folder.")],
    form: Annotated[str, typer.Option("--format", help="phantomwiki.")] = INSTANCE_FORMAT,
    *,
    as_json: AsJson = False,
) -> None:
    """Write a generated world in PhantomWiki's file layout, so that its evaluator can run on it."""
    # Loaded only by this verb.
    from fiction.phantomwiki.articles import export_instance  # noqa: PLC0415

    if form != INSTANCE_FORMAT:
        raise CommandError(f"there is no export format {form!r} for worlds; use {INSTANCE_FORMAT}")
    result = export_instance(current_services().settings.worlds_folder, name, to)
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
    from worlds.live.consent import list_sent_variables, load_former_consent  # noqa: PLC0415
    from worlds.live.description import parse_live_config  # noqa: PLC0415
    from worlds.live.world import add_live_world  # noqa: PLC0415

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
