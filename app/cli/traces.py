"""`showhow traces import | export | table | list | show | replay | repeat`."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from showhow.app.cli.drawn_options import draw_options
from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.cli.removals import add_removal_commands
from showhow.app.services import current_services
from showhow.db.people.users import ADMIN, REVIEWER
from showhow.db.questions.person_answers import ANSWER_STATUSES, COMPLETED, AnswerConditions
from showhow.db.questions.projects import find_project, get_project
from showhow.db.removal.removal_kinds import Kind
from showhow.db.serialization import to_json_fields
from showhow.db.traces.trace_record import TRACE_STATUSES, TraceChange, TraceRecord, list_changes
from showhow.db.traces.traces import list_trace_summaries, load_trace
from showhow.evaluation.comparison.answer_table import iterate_person_answers, write_answer_table
from showhow.evaluation.comparison.selection_usage import Report
from showhow.evaluation.value_format import TABLE_WRITERS, format_count
from showhow.fewshot_library.formats.format import ExportLosses
from showhow.tasks import traces as tasks
from showhow.tasks.progress import print_progress
from showhow.tasks.task import open_atomically, require_role
from showhow.tasks.trace_export import ExportTraces, export
from showhow.tasks.traces import ImportTraces, RepeatTraces, ReplayTraces, parse_trace_id

MAX_OBSERVATION_CHARACTERS = 300
"""Characters of an observation that are printed; --json prints all."""


@draw_options
def replay(
    request: ReplayTraces,
    *,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit status 1 if a trace can no longer be followed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the actions of traces again in the current world, and list the observations that differ."""
    report = tasks.replay(current_services(), request)
    emit(report, "\n".join(_format_report(report)), as_json=as_json)
    if strict and report["broken"]:
        raise CommandError(
            f"{report['broken']:,} of {report['traces']:,} traces can no longer be followed; fork each at the first "
            "step that breaks and record the rest again, or leave it out of the next version"
        )


@draw_options
def repeat(request: RepeatTraces, *, as_json: AsJson = False) -> None:
    """Try whether traces can be repeated, on their own questions and with other names, and keep what is found out."""
    results = tasks.repeat(current_services(), request)
    lines = [f"{result['state']}  {result['trace']}  {result['question']}" for result in results]
    counts = Counter(result["state"] for result in results)
    lines.append(", ".join(f"{state} {count:,}" for state, count in counts.items()) or "there is no trace to try")
    emit(results, "\n".join(lines), as_json=as_json)


def _format_report(report: Report) -> Iterator[str]:
    for trace in report["changed"]:
        yield f"{trace['state']}  {trace['trace']}  {trace['question']}"
        yield from _format_steps(trace["steps"])
    yield (
        f"{report['traces']:,} traces run again: {report['same']:,} the same, {report['differs']:,} differ, "
        f"{report['broken']:,} broken"
    )


def _format_steps(steps: Sequence[dict[str, Any]]) -> Iterator[str]:
    for step in steps:
        arguments = ", ".join(f"{name}: {value}" for name, value in step["arguments"].items())
        yield f"   step {step['position']}  {step['tool']}  {arguments}" + (f"  ({step['why']})" if step["why"] else "")
        yield f"     then  {_truncate(step['before'])}"
        yield f"     now   {_truncate(step['now'])}"


def _truncate(text: str) -> str:
    line = " / ".join(text.splitlines())
    hidden_count = len(line) - MAX_OBSERVATION_CHARACTERS
    return line if hidden_count <= 0 else f"{line[:MAX_OBSERVATION_CHARACTERS]} ... {hidden_count:,} more characters"


app = typer.Typer(no_args_is_help=True, help="Import, export, tabulate, list, show, replay and repeat traces.")
add_removal_commands(app, Kind.DRAFT)
app.command("replay")(replay)
app.command("repeat")(repeat)

StatusOption = Annotated[str, typer.Option(help=f"all, {', '.join(TRACE_STATUSES)}, or several of them: a,b")]
ProjectOption = Annotated[str | None, typer.Option("--project", help="Only traces of this project.")]


@app.command("import")
@draw_options
def import_file(request: ImportTraces, *, as_json: AsJson = False) -> None:
    """Import all traces of a file, or none if it is malformed; existing traces are never overwritten."""
    report = tasks.import_file(current_services(), request)
    emit(report.value(), "\n".join(report.lines()), as_json=as_json)
    if report.problem:
        raise CommandError(report.problem)


@app.command("export")
@draw_options
def export_file(request: ExportTraces, *, status: StatusOption = "approved", as_json: AsJson = False) -> None:
    """Write traces to a file; losses of the format are listed on stderr.

    Nothing is written if a question is, or nearly is, of the test split and the format does not say so.
    """
    services = current_services()
    with services.database.read() as session:
        _check_project(session, request.plan.conditions.project)
    request = replace(request, plan=replace(request.plan, statuses=_parse_statuses(status)))
    emit_losses(export(services, request), request.file, as_json=as_json)


def _parse_statuses(text: str) -> tuple[str, ...] | None:
    statuses = tuple(part.strip() for part in text.split(","))
    if statuses == ("all",):
        return None
    if unknown := [status for status in statuses if status not in TRACE_STATUSES]:
        raise CommandError(f"there is no status {unknown[0]!r}; use all, {', '.join(TRACE_STATUSES)}, or several: a,b")
    return statuses


