"""`showhow library freeze | list | show | compare | export | select | usage | map`.

`showhow library usage | map | export`.
"""

from collections.abc import Iterator
from dataclasses import asdict
from getpass import getuser
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.options import (
    AlphaOption,
    AuthorFilter,
    BalanceOption,
    DistanceOption,
    ExchangeOption,
    GammaOption,
    KindFilter,
    LeaveOutOption,
    LibraryReferenceArgument,
    PickCountOption,
    ProjectFilter,
    RatingFilter,
    SeedOption,
    SelectionModeOption,
    TextFilter,
    build_demonstration_filter,
)
from app.cli.output import CommandError, emit, emit_losses, open_atomically, print_progress
from app.services import services
from app.trace_export import build_export
from db.libraries import Demonstration, find_version, list_matching_ids, list_versions, load_demonstrations
from db.projects import list_question_kinds
from db.traces import load_traces
from evaluation.report_cache import Report
from evaluation.selection_usage import UsageRequest, compute_usage
from fewshot_library.card import FreezeOptions, LeakageError
from fewshot_library.formats import WRITABLE_FORMATS, find_writer
from fewshot_library.formats.format import FormatError
from fewshot_library.kernel import DISTANCES
from fewshot_library.library import LoadedLibrary, SelectedDemonstrations
from fewshot_library.map import build_sequence_map
from fewshot_library.selection import DEFAULT_ALPHA, DEFAULT_GAMMA, SelectionConfig, SelectionError
from fewshot_library.statistics import LibraryStatistics, compare_versions, compute_statistics

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
PROGRESS_INTERVAL = 20
"""Questions between two lines of progress."""
MAX_LISTED_SEQUENCES = 20
"""Sequences of the map that people are told; programs get all."""


def usage(  # noqa: PLR0913 - every option of the verb is one parameter
    library: LibraryReferenceArgument,
    *,
    project: Annotated[str, typer.Option(help="Whose questions are asked.")],
    k: PickCountOption = 3,
    mode: SelectionModeOption = "dpp",
    alpha: AlphaOption = DEFAULT_ALPHA,
    gamma: GammaOption = DEFAULT_GAMMA,
    distance: DistanceOption = "longer",
    exchange: ExchangeOption = True,
    seed: SeedOption = 0,
    balance: BalanceOption = 0.5,
    leave_out: LeaveOutOption = False,
    as_json: AsJson = False,
) -> None:
    """Count how often each demonstration would be chosen for the questions of a project, and which never."""
    wish = SelectionConfig(
        k=k,
        mode=mode,
        alpha=alpha,
        gamma=gamma,
        distance=distance,
        exchange=exchange,
        seed=seed,
        balance=balance,
    )
    try:
        wish.validate()
        report = compute_usage(services(), UsageRequest(library, project, wish, leave_out), _print_progress)
    except SelectionError as wrong:
        raise CommandError(str(wrong)) from wrong
    emit(report, "\n".join(_format_usage(report)), as_json=as_json)


def _print_progress(done: int, questions: int) -> None:
    if done % PROGRESS_INTERVAL == 0 or done == questions:
        print_progress(f"{done:,} of {questions:,} questions")


def _format_usage(report: Report) -> Iterator[str]:
    yield from (f"{each['times']:6,}  {each['question']}" for each in report["used"])
    yield from (f"     0  {each['question']}" for each in report["never_used"])
    if report["never"] > len(report["never_used"]):
        yield f"     0  and {report['never'] - len(report['never_used']):,} more"
    used = f"{len(report['used']):,} of {report['demonstrations']:,} demonstrations are used"
    yield f"{report['questions']:,} questions, {report['picks']:,} picks: {used}, {report['never']:,} never"


