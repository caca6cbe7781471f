"""A table whose cells can be buttons, a bar chart with a number at each bar, and a chart of scores over costs.

Texts are plain, never markup.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import compress
from typing import Any

import streamlit as st

from showhow.app.widgets.component_values import read_picks, read_target
from showhow.app.widgets.page_layout import read_asset


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
    pick: str = ""
    """The id by which the row of this first cell is marked."""


def shorten(text: str, length: int = 140) -> str:
    """The first characters of a text for a cell, with a sign that there is more."""
    return text if len(text) <= length else f"{text[:length]} …"


TableRows = Sequence[Sequence[TableCell | None]]


def without_empty_columns(columns: Sequence[str], rows: TableRows) -> tuple[list[str], TableRows]:
    """The columns that any of the rows fills, and the rows with these alone."""
    filled = [
        any(cell is not None and cell.text not in ("", "–") for cell in cells) for cells in zip(*rows, strict=True)
    ]
    return list(compress(columns, filled)), [list(compress(row, filled)) for row in rows]


def show_table(  # noqa: PLR0913 - the content of a table, and what is done with it
    columns: Sequence[str],
    rows: TableRows,
    *,
    key: str,
    label: str,
    go: Callable[[str], None] | None = None,
    picked: Sequence[str] | None = None,
    pick: Callable[[Sequence[str], Sequence[str]], None] | None = None,
) -> None:
    """Draw the table; `label` describes it to a screen reader, `go` is called with the target of a clicked cell.

    With `picked`, the ids of the marked rows, each row with an id has a box; `pick` is called with the ids of all rows
    and those of the marked ones.
    """

    def deliver() -> None:
        targets = {entry.go for row in rows for entry in row if entry and entry.go}
        if go is not None and (target := read_target(key, "go", targets)) is not None:
            go(target)

    def deliver_picks() -> None:
        ids = [entry.pick for row in rows for entry in row[:1] if entry and entry.pick]
        if pick is not None and (marked := read_picks(key, "pick", ids)) is not None:
            pick(ids, marked)

    mount = st.components.v2.component(
        "showhow_table", html='<div class="sheet"></div>', css=read_asset("table.css"), js=read_asset("table.js")
    )
    cells = [[asdict(entry) if entry else None for entry in row] for row in rows]
    data = {
        "label": label,
        "columns": list(columns),
        "rows": cells,
        "picked": None if picked is None else list(picked),
    }
    mount(data=data, key=key, on_go_change=deliver, on_pick_change=deliver_picks)


BAR_STEP = 22
"""Pixels of a bar and its gap."""
BAR_COLOUR = "#1f5fbf"


def show_bar_chart(  # noqa: PLR0913 - the labels of a chart
    title: str, unit: str, counts: Mapping[str, int], *, key: str, wide: bool = False, counted: str = "questions"
) -> None:
    """Draw the counts by value, in their order; `unit` names the values and `counted` the counted objects."""
    y = {
        "field": "value",
        "type": "nominal",
        "title": unit,
        "sort": None,
        "axis": {"labelLimit": 220, "labelOverlap": False},
    }
    x = {
        "field": "count",
        "type": "quantitative",
        "title": counted,
        "axis": None,
        # The number of the longest bar needs room beside it.
        "scale": {"domainMax": max(counts.values(), default=1) * 1.2},
    }
    tooltip = [{"field": "value", "title": unit}, {"field": "count", "title": counted, "format": ","}]
    number = {"type": "text", "align": "left", "dx": 4, "color": text_colour()}
    chart = {
        "data": {"values": [{"value": value, "count": count} for value, count in counts.items()]},
        "height": {"step": BAR_STEP},
        "description": f"{title}: {', '.join(f'{count} of {value}' for value, count in counts.items())}",
        "encoding": {"y": y, "x": x, "tooltip": tooltip},
        "layer": [
            {"mark": {"type": "bar", "color": BAR_COLOUR}},
            {"mark": number, "encoding": {"text": {"field": "count", "type": "quantitative", "format": ","}}},
        ],
    }
    with st.container(key=f"chart_{key}", width=740 if wide else 490, gap="small"):
        st.markdown(f"**{title}** ({counted})")
        st.vega_lite_chart(chart, width=740 if wide else 490)


def text_colour() -> str:
    """The colour of numbers in charts, which do not follow the theme by themselves."""
    return "#edebe8" if st.context.theme.type == "dark" else "#1f1e1d"


DECADE = 10.0


def run_colour(runs: Sequence[str]) -> dict[str, Any]:
    """The encoding of the runs of a chart by colour; a run has the same one in all charts of these runs."""
    return {
        "field": "run",
        "type": "nominal",
        "scale": {"scheme": "tableau10", "domain": list(runs)},
        "legend": {"orient": "bottom", "columns": 1, "title": None, "labelLimit": 420},
    }


def run_chart_height(runs: int) -> int:
    """The pixels of a chart of runs, whose legend has a line for each below it."""
    return 320 + 22 * runs


def cost_chart_spec(
    points: Sequence[Mapping[str, Any]],
    front: Sequence[Mapping[str, Any]],
    runs: Sequence[str],
    cost_title: str,
    score_title: str,
) -> dict[str, Any]:
    """The chart in Vega-Lite of points {id, run, score, low, high, cost, cost_low, cost_high}, a line through `front`.

    The axis of the cost is logarithmic where all costs are above 0 and span a decade. A click selects the id as "run".
    """
    costs = [point["cost"] for point in points]
    is_log = bool(costs) and min(costs) > 0 and max(costs) / min(costs) >= DECADE
    x_scale = {"type": "log"} if is_log else {"zero": False, "padding": 20}
    x = {"field": "cost", "type": "quantitative", "scale": x_scale, "title": cost_title}
    y = {"field": "score", "type": "quantitative", "title": score_title, "scale": {"domain": [0, 1]}}
    tooltip = [{"field": "run"}, {"field": "score", "format": ".3f"}, {"field": "cost", "format": ".4g"}]
    colour = run_colour(runs)
    rule = {"type": "rule", "opacity": 0.55, "strokeWidth": 1.5}
    return {
        "height": run_chart_height(len(runs)),
        "data": {"values": list(points)},
        "params": [{"name": "run", "select": {"type": "point", "fields": ["id"]}, "views": ["points"]}],
        "layer": [
            {
                "data": {"values": list(front)},
                "mark": {"type": "line", "interpolate": "step-after", "color": "#888", "strokeDash": [5, 3]},
                "encoding": {"x": x, "y": y},
            },
            {
                "mark": rule,
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
            },
            {
                "mark": rule,
                "encoding": {
                    "x": {**x, "field": "cost_low"},
                    "x2": {"field": "cost_high"},
                    "y": y,
                    "color": colour,
                },
            },
            {
                "name": "points",
                "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1, "cursor": "pointer"},
                "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
            },
        ],
    }
