"""Files of predictions and of gold records: their rows, and how they are joined.

A file is JSON Lines, a JSON list of rows, or a JSON object {id: prediction}; a gold file may be a table too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rapidfuzz.distance import Levenshtein

from showhow.evaluation.datasets import read_questions
from showhow.evaluation.datasets.layouts import open_table
from showhow.evaluation.datasets.text_answers import restore_columns
from showhow.evaluation.metrics.metric import ANSWER_FIELDS, MetricError
from showhow.worlds import terms
from showhow.worlds.input_files import MalformedFile, iter_json_objects, iter_nonblank_lines, parse_json, read_text_file

ID_FIELDS = ("id", "_id", "qid", "question_id", "QuestionId", "ID", "uid", "interaction_id", "source_id")
"""The fields that may hold a question's id, the first one first."""
JOIN_FIELDS = ("index", "question", "query")
"""The fields by which predictions without ids are joined with gold records."""
MIN_SIMILARITY = 0.5
"""Questions with the same index are the same from this Levenshtein similarity on."""
RECORD_LISTS = ("questions", "Questions", "predictions", "data")
"""The fields of a JSON object that may hold the list of rows or records."""
HOTPOTQA_PARTS = {"answer": "predicted", "sp": "supporting_facts", "evidence": "evidences"}
"""The parts of a file of predictions in the form of HotpotQA's script, and the names of rows for them."""


class PredictionFileError(MetricError):
    """Predictions or gold records cannot be scored; names the file, the line or row, and the cause."""

    def __init__(self, file: Path | str, place: str | None, reason: str) -> None:
        location = f"{file}, {place}" if place else str(file)
        super().__init__(f"{location}: {reason}. Nothing was scored; correct the file and score it again.")


@dataclass(frozen=True, slots=True)
class FileRow:
    """A record of a file; the place names its line or row."""

    place: str
    fields: dict[str, Any]


def read_rows(file: Path) -> list[FileRow]:
    records = _read_records(file)
    if isinstance(records, list):
        return records
    parts = {name: records[part] for part, name in HOTPOTQA_PARTS.items() if isinstance(records.get(part), dict)}
    by_id: dict[str, dict[str, Any]] = {}
    for name, part in (parts or {ANSWER_FIELDS[0]: records}).items():
        for question_id, value in part.items():
            by_id.setdefault(question_id, {"id": question_id})[name] = value
    return [FileRow(f"row {place}", fields) for place, fields in enumerate(by_id.values(), 1)]


def read_gold(file: Path) -> list[FileRow]:
    table = open_table(file)
    if table is not None:
        own = {"id": "source_id", "question": "text", "kind": "kind", "gold": "gold_answers"}
        questions = read_questions(file) if table.is_table else ()
        rows = [{name: getattr(one, field) for name, field in own.items()} | one.details for one in questions]
        return [FileRow(f"row {n}", restore_columns(row)) for n, row in enumerate(rows or table.sample(None), 1)]
    records = _read_records(file)
    if not isinstance(records, list):
        raise MalformedFile(file, None, f"it is an object without a list under {' or '.join(RECORD_LISTS)}")
    return [replace(row, fields=restore_columns(row.fields)) for row in records]


def _read_records(file: Path) -> list[FileRow] | dict[str, Any]:
    """The rows of JSON Lines or of a JSON list; an object that has neither rows nor the fields of one, as it is."""
    lines = iter_nonblank_lines(file)
    _, first = next(lines, (0, ""))
    is_single = next(lines, None) is None
    if not first:
        raise MalformedFile(file, None, "the file is empty")
    if first.lstrip().startswith("{") and not is_single and first.rstrip().endswith("}"):
        return [FileRow(f"line {line}", record) for line, record in iter_json_objects(file)]
    document = parse_json(read_text_file(file), file, None, unique_names=True)
    if isinstance(document, dict):
        lists = [document[name] for name in RECORD_LISTS if isinstance(document.get(name), list)]
        if not lists:
            is_row = any(name in document for name in (*ANSWER_FIELDS, *ID_FIELDS, "gold"))
            return [FileRow("line 1", document)] if is_row else document
        document = lists[0]
    if not isinstance(document, list):
        raise MalformedFile(file, None, "a JSON list or object is required")
    for place, record in enumerate(document, 1):
        if not isinstance(record, dict):
            raise MalformedFile(file, None, f"row {place} is not a JSON object")
    return [FileRow(f"row {place}", record) for place, record in enumerate(document, 1)]