def map_(library: LibraryReferenceArgument, *, distance: DistanceOption = "longer", as_json: AsJson = False) -> None:
    """Where the library's sequences of actions stand: near each other when they do the same."""
    if distance not in DISTANCES:
        raise CommandError(f"there is no distance {distance!r}; choose one of {', '.join(DISTANCES)}")
    found, opened = services().open_library(library)
    drawn = build_sequence_map(opened.pool.actions, distance)
    rows = [
        {"x": round(float(x), 6), "y": round(float(y), 6), "demonstrations": len(places), "actions": actions}
        for (x, y), (actions, places) in zip(drawn.coordinates, opened.list_sequences(), strict=True)
    ]
    rows.sort(key=lambda row: -int(str(row["demonstrations"])))
    value: dict[str, Any] = {
        "library": found.name,
        "number": found.number,
        "distance": distance,
        "shown": [round(part, 6) for part in drawn.explained_variance],
        "landmarks": drawn.landmarks,
        "sequences": rows,
    }
    lines = [
        f"{row['x']:7.3f} {row['y']:7.3f}  {row['demonstrations']:,}×  {' > '.join(row['actions'])}"  # type: ignore[arg-type]
        for row in rows[:MAX_LISTED_SEQUENCES]
    ]
    lines.append(f"{len(rows):,} sequences; the map shows {drawn.explained_variance[1]:.0%} of their distances")
    emit(value, "\n".join(lines), as_json=as_json)


