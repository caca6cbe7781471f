"""Tasks over traces: import a file of them, run them again, and try whether they can be repeated."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from showhow.db.database import StoreError
from showhow.db.people.users import ADMIN, REVIEWER
from showhow.db.runs.repetitions import store_repetition
from showhow.db.traces.libraries import DemonstrationFilter
from showhow.db.traces.trace_record import NOT_TRIED
from showhow.db.traces.traces import load_trace
from showhow.evaluation.comparison.drift import compute_drift, list_demonstration_ids, save_drift
from showhow.evaluation.comparison.repetition import try_repetition
from showhow.evaluation.comparison.selection_usage import Report
from showhow.fewshot_library.formats import readable_formats
from showhow.fewshot_library.formats.format import FormatError
from showhow.guard.input_bounds import bounded_work
from showhow.option_fields import option
from showhow.runs.services import Services
from showhow.tasks.imports import TraceImportReport, finish_interrupted_imports, import_traces
from showhow.tasks.progress import print_count, print_progress, print_result
from showhow.tasks.questions import UNBOUNDED_HELP
from showhow.tasks.task import TaskError, fail_on_interrupt, require_role


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTraces:
    """A file of traces in one of the formats that are read."""

    file: Path = option(help="The file to read.", is_argument=True)
    format_name: str = option("auto", lambda: f"auto, {', '.join(readable_formats())}", flag="--format")
    unbounded: bool = option(default=False, help=UNBOUNDED_HELP)


def import_file(services: Services, request: ImportTraces) -> TraceImportReport:
    """Add all traces of the file, or none if it is malformed; existing traces are never overwritten."""
    require_role(services, ADMIN)
    for sentence in finish_interrupted_imports(services):
        print_progress(sentence)
    try:
        with (
            bounded_work(request.file, unbounded=request.unbounded),
            fail_on_interrupt("The import was stopped; nothing was imported."),
        ):
            report = import_traces(services, request.file, request.format_name)
    except (FormatError, StoreError) as error:
        raise TaskError(f"{error}; no trace was imported") from error
    print_result(next(report.lines()))
    if not report.outcomes["added"] and not report.outcomes["same"]:
        report.problem = f"no trace of {request.file} was added; the report says why"
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTraces:
    """Which traces run again: those named, or the approved ones."""

    traces: tuple[str, ...] = option((), "Ids of traces; default: all approved traces.", is_argument=True)
    library: str | None = option(None, "The traces of a version, NAME or NAME:NUMBER.")
    project: str | None = option(None, "Only traces of this project.")


def replay(services: Services, request: ReplayTraces) -> Report:
    """Run the actions of the traces again in the current world; the report lists the observations that differ."""
    require_role(services, REVIEWER, ADMIN)
    ids = _list_ids(services, request.traces, request.library, DemonstrationFilter(project=request.project))
    if not ids:
        raise TaskError("there is no approved trace to run again; approve some on the Review page")
    with fail_on_interrupt("The replay was stopped; the previous report is still stored."):
        report = compute_drift(services, ids, partial(print_count, units="traces"))
    if not request.traces and request.project is None:
        save_drift(services, request.library, report)
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatTraces:
    """Which traces are tried, and with which names."""

    traces: tuple[str, ...] = option((), "Ids of traces; default: all approved traces.", is_argument=True)
    library: str | None = option(None, "The traces of a version, NAME or NAME:NUMBER.")
    project: str | None = option(None, "Only traces of this project.")
    not_tried: bool = option(default=False, help="Only traces that nobody has tried.")
    question: str | None = option(None, "One question with other names, in place of two that are chosen.")
    answer: str | None = option(None, "The answer of a draft that has none yet.")


def repeat(services: Services, request: RepeatTraces) -> list[dict[str, Any]]:
    """Try whether the traces can be repeated, on their own questions and with other names; keep what is found out."""
    require_role(services)
    chosen = DemonstrationFilter(project=request.project, repeats=NOT_TRIED if request.not_tried else None)
    ids = _list_ids(services, request.traces, request.library, chosen)
    results = []
    with fail_on_interrupt("It was stopped; what was found out so far is kept."):
        for done, trace_id in enumerate(ids, 1):
            with services.database.read() as session:
                record = load_trace(session, trace_id)
            record.trace.final_answer = request.answer or record.trace.final_answer
            repetition = try_repetition(services, record, request.question)
            with services.database.begin() as session:
                store_repetition(session, record, record.trace.final_answer or "", repetition)
            results.append({"trace": str(trace_id), "question": record.question.text, **asdict(repetition)})
            print_count(done, len(ids), units="traces")
    return results


def _list_ids(services: Services, named: Sequence[str], library: str | None, chosen: DemonstrationFilter) -> list[UUID]:
    return list(map(parse_trace_id, named)) or list_demonstration_ids(services, library, chosen)


def parse_trace_id(text: str) -> UUID:
    """The id; TaskError if it is none."""
    try:
        return UUID(text)
    except ValueError as error:
        raise TaskError(f"{text!r} is not the id of a trace; `showhow traces list` lists them") from error
