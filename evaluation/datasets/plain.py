"""Reads questions in JSON Lines or CSV with common field names: `question` or `text`, `answer` or `answers`, `id`."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.datasets.record import QuestionFormat, QuestionRecord, parse_aliases
from evaluation.value_format import restore_cell
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
    """Read one question from each line."""
    for line, record in iter_json_objects(file):
        yield parse_question(record, file, line)


def read_csv(file: Path) -> Iterator[QuestionRecord]:
    """Read one question from each row under a header; a | separates several answers."""
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
            cells = zip(header, map(restore_cell, row), strict=True)
            record: dict[str, Any] = {name: cell for name, cell in cells if cell.strip()}
            for name in ANSWER_NAMES:
                if name in record:
                    record[name] = [part.strip() for part in str(record[name]).split("|") if part.strip()]
            yield parse_question(record, file, reader.line_num)
    except csv.Error as error:
        raise MalformedFile(file, reader.line_num, f"invalid CSV: {error}") from error


def _check_header(names: list[str], file: Path) -> list[str]:
    if not any(name in names for name in TEXT_NAMES):
        raise MalformedFile(file, 1, f"no column is called {' or '.join(TEXT_NAMES)}")
    if len(set(names)) != len(names):
        raise MalformedFile(file, 1, "two columns have the same name")
    return names


def parse_question(record: dict[str, Any], file: Path, line: int | None) -> QuestionRecord:
    """Read one record of a file; MalformedFile names what is missing or of the wrong type."""
    name = next((name for name in TEXT_NAMES if name in record), TEXT_NAMES[0])
    consumed = {name}
    source = next((field for field in ID_NAMES if isinstance(record.get(field), str | int)), None)
    answers = next((field for field in ANSWER_NAMES if record.get(field) is not None), None)
    consumed |= {field for field in (source, answers) if field}
    own: dict[str, Any] = {}
    for field in METADATA_NAMES:
        if record.get(field) is not None:
            own[field] = require_text_field(record, field, file, line)
            consumed.add(field)
    if _is_hop_list(record.get("decomposition")):
        own["decomposition"] = record["decomposition"]
        consumed.add("decomposition")
    gold_answers = _parse_answers(record[answers], file, line) if answers else []
    aliases = parse_aliases(record.get("answer_aliases"))
    if aliases is not None and len(gold_answers) == 1:
        consumed.add("answer_aliases")
        _add_aliases(gold_answers[0], aliases, file, line)
    return QuestionRecord(
        text=require_text_field(record, name, file, line).strip(),
        source_id=str(record[source]) if source else None,
        gold_answers=gold_answers,
        details={field: value for field, value in record.items() if field not in consumed},
        **own,
    )


def _is_hop_list(value: Any) -> bool:
    # A decomposition into texts of questions, as in some data sets, stays in the details.
    return isinstance(value, list) and all(isinstance(hop, dict) for hop in value)


def _parse_answers(value: Any, file: Path, line: int | None) -> list[dict[str, Any]]:
    gold_answers = []
    for answer in value if isinstance(value, list) else [value]:
        entity, aliases = None, None
        match answer:
            case bool():
                text = "yes" if answer else "no"
            case str() | int() | float():
                text = str(answer)
            case {"text": str(text), **rest}:
                entity = rest.get("entity") or rest.get("id")
                aliases = parse_aliases(rest.get("aliases"))
            case _:
                raise MalformedFile(file, line, "an answer is not a text, a number or an object with a 'text'")
        if not text.strip():
            raise MalformedFile(file, line, "an answer is blank; leave the field out if there is no answer")
        gold: dict[str, Any] = {
            "text": require_storable_text(text, file, line),
            "entity": str(entity) if entity else None,
        }
        _add_aliases(gold, aliases or [], file, line)
        gold_answers.append(gold)
    return gold_answers


def _add_aliases(gold: dict[str, Any], aliases: list[str], file: Path, line: int | None) -> None:
    if aliases:
        gold["aliases"] = [require_storable_text(alias, file, line) for alias in aliases]


def _is_csv(name: str, _: str) -> bool:
    return name.endswith(".csv")


JSONL = QuestionFormat("jsonl", read_jsonl)
CSV = QuestionFormat("csv", read_csv, _is_csv)
