"""Runs as logs of Inspect and back: an attempt is a sample, a repetition an epoch, a score one by the metric's name.

    losses = write_inspect_log(database, run_id, stream, packed=True)
    report = import_inspect_log(services, path, "Project")

What Inspect has no field for is in `metadata.showhow`, so that a log of Showhow is imported as the run that it was. An
imported log keeps the scores of its scorers; Showhow's own are computed where all its questions have gold answers.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID, uuid5

from db import attempts, comparisons, runs
from db.answer_formats import AnswerFormat, AnswerKind
from db.attempts import MetricScore
from db.comparisons import IMPORTED_RUN_NAME, ScoredAttempt
from db.database import Conflict, Database, RowNotFound
from db.merge import merge_trace
from db.models import UNFINISHED_ENDINGS, Attempt, Project, Question, Run
from db.projects import find_matching_question, find_project
from db.trace_configuration import MODEL_SKILLS, TraceConfiguration
from db.trace_record import TraceRecord
from db.traces import load_trace
from evaluation.metrics import METRICS
from evaluation.metrics.metric import list_aliases
from evaluation.verify import score_missing_answers
from fewshot_library.formats import read_traces
from fewshot_library.formats.chat import CHAT_FIELDS, trace_to_messages
from fewshot_library.formats.format import ExportLosses, FormatError, RecordRemark, RefusedRecord, lost_fields
from fewshot_library.formats.inspect_log import encode_message, read_score, write_log
from runs.services import Services

LOG_VERSION = 2
OWN = "showhow"
"""The key of Showhow's own values in the metadata of a log, a sample and a score."""
NO_MODEL = "none/none"
"""Inspect's name of a model for a run without one."""
QUESTION_FIELDS = ("source_id", "dataset", "split", "kind", "gold_answers", "decomposition", "details")
RUN_FIELDS = ("reasoner", "world", "world_hash", "code_version", "options")
USAGE_FIELDS = ("input_tokens", "output_tokens", "unreported_calls", "token_bound", "cost", "cost_bound")
STORED_FIELDS = {
    *CHAT_FIELDS,
    *(f"question.{name}" for name in QUESTION_FIELDS),
    *("project.name", "project.world", "trace.started_at", "trace.submitted_at", "trace.wall_seconds", "trace.cost"),
    *("trace.reasoner", "trace.status", "trace.run_id", "trace.configuration"),
}
"""The fields of a trace that a log of Showhow holds; its configuration is that of the run."""
JOINED_TARGETS = "that an answer has to name all of several gold answers, which are one target"
OTHER_TARGET = "a target other than the gold answers of the project's question, which count"
NOT_A_NUMBER = "a score that is no number"
OUT_OF_RANGE = "a score that is not from 0 to 1"
_SAFE_ID = re.compile(r"\w[\w.-]{0,150}", re.ASCII)


def write_inspect_log(database: Database, run_id: UUID, stream: BinaryIO, *, packed: bool) -> ExportLosses:
    """Write a run as a log, JSON or packed (.eval); attempts that have not ended are left out and counted."""
    losses = ExportLosses()
    with database.read() as session:
        run = comparisons.find_comparable_run(session, run_id)
        questions = attempts.list_asked_questions(session, run_id)
        ids = _choose_sample_ids(questions)
        head = _encode_head(run, list(ids.values()))
        head["results"] = _encode_results(attempts.group_scores(session, run_id))
        samples = _encode_samples(database, run, ids, losses)
        write_log(head, samples, stream, packed=packed)
    return losses


def _choose_sample_ids(questions: Sequence[Question]) -> dict[UUID, str]:
    """The id of each question in its data set if all have different ones that can name files, else its key."""
    sources = [question.source_id or "" for question in questions]
    are_usable = len(set(sources)) == len(sources) and all(map(_SAFE_ID.fullmatch, sources))
    return {
        question.id: source if are_usable else str(question.id)
        for question, source in zip(questions, sources, strict=True)
    }


def _encode_head(run: Run, sample_ids: Sequence[str]) -> dict[str, Any]:
    configuration = TraceConfiguration.from_json(run.configuration)
    own = {name: getattr(run, name) for name in RUN_FIELDS} | {
        "library": configuration.library,
        "skills": configuration.skills,
        "repetitions": configuration.repetitions,
    }
    created = run.started_at.isoformat()
    return {
        "version": LOG_VERSION,
        "status": "started" if run.finished_at is None else "success",
        "eval": {
            "eval_id": str(run.id),
            "run_id": str(run.id),
            "created": created,
            "task": str(run.configuration.get("imported_as") or f"{run.reasoner} over {run.world}"),
            "task_id": str(run.id),
            "task_version": 0,
            "solver": run.reasoner,
            "solver_args": dict(run.options),
            "dataset": {"samples": len(sample_ids), "sample_ids": list(sample_ids)},
            "model": run.model or NO_MODEL,
            "config": {"epochs": configuration.repetitions},
            "packages": {OWN: run.code_version} if run.code_version else {},
            "metadata": {OWN: own},
        },
        "plan": {"name": "plan", "steps": [{"solver": run.reasoner, "params": dict(run.options)}]},
        "stats": {"started_at": created, "completed_at": run.finished_at.isoformat() if run.finished_at else ""},
    }


