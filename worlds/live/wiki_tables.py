"""Tables and infoboxes as rows, one sentence-like row a line, each value with what heads it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborNode

Cell = Callable[[LexborNode, str], str]
"""Reads a cell's text in one line, its parts set apart by the second argument."""
_GAP = "; "
_MOST_COLUMNS = 100
_PARTS = "•·–—-"


@dataclass(frozen=True, slots=True)
class _Cell:
    place: int
    """Of the cell in the table, so that one over several columns or rows is known to be one."""
    text: str
    head: bool


def table_rows(table: LexborNode, read: Cell) -> list[str]:
    """The caption, then each row as `Head: value; Head: value`; without heads the values alone."""
    caption = next((child for child in table.iter() if child.tag == "caption"), None)
    lines = [read(caption, " ")] if caption is not None else []
    rows = _grid(table, read)
    heads, rows = _heads(rows)
    lines += (_row(row, heads) for row in rows)
    return [line for line in lines if line]


def infobox_rows(table: LexborNode, read: Cell) -> list[str]:
    """Each fact of an infobox as `Label: value`, a part of a group as `Group, label: value`."""
    lines = []
    group = ""
    for row in _grid(table, read):
        texts = list({cell.place: cell.text for cell in row if cell.text}.values())
        heads = [cell for cell in row if cell.head]
        if not texts:
            continue
        if len(texts) == 1 and heads:
            # The first heading over the whole width is the title itself; the others head groups.
            group = texts[0]
        elif len(texts) > 1:
            label, value = texts[0], _GAP.join(texts[1:])
            part = label[0] in _PARTS
            label = label.lstrip(_PARTS).strip()
            lines.append(f"{group}, {label}: {value}" if part and group else f"{label}: {value}")
            group = group if part else texts[0]
        else:
            lines.append(texts[0])
    return lines


def _grid(table: LexborNode, read: Cell) -> list[list[_Cell]]:
    """The rows with every cell at each place that it covers."""
    grid: list[list[_Cell]] = []
    hanging: dict[int, tuple[_Cell, int]] = {}
    place = 0
    for tr in _own_rows(table):
        row: list[_Cell] = []
        waiting = [cell for cell in tr.iter() if cell.tag in {"td", "th"}]
        while waiting or any(column >= len(row) for column in hanging):
            column = len(row)
            if column in hanging:
                cell, left = hanging.pop(column)
                row.append(cell)
                if left > 1:
                    hanging[column] = (cell, left - 1)
                continue
            if not waiting:
                row.append(_Cell(-1, "", head=False))
                continue
            node = waiting.pop(0)
            head = node.tag == "th"
            cell = _Cell(place, read(node, " " if head else _GAP), head)
            place += 1
            down = _span(node, "rowspan")
            for over in range(min(_span(node, "colspan"), _MOST_COLUMNS)):
                if down > 1:
                    hanging[column + over] = (cell, down - 1)
                row.append(cell)
        grid.append(row)
    return grid


def _own_rows(table: LexborNode) -> Iterator[LexborNode]:
    """The rows of the table itself, not of one inside it."""
    for child in table.iter():
        if child.tag == "tr":
            yield child
        elif child.tag in {"thead", "tbody", "tfoot"}:
            yield from (row for row in child.iter() if row.tag == "tr")


def _span(node: LexborNode, name: str) -> int:
    told = (node.attributes.get(name) or "").strip()
    return max(1, int(told)) if told.isdecimal() and len(told) < 5 else 1


def _heads(rows: list[list[_Cell]]) -> tuple[list[str], list[list[_Cell]]]:
    """What heads each column, from the first rows that hold nothing but heads; and the rows after those."""
    count = 0
    while count < len(rows) and rows[count] and all(cell.head or not cell.text for cell in rows[count]):
        count += 1
    if count == len(rows):
        return [], rows
    width = max((len(row) for row in rows[:count]), default=0)
    heads = []
    for column in range(width):
        over = {row[column].place: row[column].text for row in rows[:count] if column < len(row)}
        heads.append(" ".join(text for text in over.values() if text))
    return heads, rows[count:]


def _row(row: list[_Cell], heads: list[str]) -> str:
    parts: list[str] = []
    seen: set[int] = set()
    for column, cell in enumerate(row):
        if not cell.text or cell.place in seen:
            continue
        seen.add(cell.place)
        head = heads[column] if column < len(heads) else ""
        parts.append(f"{head}: {cell.text}" if head and head != cell.text else cell.text)
    if not heads and len(parts) == 2 and row[0].head:
        return f"{parts[0]}: {parts[1]}"
    return _GAP.join(parts)
