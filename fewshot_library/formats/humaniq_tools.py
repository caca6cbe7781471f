"""HumanIQ's tools and ours: names, and the one line of input against named arguments."""

import json
import re
from dataclasses import dataclass
from typing import Any

SHOWHOW_TOOL_NAMES = {
    "WikiSearch": "wikisearch",
    "WikiSearchSummary": "wikisearch",
    "GetWikidataID": "getWikiDataID",
    "GenerateSparql": "generateQuery",
    "RunSparql": "runQuery",
    "GetLabel": "getLabel",
}
# Of two names for one tool, the first is written.
HUMANIQ_TOOL_NAMES = {ours: theirs for theirs, ours in reversed(SHOWHOW_TOOL_NAMES.items())}
ARGUMENT_NAMES = {
    "wikisearch": ("query",),
    "getWikiDataID": ("title",),
    "generateQuery": ("question", "entity_ids"),
    "runQuery": ("sparql",),
    "getLabel": ("ids",),
    "websearch": ("query",),
}
_IDS_ONLY = re.compile(r"[\s\[\]'\",]*[QP]\d+(?:[\s\[\]'\",]+[QP]\d+)*[\s\[\]'\",]*")
_QUESTION_WITH_IDS = re.compile(r"(.+?) # (\[[^\[\]]*\])", re.DOTALL)
_ENTITY_ID = re.compile(r"[QP]\d+")


@dataclass(frozen=True, slots=True)
class ConvertedCall:
    """A call in our words; one of a tool that we do not have keeps its name and its input."""

    tool: str
    arguments: dict[str, Any]


def from_humaniq_call(tool: str, text: str | None, question: str) -> ConvertedCall:
    """The call that HumanIQ wrote as a tool's name and a line of input."""
    ours = SHOWHOW_TOOL_NAMES.get(tool, tool)
    return ConvertedCall(ours, parse_input_line(ours, text, question))


def parse_input_line(tool: str, text: str | None, question: str) -> dict[str, Any]:
    """The arguments that a line of input gives to a tool of ours, or to one that we do not have."""
    if text is None:
        return {}
    named = _parse_json_input(text)
    if named is not None and (tool not in ARGUMENT_NAMES or named.keys() <= set(ARGUMENT_NAMES[tool])):
        return named
    if tool == "generateQuery":
        return _parse_query_input(text, question)
    if tool == "getLabel":
        return {"ids": _ENTITY_ID.findall(text) if _IDS_ONLY.fullmatch(text) else [text]}
    return {ARGUMENT_NAMES[tool][0] if tool in ARGUMENT_NAMES else "input": text}


def _parse_json_input(text: str) -> dict[str, Any] | None:
    """The arguments of an input that is a JSON object, as calls are written that a plain line cannot tell."""
    try:
        value = json.loads(text) if text.startswith("{") else None
        written = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    # What no database keeps as data stays the plain line that it is: NaN and half a surrogate pair above, NUL here.
    return value if isinstance(value, dict) and rb"\u0000" not in written else None


def _parse_query_input(text: str, question: str) -> dict[str, Any]:
    if _IDS_ONLY.fullmatch(text):
        return {"question": question, "entity_ids": _ENTITY_ID.findall(text)}
    both = _QUESTION_WITH_IDS.fullmatch(text)
    if both:
        return {"question": both[1], "entity_ids": _ENTITY_ID.findall(both[2])}
    return {"question": text, "entity_ids": []}


def to_humaniq_call(tool: str, arguments: dict[str, Any], question: str) -> tuple[str, str | None]:
    """The tool's name and its line of input as HumanIQ writes them; None for a call without arguments."""
    return HUMANIQ_TOOL_NAMES.get(tool, tool), format_input_line(tool, arguments, question)


def format_input_line(tool: str, arguments: dict[str, Any], question: str) -> str | None:
    """The line of input that gives the arguments; None where there are none."""
    if not arguments:
        return None
    line = _plain_input_line(arguments, question)
    # A plain line has no place for white space round it.
    if (
        line is None
        or line != line.strip()
        or parse_input_line(SHOWHOW_TOOL_NAMES.get(tool, tool), line, question) != arguments
    ):
        line = json.dumps(arguments, ensure_ascii=False)
    return line


def _plain_input_line(arguments: dict[str, Any], question: str) -> str | None:
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
