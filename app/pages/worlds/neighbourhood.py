"""What the graph says of an entity, drawn: its relations branch off, each to its values."""

from collections.abc import Callable

from app.widgets.drawing import DiagramBox, DiagramLine, draw_diagram
from tools.run_query import format_value
from worlds.neighbourhood import Branch, Neighbourhood

CENTRE_WIDTH, NAME_WIDTH, VALUE_WIDTH = 340, 108, 186
HEIGHT, ROW_STEP, GAP = 25, 29, 7
TRUNK_X, NAMES_X, VALUES_X = 14, 28, 154
"""Where the trunk, the relations' names and the values begin, in pixels from the left."""


def show_neighbourhood(found: Neighbourhood, *, key: str, go: Callable[[str], None]) -> None:
    """Draw it; a click on an entity goes there."""
    boxes, lines = lay_out_neighbourhood(found)
    draw_diagram(boxes, lines, key=key, label=f"What the graph says of {found.centre.label}", go=go)


def lay_out_neighbourhood(found: Neighbourhood) -> tuple[list[DiagramBox], list[DiagramLine]]:
    """The entity on top, its relations down a trunk; arrows lead from a subject to its object."""
    note = f"{found.centre.id} · {found.centre.description}" if found.centre.description else found.centre.id
    boxes = [DiagramBox(0, 0, CENTRE_WIDTH, 42, found.centre.label, note, look="centre")]
    lines: list[DiagramLine] = []
    y = 42.0 + 2 * GAP
    for branch in found.branches:
        boxes.append(
            DiagramBox(NAMES_X, y, NAME_WIDTH, HEIGHT, _relation_label(branch), branch.relation.id, look="name")
        )
        stem = ((TRUNK_X, 42.0), (TRUNK_X, y + HEIGHT / 2), (NAMES_X, y + HEIGHT / 2))
        lines.append(DiagramLine(stem if branch.outgoing else stem[::-1], arrow=not branch.outgoing))
        y = _lay_out_values(branch, y, boxes, lines) + GAP
    return boxes, lines


def _relation_label(branch: Branch) -> str:
    """What the entity is to the values: a father to his children "father of"."""
    label = branch.relation.label
    # "instance of" and "located in" cannot be turned round; the arrow shows which way they go.
    return label if branch.outgoing or label.endswith((" of", " in", " by", " at")) else f"{label} of"


def _lay_out_values(branch: Branch, y: float, boxes: list[DiagramBox], lines: list[DiagramLine]) -> float:
    """Put the values of a branch beside its name; gives where they end."""
    root = (NAMES_X + NAME_WIDTH, y + HEIGHT / 2)
    for value in branch.values:
        turn = (NAMES_X + NAME_WIDTH + 8, y + HEIGHT / 2)
        path = (root, (turn[0], root[1]), turn, (VALUES_X, y + HEIGHT / 2))
        lines.append(DiagramLine(path if branch.outgoing else path[::-1], arrow=True))
        label = format_value(value.label, value.datatype)
        boxes.append(
            DiagramBox(
                VALUES_X,
                y,
                VALUE_WIDTH,
                HEIGHT,
                label,
                value.entity or "",
                value.entity or "",
                "item" if value.entity else "value",
            )
        )
        y += ROW_STEP
    if branch.more:
        boxes.append(DiagramBox(VALUES_X, y, VALUE_WIDTH, HEIGHT, "and more", look="name"))
        y += ROW_STEP
    return y
