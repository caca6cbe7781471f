"""`showhow studies make | list | open | close | exclude | report`: blind studies, judged on the Judge page."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from showhow.app.cli.drawn_options import draw_options
from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.services import current_services
from showhow.db.models import Project
from showhow.db.people import users
from showhow.db.questions.projects import get_project
from showhow.db.review import studies
from showhow.db.review.studies import Study
from showhow.evaluation.value_format import TABLE_WRITERS, format_count, format_p_value
from showhow.tasks import studies as tasks
from showhow.tasks.studies import MakeStudy
from showhow.tasks.task import open_atomically

app = typer.Typer(no_args_is_help=True, help="Make blind studies of answers, open and close them, and report them.")

NameArgument = Annotated[str, typer.Argument(help="The study's name or id.")]
ProjectOption = Annotated[
    str | None, typer.Option("--project", help="The study's project, where several have its name.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
RATING_COLUMNS = {"scale": str, "value": str, "system": str, "rated": int, "share": float}
RATING_COLUMNS |= {"share_low": float, "share_high": float}


@app.command()
@draw_options
def make(request: MakeStudy, *, as_json: AsJson = False) -> None:
    """Draw pairs of answers of runs, people or files, and store them as a draft; a draft of that name is replaced."""
    study = tasks.make_study(current_services(), request)
    emit(
        {"id": str(study.id), "name": study.name, "design": study.design},
        "\n".join(_plan_lines(study)),
        as_json=as_json,
    )


def _plan_lines(study: Study) -> Iterator[str]:
    design, power = study.design, study.design["power"]
    repeated = design["repeated"]
    yield (
        f"{study.name}: {format_count(design['planned'], 'comparison')}, of which {repeated['same']:,} by the same "
        f"person again and {repeated['other']:,} by another one; {format_count(design['questions'], 'question')}, "
        f"seed {study.seed}"
    )
    if design["left_out"]:
        yield f"{design['left_out']:,} questions of the project are left out, which not all systems have answered"
    yield f"primary outcome: {design['primary']}"
    detectable = power["detectable_win_share"]
    least = "no share of wins" if detectable is None else f"{detectable:.0%} wins among the decided or more"
    yield (
        f"power: with {power['comparisons']:,} comparisons of a pair and {power['ties']:.0%} ties, "
        f"{power['win_share']:.0%} wins among the decided are found with {power['power']:.0%}; {least} with 80%"
    )
    if design["hidden_in"]:
        yield f"{design['hidden_in']:,} answers name what must stay hidden ({', '.join(design['hidden'])}): shown as ▮"
    yield f"`showhow studies open` freezes it, and people judge it on the page Judge; it is a {study.state} now"


@app.command("list")
def list_(
    *,
    project: Annotated[str | None, typer.Option(help="Only studies of this project.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the studies with their states, and how far they are."""
    with current_services().database.read() as session:
        project_id = None if project is None else get_project(session, project).id
        rows = []
        for study in studies.list_studies(session, project_id):
            progress = studies.measure_progress(session, study.id)
            row = {"id": str(study.id), "name": study.name, "project": session.get_one(Project, study.project_id).name}
            rows.append(row | {"state": study.state, "judged": progress.judged, "planned": progress.planned})
    lines = [
        f"{row['name']}  {row['state']}  {row['judged']:,} of {row['planned']:,}  {row['project']}" for row in rows
    ]
    emit(rows, "\n".join(lines) or "no studies yet; `showhow studies make` makes one", as_json=as_json)


@app.command("open")
def open_(name: NameArgument, *, project: ProjectOption = None, as_json: AsJson = False) -> None:
    """Freeze a study and let people judge; it cannot be changed from then on."""
    with current_services().database.begin() as session:
        study = studies.open_study(session, studies.find_study(session, name, project).id)
    emit(
        _as_json(study),
        f"{study.name} is open and frozen (SHA-256 {study.digest}); judges find it on the page Judge",
        as_json=as_json,
    )


@app.command()
def close(name: NameArgument, *, project: ProjectOption = None, as_json: AsJson = False) -> None:
    """End the judging; the report has the results then."""
    with current_services().database.begin() as session:
        study = studies.close_study(session, studies.find_study(session, name, project).id)
        progress = studies.measure_progress(session, study.id)
    text = f"{study.name} is closed with {progress.judged:,} of {progress.planned:,} comparisons judged"
    emit(_as_json(study), text, as_json=as_json)


@app.command()
def exclude(  # noqa: PLR0913 - every option of the verb is one parameter
    name: NameArgument,
    question: Annotated[str, typer.Argument(help="The text of the question, or its beginning.")],
    *,
    reason: Annotated[str, typer.Option(help="Why it is left out; the report prints it.")],
    person: Annotated[
        str | None, typer.Option("--as", help="Who excludes it; default: the only administrator.")
    ] = None,
    project: ProjectOption = None,
    as_json: AsJson = False,
) -> None:
    """Leave a question out of all results of a study, for all systems alike; what people judged stays stored."""
    with current_services().database.begin() as session:
        if person is None:
            administrators = users.list_administrators(session)
            if len(administrators) != 1:
                raise CommandError("there is no only administrator here; say with --as who excludes the question")
            by = administrators[0]
        else:
            by = users.find_named(session, person).id
        study = studies.find_study(session, name, project)
        act = studies.exclude_question(session, study.id, question, reason, by=by)
    text = f"{act.question!r} is left out of all results of {study.name}: {act.reason}"
    emit(act._asdict() | {"at": act.at.isoformat()}, text, as_json=as_json)


def _as_json(study: Study) -> dict[str, Any]:
    return {"id": str(study.id), "name": study.name, "state": study.state, "digest": study.digest}


