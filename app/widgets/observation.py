"""Converts a step's observation to a view: the JSON that notebook.js draws, with the values that can be clicked.

Values are titles, labels, ids, cells of tables, and in sentences the world's names, whole dates and numbers. The result
of an external tool becomes a table if it has that shape, else one line per value.

A view has the first items of a long list, and under "more" how many it would have on request.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from showhow.db.models import Step
from showhow.reasoners.mentions import NameLookup, find_values
from showhow.tools.limits import cut_total

View = dict[str, Any]

MAX_ITEMS = 100
"""Rows, lines, sentences or other items that are shown at first."""
MAX_ITEMS_ON_REQUEST = 2_000
MAX_COLUMNS = 16
MAX_NOTE_CHARACTERS = 2_000
_MAX_VALUE_LENGTH = 1_000
"""Longer values are shown in part and cannot be clicked."""
MAX_SENTENCE_CHARACTERS = 5_000
NUMBER = "number"
"""The kind of a number in the result of an external tool."""
_FIELD_KINDS = {"entity": "entity", "id": "entity", "sparql": "query", "address": "address"}


def build_result_view(
    result: Any, text: str, attachments: Sequence[Mapping[str, Any]] = (), limit: int = MAX_ITEMS
) -> View:
    """The view of a JSON value; the tool's text and its attachments become a note above it."""
    note = text.strip()
    # A text that is JSON only repeats the data.
    notes = (
        [note[:MAX_NOTE_CHARACTERS]]
        if note and not note.startswith(("{", "[")) and isinstance(result, list | dict)
        else []
    )
    if attachments and not notes:
        notes = [f"Not shown: {', '.join(' '.join(map(str, attachment.values())) for attachment in attachments)}."]
    if not isinstance(result, list | dict):
        return {"kind": "text", "text": note or _format_value(result)}
    pointer, rows = _find_table(result)
    if rows is None:
        return _lines_view(result, notes, limit)
    if isinstance(result, Mapping):
        notes += [f"{name}: {_format_value(value)}" for name, value in result.items() if value is not rows]
    return _result_table_view(rows, pointer, notes, limit)


def _find_table(result: Any) -> tuple[str, Sequence[Mapping[str, Any]] | None]:
    """Find the table that a result is, or contains beside plain values; returns its pointer and rows, or ("", None)."""
    if _is_table(result):
        return "/result", result
    if isinstance(result, Mapping):
        tables = [(name, value) for name, value in result.items() if _is_table(value)]
        other_values = [value for value in result.values() if not _is_table(value)]
        if len(tables) == 1 and not any(isinstance(value, list | dict) for value in other_values):
            return f"/result/{_escape_pointer(tables[0][0])}", tables[0][1]
    return "", None


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(row, Mapping) and row for row in value)
        and not any(isinstance(cell, Mapping) for row in value for cell in row.values())
    )


def _result_table_view(rows: Sequence[Mapping[str, Any]], pointer: str, notes: list[str], limit: int) -> View:
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = names[:MAX_COLUMNS]
    if len(names) > len(columns):
        notes.append(f"Columns not shown: {', '.join(names[MAX_COLUMNS:])}.")
    cells = [
        [_result_cell_view(row[name], name, f"{pointer}/{number}") if name in row else None for name in columns]
        for number, row in enumerate(rows[:limit])
    ]
    view = {"kind": "table", "columns": columns, "rows": cells, "note": "\n".join(notes) or None}
    return view | _more(len(rows), limit, "rows")


def _result_cell_view(value: Any, name: str, pointer: str) -> View | None:
    if value is None:
        return None
    kind = value_kind(value, name)
    text = str(value) if kind else _shorten(_format_value(value))
    return {"value": text, "shown": text, "label": None, "kind": kind, "pointer": f"{pointer}/{_escape_pointer(name)}"}


def _lines_view(result: Any, notes: list[str], limit: int) -> View:
    lines = list(_iterate_lines(result, "", "/result", 0))
    view = {"kind": "lines", "lines": lines[:limit], "note": "\n".join(notes) or None}
    return view | _more(len(lines), limit, "lines")


def _iterate_lines(value: Any, name: str, pointer: str, depth: int) -> Iterator[View]:
    """Yield one line per value, with its name; nested values are indented."""
    entries: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        entries = [(str(key), entry_value) for key, entry_value in value.items()]
    elif isinstance(value, list) and any(isinstance(entry_value, list | dict) for entry_value in value):
        entries = [(str(index), entry_value) for index, entry_value in enumerate(value)]
    if not entries:
        kind = value_kind(value, name)
        text = str(value) if kind else _shorten(_format_value(value))
        yield {"depth": depth, "name": name, "value": text, "kind": kind, "pointer": pointer}
        return
    if name:
        yield {"depth": depth, "name": name, "value": "", "kind": None, "pointer": pointer}
    for key, entry_value in entries:
        yield from _iterate_lines(entry_value, key, f"{pointer}/{_escape_pointer(key)}", depth + bool(name))


