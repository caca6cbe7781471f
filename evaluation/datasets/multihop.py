"""Reads questions of HotpotQA and 2WikiMultihopQA, and of worlds made from the latter, with `hops` and `needs`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.datasets.record import QuestionFormat, QuestionRecord, parse_aliases
from worlds.importers.files import MalformedFile, read_json_list, require_storable_text, require_text_field

# Fields stored elsewhere: the paragraphs as articles of a world, the others in fields of QuestionRecord.
CONSUMED_FIELDS = {"_id", "id", "question", "answer", "answer_id", "type", "hops", "context"}
RENAMED_FIELDS = {"subject_qid": "subject_id", "object_qid": "object_id"}


def read_multihop(file: Path) -> Iterator[QuestionRecord]:
    """Read a JSON list with a question in each record."""
    for place, record in enumerate(read_json_list(file), 1):
        if not isinstance(record, dict):
            raise MalformedFile(file, None, f"record {place} is not a JSON object")
        yield _parse_record(record, file, place)


def _parse_record(record: dict[str, Any], file: Path, place: int) -> QuestionRecord:
    missing = [
        name for name in ("question", "answer") if not isinstance(record.get(name), str) or not record[name].strip()
    ]
    if missing:
        raise MalformedFile(file, None, f"record {place} has no text under {' and '.join(map(repr, missing))}")
    source = record.get("_id", record.get("id"))
    entity = record.get("answer_id")
    gold: dict[str, Any] = {
        "text": require_text_field(record, "answer", file, None),
        "entity": str(entity) if entity else None,
    }
    aliases = parse_aliases(record.get("answer_aliases"))
    if aliases:
        gold["aliases"] = [require_storable_text(alias, file, None) for alias in aliases]
    return QuestionRecord(
        text=require_text_field(record, "question", file, None).strip(),
        source_id=str(source) if source is not None else None,
        dataset="2wikimultihopqa" if "evidences" in record or "hops" in record else "hotpotqa",
        kind=record["type"] if isinstance(record.get("type"), str) else None,
        gold_answers=[gold],
        decomposition=_parse_hops(record, file, place),
        details={
            name: value
            for name, value in record.items()
            if name not in CONSUMED_FIELDS and not (name == "answer_aliases" and aliases is not None)
        },
    )


def _parse_hops(record: dict[str, Any], file: Path, place: int) -> list[dict[str, Any]]:
    """The hops of the record, or those of 2WikiMultihopQA's evidences."""
    if record.get("hops") is None:
        return _parse_evidences(record, file, place)
    hops = record["hops"]
    if not isinstance(hops, list) or not all(isinstance(hop, dict) for hop in hops):
        raise MalformedFile(file, None, f"record {place} has 'hops' that are not a list of objects")
    return [{RENAMED_FIELDS.get(name, name): value for name, value in hop.items()} for hop in hops]


def _parse_evidences(record: dict[str, Any], file: Path, place: int) -> list[dict[str, Any]]:
    evidences = record.get("evidences")
    if not isinstance(evidences, list | None):
        raise MalformedFile(file, None, f"record {place} has 'evidences' that are not a list")
    hops = []
    for evidence in evidences or []:
        match evidence:
            case [str(subject), str(relation), str(target)]:
                ends = {"subject": subject, "subject_id": None, "object": target, "object_id": None}
                hops.append({**ends, "relation": relation, "pid": None})
            case _:
                raise MalformedFile(
                    file, None, f"record {place} has an evidence that is not [subject, relation, object]"
                )
    return hops


def _is_json_list(_: str, line: str) -> bool:
    return line.lstrip().startswith("[")


TWO_WIKI = QuestionFormat("2wiki", read_multihop, _is_json_list)
HOTPOTQA = QuestionFormat("hotpotqa", read_multihop)
