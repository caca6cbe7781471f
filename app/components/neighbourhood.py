"""What the graph says of an entity, drawn: its relations branch off, each to its values."""

from collections.abc import Callable

from app.components.drawing import Box, Line, draw
from tools.run_query import readable
from worlds.neighbourhood import Branch, Neighbourhood

CENTRE, NAME, VALUE = 340, 108, 186
HEIGHT, STEP, GAP = 25, 29, 7
TRUNK, NAMES, VALUES = 14, 28, 154
"""Where the trunk, the relations' names and the values begin, in pixels from the left."""


def show_neighbourhood(found: Neighbourhood, *, key: str, go: Callable[[str], None]) -> None:
    """Draw it; a click on an entity goes there."""
    boxes, lines = laid_out(found)
    draw(boxes, lines, key=key, label=f"What the graph says of {found.centre.label}", go=go)


def laid_out(found: Neighbourhood) -> tuple[list[Box], list[Line]]:
    """The entity on top, its relations down a trunk; arrows lead from a subject to its object."""
    note = f"{found.centre.id} · {found.centre.description}" if found.centre.description else found.centre.id
    boxes = [Box(0, 0, CENTRE, 42, found.centre.label, note, look="centre")]
    lines: list[Line] = []
    y = 42.0 + 2 * GAP
    for branch in found.branches:
        boxes.append(Box(NAMES, y, NAME, HEIGHT, _name(branch), branch.relation.id, look="name"))
        stem = ((TRUNK, 42.0), (TRUNK, y + HEIGHT / 2), (NAMES, y + HEIGHT / 2))
        lines.append(Line(stem if branch.outgoing else stem[::-1], arrow=not branch.outgoing))
        y = _values(branch, y, boxes, lines) + GAP
    return boxes, lines


def _name(branch: Branch) -> str:
    """What the entity is to the values: a father to his children "father of"."""
    label = branch.relation.label
    # "instance of" and "located in" cannot be turned round; the arrow shows which way they go.
    return label if branch.outgoing or label.endswith((" of", " in", " by", " at")) else f"{label} of"


def _values(branch: Branch, y: float, boxes: list[Box], lines: list[Line]) -> float:
    """Put the values of a branch beside its name; gives where they end."""
    root = (NAMES + NAME, y + HEIGHT / 2)
    for value in branch.values:
        turn = (NAMES + NAME + 8, y + HEIGHT / 2)
        path = (root, (turn[0], root[1]), turn, (VALUES, y + HEIGHT / 2))
        lines.append(Line(path if branch.outgoing else path[::-1], arrow=True))
        label = readable(value.label, value.datatype)
        boxes.append(
            Box(
                VALUES,
                y,
                VALUE,
                HEIGHT,
                label,
                value.entity or "",
                value.entity or "",
                "item" if value.entity else "value",
            )
        )
        y += STEP
    if branch.more:
        boxes.append(Box(VALUES, y, VALUE, HEIGHT, "and more", look="name"))
        y += STEP
    return y
