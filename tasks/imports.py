"""Imports of traces and questions: read and checked first, then written in short transactions, all or nothing.

While an import writes, the home holds a copy of its file and a journal of what was added. A stopped or failed import is
undone; one whose process was killed goes on at the next start, or before the next import.
"""

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, get_args

from showhow.db.batches import write_in_batches
from showhow.db.database import Database, StoreError
from showhow.db.models import Question
from showhow.db.questions import projects
from showhow.db.questions.projects import QuestionAppender, QuestionImportCounts
from showhow.db.questions.question_record import QuestionRecord
from showhow.db.storage.import_journal import (
    IMPORT_PREFIX,
    JOURNAL_FILE,
    REQUEST_FILE,
    UNDO_FILE,
    ImportJournal,
    identify_database,
)
from showhow.db.storage.merge import MergeOutcome, MergePreview, TraceMerger
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.datasets import open_question_file
from showhow.evaluation.datasets.gold_names import GoldNames, open_world_graph
from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.formats.format import ReadResult, RecordRemark, RefusedRecord
from showhow.guard.files import open_regular
from showhow.runs.services import Services
from showhow.tasks.progress import print_count
from showhow.worlds.folder import ScratchFolder, claim_abandoned_folders
from showhow.worlds.source import GraphSource

PROGRESS_SECONDS = 1.0
MAX_LISTED_RECORDS = 1_000
"""The records of a report that are listed; the others are counted."""


@dataclass(slots=True)
class TraceImportReport:
    """The outcome of each record of an imported file."""

    outcomes: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)
    refused: list[RefusedRecord] = field(default_factory=list)
    remarks: list[RecordRemark] = field(default_factory=list)
    refused_count: int = 0
    unlisted: int = 0
    """The records that are not listed, since there are too many."""
    problem: str | None = None
    """Why nothing of the file is stored; None if something is."""

    @property
    def read_count(self) -> int:
        """The number of records that were read completely."""
        return self.outcomes.total() + self.refused_count

    def add(self, record: ReadResult, merge: Callable[[TraceRecord], MergeOutcome]) -> None:
        """Merge a trace into the store and count its outcome; collect what the reader refused or remarked."""
        if isinstance(record, RefusedRecord):
            self.refused_count += 1
            self._list(self.refused, record)
        elif isinstance(record, RecordRemark):
            self._list(self.remarks, record)
        else:
            outcome = merge(record)
            self.outcomes[outcome] += 1
            if outcome == "differs":
                self._list(self.differing, str(record.trace.id))

    def _list(self, entries: list[Any], entry: Any) -> None:
        if len(entries) < MAX_LISTED_RECORDS:
            entries.append(entry)
        else:
            self.unlisted += 1

    def value(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            **{name: self.outcomes[name] for name in get_args(MergeOutcome)},
            "refused": [asdict(refusal) for refusal in self.refused],
            "differing": self.differing,
            "remarks": [asdict(remark) for remark in self.remarks],
            **({"unlisted": self.unlisted} if self.unlisted else {}),
        }

    def lines(self) -> Iterator[str]:
        """The report for people, as lines."""
        existing = f"{self.outcomes['same']} already stored, {self.outcomes['differs']} differ"
        yield f"{self.outcomes['added']} added, {existing}, {self.refused_count} refused"
        yield from (f"differs from the stored trace, which was kept: {trace_id}" for trace_id in self.differing)
        yield from (f"refused: {refusal.place}: {refusal.reason}" for refusal in self.refused)
        yield from (f"note: {remark.place}: {remark.text}" for remark in self.remarks)
        if self.unlisted:
            yield f"and {self.unlisted:,} more records"


def read_into_report(
    merge: Callable[[TraceRecord], MergeOutcome], file: Path, format_name: str = "auto"
) -> TraceImportReport:
    """Merge each trace of the file; FormatError and StoreError name the record that cannot be stored."""
    report = TraceImportReport()
    for record in read_traces(file, format_name):
        try:
            report.add(record, merge)
        except StoreError as error:
            raise StoreError(f"{file}, record {report.read_count + 1}: {error}") from error
    return report


