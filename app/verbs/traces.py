"""`showhow traces import | export | list | show | replay`."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args
from uuid import UUID

import typer

from app.exports import export_of
from app.resources import database
from app.verbs.output import CommandFailed, emit
from app.verbs.trace_replay import replay
from app.verbs.written import tell_losses, written_whole
from db.database import StoreError
from db.merge import Outcome, merge
from db.models import TRACE_STATUSES
from db.plain import to_plain
from db.projects import project_by_name
from db.reading import all_traces, list_traces, open_trace
from db.record import TraceRecord
from fewshot_library.formats import READ, WRITTEN, read_traces, writer
from fewshot_library.formats.format import FormatError, Found, Refused, Remark

app = typer.Typer(no_args_is_help=True, help="Import, export, list, show and run again traces.")
app.command("replay")(replay)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ReadFormat = Annotated[str, typer.Option("--format", help=f"auto, {', '.join(READ)}")]
WrittenFormat = Annotated[str, typer.Option("--format", help=", ".join(WRITTEN))]
Status = Annotated[str, typer.Option(help=f"all, {', '.join(TRACE_STATUSES)}")]
ProjectName = Annotated[str | None, typer.Option("--project", help="Only traces of this project.")]


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="The file to read.")],
    *,
    format_name: ReadFormat = "auto",
    as_json: AsJson = False,
) -> None:
    """Take in the traces of a file; of a broken file nothing stays, and what is here is never overwritten."""
    taken = Taken()
    try:
        with database().begin() as session:
            for found in read_traces(file, format_name):
                taken.take(found, partial(merge, session))
    except FormatError as broken:
        raise CommandFailed(f"{broken}; nothing of the file was imported") from broken
    except StoreError as failed:
        raise CommandFailed(f"{file}, record {taken.read + 1}: {failed}; nothing of the file was imported") from failed
    emit(taken.value(), "\n".join(taken.told()), as_json=as_json)


@dataclass(slots=True)
class Taken:
    """What became of the records of a file."""

    outcomes: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)

    @property
    def read(self) -> int:
        """How many records have been read to their end."""
        return self.outcomes.total() + len(self.refused)

    def take(self, found: Found, put: Callable[[TraceRecord], Outcome]) -> None:
        """Put a trace that was found into the store, and note what became of it."""
        if isinstance(found, Refused):
            self.refused.append(found)
        elif isinstance(found, Remark):
            self.remarks.append(found)
        else:
            outcome = put(found)
            self.outcomes[outcome] += 1
            if outcome == "differs":
                self.differing.append(str(found.trace.id))

    def value(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            **{name: self.outcomes[name] for name in get_args(Outcome)},
            "refused": [asdict(each) for each in self.refused],
            "differing": self.differing,
            "remarks": [asdict(each) for each in self.remarks],
        }

    def told(self) -> Iterator[str]:
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
    format_name: WrittenFormat = "showhow",
    status: Status = "approved",
    project: ProjectName = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write traces to a file and tell on stderr what the format could not keep."""
    try:
        write = writer(format_name)
    except FormatError as unknown:
        raise CommandFailed(str(unknown)) from unknown
    with database().read() as session, written_whole(file, force=force) as stream:
        _known_project(session, project)
        found = all_traces(session, status=_status(status), project=project)
        losses = write(export_of(session, found), stream)
    tell_losses(losses, file, as_json=as_json)


def _status(status: str) -> str | None:
    if status not in ("all", *TRACE_STATUSES):
        raise CommandFailed(f"there is no status {status!r}; there are all, {', '.join(TRACE_STATUSES)}")
    return None if status == "all" else status


def _known_project(session: Any, name: str | None) -> None:
    if name is not None and project_by_name(session, name) is None:
        raise CommandFailed(f"there is no project {name!r}; `showhow traces list` names those that have traces")


@app.command("list")
def list_them(
    *,
    status: Status = "all",
    project: ProjectName = None,
    limit: Annotated[int, typer.Option(min=1)] = 50,
    as_json: AsJson = False,
) -> None:
    """List traces, the latest first."""
    with database().read() as session:
        _known_project(session, project)
        found = list_traces(session, status=_status(status), project=project, limit=limit)
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
        raise CommandFailed(f"{trace!r} is no id of a trace; `showhow traces list` has them") from wrong
    with database().read() as session:
        record = open_trace(session, trace_id)
    value = {
        "project": record.project.name,
        "question": to_plain(record.question),
        "author": record.author,
        "trace": to_plain(record.trace),
        "steps": [to_plain(step) for step in record.steps],
    }
    emit(value, "\n".join(lines_of(record)), as_json=as_json)


def lines_of(record: TraceRecord) -> Iterator[str]:
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
