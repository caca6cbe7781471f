"""A bar chart with named axes and the same numbers in a table beside it."""

from collections.abc import Mapping

import streamlit as st

from app.widgets.table import TableCell, show_table

BAR_STEP = 22
"""Pixels of a bar and its gap."""
BAR_COLOUR = "#1f5fbf"


def show_bar_chart(  # noqa: PLR0913 - the labels of a chart
    title: str, unit: str, counts: Mapping[str, int], *, key: str, wide: bool = False, of: str = "questions"
) -> None:
    """Draw the counts by value, in their order; `unit` names the values and `of` what is counted."""
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
            "x": {"field": "count", "type": "quantitative", "title": of, "axis": {"tickMinStep": 1}},
            "tooltip": [{"field": "value", "title": unit}, {"field": "count", "title": of}],
        },
    }
    with st.container(key=f"chart_{key}", width=740 if wide else 490, gap="small"):
        st.markdown(f"**{title}**")
        with st.container(horizontal=True, gap="small"):
            st.vega_lite_chart(chart, width=440 if wide else 250)
            rows = [[TableCell(value), TableCell(f"{count:,}", number=True)] for value, count in counts.items()]
            show_table((unit, of), rows, key=f"table_{key}", label=title)
