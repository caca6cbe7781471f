"""The published logs of HumanIQ's agent: runs of a model, each with its question and the agent's text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid5

from db.models import Run
from db.trace_record import TraceRecord
from fewshot_library.formats.format import RefusedRecord, TraceFormat, find_unstorable_field, read_json_list
from fewshot_library.formats.humaniq_record import (
    DEFAULT_TIMESTAMP,
    HUMANIQ_WORLD,
    UUID_NAMESPACE,
    TranscriptSource,
    transcript_to_record,
)
from fewshot_library.formats.react_text import ReactTranscript, parse_transcript

RUN_FIELDS = {"question", "wikidata_answer", "final_answer", "error", "intermediate_logs"}
MODEL_KNOWLEDGE_LABEL = ", Internal Knowledge:"


def read_runs(path: Path) -> Iterator[TraceRecord | RefusedRecord]:
    """Read the runs in order, failed ones with their error; an invalid record is refused with the reason."""
    dataset = path.stem.partition("_")[0].capitalize()
    run = Run(
        id=uuid5(UUID_NAMESPACE, path.stem),
        name=path.stem,
        reasoner="humaniq",
        world=HUMANIQ_WORLD,
        configuration={"file": path.name},
        started_at=DEFAULT_TIMESTAMP,
        finished_at=DEFAULT_TIMESTAMP,
    )
    for number, raw in enumerate(read_json_list(path), start=1):
        reason = _find_error(raw)
        yield RefusedRecord(f"record {number}", reason) if reason else _decode_run(raw, dataset, run)


def _find_error(raw: Any) -> str | None:
    if not isinstance(raw, dict):
        return f"it is not a JSON object but a {type(raw).__name__}"
    if unknown := sorted(raw.keys() - RUN_FIELDS):
        return f"it has an unknown field {unknown[0]!r}"
    if not isinstance(raw.get("question"), str) or not raw["question"].strip():
        return "it has no question"
    invalid = [name for name in sorted(RUN_FIELDS) if not isinstance(raw.get(name), str | None)]
    if invalid:
        return f"its {invalid[0]!r} is not a text"
    if not raw.get("error") and not raw.get("intermediate_logs"):
        return "it has neither a log nor an error"
    return find_unstorable_field(raw)


def _decode_run(raw: dict[str, Any], dataset: str, run: Run) -> TraceRecord:
    log = raw.get("intermediate_logs") or ""
    transcript = parse_transcript(log)
    answer_model = _split_model_knowledge(transcript)
    answer = (raw.get("wikidata_answer") or raw.get("final_answer") or "").strip()
    wording = {"answer": answer} if answer and answer not in log else {}
    failed = bool(raw.get("error")) or transcript.final_answer is None
    if failed:
        wording["error"] = raw.get("error") or "the log ends without a final answer"
    fields = {
        "run_id": run.id,
        "reasoner": run.reasoner,
        "status": "failed" if failed else "submitted",
        "answer_model": answer_model,
    }
    source = TranscriptSource(dataset, raw["question"].strip(), f"{run.name}\n{log}\n{raw.get('error') or ''}", wording)
    record = transcript_to_record(transcript, source, fields)
    record.run = run
    return record


def _split_model_knowledge(transcript: ReactTranscript) -> str | None:
    """Remove and return the model's own answer, which the logs append to the last part."""
    last = "response" if transcript.response is not None else "final_answer"
    answer, label, knowledge = (getattr(transcript, last) or "").rpartition(MODEL_KNOWLEDGE_LABEL)
    if not label:
        return None
    setattr(transcript, last, answer.strip())
    return knowledge.strip()


HUMANIQ_RUNS = TraceFormat(
    "humaniq-runs",
    "the published logs of HumanIQ's agent",
    lambda head: "[].intermediate_logs" in head.keys,
    read_runs,
)