def export(  # noqa: PLR0913 - every option of the verb is one parameter
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    *,
    library: Annotated[str | None, typer.Option(help="A version, NAME or NAME:NUMBER; else all approved.")] = None,
    format_name: Annotated[str, typer.Option("--format", help=", ".join(WRITABLE_FORMATS))] = "showhow",
    project: ProjectFilter = None,
    kind: KindFilter = None,
    rating: RatingFilter = None,
    by: AuthorFilter = None,
    text: TextFilter = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the demonstrations of a version, or all approved traces that fit, to a file; losses are told on stderr."""
    wanted = build_demonstration_filter(project=project, kind=kind, rating=rating, by=by, text=text)
    try:
        write = find_writer(format_name)
    except FormatError as unknown:
        raise CommandError(str(unknown)) from unknown
    with services().database.read() as session:
        ids = list_matching_ids(session, wanted, find_version(session, library).id if library is not None else None)
        if not ids:
            raise CommandError("no demonstration fits, so that nothing was written; loosen a condition")
        with open_atomically(file, force=force) as stream:
            losses = write(build_export(session, load_traces(session, ids)), stream)
    emit_losses(losses, file, as_json=as_json)


app = typer.Typer(no_args_is_help=True, help="Freeze demonstrations as numbered versions, and choose among them.")

app.command()(usage)
app.command("map")(map_)
app.command()(export)


@app.command("freeze")
def freeze_(  # noqa: PLR0913 - every option of the verb is one parameter
    name: Annotated[str, typer.Argument(help="The library's name.")],
    *,
    project: ProjectFilter = None,
    kind: KindFilter = None,
    rating: RatingFilter = None,
    by: AuthorFilter = None,
    text: TextFilter = None,
    test_split: Annotated[str, typer.Option(help="The split whose questions must stay out.")] = "test",
    licence: Annotated[str, typer.Option(help="What may be done with it, for the card.")] = "",
    note: Annotated[str, typer.Option(help="Whatever else the card should say.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Freeze although tested questions leak.")] = False,
    as_json: AsJson = False,
) -> None:
    """Freeze the approved traces that fit as the library's next version."""
    wanted = build_demonstration_filter(project=project, kind=kind, rating=rating, by=by, text=text)
    terms = FreezeOptions(by=getuser(), licence=licence, note=note, test_split=test_split, force=force)
    try:
        made = services().freeze_version(name, wanted, terms)
    except LeakageError as leaking:
        raise CommandError(f"{leaking} with --force") from leaking
    value = {"name": made.name, "number": made.number, "card": made.card}
    emit(value, f"{made.name}:{made.number} holds {made.card['demonstrations']} demonstrations", as_json=as_json)


@app.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """Every version of every library."""
    with services().database.read() as session:
        found = list_versions(session)
    lines = [f"{each.name}:{each.number}  {each.frozen_at:%F}  {each.demonstrations} demonstrations" for each in found]
    told = "\n".join(lines) or "no library yet; `showhow library freeze NAME` makes one of the approved traces"
    emit([each._asdict() for each in found], told, as_json=as_json)


@app.command()
def show(library: LibraryReferenceArgument, *, as_json: AsJson = False) -> None:
    """A version's card, its counts and its demonstrations."""
    with services().database.read() as session:
        found = find_version(session, library)
        inside = load_demonstrations(session, found.id)
        asked = list_question_kinds(session, sorted({each.project for each in inside}))
    counted = compute_statistics(inside, tools=services().tool_registry().all_tools(), kinds=asked)
    value = {
        "name": found.name,
        "number": found.number,
        "frozen_at": found.frozen_at,
        "card": found.card,
        "statistics": counted.to_json(),
        "demonstrations": [each._asdict() for each in inside],
    }
    card = [f"{name}: {_format_value(told)}" for name, told in found.card.items() if told]
    lines = [f"{found.name}:{found.number}, frozen {found.frozen_at:%F}", *card, *_format_statistics(counted), ""]
    emit(value, "\n".join([*lines, *map(_format_demonstration, inside)]), as_json=as_json)


@app.command()
def compare(before: LibraryReferenceArgument, after: LibraryReferenceArgument, *, as_json: AsJson = False) -> None:
    """What one version has and another has not."""
    with services().database.read() as session:
        old, new = (load_demonstrations(session, find_version(session, each).id) for each in (before, after))
    changed = compare_versions(old, new)
    lines = [f"+ {_format_demonstration(each)}" for each in changed.added] + [
        f"- {_format_demonstration(each)}" for each in changed.removed
    ]
    lines.append(f"{len(changed.added)} added, {len(changed.removed)} removed, {changed.kept} kept")
    emit(asdict(changed), "\n".join(lines), as_json=as_json)


@app.command("select")
def select_(  # noqa: PLR0913 - every option of the verb is one parameter
    library: LibraryReferenceArgument,
    question: Annotated[str, typer.Argument(help="The question that demonstrations are wanted for.")],
    *,
    k: PickCountOption = 3,
    mode: SelectionModeOption = "dpp",
    alpha: AlphaOption = DEFAULT_ALPHA,
    gamma: GammaOption = DEFAULT_GAMMA,
    distance: DistanceOption = "longer",
    exchange: ExchangeOption = True,
    seed: SeedOption = 0,
    balance: BalanceOption = 0.5,
    leave_out: LeaveOutOption = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each was chosen.")] = False,
    as_json: AsJson = False,
) -> None:
    """Choose demonstrations for a question."""
    wish = SelectionConfig(
        k=k,
        mode=mode,
        alpha=alpha,
        gamma=gamma,
        distance=distance,
        exchange=exchange,
        seed=seed,
        balance=balance,
    )
    try:
        wish.validate()
        found, opened = services().open_library(library)
        chosen = opened.select(question, wish, leave_out_itself=leave_out)
    except SelectionError as wrong:
        raise CommandError(str(wrong)) from wrong
    value = {"library": found.name, "number": found.number, **chosen.to_json(opened)}
    emit(value, "\n".join(_format_picks(chosen, opened, explain=explain)) or "nothing to choose from", as_json=as_json)


def _format_picks(chosen: SelectedDemonstrations, library: LoadedLibrary, *, explain: bool) -> Iterator[str]:
    for place, (pick, each) in enumerate(zip(chosen.selection.picks, chosen.demonstrations, strict=True), start=1):
        yield f"{place}. {each.question}"
        if not explain:
            continue
        yield f"   {' > '.join(each.tools)}"
        yield f"   relevance {chosen.selection.cosines[pick.item]:.3f}, novelty {pick.novelty:.3f}" + (
            ", there by relevance alone" if pick.is_filler else f", raises log det by {pick.gain:.3f}"
        )
        if pick.runner_up is not None and pick.lead is not None:
            second = library.demonstrations[pick.runner_up].question
            yield f"   next best: {second}, {pick.lead:.3f} behind"


def _format_demonstration(each: Demonstration) -> str:
    stars = "" if each.rating is None else f"  {each.rating:.1f} stars"
    return f"{each.trace_id}  {each.question}  [{len(each.tools)} actions{stars}]"


def _format_statistics(counted: LibraryStatistics) -> Iterator[str]:
    yield f"actions: {_format_value(counted.tools)}"
    yield f"lengths: {_format_value(counted.lengths)}"
    yield f"kinds: {_format_value(counted.kinds) or 'not known'}"
    yield f"different sequences: {counted.sequences}; by people {counted.people}, by models {counted.models}"
    if counted.unused_tools:
        yield f"never used: {_format_value(counted.unused_tools)}"
    if counted.missing_kinds:
        yield f"asked by its projects and never answered: {_format_value(counted.missing_kinds)}"


def _format_value(told: object) -> str:
    if isinstance(told, dict):
        return ", ".join(f"{name} {value}" for name, value in told.items())
    return ", ".join(map(str, told)) if isinstance(told, list) else str(told)
