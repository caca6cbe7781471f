"""`showhow world import | list | info | search | article | query`; the other verbs are in the world_* modules."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli import world_generate, world_live, world_questions
from app.cli.output import CommandError, emit, fail_on_interrupt
from app.cli.record_options import AsOfOption, OfflineOption, apply_record_options
from app.cli.world_published import INSTANCE_FORMAT, export, format_instance_counts, import_published_instance, verify
from app.progress import print_progress
from app.services import services
from runs.services import Services
from worlds.build import WorldContents, build_world
from worlds.importers import read_articles
from worlds.open import list_worlds, read_world_metadata
from worlds.source import Cell, TextSource

app = typer.Typer(no_args_is_help=True, help="Import, generate, add, list and query worlds.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Replace an existing world of that name.")]

generate = app.command()(world_generate.generate)
app.command()(world_live.add)
app.command("check")(world_live.check_world)
app.command()(verify)
app.command()(export)
app.command()(world_questions.around)
app.command("family")(world_questions.show_family)
app.command()(world_questions.questions)
app.command()(world_questions.trace)
app.command()(world_questions.traces)


@app.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """List the worlds of this machine."""
    worlds = list_worlds(services().settings.worlds_folder)
    lines = [f"{world['name']}: {_format_size(world)} ({world['kind']})" for world in worlds]
    emit(worlds, "\n".join(lines) or "no worlds yet", as_json=as_json)


def _format_size(metadata: dict[str, Any]) -> str:
    if "hosts" in metadata:
        return f"asks {', '.join(metadata['hosts'])}"
    return f"{metadata['articles']:,} articles, {metadata['triples']:,} triples"


@app.command()
def info(name: str, *, as_json: AsJson = False) -> None:
    """Show the metadata of a world: kind, sizes, seed, licence, content hash."""
    metadata = read_world_metadata(services().settings.worlds_folder, name)
    emit(metadata, "\n".join(f"{key}: {value}" for key, value in metadata.items()), as_json=as_json)


@app.command("import")
def import_(  # noqa: PLR0913, PLR0917 - every option of the verb is one parameter
    name: str,
    articles: Annotated[Path | None, typer.Option(help="A file or folder of articles.")] = None,
    graph: Annotated[Path | None, typer.Option(help="A Turtle or N-Triples file, plain or .gz.")] = None,
    form: Annotated[str, typer.Option("--format", help="auto, jsonl, hotpotqa, 2wiki or phantomwiki.")] = "auto",
    where: Annotated[list[str] | None, typer.Option(help="Only articles with FIELD=VALUE; may be repeated.")] = None,
    licence: Annotated[str | None, typer.Option(help="The licence of the texts.")] = None,
    *,
    replace: ReplaceOption = False,
    as_json: AsJson = False,
) -> None:
    """Make a world from files; after a malformed line the import stops and removes the unfinished world."""
    folder = services().settings.worlds_folder
    if articles is None and graph is None:
        raise CommandError("name what to import: --articles, --graph or both")
    conditions = dict(_parse_condition(text) for text in where or [])
    if form == INSTANCE_FORMAT:
        options = {"licence": licence, **conditions}
        metadata = import_published_instance(folder, name, articles, graph, options, replace=replace)
        emit(metadata, format_instance_counts(metadata), as_json=as_json)
        return
    description = {"licence": licence, "where": [f"{k}={v}" for k, v in conditions.items()] or None}
    records = read_articles(articles, form, conditions) if articles is not None else None
    print_progress(f"importing {name} ...")
    with fail_on_interrupt(f"The import was stopped; the world {name} was not made."):
        metadata = build_world(folder, name, WorldContents(records, graph, description), replace=replace)
    emit(metadata, f"{name}: {metadata['articles']:,} articles, {metadata['triples']:,} triples", as_json=as_json)


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
    parts = apply_record_options(services(), as_of, offline=offline)
    hits = _text_source(parts, name).search(query, k)
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
    parts = apply_record_options(services(), as_of, offline=offline)
    record = _text_source(parts, name).article(title)
    text = "\n".join([f"{record.title} ({record.entity or 'no entity'})", *record.sentences])
    emit(asdict(record), text, as_json=as_json)


@app.command()
def query(
    name: str, sparql: str, as_of: AsOfOption = None, *, offline: OfflineOption = False, as_json: AsJson = False
) -> None:
    """Print the result of a SELECT or ASK query."""
    parts = apply_record_options(services(), as_of, offline=offline)
    source = parts.open_world(name).graph
    if source is None:
        raise CommandError(f"the world {name} has no graph")
    table = source.query(sparql)
    if table.boolean is not None:
        emit(asdict(table), "yes" if table.boolean else "no", as_json=as_json)
        return
    rows = ["\t".join(table.columns), *("\t".join(_cell_value(cell) for cell in row) for row in table.rows)]
    emit(asdict(table), "\n".join(rows) + ("\n(more rows exist)" if table.truncated else ""), as_json=as_json)


def _text_source(parts: Services, name: str) -> TextSource:
    source = parts.open_world(name).text
    if source is None:
        raise CommandError(f"the world {name} has no articles")
    return source


def _cell_value(cell: Cell | None) -> Any:
    return "" if cell is None else cell.value