@app.command()
def report(  # noqa: PLR0913 - every option of the verb is one parameter
    name: NameArgument,
    *,
    project: ProjectOption = None,
    table: Annotated[
        Path | None, typer.Option(help=f"Write the shares of ratings to a file: {', '.join(TABLE_WRITERS)}.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Write wins, ties and losses as a picture, SVG.")] = None,
    force: ForceOption = False,
    as_json: AsJson = False,
) -> None:
    """Report a closed study: wins, ratings, position bias, agreement, leniency and metrics; an open one's progress."""
    value = tasks.report(current_services(), name, project)
    results = value["results"]
    if results is None and (table or figure):
        raise CommandError(f"the study {name!r} is {value['state']}; close it first, since nobody stops by a result")
    if table is not None:
        if (kind := table.suffix[1:].lower()) not in TABLE_WRITERS:
            raise CommandError(
                f"tables are written as {', '.join(TABLE_WRITERS)}; end the file's name with one of them"
            )
        with open_atomically(table, force=force) as stream:
            TABLE_WRITERS[kind](RATING_COLUMNS, results["ratings"], stream)
    if figure is not None:
        from showhow.evaluation.comparison.study_figure import draw_comparisons  # noqa: PLC0415 - only for the figure

        with open_atomically(figure, force=force) as stream:
            stream.write(draw_comparisons(results["comparisons"], value["name"]).encode())
    emit(value, "\n".join(_report_lines(value)), as_json=as_json)


def _report_lines(value: Mapping[str, Any]) -> Iterator[str]:
    yield f"{value['name']}: {value['state']}, {value['judged']:,} of {value['planned']:,} comparisons judged"
    yield from _exclusion_lines(value["excluded"])
    results = value["results"]
    if results is None:
        yield "results come once it is closed, since nobody stops by a result"
        return
    for row in results["comparisons"]:
        outcomes = ", ".join(f"{row[name] / row['judged']:.1%} {name}" for name in ("wins", "ties", "losses"))
        yield f"\n{row['system']} against {row['against']}: {outcomes} of {row['judged']:,}"
        p_value, adjusted = format_p_value(row["p"]), format_p_value(row["p_holm"])
        yield f"  score {_estimate(row, 'score')}, sign test p {p_value}, {adjusted} by Holm"
    yield from _rating_lines(results["ratings"])
    for row in results["strengths"]:
        yield f"strength of {row['system']}: {_estimate(row, 'strength')}"
    if (position := results["position"]) is not None:
        p_value = format_p_value(position["p"])
        yield f"\nleft preferred: {_estimate(position, 'share')} of {position['decided']:,}, p {p_value}"
    for way, scales in results["agreement"].items():
        for scale, row in scales.items():
            equal = f"{row['same']:.0%} equal of {row['pairs']:,}"
            yield f"kappa {way} people, {scale}: {_estimate(row, 'kappa')}, AC1 {row['ac1']:.2f}, {equal}"
    for row in results["judges"]:
        grade = "-" if row["quality_above_mean"] is None else f"{row['quality_above_mean']:+.2f}"
        share_true = "-" if row["true"] is None else f"{row['true']:.0%}"
        yield (
            f"{row['judge']}: {row['judged']:,} judged, {share_true} true, quality {grade} to the mean, "
            f"{row['ties']:.0%} ties, {row['median_seconds']:.0f} s each"
        )
    yield from _metric_lines(results)


def _exclusion_lines(excluded: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if excluded:
        yield f"left out of all figures, for all systems: {len(excluded):,} questions"
    for act in excluded:
        when = "after" if act["after_close"] else "before"
        yield f"  {act['question']!r}, by {act['by']} {when} the study was closed: {act['reason']}"


def _metric_lines(results: Mapping[str, Any]) -> Iterator[str]:
    """How far the metrics say what people say, and the gold answers to check."""
    for row in results["metrics"]:
        yield (
            f"{row['metric']} against people: sensitivity {_estimate(row, 'sensitivity')}, specificity "
            f"{_estimate(row, 'specificity')} over {row['answers']:,} answers"
        )
    for row in results["manual"]:
        manual = f"M {_estimate(row, 'm')} over {row['answers']:,}"
        yield f"{row['system']}: right by {row['metric']} {row['exact']:.1%}, {manual}"
    if results["corrections"]:
        yield f"\ntrue by people and wrong by the metric, so check the gold answers: {len(results['corrections']):,}"
    for row in results["corrections"]:
        yield f"  {row['question']!r}: {row['answer']!r} of {', '.join(row['systems'])}"


def _rating_lines(ratings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A table in per cent: systems in columns, the values of each scale in rows."""
    systems = list(dict.fromkeys(row["system"] for row in ratings))
    shares = {(row["scale"], row["value"], row["system"]): row["share"] for row in ratings}
    if systems:
        width = max(8, *map(len, systems)) + 2
        yield "\n" + " " * 26 + "".join(system.rjust(width) for system in systems)
    for scale, value in dict.fromkeys((row["scale"], row["value"]) for row in ratings):
        cells = (
            f"{100 * shares[scale, value, system]:.1f}" if (scale, value, system) in shares else "-"
            for system in systems
        )
        yield f"{scale} {value}".ljust(26) + "".join(cell.rjust(width) for cell in cells)


def _estimate(row: Mapping[str, Any], name: str) -> str:
    if row[name] is None:
        return "not defined"
    interval = "" if row[f"{name}_low"] is None else f" [{row[f'{name}_low']:.2f}, {row[f'{name}_high']:.2f}]"
    return f"{row[name]:.2f}{interval}"
