"""The thoughts of the compared runs beside those of people: their styles as points, distances, calls and tokens."""

import streamlit as st

from showhow.app.widgets.table import TableCell, run_chart_height, run_colour, show_table
from showhow.app.widgets.url_state import get_url_parameter
from showhow.db.database import Database
from showhow.evaluation.comparison.comparison import RunComparison
from showhow.evaluation.comparison.thoughts import (
    DEPTHS,
    MOST_TRACES,
    PEOPLE,
    EncodeTexts,
    ThoughtComparison,
    compare_thoughts,
)
from showhow.runs.services import Services

_SHOWN = "thoughts"
"""The parameter of the link that says that thoughts are compared."""


@st.cache_data(max_entries=16, ttl=600, show_spinner="Reading the thoughts …")
def _compare(
    _database: Database,
    _comparison: RunComparison,
    _encode: EncodeTexts,
    runs: tuple[str, ...],  # noqa: ARG001 - a part of the cache's key, as is the state
    state: str,  # noqa: ARG001
) -> ThoughtComparison:
    return compare_thoughts(_database, _comparison, _encode)


def show_thoughts(services: Services, comparison: RunComparison, state: str) -> None:
    """Draw the switch of the comparison, which takes seconds, and its chart and table."""
    st.session_state["compare_thoughts"] = get_url_parameter(_SHOWN) == "shown"

    def change() -> None:
        st.query_params[_SHOWN] = "shown" if st.session_state["compare_thoughts"] else ""

    if not st.toggle("Compare thoughts with those of people", key="compare_thoughts", on_change=change):
        return
    runs = tuple(f"{run_id} {label}" for run_id, label in comparison.labels.items())
    compared = _compare(services.database, comparison, services.encoder, runs, state)
    if compared.points:
        groups = [*comparison.labels.values(), PEOPLE]
        _show_chart(compared, groups)
    else:
        st.info("Fewer than three traces have thoughts in their own words, so their styles are not compared.")
    rows = [
        [
            TableCell(row["group"], whole=True),
            *(TableCell(f"{row[name]:,}", number=True) for name in ("traces", "thoughts")),
            *(TableCell(_format(row[name], ",.1f"), number=True) for name in ("demonstrations", "tool_calls")),
            TableCell(_format(row["tokens"], ",.0f"), number=True),
            *(TableCell(_format(row[f"distance_{depth}"], ".4f"), number=True) for depth in DEPTHS),
        ]
        for row in compared.groups
    ]
    distances = [f"distance, n = {depth}" for depth in DEPTHS]
    columns = ("run", "traces", "thoughts", "demonstrations", "tool calls", "tokens", *distances)
    show_table(columns, rows, key="thoughts", label="Thoughts of each run and of people")
    st.caption(
        "Demonstrations, tool calls and tokens of thoughts and actions are means of a trace. Distance: the mean "
        "Jensen-Shannon distance of the embeddings of the first n thoughts from those of people, pair by pair. People: "
        "their completed traces in this project and in the libraries of the runs, but for repairs. "
        f"Of more than {MOST_TRACES} traces, {MOST_TRACES} at even distances are read."
    )


def _show_chart(compared: ThoughtComparison, groups: list[str]) -> None:
    axes = [
        {
            "field": name,
            "type": "quantitative",
            "title": f"component {place} ({share:.0%} of the variance)",
            "scale": {"padding": 12, "nice": False},
            "axis": {"tickCount": 8},
        }
        for place, (name, share) in enumerate(zip(("pc1", "pc2"), compared.explained, strict=True), 1)
    ]
    colour = run_colour(groups)
    spec = {
        "height": run_chart_height(len(groups)),
        "data": {"values": [point | {"run": point["group"]} for point in compared.points]},
        "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0.75},
        "encoding": {"x": axes[0], "y": axes[1], "color": colour, "shape": {**colour, "scale": {"domain": groups}}},
    }
    st.markdown("**Style of the thoughts of each trace**")
    st.vega_lite_chart(spec, key="thought_chart", width=740, alt="Style of the thoughts of each run and of people")


def _format(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