def import_traces(services: Services, file: Path, format_name: str = "auto") -> TraceImportReport:
    """Add all traces of the file, or none; FormatError and StoreError say why nothing was added."""
    database = services.database
    # Whatever is wrong with the file shows before anything is written.
    report = read_into_report(MergePreview(database).merge, file, format_name)
    if not report.outcomes["added"]:
        return report
    request = {"kind": "traces", "file": str(file), "format": format_name, "total": report.outcomes.total()}
    with _StagedImport.begin(services, file, request) as staged:
        report.outcomes, report.differing = staged.write(services), staged.differing
    return report


@dataclass(frozen=True, slots=True)
class QuestionImportPlan:
    """Which questions of a file are added to which project."""

    project: str
    world: str | None = None
    """The world of a new project."""
    form: str = "auto"
    language: str = "en"
    split: str | None = None
    only: Sequence[str] = ()
    """The ids of the questions that are added; empty for all."""
    guidelines: str | None = None
    """Text that replaces the project's guidelines."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """What columns of the file mean, by their names."""

    def iter_records(self, file: Path) -> Iterator[QuestionRecord]:
        """The questions of the file that are added."""
        records = open_question_file(file, self.form, self.language, self.columns).iter_records(self.split)
        return (record for record in records if not self.only or record.source_id in self.only)


@dataclass(frozen=True, slots=True)
class QuestionImportReport:
    """The numbers of an import of questions."""

    counts: QuestionImportCounts
    named: int = 0
    """The gold answers that were ids and got the names that the world's graph has."""
    unnamed: int = 0
    """The gold answers that are ids without a name, so that only the id is a right answer."""
    first_unnamed: str = ""

    def value(self) -> dict[str, Any]:
        """The report for programs."""
        counts = {"added": self.counts.added, "already": self.counts.existing, "differing": self.counts.differing}
        return {**counts, "named_gold": self.named, "unnamed_gold": self.unnamed}

    def lines(self) -> Iterator[str]:
        """The report for people, as lines."""
        yield str(self.counts)
        if self.named:
            are, their = ("answer was an id", "its") if self.named == 1 else ("answers were ids", "their")
            yield f"{self.named:,} gold {are}, and got {their} names from the world's graph"
        if self.unnamed:
            are, ids = ("answer is an id", "id") if self.unnamed == 1 else ("answers are ids", "ids")
            yield (
                f"{self.unnamed:,} gold {are} to which the world's graph has no name (first {self.first_unnamed}), so "
                f"that only the {ids} {'is' if self.unnamed == 1 else 'are'} right"
            )


def import_questions(
    services: Services, file: Path, plan: QuestionImportPlan, total: int | None = None
) -> QuestionImportReport:
    """Add the questions of a file to a project, which is made if it is new: all of them, or none."""
    request = {"kind": "questions", "file": str(file), "plan": asdict(plan), "total": total}
    with _StagedImport.begin(services, file, request) as staged:
        staged.write(services)
        return staged.question_report


def open_project_graph(services: Services, plan: QuestionImportPlan) -> GraphSource | None:
    """The graph of the world that the questions are of; None if there is no such world, or if it has none."""
    with services.database.read() as session:
        project = projects.find_project(session, plan.project)
    return open_world_graph(services, plan.world if project is None else project.world)


def finish_interrupted_imports(services: Services) -> Iterator[str]:
    """Go on with the imports whose processes were killed, or undo them; yields a sentence about each."""
    folder = services.settings.imports_folder
    for path in claim_abandoned_folders(folder, IMPORT_PREFIX) if folder.is_dir() else ():
        staged = _StagedImport.resume(services, path)
        if staged is None:
            continue
        name = staged.request["file"]
        if staged.is_undone:
            staged.undo(services.database)
            yield f"Undid the import of {name}, which was interrupted."
            continue
        try:
            outcomes = staged.write(services)
        except StoreError as error:
            staged.undo(services.database)
            yield f"Undid the import of {name}, which was interrupted and cannot go on: {error}."
        else:
            yield f"Finished the import of {name}, which was interrupted: {outcomes['added']:,} more rows added."


