"""A diagram of boxes and lines; a box with a target is a button. Labels are never read as markup."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import streamlit as st

from app.widgets.page_layout import read_asset


@dataclass(frozen=True, slots=True)
class DiagramBox:
    """A box at its place in pixels; `go` is the target of a click, `look` how it is drawn."""

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
        """The x of its centre."""
        return self.x + self.width / 2


@dataclass(frozen=True, slots=True)
class DiagramLine:
    """A line through points; `arrow` puts a head at its last one."""

    points: tuple[tuple[float, float], ...]
    arrow: bool = False


def draw_diagram(
    boxes: Sequence[DiagramBox], lines: Sequence[DiagramLine], *, key: str, label: str, go: Callable[[str], None]
) -> None:
    """Draw the diagram; `label` describes it to a screen reader, `go` is called with the target of a clicked box."""

    def deliver() -> None:
        if chosen := st.session_state[key].go:
            go(str(chosen["to"]))

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