def value_kind(value: Any, name: str = "") -> str | None:
    """The kind of a text or a number that can be clicked; None for other values, and for long texts."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return NUMBER
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_VALUE_LENGTH:
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


def _shorten(text: str, length: int = _MAX_VALUE_LENGTH) -> str:
    return text if len(text) <= length else f"{text[:length]} … {len(text) - length:,} more characters"


def _escape_pointer(key: str) -> str:
    """The key escaped for a JSON Pointer."""
    return key.replace("~", "~0").replace("/", "~1")


_PROPERTY_ID_PATTERN = re.compile(r"P[1-9][0-9]*")
MAX_TEXT_CHARACTERS = 20_000


def build_observation_view(step: Step, is_known_name: NameLookup | None = None, limit: int = MAX_ITEMS) -> View:
    """The view of a completed step with at most that many items; observations without data are shown as text."""
    data = step.data or {}
    for field, draw in _VIEW_BUILDERS.items():
        if data.get(field) or (field in data and field not in _TEXT_IF_EMPTY):
            total = cut_total(data, field)
            view = draw({**data, field: data[field][:limit]} if isinstance(data[field], list) else data)
            return view | _more(len(data[field]), limit, _ITEM_NOUNS.get(field, field), total)
    if "sentences" in data:
        return _article_view(data, is_known_name, limit)
    text = step.observation or ""
    if "result" in data:
        return build_result_view(data["result"], text, data.get("attachments") or (), limit)
    line = data.get("text")
    if isinstance(line, str) and value_kind(line) and "\n" not in line:
        return {"kind": "lines", "lines": list(_iterate_lines(line, "", "/text", 0)), "note": None}
    truncation_note = (
        f"\n… {len(text) - MAX_TEXT_CHARACTERS:,} more characters; they are stored and exported"
        if len(text) > MAX_TEXT_CHARACTERS
        else ""
    )
    return {"kind": "text", "text": text[:MAX_TEXT_CHARACTERS] + truncation_note}


def _more(count: int, limit: int, noun: str, total: int | None = None) -> View:
    """How many items a view has and would have on request, and how many the world has; {} if it has all of them."""
    if count <= limit and total is None:
        return {}
    on_request = min(count, MAX_ITEMS_ON_REQUEST)
    return {"more": {"shown": min(count, limit), "on_request": on_request, "total": total or count, "noun": noun}}


def _hits_view(data: View) -> View:
    hits = [{**hit, "pointer": f"/hits/{index}"} for index, hit in enumerate(data["hits"])]
    if not hits:
        return {"kind": "text", "text": "Nothing found. Try fewer words, or another name."}
    relaxed = all(hit.get("relaxed") for hit in hits)
    return {
        "kind": "hits",
        "hits": hits,
        "note": "No article has all of the words; these have some." if relaxed else None,
    }


def _pages_view(data: View) -> View:
    pages = [{**page, "pointer": f"/pages/{index}"} for index, page in enumerate(data["pages"])]
    if not pages:
        return {"kind": "text", "text": "Nothing found. Try fewer words, or another name."}
    relaxed = all(page.get("relaxed") for page in pages)
    return {
        "kind": "pages",
        "pages": pages,
        "note": "No page has all of the words; these have some." if relaxed else None,
    }


def _choices_view(data: View) -> View:
    choices = [
        {"snippet": "", **choice, "pointer": f"/choices/{index}"} for index, choice in enumerate(data["choices"])
    ]
    note = f"{data['title']} has several meanings. Read the one that you mean."
    return {"kind": "hits", "hits": choices, "note": note}


def _article_view(data: View, is_known_name: NameLookup | None, limit: int) -> View:
    stored: Sequence[str] = data["sentences"]
    references = [
        (sentence["place"], f"/{field}/{index}/text", sentence.get("text", ""))
        for field in ("best", "quotes")
        for index, sentence in enumerate(data.get(field, ()))
    ]
    # A sentence beyond those that are stored is shown as it stands in its reference.
    best = {
        place: (stored[place], f"/sentences/{place}") if place < len(stored) else (text, pointer)
        for place, pointer, text in reversed(references)
    }
    count = cut_total(data, "sentences") or len(stored)
    return {
        "kind": "article",
        "title": data["title"],
        "entity": data.get("entity"),
        "address": data.get("address"),
        "date": data.get("date"),
        "redirected": data.get("redirected"),
        "best": [
            _sentence_view(best[place][0], place, best[place][1], is_known_name) | {"best": True}
            for place in sorted(best)
        ],
        "rest": [
            _sentence_view(text, index, f"/sentences/{index}", is_known_name) | {"best": index in best}
            for index, text in enumerate(stored[:limit])
        ]
        if count > len(best)
        else [],
        "count": count,
        "answer": _answer_view(data) if data.get("route") == "model" else None,
        "note": f"Ranked without the language model. {data['why']}" if data.get("why") else None,
    } | _more(len(stored), limit, "sentences", cut_total(data, "sentences"))


def _sentence_view(text: str, place: int, pointer: str, is_known_name: NameLookup | None) -> View:
    text = _shorten(text, MAX_SENTENCE_CHARACTERS)
    return {"text": text, "place": place, "pointer": pointer, "names": find_values(text, is_known_name)}


def _answer_view(data: View) -> View:
    """The view of the language model's answer from a text, with a verdict on its quotations."""
    answer = {"text": data["answer"], "quotes": data["quotes"], "invented": data["invented"]}
    if data["answer"] is None:
        return {**answer, "sign": "none", "words": "The language model finds no answer in this text."}
    if data["supported"]:
        return {**answer, "sign": "good", "words": "Every quotation is in the text."}
    words = "Not every quotation is in the text." if data["quotes"] else "No quotation supports this answer."
    return {**answer, "sign": "poor", "words": words}


