"""`showhow compare RUN ...` and `showhow runs list | score | export | import`: runs side by side, and as logs."""

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, BinaryIO
from uuid import UUID

import typer

from showhow.app.cli.drawn_options import draw_options
from showhow.app.cli.output import AsJson, CommandError, UnboundedOption, emit
from showhow.app.cli.removals import add_removal_commands
from showhow.app.cli.score import report_lines
from showhow.app.cli.verify import change_concurrency, print_asked, print_report
from showhow.app.services import current_services
from showhow.db.database import Database
from showhow.db.models import Run, Trace
from showhow.db.people.users import find_or_add_author
from showhow.db.questions.projects import find_project
from showhow.db.removal.removal_kinds import Kind
from showhow.db.removal.removals import find_key
from showhow.db.removal.renaming import name_run
from showhow.db.runs import comparisons
from showhow.db.runs.comparisons import MetricVersion
from showhow.db.runs.error_categories import ERROR_CATEGORIES, set_error_category
from showhow.evaluation.comparison.comparison import (
    MAX_COMPARED_RUNS,
    OWN_CLUSTER,
    RunComparison,
    compare_runs,
    list_metrics,
    metric_label,
)
from showhow.evaluation.comparison.comparison_tables import (
    ANSWER_COLUMNS,
    RUN_COLUMNS,
    format_comparison_latex,
    iterate_answer_rows,
    list_run_rows,
)
from showhow.evaluation.comparison.groups import DATE, GROUP_COLUMNS, GROUPINGS, format_group_lines, list_group_rows
from showhow.evaluation.comparison.part_groups import (
    PART_COLUMNS,
    PART_GROUPINGS,
    format_part_lines,
    list_part_rows,
)
from showhow.evaluation.comparison.thoughts import (
    POINT_COLUMNS,
    THOUGHT_COLUMNS,
    THOUGHTS,
    compare_thoughts,
    format_thought_lines,
)
from showhow.evaluation.scoring.predictions import list_run_metrics
from showhow.evaluation.scoring.scoring import label_runs, load_figures
from showhow.evaluation.statistics import Estimate
from showhow.evaluation.value_format import TABLE_WRITERS, ColumnTypes, format_cost, format_p_value
from showhow.evaluation.verification.inspect_import import import_inspect_log
from showhow.evaluation.verification.inspect_runs import write_inspect_log
from showhow.evaluation.verification.repairs import count_categories, list_failures
from showhow.fewshot_library.formats.format import FormatError
from showhow.guard.input_bounds import bounded_work
from showhow.runs.budget import MAX_CONCURRENT_QUESTIONS
from showhow.runs.services import Services
from showhow.tasks import scores as tasks
from showhow.tasks.imports import finish_interrupted_imports
from showhow.tasks.progress import print_progress
from showhow.tasks.scores import ScoreRun
from showhow.tasks.task import fail_on_interrupt, open_atomically
from showhow.tasks.traces import parse_trace_id
from showhow.tasks.verification import ContinueRun, continue_run, load_run

TEXT, LATEX = "text", "latex"
FORMATS = (TEXT, *TABLE_WRITERS, LATEX)