class _StagedImport:
    """One import with its copy of the file, its request and its journal in a folder of the home."""

    def __init__(self, folder: Path, request: dict[str, Any]) -> None:
        self.request = request
        self._folder = folder
        self._journal = ImportJournal(folder / JOURNAL_FILE)
        self._scratch: ScratchFolder | None = None
        self._database: Database | None = None
        self.differing: list[str] = []
        self.question_report = QuestionImportReport(QuestionImportCounts(0, 0, 0))

    @classmethod
    def begin(cls, services: Services, file: Path, request: dict[str, Any]) -> "_StagedImport":
        """Copy the file into the home; OSError becomes StoreError, before anything is written."""
        try:
            scratch = ScratchFolder(services.settings.imports_folder, IMPORT_PREFIX, "import")
            staged = cls(scratch.path, request | {"database": identify_database(services.database)})
            staged.file.parent.mkdir()
            with open_regular(file) as source, staged.file.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            # What follows counts as begun.
            (scratch.path / REQUEST_FILE).write_text(json.dumps(staged.request), encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{file} cannot be copied to {services.settings.imports_folder} ({error})") from error
        staged._scratch, staged._database = scratch, services.database
        return staged

    @classmethod
    def resume(cls, services: Services, folder: Path) -> "_StagedImport | None":
        """The import of a process that was killed; None if it has written nothing to this database."""
        try:
            staged = cls(folder, json.loads((folder / REQUEST_FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None
        return staged if staged.request["database"] == identify_database(services.database) else None

    @property
    def file(self) -> Path:
        """The copy, under the name of the file, from which some formats derive keys."""
        return self._folder / "file" / Path(self.request["file"]).name

    @property
    def is_undone(self) -> bool:
        """Whether its undoing has begun."""
        return (self._folder / UNDO_FILE).exists()

    def __enter__(self) -> "_StagedImport":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        assert self._scratch is not None and self._database is not None  # noqa: S101, PT018 - begin() sets both
        if kind is not None:
            self.undo(self._database)
        self._scratch.remove()

    def undo(self, database: Database) -> None:
        """Remove what was added."""
        (self._folder / UNDO_FILE).touch()
        self._journal.undo(database, self._report_progress("rows taken back", self._journal.count()))

    def write(self, services: Services) -> Counter[str]:
        """Add what is not stored yet, and count the outcomes."""
        if self.request["kind"] == "traces":
            return self._write_traces(services.database)
        return self._write_questions(services, QuestionImportPlan(**self.request["plan"]))

    def _write_traces(self, database: Database) -> Counter[str]:
        merger = TraceMerger(self._journal.note)
        report = TraceImportReport()

        def merge(session: Any, record: TraceRecord) -> None:
            report.add(record, partial(merger.merge, session))

        def end_batch(session: Any) -> None:
            merger.end_batch(session)
            self._journal.save()

        records = (
            record for record in read_traces(self.file, self.request["format"]) if isinstance(record, TraceRecord)
        )
        write_in_batches(
            database,
            records,
            merge,
            prepare=merger.prepare,
            end_batch=end_batch,
            committed=self._report_progress("traces", self.request["total"]),
        )
        self.differing = report.differing
        return report.outcomes

    def _write_questions(self, services: Services, plan: QuestionImportPlan) -> Counter[str]:
        database = services.database
        with database.begin() as session:
            is_new = projects.find_project(session, plan.project) is None
            project = projects.get_or_create_project(session, plan.project, world=plan.world)
            if is_new:
                self._journal.note(project)
                self._journal.save()
        names = GoldNames(partial(open_project_graph, services, plan))
        appender = QuestionAppender(project.id, partial(self._journal.note_key, Question))

        def end_batch(session: Any) -> None:
            appender.end_batch(session)
            self._journal.save()

        write_in_batches(
            database,
            names.add_to(plan.iter_records(self.file)),
            appender.add,
            prepare=appender.prepare,
            end_batch=end_batch,
            committed=self._report_progress("questions", self.request["total"]),
        )
        if plan.guidelines is not None:
            with database.begin() as session:
                projects.get_project(session, plan.project).guidelines = plan.guidelines
        self.question_report = QuestionImportReport(appender.counts, names.named, names.unnamed, names.first_unnamed)
        return Counter(added=appender.counts.added)

    @staticmethod
    def _report_progress(units: str, total: int | None) -> Callable[[int], None]:
        printed_at = time.monotonic()

        def committed(count: int) -> None:
            nonlocal printed_at
            if total and count < total and time.monotonic() - printed_at >= PROGRESS_SECONDS:
                printed_at = time.monotonic()
                print_count(count, total, units)

        return committed