def read_inline_gold(row: FileRow, file: Path) -> FileRow:
    if "gold" not in row.fields:
        raise PredictionFileError(file, row.place, "the field 'gold' is missing; name a gold file with --gold")
    gold = row.fields["gold"]
    return FileRow(row.place, gold if isinstance(gold, dict) else {"gold": gold})


def join_rows(
    rows: list[FileRow], file: Path, golds: list[FileRow], gold_file: Path
) -> list[tuple[FileRow | None, FileRow]]:
    fields = _choose_join_fields(rows, golds)
    if fields is None:
        reason = f"it has no id, question or index that the records of {gold_file} have too"
        raise PredictionFileError(file, rows[0].place, reason)
    row_field, gold_field = fields
    gold_keys = index_rows(golds, gold_field, gold_file)
    row_keys = index_rows(rows, row_field, file)
    for key, row in row_keys.items():
        if key not in gold_keys:
            raise PredictionFileError(
                file, row.place, f"the question with the {row_field} {key!r} is not in {gold_file}"
            )
        if row_field == "index":
            _require_same_question(row, gold_keys[key], file, gold_file)
    return [(row_keys.get(key), gold) for key, gold in gold_keys.items()]


def _require_same_question(row: FileRow, gold: FileRow, file: Path, gold_file: Path) -> None:
    """An index may be that of another file; published files differ in a few letters of the same question only."""
    question, gold_question = row.fields.get("question"), gold.fields.get("question")
    if not isinstance(question, str) or not isinstance(gold_question, str):
        return
    if Levenshtein.normalized_similarity(question, gold_question) < MIN_SIMILARITY:
        reason = f"its question is not that with the same index in {gold_file}, {gold.place}"
        raise PredictionFileError(file, row.place, reason)


def _choose_join_fields(rows: list[FileRow], golds: list[FileRow]) -> tuple[str, str] | None:
    """The field of the rows and that of the gold records that are equal for the same question; None if there is none.

    An index that several rows share, as in a file merged of several, is none; then the text of the question is.
    """
    row, gold = rows[0].fields, golds[0].fields
    row_id = find_id_field(row)
    if row_id is not None:
        gold_id = row_id if row_id in gold else find_id_field(gold)
        if gold_id is not None:
            return row_id, gold_id
    shared = [name for name in JOIN_FIELDS if isinstance(row.get(name), str | int) and name in gold]
    if shared[:1] == ["index"] and len({row.fields.get("index") for row in rows}) < len(rows):
        shared = shared[1:] or shared
    return (shared[0], shared[0]) if shared else None


def find_id_field(record: Mapping[str, Any]) -> str | None:
    return next((name for name in ID_FIELDS if record.get(name) is not None), None)


def index_rows(rows: list[FileRow], field: str | None, file: Path) -> dict[str, FileRow]:
    """The rows by the value of a field, or by their own id; PredictionFileError if it is missing or repeated."""
    by_key: dict[str, FileRow] = {}
    for row in rows:
        name = field or find_id_field(row.fields)
        value = row.fields.get(name) if name else None
        if not isinstance(value, str | int):
            raise PredictionFileError(file, row.place, f"the field {name!r} is missing or no text")
        if (first := by_key.setdefault(terms.strip_marks(str(value)), row)) is not row:
            raise PredictionFileError(file, row.place, f"the {name} {str(value)!r} is that of {first.place} too")
    return by_key
