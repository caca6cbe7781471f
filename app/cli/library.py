"""`showhow library freeze | list | show | compare | export | select | usage | map | check`."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from showhow.app.cli.drawn_options import draw_options
from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.cli.removals import add_removal_commands
from showhow.app.cli.traces import emit_losses
from showhow.app.services import current_services
from showhow.db.questions.question_list import list_question_kinds
from showhow.db.removal.removal_kinds import Kind
from showhow.db.removal.renaming import rename_library
from showhow.db.traces.libraries import (
    Demonstration,
    count_demonstrations,
    find_version,
    list_versions,
    load_demonstrations,
)
from showhow.evaluation.comparison.drift import check_repetitions
from showhow.evaluation.comparison.selection_usage import Report, UsageRequest
from showhow.fewshot_library.library import (
    LeakageError,
    LibraryStatistics,
    LoadedLibrary,
    SelectedDemonstrations,
    compare_versions,
    compute_statistics,
    list_actions,
)
from showhow.fewshot_library.selection import SelectionConfig
from showhow.fewshot_library.sequence_similarity import DISTANCES, build_sequence_map
from showhow.option_fields import list_options
from showhow.reasoners.withheld import list_withheld
from showhow.tasks import library as tasks
from showhow.tasks import trace_export
from showhow.tasks.library import FreezeLibrary
from showhow.tasks.task import fail_on_interrupt
from showhow.tasks.trace_export import ExportTraces

LibraryReferenceArgument = Annotated[str, typer.Argument(help="NAME for its latest version, NAME:NUMBER for another.")]
_DISTANCE_HELP = next(entry.help for entry in list_options(SelectionConfig) if entry.name == "distance")
MAX_LISTED_SEQUENCES = 20
"""Sequences of the map that are printed; --json prints all."""


@draw_options
def usage(request: UsageRequest, *, as_json: AsJson = False) -> None:
    """Count how often each demonstration would be selected for the questions of a project, and which never would."""
    report = tasks.count_usage(current_services(), request)
    emit(report, "\n".join(_format_usage(report)), as_json=as_json)


def _format_usage(report: Report) -> Iterator[str]:
    yield from (f"{row['times']:6,}  {row['question']}" for row in report["used"])
    yield from (f"     0  {row['question']}" for row in report["never_used"])
    if report["never"] > len(report["never_used"]):
        yield f"     0  and {report['never'] - len(report['never_used']):,} more"
    used = f"{len(report['used']):,} of {report['demonstrations']:,} demonstrations are used"
    yield f"{report['questions']:,} questions, {report['picks']:,} picks: {used}, {report['never']:,} never"


def map_(
    library: LibraryReferenceArgument,
    *,
    distance: Annotated[str, typer.Option(help=_DISTANCE_HELP)] = "longer",
    as_json: AsJson = False,
) -> None:
    """Print the map of the library's action sequences; similar sequences have similar coordinates."""
    if distance not in DISTANCES:
        raise CommandError(f"there is no distance {distance!r}; choose one of {', '.join(DISTANCES)}")
    version, opened = current_services().open_library(library)
    sequence_map = build_sequence_map(opened.pool.actions, distance)
    rows = [
        {"x": round(float(x), 6), "y": round(float(y), 6), "demonstrations": len(indices), "actions": actions}
        for (x, y), (actions, indices) in zip(sequence_map.coordinates, opened.list_sequences(), strict=True)
    ]
    rows.sort(key=lambda row: -int(str(row["demonstrations"])))
    value: dict[str, Any] = {
        "library": version.name,
        "number": version.number,
        "distance": distance,
        "shown": [round(share, 6) for share in sequence_map.explained_variance],
        "landmarks": sequence_map.landmarks,
        "sequences": rows,
    }
    lines = [
        f"{row['x']:7.3f} {row['y']:7.3f}  {row['demonstrations']:,}×  {' > '.join(row['actions'])}"  # type: ignore[arg-type]
        for row in rows[:MAX_LISTED_SEQUENCES]
    ]
    lines.append(f"{len(rows):,} sequences; the map shows {sequence_map.explained_variance[1]:.0%} of their distances")
    emit(value, "\n".join(lines), as_json=as_json)


@draw_options
def export(request: ExportTraces, *, as_json: AsJson = False) -> None:
    """Write the demonstrations of a version, or all approved traces, to a file; losses are listed on stderr.

    Nothing is written if a question is, or nearly is, of the test split and the format does not say so.
    """
    services, plan = current_services(), request.plan
    with services.database.read() as session:
        version_id = None if plan.library is None else find_version(session, plan.library).id
        if not count_demonstrations(session, plan.conditions, version_id):
            raise CommandError("no demonstration matches, so nothing was written; try fewer filters")
    emit_losses(trace_export.export(services, request), request.file, as_json=as_json)


app = typer.Typer(no_args_is_help=True, help="Freeze, compare and export demonstrations, and select among them.")
add_removal_commands(app, Kind.LIBRARY)

app.command()(usage)
app.command("map")(map_)
app.command()(export)


@app.command("freeze")
@draw_options
def freeze_(request: FreezeLibrary, *, as_json: AsJson = False) -> None:
    """Freeze the approved traces that match as the next version of the library."""
    try:
        version = tasks.freeze(current_services(), request)
    except LeakageError as error:
        raise CommandError(f"{error} with --force") from error
    value = {"name": version.name, "number": version.number, "card": version.card}
    text_line = f"{version.name}:{version.number} holds {version.card['demonstrations']} demonstrations"
    emit(value, text_line, as_json=as_json)


