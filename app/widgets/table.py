"""A table whose cells can be buttons, and a bar chart with its numbers in one; texts are plain, never markup."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import streamlit as st

from app.widgets.page_layout import read_asset


@dataclass(frozen=True, slots=True)
class TableCell:
    """One cell: its text, an id beside it, the target of a click ("" for none), small bars and their tooltip."""

    text: str
    id: str = ""
    go: str = ""
    number: bool = False
    whole: bool = False
    """Whether the text is never wrapped inside a word."""
    bars: tuple[int, ...] = ()
    hint: str = ""


TableRows = Sequence[Sequence[TableCell | None]]


def show_table(
    columns: Sequence[str], rows: TableRows, *, key: str, label: str, go: Callable[[str], None] | None = None
) -> None:
    """Draw the table; `label` describes it to a screen reader, `go` is called with the target of a clicked cell."""

    def deliver() -> None:
        if go is not None and (event := st.session_state[key].go):
            go(str(event["to"]))

    mount = st.components.v2.component(
        "showhow_table", html='<div class="sheet"></div>', css=read_asset("table.css"), js=read_asset("table.js")
    )
    cells = [[asdict(entry) if entry else None for entry in row] for row in rows]
    mount(data={"label": label, "columns": list(columns), "rows": cells}, key=key, on_go_change=deliver)


BAR_STEP = 22
"""Pixels of a bar and its gap."""
BAR_COLOUR = "#1f5fbf"


def show_bar_chart(  # noqa: PLR0913 - the labels of a chart
    title: str, unit: str, counts: Mapping[str, int], *, key: str, wide: bool = False, counted: str = "questions"
) -> None:
    """Draw the counts by value, in their order; `unit` names the values and `counted` the counted objects."""
    chart = {
        "data": {"values": [{"value": value, "count": count} for value, count in counts.items()]},
        "mark": {"type": "bar", "color": BAR_COLOUR},
        "height": {"step": BAR_STEP},
        "description": f"{title}: {', '.join(f'{count} of {value}' for value, count in counts.items())}",
        "encoding": {
            "y": {
                "field": "value",
                "type": "nominal",
                "title": unit,
                "sort": None,
                "axis": {"labelLimit": 220, "labelOverlap": False},
            },
            "x": {"field": "count", "type": "quantitative", "title": counted, "axis": {"tickMinStep": 1}},
            "tooltip": [{"field": "value", "title": unit}, {"field": "count", "title": counted}],
        },
    }
    with st.container(key=f"chart_{key}", width=740 if wide else 490, gap="small"):
        st.markdown(f"**{title}**")
        with st.container(horizontal=True, gap="small"):
            st.vega_lite_chart(chart, width=440 if wide else 250)
            rows = [[TableCell(value), TableCell(f"{count:,}", number=True)] for value, count in counts.items()]
            show_table((unit, counted), rows, key=f"table_{key}", label=title)
