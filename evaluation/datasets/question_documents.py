"""Finds the questions in a JSON document: in a list, by id or split, by column, in articles; and names classes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from showhow.evaluation.datasets.record import TEXT_NAMES
from showhow.worlds.input_files import restore_rows

LIST_NAMES = ("questions", "Questions", "data", "Data", "rows")
"""The fields of a JSON document that may hold its list of questions."""


def find_list_name(document: Any) -> str | None:
    """The field of an object that holds its questions, or another object with them."""
    fields = document if isinstance(document, dict) else {}
    if name := next((name for name in LIST_NAMES if isinstance(fields.get(name), list | dict)), None):
        return name
    lists = [name for name, value in fields.items() if isinstance(value, list) and any(map(_is_question, value[:1]))]
    return lists[0] if len(lists) == 1 else None


def list_rows(document: Any) -> list[Any] | None:
    """The rows of an object with a list, or an object by row number, for each column; None for any other value."""
    columns = document if isinstance(document, dict) else {}
    texts = next((columns[name] for name in TEXT_NAMES if name in columns), None)
    if isinstance(texts, dict) and all(isinstance(column, dict) for column in columns.values()):
        return [{name: column.get(key) for name, column in columns.items()} for key in texts]
    rows = restore_rows(columns) if isinstance(texts, list) else None
    return rows if isinstance(rows, list) and all(map(_is_question, rows)) else None


def _is_question(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(name), str) for name in TEXT_NAMES)


def iter_records_by_id(document: dict[str, Any], split: dict[str, str] | None = None) -> Iterator[Any]:
    """The records, each with its id; of an object for each split, each also with the split's name."""
    for key, value in document.items():
        if split is None and not _is_question(value) and has_records_by_id(value):
            yield from iter_records_by_id(value, {"split": key})
        else:
            yield {"id": key} | (split or {}) | value


def has_records_by_id(document: Any) -> bool:
    """Whether an object has a record for each id, as DROP's files do."""
    return (
        isinstance(document, dict) and len(document) > 0 and all(isinstance(value, dict) for value in document.values())
    )


def list_questions(record: Any) -> Iterator[Any]:
    """The record, or the questions of an article in the form of SQuAD's or DROP's files, each with its paragraph."""
    pairs = record.get("qa_pairs") if isinstance(record, dict) else None
    if isinstance(pairs, list):
        shared = {"section_id": record.get("id"), "passage": record.get("passage")}
        yield from (shared | pair if isinstance(pair, dict) else pair for pair in pairs)
        return
    paragraphs = record.get("paragraphs") if isinstance(record, dict) else None
    if not isinstance(paragraphs, list) or not all(isinstance(p, dict) and "qas" in p for p in paragraphs):
        yield record
        return
    for paragraph in paragraphs:
        shared = {"title": record.get("title"), "context": paragraph.get("context")}
        questions = paragraph["qas"] if isinstance(paragraph["qas"], list) else [paragraph["qas"]]
        yield from (shared | question if isinstance(question, dict) else question for question in questions)


ClassLabels = Mapping[str, Sequence[str]]
"""The names of the classes whose numbers columns hold, by column."""


def read_class_labels(info: Any) -> ClassLabels:
    """The classes in the features of a data set of the hub, as its viewer or its files describe them."""
    features = info.get("features") if isinstance(info, dict) else None
    if isinstance(features, list):
        features = {str(row.get("name")): row.get("type") for row in features if isinstance(row, dict)}
    classes = features.items() if isinstance(features, dict) else ()
    return {
        name: kind["names"] for name, kind in classes if isinstance(kind, dict) and isinstance(kind.get("names"), list)
    }


def name_classes(record: Any, labels: ClassLabels) -> Any:
    """The record, or the row in it that the hub's viewer numbers, with the names of classes, not their numbers."""
    if isinstance(record, dict) and isinstance(record.get("row"), dict) and "row_idx" in record:
        record = record["row"]
    if not isinstance(record, dict) or not labels:
        return record
    return {
        name: labels[name][value]
        if name in labels and isinstance(value, int) and 0 <= value < len(labels[name])
        else value
        for name, value in record.items()
    }
