"""Diagrams of the Worlds page: the neighbourhood of an entity, and a family tree with one row per generation.

A diagram consists of boxes and lines; a box with a target is a button. Labels are plain text, never markup.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

import streamlit as st

from showhow.app.widgets.component_values import read_target
from showhow.app.widgets.page_layout import read_asset
from showhow.fiction.family import Family, Relative
from showhow.tools.run_query import format_value
from showhow.worlds.neighbourhood import Neighbourhood, RelationBranch


@dataclass(frozen=True, slots=True)
class DiagramBox:
    """A box, positioned in pixels; `go` is the target of a click, `look` the style."""

    x: float
    y: float
    width: float
    height: float
    label: str
    note: str = ""
    go: str = ""
    look: str = "item"
    """item, centre, value or name"""

    @property
    def centre_x(self) -> float:
        """The x coordinate of its centre."""
        return self.x + self.width / 2


@dataclass(frozen=True, slots=True)
class DiagramLine:
    """A line through points; `arrow` draws a head at the last point."""

    points: tuple[tuple[float, float], ...]
    arrow: bool = False


def draw_diagram(
    boxes: Sequence[DiagramBox], lines: Sequence[DiagramLine], *, key: str, label: str, go: Callable[[str], None]
) -> None:
    """Draw the diagram; `label` describes it to a screen reader, `go` is called with the target of a clicked box."""

    def deliver() -> None:
        if (target := read_target(key, "go", {box.go for box in boxes if box.go})) is not None:
            go(target)

    mount = st.components.v2.component(
        "showhow_drawing",
        html='<div class="drawing"></div>',
        css=read_asset("drawing.css"),
        js=read_asset("drawing.js"),
    )
    data = {
        "label": label,
        "width": max((box.x + box.width for box in boxes), default=0) + 2,
        "height": max((box.y + box.height for box in boxes), default=0) + 2,
        "boxes": [asdict(box) for box in boxes],
        "lines": [asdict(line) for line in lines],
    }
    mount(data=data, key=key, on_go_change=deliver)


CENTRE_WIDTH, NAME_WIDTH, VALUE_WIDTH = 340, 108, 186
NEIGHBOUR_HEIGHT, ROW_STEP, NEIGHBOUR_GAP = 25, 29, 7
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
    y = 42.0 + 2 * NEIGHBOUR_GAP
    for branch in neighbourhood.branches:
        boxes.append(
            DiagramBox(
                NAMES_X, y, NAME_WIDTH, NEIGHBOUR_HEIGHT, _relation_label(branch), branch.relation.id, look="name"
            )
        )
        stem = ((TRUNK_X, 42.0), (TRUNK_X, y + NEIGHBOUR_HEIGHT / 2), (NAMES_X, y + NEIGHBOUR_HEIGHT / 2))
        lines.append(DiagramLine(stem if branch.outgoing else stem[::-1], arrow=not branch.outgoing))
        y = _lay_out_values(branch, y, boxes, lines) + NEIGHBOUR_GAP
    return boxes, lines


def _relation_label(branch: RelationBranch) -> str:
    """Label of a branch; that of an incoming relation is reversed: "father of"."""
    label = branch.relation.label
    # "instance of" and "located in" cannot be reversed; the arrow shows the direction.
    return label if branch.outgoing or label.endswith((" of", " in", " by", " at")) else f"{label} of"


def _lay_out_values(branch: RelationBranch, y: float, boxes: list[DiagramBox], lines: list[DiagramLine]) -> float:
    """Place the values of a branch next to its label; returns their lower end."""
    root = (NAMES_X + NAME_WIDTH, y + NEIGHBOUR_HEIGHT / 2)
    for value in branch.values:
        corner = (NAMES_X + NAME_WIDTH + 8, y + NEIGHBOUR_HEIGHT / 2)
        path = (root, (corner[0], root[1]), corner, (VALUES_X, y + NEIGHBOUR_HEIGHT / 2))
        lines.append(DiagramLine(path if branch.outgoing else path[::-1], arrow=True))
        label = format_value(value.label, value.datatype)
        boxes.append(
            DiagramBox(
                VALUES_X,
                y,
                VALUE_WIDTH,
                NEIGHBOUR_HEIGHT,
                label,
                value.entity or "",
                value.entity or "",
                "item" if value.entity else "value",
            )
        )
        y += ROW_STEP
    if branch.more:
        boxes.append(DiagramBox(VALUES_X, y, VALUE_WIDTH, NEIGHBOUR_HEIGHT, "and more", look="name"))
        y += ROW_STEP
    return y


WIDTH, HEIGHT, GAP, ROW_HEIGHT = 136, 44, 14, 86
BUS_OFFSET = 20
"""Pixels between the line that joins siblings and their boxes."""
GENERATION_LABELS = ("grandparents", "parents", "this generation", "children", "grandchildren")
MARGIN = 112
"""Left margin for the labels of the generations."""


def show_family(family: Family, *, key: str, go: Callable[[str], None]) -> None:
    """Draw the family tree."""
    boxes, lines = lay_out_family(family)
    draw_diagram(boxes, lines, key=key, label="Family tree", go=go)


def lay_out_family(family: Family) -> tuple[list[DiagramBox], list[DiagramLine]]:
    """Compute boxes and lines of the tree, relative to the top left corner; boxes do not overlap."""
    tree = _FamilyTreeLayout(family)
    tree.place_own_generation()
    tree.place_ancestors()
    tree.place_descendants()
    return tree.build()


class _FamilyTreeLayout:
    """Lays out a tree, generation by generation around the centre person; x may be negative until `build`."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._boxes: list[tuple[DiagramBox, int]] = []
        self._lines: list[DiagramLine] = []
        self._brood: list[DiagramBox] = []
        self._couple: list[DiagramBox] = []

    def place_own_generation(self) -> None:
        """Place the centre among its siblings by age, and its partners next to it."""
        family = self._family
        partners = family.partners.get(family.centre, ())
        x = 0.0
        for person in family.sort_by_age([*family.siblings, family.centre]):
            box = self._place(person, x, 0)
            self._brood.append(box)
            x += WIDTH + GAP
            if person == family.centre:
                self._couple = [box, *self._side_by_side(partners, x, 0)]
                x += len(partners) * (WIDTH + GAP)
        self._connect_partners(self._couple)

    def place_ancestors(self) -> None:
        """Place the parents above the middle of their children, and the grandparents above them."""
        family = self._family
        parents = family.parents.get(family.centre, ())
        if not parents:
            return
        grandparents = {parent: family.parents.get(parent, ()) for parent in parents}
        widths = [_row_width(max(1, len(grandparents[parent]))) for parent in parents]
        x = (self._brood[0].centre_x + self._brood[-1].centre_x - sum(widths) - GAP * (len(widths) - 1)) / 2
        couple = []
        for parent, width in zip(parents, widths, strict=True):
            couple.append(self._place(parent, x + (width - WIDTH) / 2, -1))
            grandparent_boxes = self._side_by_side(
                grandparents[parent], x + (width - _row_width(len(grandparents[parent]))) / 2, -2
            )
            self._connect_children(grandparent_boxes, couple[-1:])
            x += width + GAP
        self._connect_children(couple, self._brood)

    def place_descendants(self) -> None:
        """Place the children with their partners below the couple, and the grandchildren below them."""
        family = self._family
        children = family.children(family.centre)
        couples = {child: [child, *family.partners.get(child, ())] for child in children}
        grandchildren = {child: family.children(child) for child in children}
        widths = [_row_width(max(len(couples[child]), len(grandchildren[child]))) for child in children]
        x = _centre_x(self._couple) - (sum(widths) + GAP * (len(widths) - 1)) / 2
        child_boxes = []
        for child, width in zip(children, widths, strict=True):
            couple_boxes = self._side_by_side(couples[child], x + (width - _row_width(len(couples[child]))) / 2, 1)
            child_boxes.append(couple_boxes[0])
            self._connect_partners(couple_boxes)
            grandchild_boxes = self._side_by_side(
                grandchildren[child], x + (width - _row_width(len(grandchildren[child]))) / 2, 2
            )
            self._connect_children(couple_boxes, grandchild_boxes)
            x += width + GAP
        self._connect_children(self._couple, child_boxes)

    def build(self) -> tuple[list[DiagramBox], list[DiagramLine]]:
        """Shift the layout to the top left corner and add the labels of the generations."""
        left = min(box.x for box, _ in self._boxes) - MARGIN
        top = min(box.y for box, _ in self._boxes)
        rows = sorted({row for _, row in self._boxes})
        names = [
            DiagramBox(0, row * ROW_HEIGHT - top, MARGIN - GAP, HEIGHT, GENERATION_LABELS[row + 2], look="name")
            for row in rows
        ]
        boxes = [_shift_box(box, left, top) for box, _ in self._boxes]
        lines = [DiagramLine(tuple((x - left, y - top) for x, y in line.points)) for line in self._lines]
        return names + boxes, lines

    def _place(self, person: str, x: float, row: int) -> DiagramBox:
        relative = self._family.people[person]
        centre = person == self._family.centre
        go, look = ("", "centre") if centre else (person, "item")
        box = DiagramBox(x, row * ROW_HEIGHT, WIDTH, HEIGHT, relative.label, _format_lifespan(relative), go, look)
        self._boxes.append((box, row))
        return box

    def _side_by_side(self, people: Iterable[str], x: float, row: int) -> list[DiagramBox]:
        return [self._place(person, x + index * (WIDTH + GAP), row) for index, person in enumerate(people)]

    def _connect_partners(self, couple: Sequence[DiagramBox]) -> None:
        for left, right in pairwise(couple):
            y = left.y + HEIGHT / 2
            self._lines.append(DiagramLine(((left.x + left.width, y), (right.x, y))))

    def _connect_children(self, parents: Sequence[DiagramBox], children: Sequence[DiagramBox]) -> None:
        """Draw the lines from the parents down to each child."""
        if not parents or not children:
            return
        self._connect_partners(parents)
        x = _centre_x(parents)
        bus_y = children[0].y - BUS_OFFSET
        # The middle of an even number of parents is the line between two boxes, else a box.
        start = parents[0].y + (HEIGHT if len(parents) % 2 else HEIGHT / 2)
        self._lines.append(DiagramLine(((x, start), (x, bus_y))))
        for child in children:
            self._lines.append(DiagramLine(((x, bus_y), (child.centre_x, bus_y), (child.centre_x, child.y))))


def _row_width(boxes: int) -> float:
    return boxes * WIDTH + max(0, boxes - 1) * GAP


def _centre_x(boxes: Sequence[DiagramBox]) -> float:
    return (boxes[0].centre_x + boxes[-1].centre_x) / 2


def _shift_box(box: DiagramBox, left: float, top: float) -> DiagramBox:
    return replace(box, x=box.x - left, y=box.y - top)


def _format_lifespan(relative: Relative) -> str:
    born, died = relative.born[:4].lstrip("0"), relative.died[:4].lstrip("0")
    if born and died:
        return f"{born}–{died}"
    return f"born {born}" if born else f"died {died}" if died else ""
