"""`showhow library usage | map | export`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from app.exports import export_of
from app.libraries import open_library
from app.reports import Report
from app.resources import database
from app.usages import Asked, make_usage
from app.verbs.conditions import By, Kind, OfProject, Rating, Text, conditions
from app.verbs.output import CommandFailed, emit, progress
from app.verbs.wish import Alpha, Balance, Distance, Exchange, Gamma, K, LeaveOut, Mode, Reference, Seed
from app.verbs.written import tell_losses, written_whole
from db.libraries import fitting_ids, version
from db.reading import traces
from fewshot_library.formats import WRITTEN, writer
from fewshot_library.formats.format import FormatError
from fewshot_library.kernel import DISTANCES
from fewshot_library.map import sequence_map
from fewshot_library.selection import ALPHA, GAMMA, SelectionError, Wish

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
TOLD_EVERY = 20
"""Questions between two lines of progress."""
LISTED = 20
"""Sequences of the map that people are told; programs get all."""


def usage(  # noqa: PLR0913 - every option of the verb is one parameter
    library: Reference,
    *,
    project: Annotated[str, typer.Option(help="Whose questions are asked.")],
    k: K = 3,
    mode: Mode = "dpp",
    alpha: Alpha = ALPHA,
    gamma: Gamma = GAMMA,
    distance: Distance = "longer",
    exchange: Exchange = True,
    seed: Seed = 0,
    balance: Balance = 0.5,
    leave_out: LeaveOut = False,
    as_json: AsJson = False,
) -> None:
    """Count how often each demonstration would be chosen for the questions of a project, and which never."""
    wish = Wish(
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
        wish.check()
        report = make_usage(Asked(library, project, wish, leave_out), _tell)
    except SelectionError as wrong:
        raise CommandFailed(str(wrong)) from wrong
    emit(report, "\n".join(_counted(report)), as_json=as_json)


def _tell(done: int, questions: int) -> None:
    if done % TOLD_EVERY == 0 or done == questions:
        progress(f"{done:,} of {questions:,} questions")


def _counted(report: Report) -> Iterator[str]:
    yield from (f"{each['times']:6,}  {each['question']}" for each in report["used"])
    yield from (f"     0  {each['question']}" for each in report["never_used"])
    if report["never"] > len(report["never_used"]):
        yield f"     0  and {report['never'] - len(report['never_used']):,} more"
    used = f"{len(report['used']):,} of {report['demonstrations']:,} demonstrations are used"
    yield f"{report['questions']:,} questions, {report['picks']:,} picks: {used}, {report['never']:,} never"


def map_(library: Reference, *, distance: Distance = "longer", as_json: AsJson = False) -> None:
    """Where the library's sequences of actions stand: near each other when they do the same."""
    if distance not in DISTANCES:
        raise CommandFailed(f"there is no distance {distance!r}; choose one of {', '.join(DISTANCES)}")
    found, opened = open_library(library)
    drawn = sequence_map(opened.pool.actions, distance)
    rows = [
        {"x": round(float(x), 6), "y": round(float(y), 6), "demonstrations": len(places), "actions": actions}
        for (x, y), (actions, places) in zip(drawn.places, opened.sequences(), strict=True)
    ]
    rows.sort(key=lambda row: -int(str(row["demonstrations"])))
    value: dict[str, Any] = {
        "library": found.name,
        "number": found.number,
        "distance": distance,
        "shown": [round(part, 6) for part in drawn.shown],
        "landmarks": drawn.landmarks,
        "sequences": rows,
    }
    lines = [
        f"{row['x']:7.3f} {row['y']:7.3f}  {row['demonstrations']:,}×  {' > '.join(row['actions'])}"  # type: ignore[arg-type]
        for row in rows[:LISTED]
    ]
    lines.append(f"{len(rows):,} sequences; the map shows {drawn.shown[1]:.0%} of their distances")
    emit(value, "\n".join(lines), as_json=as_json)


def export(  # noqa: PLR0913 - every option of the verb is one parameter
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    *,
    library: Annotated[str | None, typer.Option(help="A version, NAME or NAME:NUMBER; else all approved.")] = None,
    format_name: Annotated[str, typer.Option("--format", help=", ".join(WRITTEN))] = "showhow",
    project: OfProject = None,
    kind: Kind = None,
    rating: Rating = None,
    by: By = None,
    text: Text = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the demonstrations of a version, or all approved traces that fit, to a file; losses are told on stderr."""
    wanted = conditions(project=project, kind=kind, rating=rating, by=by, text=text)
    try:
        write = writer(format_name)
    except FormatError as unknown:
        raise CommandFailed(str(unknown)) from unknown
    with database().read() as session:
        ids = fitting_ids(session, wanted, version(session, library).id if library is not None else None)
        if not ids:
            raise CommandFailed("no demonstration fits, so that nothing was written; loosen a condition")
        with written_whole(file, force=force) as stream:
            losses = write(export_of(session, traces(session, ids)), stream)
    tell_losses(losses, file, as_json=as_json)