def _make_entities_view(field: str) -> Callable[[View], View]:
    def draw(data: View) -> View:
        links = [_link_view(link, f"/{field}/{index}", field) for index, link in enumerate(data[field])]
        return {"kind": "entities", "entities": links, "note": _links_note(data, field)}

    return draw


def _link_view(link: View, pointer: str, field: str) -> View:
    """The view of an entity, of a relation with the number of its facts, or of a literal."""
    if "literal" in link:
        return {"literal": _cell_view({**link, "kind": "literal", "value": link["literal"]}, pointer)}
    kind = "relation" if field == "relations" else _id_kind(link["id"])
    facts = f"{link['count']:,} fact{'s' if link['count'] > 1 else ''}" if link.get("count") else None
    return {**link, "kind": kind, "description": link.get("description") or facts, "pointer": pointer}


def _id_kind(id_: str) -> str:
    return "relation" if _PROPERTY_ID_PATTERN.fullmatch(id_) else "entity"


def _links_note(data: View, field: str) -> str | None:
    notes = [f"Not listed, because they have no id: {data['unnamed']:,}."] if data.get("unnamed") else []
    if data.get("truncated"):
        total = "more" if data["total"] is None else f"{data['total']:,}"
        notes.append(f"The graph has {total} {field}; these are the first within the limit of the step.")
    return " ".join(notes) or None


def _queries_view(data: View) -> View:
    return {
        "kind": "queries",
        "candidates": [
            {**candidate, "pointer": f"/{field}/{number}"}
            for field in ("candidates", "incomplete")
            for number, candidate in enumerate(data.get(field, ()))
        ],
        "note": _route_note(data),
        "tried": data.get("tried", []),
    }


def _route_note(data: View) -> str | None:
    """State what the queries leave out, else who wrote them; None if that could only be the grammar."""
    reason = data.get("why")
    if data.get("unexplained"):
        return f"No query accounts for {', '.join(map(repr, data['unexplained']))}; these leave it out."
    if data.get("route") == "model":
        return (
            f"Written by the language model. {reason}"
            if reason
            else "Written by the language model and tested on the graph."
        )
    return f"Written by the grammar. {reason}" if reason else None


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
    shown = value.removesuffix("T00:00:00Z") if "dateTime" in (cell.get("datatype") or "") else value
    label = cell.get("label") if is_entity else None
    if len(value) > _MAX_VALUE_LENGTH:
        text = _shorten(value)
        return {"value": text, "shown": text, "label": None, "kind": None, "pointer": pointer}
    return {
        "value": value,
        "shown": shown,
        "label": label,
        "kind": _id_kind(value) if is_entity else "title",
        "pointer": pointer,
    }


_ITEM_NOUNS = {"candidates": "queries"}
_TEXT_IF_EMPTY = frozenset({"relations", "values"})
"""Fields of graph steps; the text says why there is none."""
_VIEW_BUILDERS: dict[str, Callable[[View], View]] = {
    "hits": _hits_view,
    "pages": _pages_view,
    "choices": _choices_view,
    "entities": _make_entities_view("entities"),
    "labels": _make_entities_view("labels"),
    "relations": _make_entities_view("relations"),
    "values": _make_entities_view("values"),
    "candidates": _queries_view,
    "rows": _table_view,
}
