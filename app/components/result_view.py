"""How the structured answer of somebody else's tool is drawn: as a table where it is one, else line by line."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reasoners.origins import VALUE_FIELDS

View = dict[str, Any]

MOST_ROWS = 200
MOST_COLUMNS = 16
MOST_LINES = 400
MOST_NOTE = 2_000
_LONGEST = 1_000
_KINDS = {"entity": "entity", "id": "entity", "sparql": "query", "address": "address"}


def result_view(result: Any, text: str, attachments: Sequence[Mapping[str, Any]] = ()) -> View:
    """The view of a JSON value; what the tool said besides, and what came with it, is a note above it."""
    said = text.strip()
    # A tool that gives its answer twice, as data and as the same in JSON, says nothing besides.
    notes = [said[:MOST_NOTE]] if said and not said.startswith(("{", "[")) and isinstance(result, list | dict) else []
    if attachments and not notes:
        notes = [f"Not shown: {', '.join(' '.join(map(str, each.values())) for each in attachments)}."]
    if not isinstance(result, list | dict):
        return {"kind": "text", "text": said or _shown(result)}
    place, rows = _rows(result)
    if rows is None:
        return _lines(result, notes)
    if isinstance(result, Mapping):
        notes += [f"{name}: {_shown(value)}" for name, value in result.items() if value is not rows]
    return _table(rows, place, notes)


def _rows(result: Any) -> tuple[str, Sequence[Mapping[str, Any]] | None]:
    """The rows of a result that is a table, alone or with a few words about it, and where they stand."""
    if _is_table(result):
        return "/result", result
    if isinstance(result, Mapping):
        tables = [(name, value) for name, value in result.items() if _is_table(value)]
        others = [value for value in result.values() if not _is_table(value)]
        if len(tables) == 1 and not any(isinstance(value, list | dict) for value in others):
            return f"/result/{_step(tables[0][0])}", tables[0][1]
    return "", None


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(row, Mapping) and row for row in value)
        and not any(isinstance(cell, Mapping) for row in value for cell in row.values())
    )


def _table(rows: Sequence[Mapping[str, Any]], place: str, notes: list[str]) -> View:
    named = list(dict.fromkeys(name for row in rows for name in row))
    columns = named[:MOST_COLUMNS]
    if len(named) > len(columns):
        notes.append(f"Columns not shown: {', '.join(named[MOST_COLUMNS:])}.")
    if len(rows) > MOST_ROWS:
        notes.append(f"The first {MOST_ROWS} of {len(rows):,} rows; all are kept and exported.")
    cells = [
        [_cell(row[name], name, f"{place}/{number}") if name in row else None for name in columns]
        for number, row in enumerate(rows[:MOST_ROWS])
    ]
    return {"kind": "table", "columns": columns, "rows": cells, "note": "\n".join(notes) or None}


def _cell(value: Any, name: str, place: str) -> View | None:
    if value is None:
        return None
    kind = _kind(value, name)
    shown = value if kind else _shown(value)
    return {"value": shown, "shown": shown, "label": None, "kind": kind, "pointer": f"{place}/{_step(name)}"}


def _lines(result: Any, notes: list[str]) -> View:
    lines = list(_walked(result, "", "/result", 0))
    if len(lines) > MOST_LINES:
        notes.append(f"The first {MOST_LINES} of {len(lines):,} lines; all are kept and exported.")
    return {"kind": "lines", "lines": lines[:MOST_LINES], "note": "\n".join(notes) or None}


def _walked(value: Any, name: str, pointer: str, depth: int) -> Iterator[View]:
    """One line a value, its name before it; what holds others is a line of its own, theirs are indented."""
    inner: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        inner = [(str(key), each) for key, each in value.items()]
    elif isinstance(value, list) and any(isinstance(each, list | dict) for each in value):
        inner = [(str(place), each) for place, each in enumerate(value)]
    if not inner:
        kind = _kind(value, name)
        shown = value if kind else _shown(value)
        yield {"depth": depth, "name": name, "value": shown, "kind": kind, "pointer": pointer}
        return
    if name:
        yield {"depth": depth, "name": name, "value": "", "kind": None, "pointer": pointer}
    for key, each in inner:
        yield from _walked(each, key, f"{pointer}/{_step(key)}", depth + bool(name))


def _kind(value: Any, name: str) -> str | None:
    """Which kind of value can be taken into the next action; None of what has no origin to be followed."""
    if not isinstance(value, str) or name not in VALUE_FIELDS or not value.strip() or len(value) > _LONGEST:
        return None
    return _KINDS.get(name, "title")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) or "nothing"
    if isinstance(value, Mapping):
        return "nothing" if not value else str(dict(value))
    return "nothing" if value is None else str(value)


def _step(key: str) -> str:
    """A key as a JSON Pointer has it."""
    return key.replace("~", "~0").replace("/", "~1")
