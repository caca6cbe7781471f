"""Turns a step's observation into a view: the JSON that notebook.js draws, with the values that can be clicked.

Values are titles, labels and ids, cells of tables, and in sentences the names that the world knows, whole dates and
numbers. An external tool's result becomes a table if it is one, else one line per value.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from db.models import Step
from reasoners.provenance import DATE_PATTERN, MONTHS, VALUE_FIELDS
from worlds.embedded.graph import EmbeddedGraph
from worlds.embedded.text import EmbeddedText
from worlds.source import World

View = dict[str, Any]

MAX_ROWS = 200
MAX_COLUMNS = 16
MAX_LINES = 400
MAX_NOTE_CHARACTERS = 2_000
_MAX_VALUE_LENGTH = 1_000
_FIELD_KINDS = {"entity": "entity", "id": "entity", "sparql": "query", "address": "address"}


def build_result_view(result: Any, text: str, attachments: Sequence[Mapping[str, Any]] = ()) -> View:
    """The view of a JSON value; the tool's text and its attachments become a note above it."""
    note = text.strip()
    # A text in JSON only repeats the data.
    notes = (
        [note[:MAX_NOTE_CHARACTERS]]
        if note and not note.startswith(("{", "[")) and isinstance(result, list | dict)
        else []
    )
    if attachments and not notes:
        notes = [f"Not shown: {', '.join(' '.join(map(str, attachment.values())) for attachment in attachments)}."]
    if not isinstance(result, list | dict):
        return {"kind": "text", "text": note or _format_value(result)}
    place, rows = _find_table(result)
    if rows is None:
        return _lines_view(result, notes)
    if isinstance(result, Mapping):
        notes += [f"{name}: {_format_value(value)}" for name, value in result.items() if value is not rows]
    return _result_table_view(rows, place, notes)


def _find_table(result: Any) -> tuple[str, Sequence[Mapping[str, Any]] | None]:
    """The rows of a result that is a table, alone or beside plain values, and their JSON Pointer."""
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
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = names[:MAX_COLUMNS]
    if len(names) > len(columns):
        notes.append(f"Columns not shown: {', '.join(names[MAX_COLUMNS:])}.")
    if len(rows) > MAX_ROWS:
        notes.append(f"The first {MAX_ROWS} of {len(rows):,} rows; all are stored and exported.")
    cells = [
        [_result_cell_view(row[name], name, f"{place}/{number}") if name in row else None for name in columns]
        for number, row in enumerate(rows[:MAX_ROWS])
    ]
    return {"kind": "table", "columns": columns, "rows": cells, "note": "\n".join(notes) or None}


def _result_cell_view(value: Any, name: str, place: str) -> View | None:
    if value is None:
        return None
    kind = _value_kind(value, name)
    text = value if kind else _format_value(value)
    return {"value": text, "shown": text, "label": None, "kind": kind, "pointer": f"{place}/{_escape_pointer(name)}"}


def _lines_view(result: Any, notes: list[str]) -> View:
    lines = list(_iterate_lines(result, "", "/result", 0))
    if len(lines) > MAX_LINES:
        notes.append(f"The first {MAX_LINES} of {len(lines):,} lines; all are stored and exported.")
    return {"kind": "lines", "lines": lines[:MAX_LINES], "note": "\n".join(notes) or None}


def _iterate_lines(value: Any, name: str, pointer: str, depth: int) -> Iterator[View]:
    """One line per value with its name before it; values inside of others are indented below them."""
    inner: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        inner = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list) and any(isinstance(item, list | dict) for item in value):
        inner = [(str(place), item) for place, item in enumerate(value)]
    if not inner:
        kind = _value_kind(value, name)
        text = value if kind else _format_value(value)
        yield {"depth": depth, "name": name, "value": text, "kind": kind, "pointer": pointer}
        return
    if name:
        yield {"depth": depth, "name": name, "value": "", "kind": None, "pointer": pointer}
    for key, item in inner:
        yield from _iterate_lines(item, key, f"{pointer}/{_escape_pointer(key)}", depth + bool(name))


def _value_kind(value: Any, name: str) -> str | None:
    """The kind of a value that can be clicked; None for one whose origin could not be followed."""
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
    """The key escaped for a JSON Pointer."""
    return key.replace("~", "~0").replace("/", "~1")


NameLookup = Callable[[str], bool]
"""Whether the world has an article, an entity or a label of that name."""
_NAME_RUN_PATTERN = re.compile(
    r"(?<![\w'’])[^\W\d_a-z][\w'’.-]*(?:\s(?:(?:of|the|de|von|van|der|al|du|la|and)\s)?[^\W\d_a-z][\w'’-]*)*"
)
"""Capitalized words in a row, with the small words that join them: one name, or several names joined by "and"."""
_WORD_PATTERN = re.compile(r"\S+")
_NUMBER_PATTERN = re.compile(r"(?<![\w.,-])\d+(?:[.,]\d+)*(?![\w-])")
_POSSESSIVE_PATTERN = re.compile(r"['’]s?$")
_SENTENCE_OPENERS = frozenset(
    {"He", "She", "It", "They", "The", "A", "An", "In", "On", "At", "His", "Her", "Its", "Their", "This", "That", "As"}
)
_MAX_NAME_WORDS = 10
MIN_NAME_LENGTH = 2
"""Names without a lookup are longer than this: initials are none."""
MAX_TEXT_CHARACTERS = 20_000