ProjectOption = Annotated[str | None, typer.Option("--project", help="Only runs of this project.")]
OutputOption = Annotated[Path | None, typer.Option("--out", help="Write to this file; default: standard output.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]


def compare(  # noqa: PLR0913 - every option of the verb is one parameter
    runs: Annotated[list[str] | None, typer.Argument(help="Ids of 2 to 8 runs, or their beginnings.")] = None,
    *,
    project: Annotated[
        str | None, typer.Option(help="Without RUNS: the latest runs of this project over the same questions.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="The run to compare with; default: the first, or the oldest of a project.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="NAME or NAME:VERSION; default: the first that most runs are scored by.")
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Write every answer instead of the table of runs.")] = False,
    by: Annotated[
        str | None,
        typer.Option(
            help=f"Write the scores by groups instead: {', '.join(GROUPINGS)}; or what the parts of runs were: "
            f"{', '.join(PART_GROUPINGS)}; or {THOUGHTS} beside people's."
        ),
    ] = None,
    cutoff: Annotated[
        str, typer.Option(help="With --by date: the last day of the earlier questions, as 2021-09-30 or 2021-09.")
    ] = "",
    format_name: Annotated[str, typer.Option("--format", help=", ".join(FORMATS))] = TEXT,
    out: OutputOption = None,
    force: ForceOption = False,
) -> None:
    """Compare runs over the same questions with a baseline: figures, paired differences and their uncertainty.

    Intervals are of 95 %. A run that does not compare is named on stderr with the reason.
    """
    if format_name not in FORMATS:
        raise CommandError(f"there is no format {format_name!r}; use {', '.join(FORMATS)}")
    if rows and format_name not in TABLE_WRITERS:
        raise CommandError(f"answers are written as {', '.join(TABLE_WRITERS)}; name one of them with --format")
    if by is not None and ((rows and by != THOUGHTS) or format_name == LATEX):
        raise CommandError("scores by groups are written as text or as a table; leave --rows and latex out")
    if cutoff and by != DATE:
        raise CommandError("a cutoff divides questions by date; name it with --by date, or leave it out")
    if by is not None and by not in (known := (*GROUPINGS, *PART_GROUPINGS, THOUGHTS)):
        raise CommandError(f"there is no grouping {by!r}; choose one of {', '.join(known)}")
    services = current_services()
    database = services.database
    ids = _find_runs(database, runs) if runs else _list_latest_runs(database, project)
    baseline_id = ids[0] if baseline is None else _find_runs(database, [baseline])[0]
    comparison = compare_runs(database, ids, baseline_id, _find_metric(database, ids, metric))
    for warning in comparison.warnings:
        print_progress(warning.sentence)
    if by is not None:
        columns, table, lines = _group(services, comparison, by, cutoff, points=rows)
        text = "".join(f"{line}\n" for line in lines)
        writer = TABLE_WRITERS.get(format_name, lambda _columns, _rows, stream: stream.write(text.encode()))
        _write(lambda stream: writer(columns, table, stream), out, force=force)
    elif rows:
        _write(lambda stream: _write_answers(database, comparison, format_name, stream), out, force=force)
    elif format_name in TABLE_WRITERS:
        table = list_run_rows(comparison)
        _write(lambda stream: TABLE_WRITERS[format_name](RUN_COLUMNS, table, stream), out, force=force)
    else:
        text = format_comparison_latex(comparison) if format_name == LATEX else "\n".join(_lines(comparison)) + "\n"
        _write(lambda stream: stream.write(text.encode()), out, force=force)


def _write_answers(database: Database, comparison: RunComparison, format_name: str, stream: BinaryIO) -> None:
    TABLE_WRITERS[format_name](ANSWER_COLUMNS, iterate_answer_rows(database, comparison), stream)


def _group(
    services: Services, comparison: RunComparison, by: str, cutoff: str, *, points: bool
) -> tuple[ColumnTypes, Sequence[dict[str, Any]], Iterable[str]]:
    """The columns and rows of a grouping, and its lines of text."""
    if by == THOUGHTS:
        thoughts = compare_thoughts(services.database, comparison, services.encoder)
        lines = format_thought_lines(thoughts)
        return (POINT_COLUMNS, thoughts.points, lines) if points else (THOUGHT_COLUMNS, thoughts.groups, lines)
    if by in PART_GROUPINGS:
        parts = list_part_rows(services, comparison, by)
        return PART_COLUMNS, parts, format_part_lines(parts)
    groups = list_group_rows(services.database, comparison, by, services.count_articles, cutoff)
    return GROUP_COLUMNS, groups, format_group_lines(groups)


def _write(write: Callable[[BinaryIO], Any], out: Path | None, *, force: bool) -> None:
    """Write to the file, which appears when it is complete, or to standard output."""
    if out is not None:
        with open_atomically(out, force=force) as stream:
            write(stream)
        print_progress(f"written to {out}")
        return
    # Parquet is written with jumps back, which standard output may not allow.
    buffer = io.BytesIO()
    write(buffer)
    binary = getattr(sys.stdout, "buffer", None)
    if binary is not None:
        binary.write(buffer.getvalue())
        binary.flush()
    else:
        sys.stdout.write(buffer.getvalue().decode())


def _list_latest_runs(database: Database, project: str | None) -> list[UUID]:
    """The runs over the questions of the project's latest run, the oldest first, and the latest ones if too many."""
    if project is None:
        raise CommandError("name the ids of at least two runs, or a project with --project")
    runs = _load_runs(database, project)
    if not runs:
        raise CommandError(f"project {project!r} has no runs yet; `showhow verify` and `showhow runs import` make them")
    alike = [run.id for run in runs if run.questions_hash == runs[0].questions_hash]
    if len(alike) < 2:
        raise CommandError(
            f"the latest run of {project!r}, {runs[0].id}, is the only one over its questions; "
            "make another with `showhow verify`, or name the runs that `showhow runs list` lists"
        )
    return alike[:MAX_COMPARED_RUNS][::-1]


def _load_runs(database: Database, project: str | None) -> list[Run]:
    with database.read() as session:
        stored = None if project is None else find_project(session, project)
        if project is not None and stored is None:
            raise CommandError(f"there is no project {project!r}; `showhow project list` lists them")
        return comparisons.list_comparable_runs(session, None if stored is None else stored.id)


def _find_runs(database: Database, texts: Sequence[str]) -> list[UUID]:
    """The ids of the runs that these ids or their beginnings name."""
    with database.read() as session:
        known = [run.id for run in comparisons.list_comparable_runs(session)]
    named = []
    for text in texts:
        plain = text.lower().replace("-", "")
        matching = [run_id for run_id in known if plain and run_id.hex.startswith(plain)]
        if len(matching) != 1:
            reason = "begins the ids of several runs" if matching else "is not the id of a run"
            raise CommandError(f"{text!r} {reason}; `showhow runs list` lists them")
        named += matching
    return named


def _find_metric(database: Database, run_ids: Sequence[UUID], text: str | None) -> MetricVersion:
    metrics = list_metrics(database, run_ids)
    if not metrics:
        raise CommandError("none of these runs has a scored answer; choose runs that answered, and are finished")
    if text is None:
        return metrics[0]
    # The name of a judge or a scorer may contain colons too.
    matching = [metric for metric in metrics if text in (metric.name, f"{metric.name}:{metric.version}")]
    if not matching:
        names = ", ".join(f"{metric.name}:{metric.version}" for metric in metrics)
        raise CommandError(f"no answer of these runs is scored by {text!r}; they have {names}")
    return matching[0]


def _lines(comparison: RunComparison) -> Iterator[str]:
    label = f"{metric_label(comparison.metric.name)} (version {comparison.metric.version})"
    for run in comparison.figures:
        counts = f"{run.answered:,} answered, {run.refused:,} refused, {run.failed:,} failed"
        score = "-" if run.score is None else _format_estimate(run.score, run.error)
        cost = f"{run.calls:.1f} calls, {run.seconds:.2f} s, {format_cost(run.cost, run.cost_bound)} an answer"
        yield f"{run.label}\n  {label} {score} over {run.scored:,} questions; {counts}; {cost}"
        difference = comparison.differences.get(run.run_id)
        if difference is None:
            continue
        paired = difference.paired
        by = "questions" if comparison.cluster_field == OWN_CLUSTER else f"clusters by {comparison.cluster_field}"
        yield (
            f"  {_format_estimate(paired.difference.value, paired.difference, sign='+')} from "
            f"{comparison.labels[comparison.baseline_id]}, {difference.clusters:,} {by}; {paired.gains:,} gains, "
            f"{paired.losses:,} losses, {paired.ties:,} ties, {paired.missing:,} missing "
            f"({paired.with_missing_as_zero:+.3f} with them as 0); McNemar p {format_p_value(difference.p_value)}, "
            f"Holm {format_p_value(difference.adjusted_p)}"
        )


def _format_estimate(value: float, estimate: Estimate | None, sign: str = "") -> str:
    interval = estimate and f" [{estimate.interval.low:{sign}.3f}, {estimate.interval.high:{sign}.3f}]"
    return f"{value:{sign}.3f}{interval or ''}"


app = typer.Typer(no_args_is_help=True, help="List runs, score them by other metrics, and exchange them as logs.")
add_removal_commands(app, Kind.RUN)


@app.command("list")
def list_runs(*, project: ProjectOption = None, as_json: AsJson = False) -> None:
    """List the runs that can be compared, the latest first."""
    database = current_services().database
    runs = _load_runs(database, project)
    labels = label_runs(runs)
    rows = []
    for run in runs:
        figures = load_figures(database, run.id)
        names = ("questions", "answered", "cannot_be_answered", "refused", "failed", "left")
        counts = {name: figures[name] for name in names}
        started = run.started_at.isoformat(timespec="seconds")
        named = {"name": run.title, "note": run.note}
        row = {"id": str(run.id), "label": labels[run.id], **named, "started_at": started, "world": run.world, **counts}
        rows.append(row | {"f1": figures["f1"]})
    lines = [
        f"{row['id']}  {row['started_at']}  {row['answered']:,} of {row['questions']:,}  {_score(row)}  {row['label']}"
        + (f" ({row['note']})" if row["note"] else "")
        for row in rows
    ]
    emit(rows, "\n".join(lines) or "no runs yet; `showhow verify` makes one", as_json=as_json)


def _score(row: Mapping[str, Any]) -> str:
    return "F1 -   " if row["f1"] is None else f"F1 {row['f1']:.2f}"


app.command("compare")(compare)
RunArgument = Annotated[str, typer.Argument(help="The id of a verification; `runs list` lists them.")]
AtOnceOption = Annotated[
    int | None, typer.Option(min=1, max=MAX_CONCURRENT_QUESTIONS, help="Questions at the same time from now on.")
]


@app.command()
def show(run: RunArgument, *, as_json: AsJson = False) -> None:
    """Show how a verification was asked, as far as it is not the default, and its figures."""
    services = current_services()
    stored = load_run(services, run)
    print_progress(json.dumps(stored.spec.to_json(), ensure_ascii=False))
    print_report(services, stored, as_json=as_json)


@app.command()
def pause(run: RunArgument) -> None:
    """Have the processes that work on a verification begin no question."""
    services = current_services()
    change_concurrency(services, load_run(services, run), is_paused=True, concurrency=None)


@app.command()
def resume(run: RunArgument, *, at_once: AtOnceOption = None) -> None:
    """End the pause of a verification, or change its questions at the same time while it works."""
    services = current_services()
    change_concurrency(services, load_run(services, run), is_paused=False, concurrency=at_once)


@app.command("continue")
@draw_options
def continue_(request: ContinueRun, *, as_json: AsJson = False) -> None:
    """Ask the questions of a verification that are left."""
    services = current_services()
    print_asked(services, continue_run(services, request), as_json=as_json)


@app.command()
@draw_options
def retry(request: ContinueRun, *, as_json: AsJson = False) -> None:
    """Ask again the questions of a verification that failed or reached a limit, with those that are left."""
    services = current_services()
    print_asked(services, continue_run(services, replace(request, retry=True)), as_json=as_json)


@app.command()
def rename(
    run: Annotated[str, typer.Argument(help="The id of a run, its beginning, or its name.")],
    name: Annotated[str | None, typer.Argument(help='Its new name; "" for none.')] = None,
    *,
    note: Annotated[str | None, typer.Option(help="Its new note.")] = None,
) -> None:
    """Give a run a name and a note, by which it is told apart everywhere."""
    if name is None and note is None:
        raise typer.BadParameter("give a name, or a note with --note")
    database = current_services().database
    with database.begin() as session:
        stored = name_run(session, UUID(str(find_key(session, Kind.RUN, run))), title=name, note=note)
    emit({"name": stored.title, "note": stored.note}, f"run {stored.id}: {stored.title or 'no name'}", as_json=False)


@app.command()
def categorize(
    run: Annotated[str, typer.Argument(help="The id of a run, or its beginning.")],
    category: Annotated[str | None, typer.Argument(help=f'Such as {", ".join(ERROR_CATEGORIES)}; "" for none.')] = None,
    failures: Annotated[
        list[str] | None, typer.Argument(metavar="TRACE...", help="The traces of failures; `repair list` lists them.")
    ] = None,
    *,
    person: Annotated[str | None, typer.Option("--as", help="Who says so; default: nobody is named.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say which kind of error failures of a run are, and count its failures by category; without a category, count."""
    services = current_services()
    (run_id,) = _find_runs(services.database, [run])
    with services.database.begin() as session:
        stored = comparisons.find_comparable_run(session, run_id)
        if category is not None:
            traces = {text: session.get(Trace, parse_trace_id(text)) for text in failures or ()}
            questions = [trace.question_id for trace in traces.values() if trace is not None and trace.run_id == run_id]
            by = None if person is None else find_or_add_author(session, person).id
            changed = set_error_category(session, run_id, questions, category, by=by)
            if not changed or len(questions) < len(traces):
                raise CommandError(f"name traces of failures of this run; `showhow repair list {run_id}` lists them")
    counts = count_categories(list_failures(services, stored))
    lines = [f"{count:6,}  {name}" for name, count in counts.items()]
    emit(counts, "\n".join(lines) or "this run has no failure", as_json=as_json)


@app.command("score")
@draw_options
def score_answers(request: ScoreRun, *, as_json: AsJson = False) -> None:
    """Score the stored answers of a run by a metric of its data set, and store the scores; nothing is asked again.

    Gold answers that are ids have the names of the run's world, unless another one is named.
    """
    services = current_services()
    (run_id,) = _find_runs(services.database, [request.run])
    if request.metric == "list":
        purposes = {known.name: known.purpose for known in list_run_metrics(services.database, run_id)}
        lines = [f"{name:24} {purpose}" for name, purpose in purposes.items()]
        text = "\n".join(lines) or "its questions name no data set with metrics; name it with --dataset"
        emit(purposes, text, as_json=as_json)
        return
    report = tasks.score_answers(services, replace(request, run=str(run_id)))
    emit(report, "\n".join(report_lines(report)), as_json=as_json)


LOG_FORMATS = ("inspect",)
"""The formats of logs of runs."""
LogFormatOption = Annotated[str, typer.Option("--format", help=", ".join(LOG_FORMATS))]
MAX_PRINTED_REMARKS = 5


@app.command("export")
def export_run(
    run: Annotated[str, typer.Argument(help="The id of a run, or its beginning.")],
    file: Annotated[Path, typer.Argument(help="The log to write: .eval for the packed form, else JSON.")],
    *,
    format_name: LogFormatOption = "inspect",
    force: ForceOption = False,
    as_json: AsJson = False,
) -> None:
    """Write a run as a log of Inspect; what the format cannot hold is listed on stderr."""
    _check_log_format(format_name)
    database = current_services().database
    (run_id,) = _find_runs(database, [run])
    with open_atomically(file, force=force) as stream:
        losses = write_inspect_log(database, run_id, stream, packed=file.suffix == ".eval")
    for line in losses.summary_lines():
        print_progress(line)
    value = {"written": losses.written, "lost": dict(losses.lost)}
    emit(value, f"{losses.written:,} samples written to {file}", as_json=as_json)


@app.command("import")
def import_run(
    file: Annotated[Path, typer.Argument(help="A log of Inspect, .json or .eval.")],
    *,
    project: Annotated[str, typer.Option("--project", help="The project that has its questions, or gets them.")],
    format_name: LogFormatOption = "inspect",
    unbounded: UnboundedOption = False,
    as_json: AsJson = False,
) -> None:
    """Read a log of Inspect as a run of a project, with its answers and scores; nothing if it is malformed."""
    _check_log_format(format_name)
    try:
        services = current_services()
        for sentence in finish_interrupted_imports(services):
            print_progress(sentence)
        with (
            bounded_work(file, unbounded=unbounded),
            fail_on_interrupt("The import was stopped; nothing was imported."),
        ):
            report = import_inspect_log(services, file, project)
    except FormatError as error:
        raise CommandError(f"{error}; nothing was imported") from error
    for what, count in sorted(report.losses.items()):
        print_progress(f"not imported: {what} ({count:,})")
    for refusal in report.refused:
        print_progress(f"refused: {refusal.place}: {refusal.reason}")
    for remark in report.remarks[:MAX_PRINTED_REMARKS]:
        print_progress(f"note: {remark.place}: {remark.text}")
    if len(report.remarks) > MAX_PRINTED_REMARKS:
        print_progress(f"and {len(report.remarks) - MAX_PRINTED_REMARKS:,} more notes; --json has all")
    scores = ", ".join(f"{count:,} by {metric}" for metric, count in sorted(report.scores.items())) or "none"
    text = f"run {report.run_id}: {report.answers:,} answers, {report.new_questions:,} new questions; scores: {scores}"
    emit(report.to_json(), text, as_json=as_json)


def _check_log_format(name: str) -> None:
    if name not in LOG_FORMATS:
        raise CommandError(f"there is no format {name!r} of runs; use {', '.join(LOG_FORMATS)}")
