"""Reads what the hub says of a data set beside its rows: the names of the classes whose numbers a column holds."""

from collections.abc import Mapping, Sequence
from typing import Any

ClassLabels = Mapping[str, Sequence[str]]
"""The names of the classes whose numbers columns hold, by column."""


def read_class_labels(info: Any) -> ClassLabels:
    """The classes in the features of a data set of the hub, as its viewer or its files describe them."""
    features = info.get("features") if isinstance(info, dict) else None
    if isinstance(features, list):
        features = {str(row.get("name")): row.get("type") for row in features if isinstance(row, dict)}
    classes = features.items() if isinstance(features, dict) else ()
    return {name: kind["names"] for name, kind in classes if isinstance(kind, dict) and isinstance(kind.get("names"), list)}


def name_classes(record: Any, labels: ClassLabels) -> Any:
    """The record, or the row in it that the hub's viewer numbers, with the names of classes in place of their numbers."""
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
