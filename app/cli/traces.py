"""`showhow traces import | export | list | show | replay`.

`showhow traces replay`: do approved traces still hold in the world as it is now?
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args
from uuid import UUID

import typer

from app.cli.output import CommandError, emit, emit_losses, open_atomically, print_progress
from app.services import services
from app.trace_export import build_export
from db.database import StoreError
from db.libraries import DemonstrationFilter
from db.merge import MergeOutcome, merge_trace
from db.models import TRACE_STATUSES
from db.projects import find_project
from db.serialization import to_json_fields
from db.trace_record import TraceRecord
from db.traces import iterate_traces, list_trace_summaries, load_trace
from evaluation.library_drift import compute_drift, list_demonstration_ids, save_drift
from evaluation.report_cache import Report
from fewshot_library.formats import READABLE_FORMATS, WRITABLE_FORMATS, find_writer, read_traces
from fewshot_library.formats.format import FormatError, ReadResult, RecordRemark, RefusedRecord

MAX_OBSERVATION_CHARACTERS = 300
"""Characters of an observation that people are shown; programs get all."""


def replay(
    traces: Annotated[list[str] | None, typer.Argument(help="Ids of traces; without any, all approved ones.")] = None,
    *,
    library: Annotated[str | None, typer.Option(help="The traces of a version, NAME or NAME:NUMBER.")] = None,
    project: Annotated[str | None, typer.Option(help="Only traces of this project.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit status 1 when a trace can't be followed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run the actions of traces again in the world as it is now, and list where observations differ."""
    ids = [_parse_trace_id(each) for each in traces or ()] or list_demonstration_ids(
        services(), library, DemonstrationFilter(project=project)
    )
    if not ids:
        raise CommandError("there is no approved trace to run again; approve some on the Review page")
    report = compute_drift(services(), ids, lambda done, of: print_progress(f"{done:,} of {of:,} traces"))
    if not traces and project is None:
        save_drift(services(), library, report)
    emit(report, "\n".join(_format_report(report)), as_json=as_json)
    if strict and report["broken"]:
        raise CommandError(
            f"{report['broken']:,} of {report['traces']:,} traces can no longer be followed; fork each at the first "
            "step that breaks and record the rest anew, or leave it out of the next version"
        )


def _parse_trace_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as wrong:
        raise CommandError(f"{text!r} is no id of a trace; `showhow traces list` has them") from wrong


def _format_report(report: Report) -> Iterator[str]:
    for each in report["changed"]:
        yield f"{each['state']}  {each['trace']}  {each['question']}"
        yield from _format_steps(each["steps"])
    yield (
        f"{report['traces']:,} traces run again: {report['same']:,} the same, {report['differs']:,} differ, "
        f"{report['broken']:,} broken"
    )


def _format_steps(steps: Sequence[dict[str, Any]]) -> Iterator[str]:
    for step in steps:
        given = ", ".join(f"{name}: {value}" for name, value in step["arguments"].items())
        yield f"   step {step['position']}  {step['tool']}  {given}" + (f"  ({step['why']})" if step["why"] else "")
        yield f"     then  {_truncate(step['before'])}"
        yield f"     now   {_truncate(step['now'])}"


def _truncate(text: str) -> str:
    line = " / ".join(text.splitlines())
    return (
        line
        if len(line) <= MAX_OBSERVATION_CHARACTERS
        else f"{line[:MAX_OBSERVATION_CHARACTERS]} ... {len(line) - MAX_OBSERVATION_CHARACTERS:,} more characters"
    )


app = typer.Typer(no_args_is_help=True, help="Import, export, list, show and run again traces.")
app.command("replay")(replay)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ReadFormatOption = Annotated[str, typer.Option("--format", help=f"auto, {', '.join(READABLE_FORMATS)}")]
WriteFormatOption = Annotated[str, typer.Option("--format", help=", ".join(WRITABLE_FORMATS))]
StatusOption = Annotated[str, typer.Option(help=f"all, {', '.join(TRACE_STATUSES)}")]
ProjectOption = Annotated[str | None, typer.Option("--project", help="Only traces of this project.")]


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="The file to read.")],
    *,
    format_name: ReadFormatOption = "auto",
    as_json: AsJson = False,
) -> None:
    """Take in the traces of a file; of a broken file nothing stays, and what is here is never overwritten."""
    taken = TraceImportReport()
    try:
        with services().database.begin() as session:
            for found in read_traces(file, format_name):
                taken.add(found, partial(merge_trace, session))
    except FormatError as broken:
        raise CommandError(f"{broken}; nothing of the file was imported") from broken
    except StoreError as failed:
        raise CommandError(
            f"{file}, record {taken.read_count + 1}: {failed}; nothing of the file was imported"
        ) from failed
    emit(taken.value(), "\n".join(taken.lines()), as_json=as_json)