def build_observation_view(step: Step, is_known_name: NameLookup | None = None) -> View:
    """The view of a completed step; observations without data are shown as text."""
    data = step.data or {}
    for field, draw in _VIEW_BUILDERS.items():
        if field in data:
            return draw(data)
    if "sentences" in data:
        return _article_view(data, is_known_name)
    text = step.observation or ""
    if "result" in data:
        return build_result_view(data["result"], text, data.get("attachments") or ())
    cut = (
        f"\n… {len(text) - MAX_TEXT_CHARACTERS:,} more characters; they are stored and exported"
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


def _article_view(data: View, is_known_name: NameLookup | None) -> View:
    best = {item["place"] for item in (*data["best"], *data.get("quotes", ()))}
    sentences = [
        {
            "text": text,
            "place": place,
            "best": place in best,
            "pointer": f"/sentences/{place}",
            "names": find_values(text, is_known_name),
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
    """The answer that the language model read from a text, and whether its quotations stand there."""
    answer = {"text": data["answer"], "quotes": data["quotes"], "invented": data["invented"]}
    if data["answer"] is None:
        return {**answer, "sign": "none", "words": "The language model finds no answer in this text."}
    if data["supported"]:
        return {**answer, "sign": "good", "words": "Every quotation stands in the text."}
    words = "Not every quotation stands in the text." if data["quotes"] else "No quotation supports this answer."
    return {**answer, "sign": "poor", "words": words}


def name_lookup(world: World | None) -> NameLookup | None:
    """The lookup of a world that lies on this machine; None for one that would have to be asked over the network."""
    if world is None:
        return None
    texts = [source for source in (world.text,) if isinstance(source, EmbeddedText)]
    graphs = [source for source in (world.graph,) if isinstance(source, EmbeddedGraph)]
    if not texts and not graphs:
        return None
    return lambda name: any(text.has_title(name) for text in texts) or any(graph.has_name(name) for graph in graphs)


def find_values(sentence: str, is_known_name: NameLookup | None = None) -> list[tuple[int, int]]:
    """The spans of the values in a sentence: whole dates, names, numbers; without a lookup any capitalized name."""
    spans = [match.span() for match in DATE_PATTERN.finditer(sentence)]
    for match in _NAME_RUN_PATTERN.finditer(sentence):
        words = [
            (match.start() + word.start(), match.start() + word.end()) for word in _WORD_PATTERN.finditer(match.group())
        ]
        names = _split_run(sentence, words) if is_known_name is None else _known_names(sentence, words, is_known_name)
        spans += [span for span in names if not _overlaps(span, spans)]
    spans += [span for number in _NUMBER_PATTERN.finditer(sentence) if not _overlaps(span := number.span(), spans)]
    return sorted(spans)


def _known_names(sentence: str, words: list[tuple[int, int]], is_known_name: NameLookup) -> Iterator[tuple[int, int]]:
    """The longest names that the world knows, from left to right."""
    first = 0
    while first < len(words):
        lasts = range(min(len(words), first + _MAX_NAME_WORDS) - 1, first - 1, -1)
        candidates = ((last, _trim(sentence, words[first][0], words[last][1])) for last in lasts)
        match = next(((last, span) for last, span in candidates if _is_name(sentence, span, is_known_name)), None)
        if match is not None:
            yield match[1]
        first = match[0] + 1 if match is not None else first + 1


def _is_name(sentence: str, span: tuple[int, int], is_known_name: NameLookup) -> bool:
    name = sentence[slice(*span)]
    return name not in _SENTENCE_OPENERS and name not in MONTHS and is_known_name(name)


def _split_run(sentence: str, words: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The names of a run, parted at "and", without the words that only begin a sentence and without months."""
    names: list[list[tuple[int, int]]] = [[]]
    for word in words:
        if sentence[slice(*word)] == "and":
            names.append([])
        else:
            names[-1].append(word)
    for name in names:
        # A sentence's first word is capitalized whatever it is.
        while name and sentence[slice(*name[0])] in _SENTENCE_OPENERS:
            name.pop(0)
        if name and (len(name) > 1 or sentence[slice(*name[0])] not in MONTHS):
            start, end = _trim(sentence, name[0][0], name[-1][1])
            if end - start > MIN_NAME_LENGTH:
                yield start, end


def _trim(sentence: str, start: int, end: int) -> tuple[int, int]:
    """The span without a possessive ending and closing punctuation."""
    text = sentence[start:end].rstrip(".-")
    return start, start + len(_POSSESSIVE_PATTERN.sub("", text))


def _overlaps(span: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in others)


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
    """Which of grammar and language model wrote the queries; None where only the grammar was asked to."""
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
    "entities": _make_entities_view("entities"),
    "labels": _make_entities_view("labels"),
    "candidates": _queries_view,
    "rows": _table_view,
}
