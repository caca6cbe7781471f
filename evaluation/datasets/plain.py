"""Questions in JSON Lines or CSV: `question` or `text`, `answer` or `answers`, `id`, and what else there is."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.datasets.record import QuestionRecord
from worlds.importers.files import (
    MalformedFile,
    iter_json_objects,
    iter_lines,
    require_storable_text,
    require_text_field,
)

TEXT_NAMES = ("question", "text")
ANSWER_NAMES = ("answers", "answer", "gold_answers")
ID_NAMES = ("id", "_id", "qid", "question_id", "source_id")
METADATA_NAMES = ("dataset", "split", "kind")
MAX_CELL_CHARACTERS = 16 * 1024 * 1024


def read_jsonl(file: Path) -> Iterator[QuestionRecord]:
    """A question a line."""
    for line, record in iter_json_objects(file):
        yield parse_question(record, file, line)


def read_csv(file: Path) -> Iterator[QuestionRecord]:
    """A question a row under a header; several answers stand with | between them."""
    csv.field_size_limit(MAX_CELL_CHARACTERS)
    reader = csv.reader((text + "\n" for _, text in iter_lines(file)), strict=True)
    header: list[str] | None = None
    try:
        for row in reader:
            if not "".join(row).strip() and len(row) <= 1:
                continue
            if header is None:
                header = _check_header([name.strip().lower() for name in row], file)
                continue
            if len(row) != len(header):
                raise MalformedFile(file, reader.line_num, f"{len(row)} cells under {len(header)} columns")
            record: dict[str, Any] = {name: cell for name, cell in zip(header, row, strict=True) if cell.strip()}
            for name in ANSWER_NAMES:
                if name in record:
                    record[name] = [part.strip() for part in str(record[name]).split("|") if part.strip()]
            yield parse_question(record, file, reader.line_num)
    except csv.Error as wrong:
        raise MalformedFile(file, reader.line_num, f"no CSV: {wrong}") from wrong


def _check_header(names: list[str], file: Path) -> list[str]:
    if not any(name in names for name in TEXT_NAMES):
        raise MalformedFile(file, 1, f"no column is called {' or '.join(TEXT_NAMES)}")
    if len(set(names)) != len(names):
        raise MalformedFile(file, 1, "two columns have the same name")
    return names


def parse_question(record: dict[str, Any], file: Path, line: int | None) -> QuestionRecord:
    """The question that a record of a file is; MalformedFile for one that is none."""
    name = next((name for name in TEXT_NAMES if name in record), TEXT_NAMES[0])
    taken = {name}
    source = next((field for field in ID_NAMES if isinstance(record.get(field), str | int)), None)
    given = next((field for field in ANSWER_NAMES if record.get(field) is not None), None)
    taken |= {field for field in (source, given) if field}
    own: dict[str, Any] = {}
    for field in METADATA_NAMES:
        if record.get(field) is not None:
            own[field] = require_text_field(record, field, file, line)
            taken.add(field)
    if _is_hop_list(record.get("decomposition")):
        own["decomposition"] = record["decomposition"]
        taken.add("decomposition")
    return QuestionRecord(
        text=require_text_field(record, name, file, line).strip(),
        source_id=str(record[source]) if source else None,
        gold_answers=_parse_answers(record[given], file, line) if given else [],
        details={field: value for field, value in record.items() if field not in taken},
        **own,
    )


def _is_hop_list(given: Any) -> bool:
    # Some data sets decompose a question into questions: those are texts, and details.
    return isinstance(given, list) and all(isinstance(hop, dict) for hop in given)


def _parse_answers(given: Any, file: Path, line: int | None) -> list[dict[str, Any]]:
    found = []
    for answer in given if isinstance(given, list) else [given]:
        entity = None
        match answer:
            case bool():
                text = "yes" if answer else "no"
            case str() | int() | float():
                text = str(answer)
            case {"text": str(text), **rest}:
                entity = rest.get("entity") or rest.get("id")
            case _:
                raise MalformedFile(file, line, "an answer is no text, number, or object with a 'text'")
        if not text.strip():
            raise MalformedFile(file, line, "an answer is blank; leave the field out where there is none")
        found.append({"text": require_storable_text(text, file, line), "entity": str(entity) if entity else None})
    return found