@app.command("table")
def write_table(  # noqa: PLR0913 - every option of the verb is one parameter
    file: Annotated[Path | None, typer.Argument(help="The file to write; default: print the table.")] = None,
    *,
    project: Annotated[str, typer.Option(help="The project's name.")],
    status: Annotated[str, typer.Option(help=f"all, {', '.join(ANSWER_STATUSES)}")] = COMPLETED,
    person: Annotated[str | None, typer.Option(help="Only the answers of this person.")] = None,
    format_name: Annotated[
        str | None, typer.Option("--format", help=f"{', '.join(TABLE_WRITERS)}; default: by the file's name.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tabulate people's answers: question, person, answer, gold, agreement, time and comment.

    Text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    services = current_services()
    require_role(services, REVIEWER, ADMIN)
    database = services.database
    if status not in ("all", *ANSWER_STATUSES):
        raise CommandError(f"there is no status {status!r}; use all, {', '.join(ANSWER_STATUSES)}")
    with database.read() as session:
        stored = get_project(session, project)
    conditions = AnswerConditions(None if status == "all" else status, person)
    if file is None:
        rows = list(iterate_person_answers(database, stored, conditions))
        emit(rows, "\n".join(map(_format_answer_row, rows)) or "no answers", as_json=as_json)
        return
    name = format_name or file.suffix[1:].lower()
    if name not in TABLE_WRITERS:
        raise CommandError(f"tables are written as {', '.join(TABLE_WRITERS)}; name one of them with --format")
    with open_atomically(file, force=force) as stream:
        count = write_answer_table(database, stored, conditions, name, stream)
    emit({"written": count, "file": str(file)}, f"{format_count(count, 'answer')} written to {file}", as_json=as_json)


def _format_answer_row(row: Mapping[str, Any]) -> str:
    figures = [f"{row['minutes']} min"] if row["minutes"] is not None else []
    figures += [f"agreement {row['agreement']}"] if row["agreement"] is not None else []
    parts = [row["person"], row["status"], row["answer"] or "-", *figures, row["comment"] or ""]
    return "  ".join([f"{row['number']}. {row['question']}", *filter(None, parts)])


def _check_project(session: Any, name: str | None) -> None:
    if name is not None and find_project(session, name) is None:
        raise CommandError(f"there is no project {name!r}; `showhow project list` lists them")


@app.command("list")
def list_(
    *,
    status: StatusOption = "all",
    project: ProjectOption = None,
    limit: Annotated[int, typer.Option(min=1)] = 50,
    as_json: AsJson = False,
) -> None:
    """List traces, the latest first."""
    with current_services().database.read() as session:
        _check_project(session, project)
        statuses = _parse_statuses(status)
        rows = list_trace_summaries(session, statuses=statuses, project=project, limit=limit)
    lines = [
        f"{row.id}  {row.status:<9}  {row.started_at:%F}  {row.project}  {row.question}  {row.final_answer or '-'}"
        for row in rows
    ]
    emit([row._asdict() for row in rows], "\n".join(lines) or "no traces", as_json=as_json)


@app.command()
def show(
    trace: Annotated[str, typer.Argument(help="The trace's id.")],
    *,
    history: Annotated[bool, typer.Option("--history", help="Also list who changed what, and when.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show one trace from the question to the answer."""
    trace_id = parse_trace_id(trace)
    with current_services().database.read() as session:
        record = load_trace(session, trace_id)
    value = {
        "project": record.project.name,
        "question": to_json_fields(record.question),
        "author": record.author,
        "trace": to_json_fields(record.trace),
        "steps": [to_json_fields(step) for step in record.steps],
    }
    lines = [*format_trace(record)]
    if history:
        changes = list_changes(record)
        value["history"] = [{**asdict(change), "at": change.at.isoformat()} for change in changes]
        lines += ["", *(_format_change(change) for change in changes)]
    emit(value, "\n".join(lines), as_json=as_json)


def _format_change(change: TraceChange) -> str:
    """Format an event in one line."""
    step = f", step {change.position}" if change.position is not None else ""
    texts = " -> ".join(" ".join(text.split()) for text in (change.before, change.after) if text)
    return f"{change.at:%Y-%m-%d %H:%M:%S}  {change.who} {change.action}{step}{f': {texts}' if texts else ''}"


def format_trace(record: TraceRecord) -> Iterator[str]:
    """Format a trace for printing, from the question to the answer."""
    trace = record.trace
    yield f"{record.question.text}\n{record.project.name}, {trace.status}, {record.creator_name}"
    for step in record.steps:
        yield f"\n{step.position}  {step.thought}"
        if step.tool is not None:
            arguments = ", ".join(f"{name}: {value}" for name, value in step.arguments.items())
            yield f"   {step.tool}  {arguments}"
        if step.error or step.observation is not None:
            yield "   " + (step.error or step.observation or "").replace("\n", "\n   ")
    if trace.final_answer is not None:
        yield f"\nAnswer: {trace.final_answer}"


def emit_losses(losses: ExportLosses, file: Path, *, as_json: bool) -> None:
    """Print the number of exported traces, and on stderr the data that the format cannot represent."""
    for line in losses.summary_lines():
        print_progress(line)
    value = {
        "written": losses.written,
        "lost": dict(losses.lost),
        "refused": [asdict(record) for record in losses.refused],
    }
    emit(value, f"{losses.written} traces written to {file}", as_json=as_json)
