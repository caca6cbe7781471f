"""Imports logs of Inspect as runs of a project, in short transactions: all of a log, or nothing.

    report = import_inspect_log(services, path, "Project")

An imported log keeps the scores of its scorers; Showhow's own are computed where all its questions have gold answers.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from showhow.db.batches import write_in_batches
from showhow.db.database import Conflict, Database, RowNotFound, StoreError
from showhow.db.models import Project, Question, Run
from showhow.db.questions.answer_formats import AnswerFormat, AnswerKind
from showhow.db.questions.projects import find_matching_question, find_project
from showhow.db.removed_rows import WITH_REMOVED
from showhow.db.run_spec import MODEL_SKILLS, RunLimits, RunSpec
from showhow.db.runs import attempts, runs
from showhow.db.runs.attempts import MetricScore
from showhow.db.runs.comparisons import IMPORTED_RUN_NAME
from showhow.db.storage.import_journal import (
    IMPORT_PREFIX,
    JOURNAL_FILE,
    REQUEST_FILE,
    UNDO_FILE,
    ImportJournal,
    identify_database,
)
from showhow.db.storage.merge import TraceMerger
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.metrics import METRICS
from showhow.evaluation.verification.inspect_runs import (
    NO_MODEL,
    NOT_A_NUMBER,
    OTHER_TARGET,
    OUT_OF_RANGE,
    OWN,
    QUESTION_FIELDS,
)
from showhow.evaluation.verification.verify import score_missing_answers
from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.formats.format import FormatError, RecordRemark, RefusedRecord
from showhow.fewshot_library.formats.inspect_log import read_score
from showhow.runs.services import Services
from showhow.worlds.folder import ScratchFolder


@dataclass(slots=True)
class LogImportReport:
    """What became of the samples of a log."""

    run_id: UUID
    project: str
    answers: int = 0
    new_questions: int = 0
    scores: Counter[str] = field(default_factory=Counter)
    """The scores by metric, without those that Showhow computed."""
    losses: Counter[str] = field(default_factory=Counter)
    refused: list[RefusedRecord] = field(default_factory=list)
    remarks: list[RecordRemark] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The report for programs."""
        counts = {"run": str(self.run_id), "answers": self.answers, "new_questions": self.new_questions}
        places = {
            name: [{"place": entry.place, "reason": reason} for entry, reason in entries]
            for name, entries in (
                ("refused", [(record, record.reason) for record in self.refused]),
                ("remarks", [(remark, remark.text) for remark in self.remarks]),
            )
        }
        return {**counts, "scores": dict(self.scores), "lost": dict(self.losses), **places}


@dataclass(frozen=True, slots=True)
class _ImportedSample:
    """A sample whose trace is stored."""

    question: Question
    epoch: int
    record: TraceRecord
    scores: list[MetricScore]


def import_inspect_log(services: Services, path: Path, project_name: str) -> LogImportReport:
    """Import a log as a run of a project: all of it, or nothing if it is malformed.

    Questions are matched by id and text, or by text, and added if the project does not have them. FormatError for a
    file that is no log or has no sample that can be read, Conflict for one that is imported already.
    """
    with services.database.read() as session:
        project = find_project(session, project_name)
        if project is None:
            raise RowNotFound(f"there is no project {project_name!r}; `showhow project list` lists them")
    # Whatever is wrong with the file shows before anything is written.
    for _ in read_traces(path, "inspect"):
        pass
    with _journal_import(services.settings.imports_folder, services.database, path) as journal:
        importer = _LogImporter(services.database, path, project, journal)
        report = importer.run()
    if importer.has_gold:
        score_missing_answers(services, report.run_id)
    return report