@dataclass(slots=True)
class TraceImportReport:
    """What became of the records of a file."""

    outcomes: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)
    refused: list[RefusedRecord] = field(default_factory=list)
    remarks: list[RecordRemark] = field(default_factory=list)

    @property
    def read_count(self) -> int:
        """How many records have been read to their end."""
        return self.outcomes.total() + len(self.refused)

    def add(self, found: ReadResult, put: Callable[[TraceRecord], MergeOutcome]) -> None:
        """Put a trace that was found into the store, and note what became of it."""
        if isinstance(found, RefusedRecord):
            self.refused.append(found)
        elif isinstance(found, RecordRemark):
            self.remarks.append(found)
        else:
            outcome = put(found)
            self.outcomes[outcome] += 1
            if outcome == "differs":
                self.differing.append(str(found.trace.id))

    def value(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            **{name: self.outcomes[name] for name in get_args(MergeOutcome)},
            "refused": [asdict(each) for each in self.refused],
            "differing": self.differing,
            "remarks": [asdict(each) for each in self.remarks],
        }

    def lines(self) -> Iterator[str]:
        """The report for people, a line each."""
        known = f"{self.outcomes['same']} already here, {self.outcomes['differs']} differ"
        yield f"{self.outcomes['added']} added, {known}, {len(self.refused)} refused"
        yield from (f"differs from the one here, which was kept: trace {trace_id}" for trace_id in self.differing)
        yield from (f"refused: {each.place}: {each.reason}" for each in self.refused)
        yield from (f"note: {each.place}: {each.text}" for each in self.remarks)


@app.command("export")
def export_file(  # noqa: PLR0913 - every option of the verb is one parameter
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    *,
    format_name: WriteFormatOption = "showhow",
    status: StatusOption = "approved",
    project: ProjectOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write traces to a file and tell on stderr what the format could not keep."""
    try:
        write = find_writer(format_name)
    except FormatError as unknown:
        raise CommandError(str(unknown)) from unknown
    with services().database.read() as session, open_atomically(file, force=force) as stream:
        _check_project(session, project)
        found = iterate_traces(session, status=_parse_status(status), project=project)
        losses = write(build_export(session, found), stream)
    emit_losses(losses, file, as_json=as_json)


def _parse_status(status: str) -> str | None:
    if status not in ("all", *TRACE_STATUSES):
        raise CommandError(f"there is no status {status!r}; there are all, {', '.join(TRACE_STATUSES)}")
    return None if status == "all" else status


def _check_project(session: Any, name: str | None) -> None:
    if name is not None and find_project(session, name) is None:
        raise CommandError(f"there is no project {name!r}; `showhow traces list` names those that have traces")


@app.command("list")
def list_(
    *,
    status: StatusOption = "all",
    project: ProjectOption = None,
    limit: Annotated[int, typer.Option(min=1)] = 50,
    as_json: AsJson = False,
) -> None:
    """List traces, the latest first."""
    with services().database.read() as session:
        _check_project(session, project)
        found = list_trace_summaries(session, status=_parse_status(status), project=project, limit=limit)
    lines = [
        f"{row.id}  {row.status:<9}  {row.started_at:%F}  {row.project}  {row.question}  {row.final_answer or '-'}"
        for row in found
    ]
    emit([row._asdict() for row in found], "\n".join(lines) or "no traces", as_json=as_json)


@app.command()
def show(trace: Annotated[str, typer.Argument(help="The trace's id.")], *, as_json: AsJson = False) -> None:
    """Show one trace from the question to the answer."""
    try:
        trace_id = UUID(trace)
    except ValueError as wrong:
        raise CommandError(f"{trace!r} is no id of a trace; `showhow traces list` has them") from wrong
    with services().database.read() as session:
        record = load_trace(session, trace_id)
    value = {
        "project": record.project.name,
        "question": to_json_fields(record.question),
        "author": record.author,
        "trace": to_json_fields(record.trace),
        "steps": [to_json_fields(step) for step in record.steps],
    }
    emit(value, "\n".join(format_trace(record)), as_json=as_json)


def format_trace(record: TraceRecord) -> Iterator[str]:
    """The trace from the question to the answer, as it is printed."""
    trace = record.trace
    yield f"{record.question.text}\n{record.project.name}, {trace.status}, by {record.author or trace.reasoner}"
    for step in record.steps:
        yield f"\n{step.position}  {step.thought}"
        if step.tool is not None:
            given = ", ".join(f"{name}: {value}" for name, value in step.arguments.items())
            yield f"   {step.tool}  {given}"
        if step.error or step.observation is not None:
            yield "   " + (step.error or step.observation or "").replace("\n", "\n   ")
    if trace.final_answer is not None:
        yield f"\nAnswer: {trace.final_answer}"
