"""Drawing of an entity's neighbourhood: its relations with their values."""

from collections.abc import Callable

from app.widgets.drawing import DiagramBox, DiagramLine, draw_diagram
from tools.run_query import format_value
from worlds.neighbourhood import Branch, Neighbourhood

CENTRE_WIDTH, NAME_WIDTH, VALUE_WIDTH = 340, 108, 186
HEIGHT, ROW_STEP, GAP = 25, 29, 7
TRUNK_X, NAMES_X, VALUES_X = 14, 28, 154
"""Left edges of the trunk, the relation labels and the values, in pixels."""


def show_neighbourhood(neighbourhood: Neighbourhood, *, key: str, go: Callable[[str], None]) -> None:
    """Draw the neighbourhood; a click on an entity opens it."""
    boxes, lines = lay_out_neighbourhood(neighbourhood)
    draw_diagram(boxes, lines, key=key, label=f"Graph facts of {neighbourhood.centre.label}", go=go)


def lay_out_neighbourhood(neighbourhood: Neighbourhood) -> tuple[list[DiagramBox], list[DiagramLine]]:
    """Compute boxes and lines: the entity on top, its relations below; arrows point from subject to object."""
    note = (
        f"{neighbourhood.centre.id} · {neighbourhood.centre.description}"
        if neighbourhood.centre.description
        else neighbourhood.centre.id
    )
    boxes = [DiagramBox(0, 0, CENTRE_WIDTH, 42, neighbourhood.centre.label, note, look="centre")]
    lines: list[DiagramLine] = []
    y = 42.0 + 2 * GAP
    for branch in neighbourhood.branches:
        boxes.append(
            DiagramBox(NAMES_X, y, NAME_WIDTH, HEIGHT, _relation_label(branch), branch.relation.id, look="name")
        )
        stem = ((TRUNK_X, 42.0), (TRUNK_X, y + HEIGHT / 2), (NAMES_X, y + HEIGHT / 2))
        lines.append(DiagramLine(stem if branch.outgoing else stem[::-1], arrow=not branch.outgoing))
        y = _lay_out_values(branch, y, boxes, lines) + GAP
    return boxes, lines


def _relation_label(branch: Branch) -> str:
    """Label of a branch; an incoming relation is read in reverse: "father of"."""
    label = branch.relation.label
    # "instance of" and "located in" cannot be reversed; the arrow shows the direction.
    return label if branch.outgoing or label.endswith((" of", " in", " by", " at")) else f"{label} of"


def _lay_out_values(branch: Branch, y: float, boxes: list[DiagramBox], lines: list[DiagramLine]) -> float:
    """Place the values of a branch next to its label; returns their lower end."""
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
