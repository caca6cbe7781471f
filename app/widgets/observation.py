"""How an observation is drawn: a tool's data becomes a view that the notebook knows.

How the structured answer of somebody else's tool is drawn: as a table where it is one, else line by line.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from db.models import Step
from reasoners.provenance import VALUE_FIELDS

View = dict[str, Any]

MAX_ROWS = 200
MAX_COLUMNS = 16
MAX_LINES = 400
MAX_NOTE_CHARACTERS = 2_000
_MAX_VALUE_LENGTH = 1_000
_FIELD_KINDS = {"entity": "entity", "id": "entity", "sparql": "query", "address": "address"}


def build_result_view(result: Any, text: str, attachments: Sequence[Mapping[str, Any]] = ()) -> View:
    """The view of a JSON value; what the tool said besides, and what came with it, is a note above it."""
    said = text.strip()
    # A tool that gives its answer twice, as data and as the same in JSON, says nothing besides.
    notes = (
        [said[:MAX_NOTE_CHARACTERS]]
        if said and not said.startswith(("{", "[")) and isinstance(result, list | dict)
        else []
    )
    if attachments and not notes:
        notes = [f"Not shown: {', '.join(' '.join(map(str, each.values())) for each in attachments)}."]
    if not isinstance(result, list | dict):
        return {"kind": "text", "text": said or _format_value(result)}
    place, rows = _find_table(result)
    if rows is None:
        return _lines_view(result, notes)
    if isinstance(result, Mapping):
        notes += [f"{name}: {_format_value(value)}" for name, value in result.items() if value is not rows]
    return _result_table_view(rows, place, notes)


def _find_table(result: Any) -> tuple[str, Sequence[Mapping[str, Any]] | None]:
    """The rows of a result that is a table, alone or with a few words about it, and where they stand."""
    if _is_table(result):
        return "/result", result
    if isinstance(result, Mapping):
        tables = [(name, value) for name, value in result.items() if _is_table(value)]
        others = [value for value in result.values() if not _is_table(value)]
        if len(tables) == 1 and not any(isinstance(value, list | dict) for value in others):
            return f"/result/{_escape_pointer(tables[0][0])}", tables[0][1]
    return "", None


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(row, Mapping) and row for row in value)
        and not any(isinstance(cell, Mapping) for row in value for cell in row.values())
    )


def _result_table_view(rows: Sequence[Mapping[str, Any]], place: str, notes: list[str]) -> View:
    named = list(dict.fromkeys(name for row in rows for name in row))
    columns = named[:MAX_COLUMNS]
    if len(named) > len(columns):
        notes.append(f"Columns not shown: {', '.join(named[MAX_COLUMNS:])}.")
    if len(rows) > MAX_ROWS:
        notes.append(f"The first {MAX_ROWS} of {len(rows):,} rows; all are kept and exported.")
    cells = [
        [_result_cell_view(row[name], name, f"{place}/{number}") if name in row else None for name in columns]
        for number, row in enumerate(rows[:MAX_ROWS])
    ]
    return {"kind": "table", "columns": columns, "rows": cells, "note": "\n".join(notes) or None}


def _result_cell_view(value: Any, name: str, place: str) -> View | None:
    if value is None:
        return None
    kind = _value_kind(value, name)
    shown = value if kind else _format_value(value)
    return {"value": shown, "shown": shown, "label": None, "kind": kind, "pointer": f"{place}/{_escape_pointer(name)}"}


def _lines_view(result: Any, notes: list[str]) -> View:
    lines = list(_iterate_lines(result, "", "/result", 0))
    if len(lines) > MAX_LINES:
        notes.append(f"The first {MAX_LINES} of {len(lines):,} lines; all are kept and exported.")
    return {"kind": "lines", "lines": lines[:MAX_LINES], "note": "\n".join(notes) or None}


def _iterate_lines(value: Any, name: str, pointer: str, depth: int) -> Iterator[View]:
    """One line a value, its name before it; what holds others is a line of its own, theirs are indented."""
    inner: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        inner = [(str(key), each) for key, each in value.items()]
    elif isinstance(value, list) and any(isinstance(each, list | dict) for each in value):
        inner = [(str(place), each) for place, each in enumerate(value)]
    if not inner:
        kind = _value_kind(value, name)
        shown = value if kind else _format_value(value)
        yield {"depth": depth, "name": name, "value": shown, "kind": kind, "pointer": pointer}
        return
    if name:
        yield {"depth": depth, "name": name, "value": "", "kind": None, "pointer": pointer}
    for key, each in inner:
        yield from _iterate_lines(each, key, f"{pointer}/{_escape_pointer(key)}", depth + bool(name))


def _value_kind(value: Any, name: str) -> str | None:
    """Which kind of value can be taken into the next action; None of what has no origin to be followed."""
    if not isinstance(value, str) or name not in VALUE_FIELDS or not value.strip() or len(value) > _MAX_VALUE_LENGTH:
        return None
    return _FIELD_KINDS.get(name, "title")


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_format_value, value)) or "nothing"
    if isinstance(value, Mapping):
        return "nothing" if not value else str(dict(value))
    return "nothing" if value is None else str(value)


def _escape_pointer(key: str) -> str:
    """A key as a JSON Pointer has it."""
    return key.replace("~", "~0").replace("/", "~1")


# Runs of capitalised words: what a reader of a sentence would take to the next search.
NAME_PATTERN = re.compile(
    r"(?<![\w'])[^\W\d_a-z][\w'’.-]*(?:\s(?:(?:of|the|de|von|van|der|al|du|la|and)\s)?[^\W\d_a-z][\w'’-]*)*", re.UNICODE
)
SENTENCE_OPENERS = frozenset(
    {"He", "She", "It", "They", "The", "A", "An", "In", "On", "At", "His", "Her", "Its", "Their", "This", "That", "As"}
)
MAX_TEXT_CHARACTERS = 20_000


def build_observation_view(step: Step) -> View:
    """The view of a completed step; foreign and imported observations are shown as their text."""
    data = step.data or {}
    for field, draw in _VIEW_BUILDERS.items():
        if field in data:
            return draw(data)
    text = step.observation or ""
    if "result" in data:
        return build_result_view(data["result"], text, data.get("attachments") or ())
    cut = (
        f"\n… {len(text) - MAX_TEXT_CHARACTERS:,} more characters; they are kept and exported"
        if len(text) > MAX_TEXT_CHARACTERS
        else ""
    )
    return {"kind": "text", "text": text[:MAX_TEXT_CHARACTERS] + cut}


def _hits_view(data: View) -> View:
    hits = [{**hit, "pointer": f"/hits/{place}"} for place, hit in enumerate(data["hits"])]
    if not hits:
        return {"kind": "text", "text": "Nothing found. Try fewer words, or another name."}
    relaxed = all(hit.get("relaxed") for hit in hits)
    return {
        "kind": "hits",
        "hits": hits,
        "note": "No article has all of the words; these have some." if relaxed else None,
    }


def _pages_view(data: View) -> View:
    pages = [{**page, "pointer": f"/pages/{place}"} for place, page in enumerate(data["pages"])]
    if not pages:
        return {"kind": "text", "text": "Nothing found. Try fewer words, or another name."}
    relaxed = all(page.get("relaxed") for page in pages)
    return {
        "kind": "pages",
        "pages": pages,
        "note": "No page has all of the words; these have some." if relaxed else None,
    }


def _choices_view(data: View) -> View:
    choices = [{"snippet": "", **one, "pointer": f"/choices/{place}"} for place, one in enumerate(data["choices"])]
    note = f"{data['title']} may mean several things; read the one that is meant."
    return {"kind": "hits", "hits": choices, "note": note}


def _article_view(data: View) -> View:
    best = {item["place"] for item in (*data["best"], *data.get("quotes", ()))}
    sentences = [
        {
            "text": text,
            "place": place,
            "best": place in best,
            "pointer": f"/sentences/{place}",
            "names": _find_names(text),
        }
        for place, text in enumerate(data["sentences"])
    ]
    return {
        "kind": "article",
        "title": data["title"],
        "entity": data.get("entity"),
        "address": data.get("address"),
        "date": data.get("date"),
        "redirected": data.get("redirected"),
        "best": [sentence for sentence in sentences if sentence["best"]],
        "rest": sentences if len(sentences) > len(best) else [],
        "count": len(sentences),
        "answer": _answer_view(data) if data.get("route") == "model" else None,
        "note": f"Ranked without the language model. {data['why']}" if data.get("why") else None,
    }


def _answer_view(data: View) -> View:
    """What the language model made of a text, and how far the text bears it out."""
    told = {"text": data["answer"], "quotes": data["quotes"], "invented": data["invented"]}
    if data["answer"] is None:
        return {**told, "sign": "none", "words": "The language model finds no answer in this text."}
    if data["supported"]:
        return {**told, "sign": "good", "words": "Every quotation stands in the text."}
    words = "Not every quotation stands in the text." if data["quotes"] else "No quotation supports this answer."
    return {**told, "sign": "poor", "words": words}


def _find_names(sentence: str) -> list[tuple[int, int]]:
    spans = []
    for match in NAME_PATTERN.finditer(sentence):
        start, end = match.span()
        words = match.group().split()
        # A sentence's first word is capitalised whatever it is.
        while words and words[0] in SENTENCE_OPENERS:
            start += len(words[0]) + 1
            words = words[1:]
        text = sentence[start:end].rstrip(".-'’")
        if len(text) > 2 and words:
            spans.append((start, start + len(text)))
    return spans


def _make_entities_view(field: str) -> Callable[[View], View]:
    def draw(data: View) -> View:
        return {"kind": "entities", "entities": [{**e, "pointer": f"/{field}/{i}"} for i, e in enumerate(data[field])]}

    return draw


def _queries_view(data: View) -> View:
    return {
        "kind": "queries",
        "candidates": [{**c, "pointer": f"/candidates/{i}"} for i, c in enumerate(data["candidates"])],
        "note": _route_note(data),
        "tried": data.get("tried", []),
    }


def _route_note(data: View) -> str | None:
    """Who wrote the queries, where a language model was asked."""
    why = data.get("why")
    if data.get("route") == "model":
        return (
            f"Written by the language model. {why}" if why else "Written by the language model and tried on the graph."
        )
    return f"Written by the grammar. {why}" if why else None


def _table_view(data: View) -> View:
    if data.get("boolean") is not None:
        return {"kind": "boolean", "value": data["boolean"]}
    rows = [
        [None if cell is None else _cell_view(cell, f"/rows/{i}/{j}") for j, cell in enumerate(row)]
        for i, row in enumerate(data["rows"])
    ]
    note = "There are more rows than the limit; narrow the query to see others." if data.get("truncated") else None
    return {"kind": "table", "columns": data["columns"], "rows": rows, "note": note}


def _cell_view(cell: View, pointer: str) -> View:
    value = str(cell["value"])
    is_entity = cell["kind"] == "entity"
    midnight = value.removesuffix("T00:00:00Z") if "dateTime" in (cell.get("datatype") or "") else value
    label = cell.get("label") if is_entity else None
    return {
        "value": value,
        "shown": midnight,
        "label": label,
        "kind": "entity" if is_entity else "title",
        "pointer": pointer,
    }


_VIEW_BUILDERS: dict[str, Callable[[View], View]] = {
    "hits": _hits_view,
    "pages": _pages_view,
    "choices": _choices_view,
    "sentences": _article_view,
    "entities": _make_entities_view("entities"),
    "labels": _make_entities_view("labels"),
    "candidates": _queries_view,
    "rows": _table_view,
}
