"""The published logs of HumanIQ's agent: model runs, each a question with the text that the agent produced."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid5

from db.models import Run
from db.record import TraceRecord
from fewshot_library.formats.format import Format, Refused, json_records, unstorable
from fewshot_library.formats.humaniq_record import KEYS, MOMENT, WORLD, Source, record_of
from fewshot_library.formats.react_text import Told, parse

KNOWN = {"question", "wikidata_answer", "final_answer", "error", "intermediate_logs"}
MODEL_KNOWS = ", Internal Knowledge:"


def read(path: Path) -> Iterator[TraceRecord | Refused]:
    """The runs in order, failed ones with their error; a record that tells no run is refused with the reason."""
    dataset = path.stem.partition("_")[0].capitalize()
    run = Run(
        id=uuid5(KEYS, path.stem),
        name=path.stem,
        reasoner="humaniq",
        world=WORLD,
        configuration={"file": path.name},
        started_at=MOMENT,
        finished_at=MOMENT,
    )
    for number, raw in enumerate(json_records(path), start=1):
        reason = _unreadable(raw)
        yield Refused(f"record {number}", reason) if reason else _record(raw, dataset, run)


def _unreadable(raw: Any) -> str | None:
    if not isinstance(raw, dict):
        return f"it is no JSON object but a {type(raw).__name__}"
    if unknown := sorted(raw.keys() - KNOWN):
        return f"it has an unknown field {unknown[0]!r}"
    if not isinstance(raw.get("question"), str) or not raw["question"].strip():
        return "it has no question"
    odd = [name for name in sorted(KNOWN) if not isinstance(raw.get(name), str | None)]
    if odd:
        return f"its {odd[0]!r} is no text"
    if not raw.get("error") and not raw.get("intermediate_logs"):
        return "it has neither a log nor an error"
    return unstorable(raw)


def _record(raw: dict[str, Any], dataset: str, run: Run) -> TraceRecord:
    log = raw.get("intermediate_logs") or ""
    told = parse(log)
    answer_model = _split_knowledge(told)
    answer = (raw.get("wikidata_answer") or raw.get("final_answer") or "").strip()
    remembered = {"answer": answer} if answer and answer not in log else {}
    failed = bool(raw.get("error")) or told.final_answer is None
    if failed:
        remembered["error"] = raw.get("error") or "the log ends without a final answer"
    fields = {
        "run_id": run.id,
        "reasoner": run.reasoner,
        "status": "failed" if failed else "submitted",
        "answer_model": answer_model,
    }
    source = Source(dataset, raw["question"].strip(), f"{run.name}\n{log}\n{raw.get('error') or ''}", remembered)
    record = record_of(told, source, fields)
    record.run = run
    return record


def _split_knowledge(told: Told) -> str | None:
    """What the model knew without a source, which the logs append to the last part."""
    last = "response" if told.response is not None else "final_answer"
    said, found, knowledge = (getattr(told, last) or "").rpartition(MODEL_KNOWS)
    if not found:
        return None
    setattr(told, last, said.strip())
    return knowledge.strip()


HUMANIQ_RUNS = Format(
    "humaniq-runs",
    "the published logs of HumanIQ's agent",
    lambda head: "[].intermediate_logs" in head.keys,
    read,
)
