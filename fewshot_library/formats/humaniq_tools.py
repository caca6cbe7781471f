"""HumanIQ's tools and ours: names, and the one line of input against named arguments."""

import json
import re
from dataclasses import dataclass
from typing import Any

OURS = {
    "WikiSearch": "wikisearch",
    "GetWikidataID": "getWikiDataID",
    "GenerateSparql": "generateQuery",
    "RunSparql": "runQuery",
    "GetLabel": "getLabel",
}
THEIRS = {ours: theirs for theirs, ours in OURS.items()}
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
    ours = OURS.get(tool)
    if text is None:
        return Call(ours or tool, {})
    if ours is None:
        return Call(tool, _other(text))
    if ours == "generateQuery":
        asked = _ASKED_WITH_IDS.fullmatch(text)
        if _IDS_ONLY.fullmatch(text):
            return Call(ours, {"question": question, "entity_ids": _ID.findall(text)})
        return Call(
            ours,
            {"question": asked[1], "entity_ids": _ID.findall(asked[2])}
            if asked
            else {"question": text, "entity_ids": []},
        )
    if ours == "getLabel":
        return Call(ours, {"ids": _ID.findall(text) if _IDS_ONLY.fullmatch(text) else [text]})
    return Call(ours, {{"wikisearch": "query", "getWikiDataID": "title", "runQuery": "sparql"}[ours]: text})


def _other(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"input": text}


def to_theirs(tool: str, arguments: dict[str, Any], question: str) -> tuple[str, str | None]:
    """The tool's name and its line of input as HumanIQ writes them; None for a call without arguments."""
    name = THEIRS.get(tool, tool)
    if not arguments:
        return name, None
    if tool == "generateQuery" and arguments.keys() == {"question", "entity_ids"}:
        ids = _listed(arguments["entity_ids"])
        if not arguments["entity_ids"]:
            return name, str(arguments["question"])
        return name, ids if arguments["question"] == question else f"{arguments['question']} # {ids}"
    if tool == "getLabel" and arguments.keys() == {"ids"}:
        return name, _listed(arguments["ids"])
    only = next(iter(arguments.values()))
    if len(arguments) == 1 and isinstance(only, str) and to_ours(name, only, question).arguments == arguments:
        return name, only
    return name, json.dumps(arguments, ensure_ascii=False)


def _listed(ids: Any) -> str:
    return f"[{', '.join(map(str, ids))}]" if isinstance(ids, list) else str(ids)
