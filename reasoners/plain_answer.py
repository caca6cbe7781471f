"""An answer without what models write round it: bold marks, quotes, a fence, a box, JSON."""

import json
import re
from typing import Any

_BOXED = re.compile(r"\$?\\boxed\{(.*)\}\$?", re.DOTALL)
_QUOTED = re.compile(r"([\"'`“])([^\"'`”]*)[\"'`”]")
_ANSWERS = ("answer", "final_answer", "answers")


def plain_answer(written: str) -> str:
    """The answer itself; several that stand in a JSON list come with commas between."""
    text = re.sub(r"\A```\w*\n|\n?```\Z", "", written.strip()).strip().strip("*").strip()
    boxed = _BOXED.fullmatch(text)
    if boxed:
        text = boxed[1].strip()
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return quoted[2].strip()
    return _from_json(text) if text[:1] in ("{", "[") else text


def _from_json(text: str) -> str:
    """The answer that a JSON object or list holds; the text as it stands where that cannot be told."""
    try:
        found = _held(json.loads(text))
    except (ValueError, RecursionError):
        return text
    return text if found is None else found


def _held(value: Any) -> str | None:
    if isinstance(value, dict):
        only = next(iter(value.values())) if len(value) == 1 else None
        return _held(next((value[name] for name in _ANSWERS if name in value), only))
    if isinstance(value, list):
        parts = [_held(each) for each in value]
        return ", ".join(filter(None, parts)) if all(parts) else None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, str | int | float) else None