def _encode_results(groups: Sequence[attempts.ScoreGroup]) -> dict[str, Any]:
    totals: dict[str, list[float]] = {}
    for group in groups:
        total = totals.setdefault(group.metric, [0, 0.0])
        total[0], total[1] = total[0] + group.scores, total[1] + group.total
    return {
        "scores": [
            {
                "name": name,
                "scorer": name,
                "scored_samples": count,
                "metrics": {"mean": {"name": "mean", "value": total / count}},
            }
            for name, (count, total) in totals.items()
        ]
    }


def _encode_samples(
    database: Database, run: Run, ids: Mapping[UUID, str], losses: ExportLosses
) -> Iterator[dict[str, Any]]:
    with database.read() as session:
        for scored in comparisons.iterate_scored_attempts(session, run.id):
            attempt = scored.attempt
            if attempt.trace_id is None or attempt.ending in (None, *UNFINISHED_ENDINGS):
                losses.lost["an attempt that has not ended"] += 1
                continue
            record = load_trace(session, attempt.trace_id)
            losses.lost.update(lost_fields(record, STORED_FIELDS))
            if len(record.question.gold_answers) > 1:
                losses.lost[JOINED_TARGETS] += 1
            losses.written += 1
            yield _encode_sample(record, scored, ids[attempt.question_id], run.model)


def _encode_sample(record: TraceRecord, scored: ScoredAttempt, sample_id: str, model: str | None) -> dict[str, Any]:
    attempt, trace, question = scored.attempt, record.trace, record.question
    answer = trace.final_answer or ""
    message = {"role": "assistant", "content": answer, "source": "generate"}
    own = {
        "question": {name: getattr(question, name) for name in QUESTION_FIELDS},
        "ending": attempt.ending,
        "failure": trace.failure,
        "usage": {"calls": attempt.model_calls} | {name: getattr(attempt, name) for name in USAGE_FIELDS},
        "sources": {name: getattr(trace, name) for name in ("answer_text", "answer_graph", "answer_model")},
    }
    sample = {
        "id": sample_id,
        "epoch": attempt.repetition,
        "input": question.text,
        "target": _encode_target(question.gold_answers),
        "messages": [encode_message(entry) for entry in trace_to_messages(record)],
        "output": {
            "model": model or NO_MODEL,
            "choices": [{"message": message, "stop_reason": "stop"}] if answer else [],
            "completion": answer,
        },
        "scores": {
            score.metric: {
                "value": score.value,
                "answer": answer,
                "metadata": {OWN: {"version": score.metric_version}},
            }
            for score in scored.scores
        },
        "metadata": {**({"kind": question.kind} if question.kind else {}), OWN: own},
        "model_usage": _encode_usage(attempt, model),
        "started_at": trace.started_at.isoformat(),
        "completed_at": (trace.submitted_at or trace.started_at).isoformat(),
        "total_time": attempt.seconds,
    }
    if attempt.ending not in ("answered", "refused"):
        reason = trace.failure or f"the run ended by {attempt.ending}"
        sample["error"] = {"message": reason, "traceback": "", "traceback_ansi": ""}
    return sample


def _encode_target(gold: Sequence[Mapping[str, Any]]) -> str | list[str]:
    """Alternative names of a single gold answer, or one text with all of several."""
    if len(gold) == 1:
        names = list(dict.fromkeys(list_aliases(gold[0])))
        return names if len(names) > 1 else names[0]
    return ", ".join(str(answer["text"]) for answer in gold)


def _encode_usage(attempt: Attempt, model: str | None) -> dict[str, Any]:
    if not attempt.model_calls or attempt.input_tokens is None or attempt.output_tokens is None:
        return {}
    counts = {"input_tokens": attempt.input_tokens, "output_tokens": attempt.output_tokens}
    total = {"total_tokens": attempt.input_tokens + attempt.output_tokens, "total_cost": attempt.cost}
    return {model or NO_MODEL: counts | total}


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
    with services.database.begin() as session:
        project = find_project(session, project_name)
        if project is None:
            raise RowNotFound(f"there is no project {project_name!r}; `showhow project list` lists them")
        importer = _LogImporter(session, path, project)
        report = importer.run()
    if importer.has_gold:
        score_missing_answers(services, report.run_id)
    return report


