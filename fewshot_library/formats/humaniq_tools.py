"""HumanIQ's tools and ours: names, and the one line of input against named arguments."""

import json
import re
from dataclasses import dataclass
from typing import Any

OURS = {
    "WikiSearch": "wikisearch",
    "WikiSearchSummary": "wikisearch",
    "GetWikidataID": "getWikiDataID",
    "GenerateSparql": "generateQuery",
    "RunSparql": "runQuery",
    "GetLabel": "getLabel",
}
# Of two names for one tool, the first is written.
THEIRS = {ours: theirs for theirs, ours in reversed(OURS.items())}
ARGUMENTS = {
    "wikisearch": ("query",),
    "getWikiDataID": ("title",),
    "generateQuery": ("question", "entity_ids"),
    "runQuery": ("sparql",),
    "getLabel": ("ids",),
}
_IDS_ONLY = re.compile(r"[\s\[\]'\",]*[QP]\d+(?:[\s\[\]'\",]+[QP]\d+)*[\s\[\]'\",]*")
_ASKED_WITH_IDS = re.compile(r"(.+?) # (\[[^\[\]]*\])", re.DOTALL)
_ID = re.compile(r"[QP]\d+")


@dataclass(frozen=True, slots=True)
class Call:
    """A call in our words; one of a tool that we do not have keeps its name and its input."""

    tool: str
    arguments: dict[str, Any]


def to_ours(tool: str, text: str | None, question: str) -> Call:
    """The call that HumanIQ wrote as a tool's name and a line of input."""
    ours = OURS.get(tool, tool)
    if text is None:
        return Call(ours, {})
    named = _named(text)
    if named is not None and (ours not in ARGUMENTS or named.keys() <= set(ARGUMENTS[ours])):
        return Call(ours, named)
    if ours == "generateQuery":
        return Call(ours, _asked(text, question))
    if ours == "getLabel":
        return Call(ours, {"ids": _ID.findall(text) if _IDS_ONLY.fullmatch(text) else [text]})
    return Call(ours, {ARGUMENTS[ours][0] if ours in ARGUMENTS else "input": text})


def _named(text: str) -> dict[str, Any] | None:
    """The arguments of an input that is a JSON object, as calls are written that a plain line cannot tell."""
    try:
        found = json.loads(text) if text.startswith("{") else None
        written = json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    # What no database keeps as data stays the plain line that it is: NaN and half a surrogate pair above, NUL here.
    return found if isinstance(found, dict) and rb"\u0000" not in written else None


def _asked(text: str, question: str) -> dict[str, Any]:
    if _IDS_ONLY.fullmatch(text):
        return {"question": question, "entity_ids": _ID.findall(text)}
    both = _ASKED_WITH_IDS.fullmatch(text)
    if both:
        return {"question": both[1], "entity_ids": _ID.findall(both[2])}
    return {"question": text, "entity_ids": []}


def to_theirs(tool: str, arguments: dict[str, Any], question: str) -> tuple[str, str | None]:
    """The tool's name and its line of input as HumanIQ writes them; None for a call without arguments."""
    name = THEIRS.get(tool, tool)
    if not arguments:
        return name, None
    line = _line(arguments, question)
    # A plain line has no place for white space round it.
    if line is None or line != line.strip() or to_ours(name, line, question).arguments != arguments:
        line = json.dumps(arguments, ensure_ascii=False)
    return name, line


def _line(arguments: dict[str, Any], question: str) -> str | None:
    """The plain line that may tell these arguments."""
    match arguments:
        case {"question": str(asked), "entity_ids": list(ids)}:
            listed = f"[{', '.join(map(str, ids))}]"
            if not ids:
                return asked
            return listed if asked == question else f"{asked} # {listed}"
        case {"ids": list(ids)}:
            return f"[{', '.join(map(str, ids))}]"
    only = next(iter(arguments.values()))
    return only if isinstance(only, str) else None
