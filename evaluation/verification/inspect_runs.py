"""Runs as logs of Inspect: an attempt is a sample, a repetition an epoch, a score one by the metric's name.

    losses = write_inspect_log(database, run_id, stream, packed=True)

What Inspect has no field for is in `metadata.showhow`, so that a log of Showhow is imported as the run that it was, by
`evaluation/verification/inspect_import.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO
from uuid import UUID

from showhow.db.database import Database
from showhow.db.models import UNFINISHED_ENDINGS, Attempt, Question, Run
from showhow.db.runs import attempts, comparisons
from showhow.db.runs.comparisons import ScoredAttempt
from showhow.db.traces.model_calls import load_skill_prompt
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.traces.traces import load_trace
from showhow.evaluation.metrics.metric import list_aliases
from showhow.fewshot_library.formats.chat import CHAT_FIELDS, TraceMessage, trace_to_messages
from showhow.fewshot_library.formats.format import ExportLosses, TraceExport, lost_fields
from showhow.fewshot_library.formats.inspect_log import encode_message, write_log
from showhow.fewshot_library.formats.training_conversations import Conversation, calls_skills, trace_to_conversations

LOG_VERSION = 2
OWN = "showhow"
"""The key of Showhow's own values in the metadata of a log, a sample and a score."""
NO_MODEL = "none/none"
"""Inspect's name of a model for a run without one."""
QUESTION_FIELDS = ("source_id", "dataset", "split", "kind", "gold_answers", "decomposition", "details")
RUN_FIELDS = ("reasoner", "world", "title", "note")
SPEC_FIELDS = ("world_hash", "code_version", "options", "library", "skills", "repetitions")
USAGE_FIELDS = ("input_tokens", "output_tokens", "unreported_calls", "token_bound", "cost", "cost_bound")
STORED_FIELDS = {
    *CHAT_FIELDS,
    *(f"question.{name}" for name in QUESTION_FIELDS),
    *("project.name", "project.world", "trace.started_at", "trace.submitted_at", "trace.wall_seconds", "trace.cost"),
    *("trace.reasoner", "trace.status", "trace.run_id", "trace.result"),
}
"""The fields of a trace that a log of Showhow holds; its result is what its answer and metadata say."""
OUTER_FIELDS = CHAT_FIELDS - {"trace.final_answer"}
"""Those of them that are not held of a method that calls skills."""
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
    spec = run.spec
    own = {name: getattr(run, name) for name in RUN_FIELDS} | {name: getattr(spec, name) for name in SPEC_FIELDS}
    created = run.started_at.isoformat()
    return {
        "version": LOG_VERSION,
        "status": "started" if run.finished_at is None else "success",
        "eval": {
            "eval_id": str(run.id),
            "run_id": str(run.id),
            "created": created,
            "task": str(spec.details.get("imported_as") or f"{run.reasoner} over {run.world}"),
            "task_id": str(run.id),
            "task_version": 0,
            "solver": run.reasoner,
            "solver_args": dict(spec.options),
            "dataset": {"samples": len(sample_ids), "sample_ids": list(sample_ids)},
            "model": spec.model or NO_MODEL,
            "config": {"epochs": spec.repetitions},
            "packages": {OWN: spec.code_version} if spec.code_version else {},
            "metadata": {OWN: own},
        },
        "plan": {"name": "plan", "steps": [{"solver": run.reasoner, "params": dict(spec.options)}]},
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
            is_of_skills = calls_skills(record)
            losses.lost.update(lost_fields(record, STORED_FIELDS - (OUTER_FIELDS if is_of_skills else set())))
            if len(record.question.gold_answers) > 1:
                losses.lost[JOINED_TARGETS] += 1
            losses.written += 1
            export = TraceExport([], find_prompt=partial(load_skill_prompt, session))
            sample = _encode_sample(record, scored, ids[attempt.question_id], run.spec.model)
            if is_of_skills:
                # What its model was sent are events; between them the method worked, not the model.
                conversations, _ = trace_to_conversations(record, export)
                events = [_encode_event(chat, record, run.spec.model) for chat in conversations]
                sample |= {"messages": [sample["messages"][0], _encode_answer(record)], "events": events}
            yield sample


def _encode_answer(record: TraceRecord) -> dict[str, Any]:
    return encode_message(TraceMessage("assistant", record.trace.final_answer or ""))


def _encode_event(conversation: Conversation, record: TraceRecord, model: str | None) -> dict[str, Any]:
    """A conversation as a request to the model and its reply."""
    *prompt, reply = map(encode_message, conversation.messages)
    name = model or NO_MODEL
    return {
        "event": "model",
        "timestamp": record.trace.started_at.isoformat(),
        "working_start": 0.0,
        "model": name,
        "input": prompt,
        "tools": [],
        "tool_choice": "none",
        "config": {},
        "output": {"model": name, "choices": [{"message": reply, "stop_reason": "stop"}]},
    }


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