class _LogImporter:
    """Imports one log in one transaction."""

    def __init__(self, session: Any, path: Path, project: Project) -> None:
        self._session = session
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
        for result in read_traces(self._path, "inspect"):
            if isinstance(result, RefusedRecord):
                self._report.refused.append(result)
            elif isinstance(result, RecordRemark):
                self._report.remarks.append(result)
            else:
                sample = self._store_sample(result)
                key = (sample.question.id, sample.epoch)
                if key in samples:
                    raise FormatError(
                        f"{self._path}: epoch {sample.epoch} of the question {sample.question.text[:80]!r} occurs twice"
                    )
                samples[key] = sample
        if not samples or self._run is None:
            reason = self._report.refused[0] if self._report.refused else None
            raise FormatError(
                f"{self._path} has no sample that can be read" + (f" ({reason.reason})" if reason else "")
            )
        self._end_attempts(self._run, samples)
        return self._report

    def _store_sample(self, record: TraceRecord) -> _ImportedSample:
        if self._run is None:
            self._run = self._start_run(record)
        run = self._run
        stored: dict[str, Any] = record.trace.configuration.get("inspect", {})
        own = (stored.get("metadata") or {}).get(OWN) or {}
        question = self._find_question(record, stored, own)
        trace_id = uuid5(run.id, str(record.trace.id))
        for step in record.steps:
            step.trace_id, step.id = trace_id, uuid5(trace_id, str(step.position))
        trace = record.trace
        trace.id, trace.run_id, trace.question_id, trace.reasoner = trace_id, run.id, question.id, run.reasoner
        self._set_outcome(record, stored, own)
        record.question, record.project, record.run = question, self._project, run
        merge_trace(self._session, record)
        scores = list(self._read_scores(stored.get("scores") or {}))
        self._report.answers += 1
        return _ImportedSample(question, int(stored.get("epoch", 1)), record, scores)

    def _start_run(self, record: TraceRecord) -> Run:
        if record.run is None:
            raise FormatError(f"{self._path} has no head, so its run is not known")
        evaluation: dict[str, Any] = record.run.configuration["eval"]
        own = (evaluation.get("metadata") or {}).get(OWN) or {}
        run_id = uuid5(record.run.id, str(self._project.id))
        if self._session.get(Run, run_id) is not None:
            raise Conflict(f"this log is imported already, as the run {run_id} of {self._project.name!r}")
        self._report = replace(self._report, run_id=run_id)
        model = evaluation.get("model")
        reasoner = own.get("reasoner") or "inspect"
        epochs = (evaluation.get("config") or {}).get("epochs") or 1
        skills = own.get("skills") or MODEL_SKILLS
        run = Run(
            id=run_id,
            name=IMPORTED_RUN_NAME,
            reasoner=reasoner,
            world=own.get("world") or self._project.world,
            configuration={
                "project_id": str(self._project.id),
                "reasoner": reasoner,
                "options": own.get("options") or {},
                "library": own.get("library"),
                "imported_as": f"{evaluation['task']} (imported)",
                **({"repetitions": epochs} if epochs > 1 else {}),
                **({"skills": skills} if skills != MODEL_SKILLS else {}),
                "inspect": evaluation,
            },
            model=None if model == NO_MODEL else model,
            world_hash=own.get("world_hash"),
            code_version=own.get("code_version"),
            options=own.get("options") or {},
            started_at=record.run.started_at,
        )
        return runs.start_run(self._session, run)

    def _find_question(self, record: TraceRecord, stored: Mapping[str, Any], own: Mapping[str, Any]) -> Question:
        """The project's question of the sample, or a new one with the fields of the log."""
        question = record.question
        fields = own.get("question") or _question_fields(record, stored)
        for name in QUESTION_FIELDS:
            if name in fields:
                setattr(question, name, fields[name])
        try:
            known = find_matching_question(self._session, self._project.id, question)
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
        questions = {sample.question.id: sample.question for sample in samples.values()}
        asked = [self._session.get_one(Question, question_id) for question_id in questions]
        asked.sort(key=lambda question: question.position)
        repetitions = max(epoch for _, epoch in samples)
        attempts.add_attempts(self._session, run, asked, repetitions)
        run.questions_hash = attempts.hash_questions(asked)
        for (question_id, epoch), sample in samples.items():
            trace = sample.record.trace
            attempt = attempts.end_attempt_with_trace(self._session, run.id, question_id, epoch, trace)
            attempts.save_scores(self._session, attempt.id, attempt.lease_token, sample.scores)
        if len(samples) == repetitions * len(asked):
            runs.finish_run(self._session, run.id)


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
