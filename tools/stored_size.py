"""The size of what a step stores: an observation that is larger is cut, and says so; the world still has the whole.

The data then have "cut": [{"pointer", "stored", "total"}], one for each list (items) or text (characters) that was cut.
"""

import json
from collections.abc import Mapping
from typing import Any

MAX_STORED_TEXT_CHARACTERS = 100_000
MAX_STORED_DATA_CHARACTERS = 1_000_000
"""Maximum length of the data as JSON."""
MAX_STORED_VALUE_CHARACTERS = 20_000
"""Maximum length of one text in data that are too long as a whole."""
_MAX_CUTS = 20
"""Cuts of single texts that are listed."""
Cut = dict[str, Any]


def bound_text(text: str) -> str:
    """The text, cut at MAX_STORED_TEXT_CHARACTERS with a note."""
    excess = len(text) - MAX_STORED_TEXT_CHARACTERS
    if excess <= 0:
        return text
    return (
        f"{text[:MAX_STORED_TEXT_CHARACTERS]}\n… cut at {MAX_STORED_TEXT_CHARACTERS:,} characters; {excess:,} more "
        "were not stored."
    )


def bound_data(data: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The data within MAX_STORED_DATA_CHARACTERS, and a sentence for each part that was cut."""
    if _json_length(data) <= MAX_STORED_DATA_CHARACTERS:
        return data, []
    cuts: list[Cut] = []
    bounded: dict[str, Any] = _cut_texts(data, "", cuts)
    lengths = {field: _json_length(value) for field, value in bounded.items()}
    for field in sorted(lengths, key=lengths.__getitem__, reverse=True):
        excess = sum(lengths.values()) - MAX_STORED_DATA_CHARACTERS
        if excess <= 0:
            break
        value, available = bounded[field], max(0, lengths[field] - excess)
        if not isinstance(value, list):
            cuts.append({"pointer": f"/{field}", "stored": 0, "total": lengths[field]})
            del bounded[field]
            lengths[field] = 0
            continue
        stored = _fitting_items(value, available)
        cuts.append({"pointer": f"/{field}", "stored": stored, "total": len(value)})
        bounded[field] = value[:stored]
        lengths[field] = available
    texts = [cut for cut in cuts if cut["pointer"].count("/") > 1]
    lists = [cut for cut in cuts if cut["pointer"].count("/") == 1]
    return {**bounded, "cut": [*lists, *texts[:_MAX_CUTS]]}, [*map(_describe_cut, lists), *_describe_texts(texts)]


def cut_total(data: Mapping[str, Any], field: str) -> int | None:
    """How many items the list had before it was cut; None if it was not cut."""
    cuts = data.get("cut")
    totals = [cut["total"] for cut in cuts if cut["pointer"] == f"/{field}"] if isinstance(cuts, list) else []
    return totals[0] if totals else None


def _json_length(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _cut_texts(value: Any, pointer: str, cuts: list[Cut]) -> Any:
    """The value with every text cut at MAX_STORED_VALUE_CHARACTERS."""
    if isinstance(value, str) and len(value) > MAX_STORED_VALUE_CHARACTERS:
        cuts.append({"pointer": pointer, "stored": MAX_STORED_VALUE_CHARACTERS, "total": len(value)})
        return f"{value[:MAX_STORED_VALUE_CHARACTERS]} …"
    if isinstance(value, dict):
        return {
            key: _cut_texts(inner, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", cuts)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_cut_texts(inner, f"{pointer}/{index}", cuts) for index, inner in enumerate(value)]
    return value


def _fitting_items(items: list[Any], available: int) -> int:
    """How many of the first items fit into that many characters."""
    for count, item in enumerate(items):
        available -= _json_length(item) + 2
        if available < 0:
            return count
    return len(items)


def _describe_cut(cut: Cut) -> str:
    name = cut["pointer"][1:]
    if not cut["stored"]:
        return f"{name} is too long to be stored with this step."
    return f"Only the first {cut['stored']:,} of {cut['total']:,} {name} are stored with this step; the world has all."


def _describe_texts(texts: list[Cut]) -> list[str]:
    if not texts:
        return []
    counted = "one text was" if len(texts) == 1 else f"{len(texts):,} texts were"
    return [f"Of the data stored with this step, {counted} cut at {MAX_STORED_VALUE_CHARACTERS:,} characters."]