class _LogImporter:
    """Imports one log in short transactions; `journal` has what it added."""

    def __init__(self, database: Database, path: Path, project: Project, journal: ImportJournal) -> None:
        self._database = database
        self._journal = journal
        self._merger = TraceMerger(journal.note)
        self._path = path
        self._project = project
        self._run: Run | None = None
        self._report = LogImportReport(UUID(int=0), project.name)
        self._asks_no_answers = AnswerFormat.from_json(project.answer_format).kind == AnswerKind.NONE
        self.has_gold = True
        """Whether all imported questions have gold answers."""

    def run(self) -> LogImportReport:
        """Store the run with its answers and scores."""
        samples: dict[tuple[UUID, int], _ImportedSample] = {}

        def store(session: Any, record: TraceRecord) -> None:
            sample = self._store_sample(session, record)
            key = (sample.question.id, sample.epoch)
            if key in samples:
                raise FormatError(
                    f"{self._path}: epoch {sample.epoch} of the question {sample.question.text[:80]!r} occurs twice"
                )
            samples[key] = sample

        write_in_batches(self._database, self._read_records(), store, end_batch=self._end_batch)
        if not samples or self._run is None:
            reason = self._report.refused[0] if self._report.refused else None
            raise FormatError(
                f"{self._path} has no sample that can be read" + (f" ({reason.reason})" if reason else "")
            )
        self._end_attempts(self._run, samples)
        return self._report

    def _read_records(self) -> Iterator[TraceRecord]:
        for result in read_traces(self._path, "inspect"):
            if isinstance(result, RefusedRecord):
                self._report.refused.append(result)
            elif isinstance(result, RecordRemark):
                self._report.remarks.append(result)
            else:
                yield result

    def _end_batch(self, session: Any) -> None:
        self._merger.end_batch(session)
        self._journal.save()

    def _store_sample(self, session: Any, record: TraceRecord) -> _ImportedSample:
        if self._run is None:
            self._run = self._start_run(session, record)
            self._journal.note(self._run)
        run = self._run
        stored: dict[str, Any] = record.trace.result.details.get("inspect", {})
        own = (stored.get("metadata") or {}).get(OWN) or {}
        question = self._find_question(session, record, stored, own)
        trace_id = uuid5(run.id, str(record.trace.id))
        for step in record.steps:
            step.trace_id, step.id = trace_id, uuid5(trace_id, str(step.position))
        trace = record.trace
        trace.id, trace.run_id, trace.question_id, trace.reasoner = trace_id, run.id, question.id, run.reasoner
        self._set_outcome(record, stored, own)
        record.question, record.project, record.run = question, self._project, run
        self._merger.merge(session, record)
        scores = list(self._read_scores(stored.get("scores") or {}))
        self._report.answers += 1
        return _ImportedSample(question, int(stored.get("epoch", 1)), record, scores)

    def _start_run(self, session: Any, record: TraceRecord) -> Run:
        if record.run is None:
            raise FormatError(f"{self._path} has no head, so its run is not known")
        evaluation: dict[str, Any] = record.run.spec.details["eval"]
        own = (evaluation.get("metadata") or {}).get(OWN) or {}
        run_id = uuid5(record.run.id, str(self._project.id))
        if session.get(Run, run_id, execution_options=WITH_REMOVED) is not None:
            raise Conflict(
                f"this log is imported already, as the run {run_id} of {self._project.name!r}; if it is not listed, "
                "it is archived or deleted: restore it under Settings"
            )
        self._report = replace(self._report, run_id=run_id)
        model = evaluation.get("model")
        reasoner = own.get("reasoner") or "inspect"
        epochs = (evaluation.get("config") or {}).get("epochs") or 1
        run = Run(
            id=run_id,
            name=IMPORTED_RUN_NAME,
            reasoner=reasoner,
            world=own.get("world") or self._project.world,
            spec=RunSpec(
                reasoner=reasoner,
                options=own.get("options") or {},
                library=own.get("library"),
                model=None if model == NO_MODEL else model,
                skills=own.get("skills") or MODEL_SKILLS,
                limits=RunLimits(steps=None, seconds=None),
                project_id=self._project.id,
                repetitions=epochs,
                world_hash=own.get("world_hash"),
                code_version=own.get("code_version"),
                details={"imported_as": f"{evaluation['task']} (imported)", "inspect": evaluation},
            ),
            title=own.get("title") or "",
            note=own.get("note") or "",
            started_at=record.run.started_at,
        )
        return runs.start_run(session, run)

    def _find_question(
        self, session: Any, record: TraceRecord, stored: Mapping[str, Any], own: Mapping[str, Any]
    ) -> Question:
        """The project's question of the sample, or a new one with the fields of the log."""
        question = record.question
        fields = own.get("question") or _question_fields(record, stored)
        for name in QUESTION_FIELDS:
            if name in fields:
                setattr(question, name, fields[name])
        try:
            known = find_matching_question(session, self._project.id, question)
        except RowNotFound:
            question.id = uuid5(self._project.id, f"{question.source_id} {question.full_text}")
            question.project_id = self._project.id
            known = None
        if known is None:
            self._report.new_questions += 1
            self.has_gold &= bool(question.gold_answers)
            return question
        self.has_gold &= bool(known.gold_answers)
        if known.gold_answers != question.gold_answers and question.gold_answers:
            self._report.losses[OTHER_TARGET] += 1
        return known

    def _set_outcome(self, record: TraceRecord, stored: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        trace = record.trace
        ending = own.get("ending")
        if ending is None:
            is_failed = bool(stored.get("error")) if self._asks_no_answers else trace.status == "failed"
            ending = "limit" if stored.get("limit") else "failed" if is_failed else "answered"
        if ending == "answered":
            # A run that was asked for no answer has the empty one.
            trace.final_answer = trace.final_answer or ""
        else:
            trace.final_answer = trace.final_thought = None
        reason = None if ending == "answered" else "the sample of the log has no answer"
        trace.ending, trace.failure = ending, own.get("failure") or stored.get("error") or reason
        trace.status = "submitted" if ending == "answered" else "failed"
        for name, value in (own.get("sources") or {}).items():
            setattr(trace, name, value)
        trace.wall_seconds = stored.get("total_time")
        trace.cost = dict(own["usage"]) if own.get("usage") else _add_model_usages(stored)

    def _read_scores(self, scores: Mapping[str, Any]) -> Iterator[MetricScore]:
        for scorer, score in scores.items():
            version = ((score.get("metadata") or {}).get(OWN) or {}).get("version")
            for metric, number in read_score(scorer, score.get("value")):
                if number is None:
                    self._report.losses[NOT_A_NUMBER] += 1
                elif not 0 <= number <= 1:
                    self._report.losses[OUT_OF_RANGE] += 1
                else:
                    # A scorer of another tool that has the name of a metric of Showhow is another metric.
                    name = f"inspect/{metric}" if version is None and metric in METRICS else metric
                    self._report.scores[name] += 1
                    yield MetricScore(name, version or 1, number)

    def _end_attempts(self, run: Run, samples: Mapping[tuple[UUID, int], _ImportedSample]) -> None:
        # In the order of the project, as a verification asks them, so that the hashes of equal questions are equal.
        with self._database.read() as session:
            asked = [
                session.get_one(Question, key) for key in {sample.question.id: None for sample in samples.values()}
            ]
        asked.sort(key=lambda question: question.position)
        repetitions = max(epoch for _, epoch in samples)
        attempts.add_attempts(self._database, run, asked, repetitions)

        def end(session: Any, item: tuple[tuple[UUID, int], _ImportedSample]) -> None:
            (question_id, epoch), sample = item
            trace = sample.record.trace
            attempt = attempts.end_attempt_with_trace(session, run.id, question_id, epoch, trace)
            attempts.save_scores(session, attempt.id, attempt.lease_token, sample.scores)

        write_in_batches(self._database, samples.items(), end)
        with self._database.begin() as session:
            session.get_one(Run, run.id).questions_hash = attempts.hash_questions(asked)
            if len(samples) == repetitions * len(asked):
                runs.finish_run(session, run.id)


def _question_fields(record: TraceRecord, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a question in a log of another tool; its targets are alternative answers."""
    targets = [str(gold["text"]) for gold in record.question.gold_answers]
    gold: list[dict[str, Any]] = [{"text": targets[0], "entity": None}] if targets else []
    if len(targets) > 1:
        gold[0]["aliases"] = targets[1:]
    metadata: Mapping[str, Any] = stored.get("metadata") or {}
    kind = metadata.get("kind")
    return {"gold_answers": gold, "kind": kind if isinstance(kind, str) else None, "details": dict(metadata)}


def _add_model_usages(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The usage of all models of a sample; a turn is taken for a call."""
    usages: Mapping[str, Any] = stored.get("model_usage") or {}
    if not usages:
        return {}
    costs = [usage.get("total_cost") for usage in usages.values()]
    return {
        "model": ", ".join(usages),
        "calls": stored.get("turn_count") or len(usages),
        "input_tokens": sum(usage.get("input_tokens", 0) for usage in usages.values()),
        "output_tokens": sum(usage.get("output_tokens", 0) for usage in usages.values()),
        "cost": None if None in costs else sum(costs),
    }


@contextmanager
def _journal_import(imports: Path, database: Database, file: Path) -> Iterator[ImportJournal]:
    """A journal in the home for an import that is undone if the block fails, and at the next start if it is killed."""
    try:
        scratch = ScratchFolder(imports, IMPORT_PREFIX, "import")
        request = {"kind": "run", "file": str(file), "database": identify_database(database)}
        (scratch.path / REQUEST_FILE).write_text(json.dumps(request), encoding="utf-8")
        (scratch.path / UNDO_FILE).touch()
    except OSError as error:
        raise StoreError(f"the journal of the import cannot be written to {imports} ({error})") from error
    journal = ImportJournal(scratch.path / JOURNAL_FILE)
    try:
        yield journal
    except BaseException:
        journal.undo(database)
        raise
    finally:
        scratch.remove()