@app.command()
def rename(name: str, new_name: str) -> None:
    """Rename a library with all its versions; runs and scripts go on with its former name."""
    with current_services().database.begin() as session:
        count = rename_library(session, name, new_name)
    emit(
        {"name": new_name},
        f"{count:,} version{'' if count == 1 else 's'} of {name} {'is' if count == 1 else 'are'} called {new_name}",
        as_json=False,
    )


@app.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """List every version of every library."""
    with current_services().database.read() as session:
        versions = list_versions(session)
    lines = [f"{row.name}:{row.number}  {row.frozen_at:%F}  {row.demonstrations} demonstrations" for row in versions]
    text = "\n".join(lines) or "no library yet; `showhow library freeze NAME` makes one from the approved traces"
    emit([row._asdict() for row in versions], text, as_json=as_json)


@app.command()
def show(library: LibraryReferenceArgument, *, as_json: AsJson = False) -> None:
    """Show the card, the statistics and the demonstrations of a version."""
    services = current_services()
    with services.database.read() as session:
        version = find_version(session, library)
        demonstrations = load_demonstrations(session, version.id)
        kinds = list_question_kinds(session, sorted({row.project for row in demonstrations}))
    statistics = compute_statistics(demonstrations, tools=services.tool_registry().all_tools(), kinds=kinds)
    description = {
        "name": version.name,
        "number": version.number,
        "frozen_at": version.frozen_at,
        "card": version.card,
        "statistics": statistics.to_json(),
        "demonstrations": [row._asdict() for row in demonstrations],
    }
    card = [f"{name}: {_format_value(value)}" for name, value in version.card.items() if value]
    heading = f"{version.name}:{version.number}, frozen {version.frozen_at:%F}"
    lines = [heading, *card, *_format_statistics(statistics), "", *map(_format_demonstration, demonstrations)]
    emit(description, "\n".join(lines), as_json=as_json)


@app.command()
def compare(before: LibraryReferenceArgument, after: LibraryReferenceArgument, *, as_json: AsJson = False) -> None:
    """Compare two versions: which demonstrations were added and removed."""
    with current_services().database.read() as session:
        old, new = (load_demonstrations(session, find_version(session, version).id) for version in (before, after))
    difference = compare_versions(old, new)
    lines = [f"+ {_format_demonstration(row)}" for row in difference.added]
    lines += [f"- {_format_demonstration(row)}" for row in difference.removed]
    lines.append(f"{len(difference.added)} added, {len(difference.removed)} removed, {difference.kept} kept")
    emit(asdict(difference), "\n".join(lines), as_json=as_json)


@app.command()
def check(library: LibraryReferenceArgument, *, as_json: AsJson = False) -> None:
    """Have replay answer the question of each demonstration of a version; list those that it does not repeat."""
    with fail_on_interrupt("The check was stopped."):
        report = check_repetitions(current_services(), library)
    lines = [f"{entry['id']}  {entry['why']}" for entry in report["not"]]
    lines.append(f"{report['repeat']:,} of {report['demonstrations']:,} demonstrations repeat on their own question")
    emit(report, "\n".join(lines), as_json=as_json)


@app.command("select")
@draw_options
def select_(  # noqa: PLR0913 - every option of the verb is one parameter
    library: LibraryReferenceArgument,
    question: Annotated[str, typer.Argument(help="The question to select demonstrations for.")],
    *,
    config: SelectionConfig,
    leave_out: Annotated[bool, typer.Option("--leave-out-itself", help="Never select the question itself.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Explain each pick.")] = False,
    as_json: AsJson = False,
) -> None:
    """Select demonstrations for a question."""
    version, opened = current_services().open_library(library)
    withheld = list_withheld(config.guard, question)
    selected = opened.select(question, config, leave_out_itself=leave_out, withheld=withheld)
    value = {"library": version.name, "number": version.number, **selected.to_json(opened)}
    lines = _format_picks(selected, opened, explain=explain)
    emit(value, "\n".join(lines) or "nothing to select from", as_json=as_json)


def _format_picks(selected: SelectedDemonstrations, library: LoadedLibrary, *, explain: bool) -> Iterator[str]:
    selection = selected.selection
    for number, (pick, demonstration) in enumerate(zip(selection.picks, selected.demonstrations, strict=True), start=1):
        yield f"{number}. {demonstration.question}"
        if not explain:
            continue
        yield f"   {' > '.join(list_actions(demonstration))}"
        gain = "selected by relevance alone" if pick.is_filler else f"raises log det by {pick.gain:.3f}"
        yield f"   relevance {selection.cosines[pick.item]:.3f}, novelty {pick.novelty:.3f}, {gain}"
        if pick.runner_up is not None and pick.lead is not None:
            runner_up = library.demonstrations[pick.runner_up].question
            yield f"   next best: {runner_up}, {pick.lead:.3f} behind"


def _format_demonstration(demonstration: Demonstration) -> str:
    rating = "" if demonstration.rating is None else f"  {demonstration.rating:.1f} stars"
    return f"{demonstration.trace_id}  {demonstration.question}  [{len(demonstration.tools)} actions{rating}]"


def _format_statistics(statistics: LibraryStatistics) -> Iterator[str]:
    yield f"actions: {_format_value(statistics.tools)}"
    yield f"lengths: {_format_value(statistics.lengths)}"
    yield f"kinds: {_format_value(statistics.kinds) or 'unknown'}"
    people, models = statistics.people, statistics.models
    yield f"different sequences: {statistics.sequences}; by people {people}, by models {models}"
    if statistics.unused_tools:
        yield f"never used: {_format_value(statistics.unused_tools)}"
    if statistics.missing_kinds:
        yield f"kinds of its projects without a demonstration: {_format_value(statistics.missing_kinds)}"


def _format_value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
