"""What the parts of the compared runs were: operators, chosen sources, GEEK's facts and mistakes."""

from typing import Any

import streamlit as st

from showhow.app.widgets.page_layout import format_sentence
from showhow.app.widgets.table import TableCell, show_table
from showhow.db.database import Conflict
from showhow.evaluation.comparison.comparison import RunComparison, metric_label
from showhow.evaluation.comparison.fact_comparison import MISTAKES
from showhow.evaluation.comparison.part_groups import (
    CHOSEN,
    FACT,
    FACT_GROUPS,
    MISTAKE,
    OPERATOR,
    list_part_rows,
)
from showhow.runs.services import Services

PART_TITLES = {
    OPERATOR: "Operators of AtomR",
    CHOSEN: "Chosen sources",
    FACT: "Facts of GEEK",
    MISTAKE: "Mistakes of GEEK",
}
_EXPLAINED = {FACT: FACT_GROUPS, MISTAKE: MISTAKES}


def show_parts(services: Services, comparison: RunComparison, by: str) -> None:
    """Draw the table of the parts."""
    # Traces are read whole, so the table is made anew only when answers have come.
    state = [(str(run.run_id), run.answered, run.left, run.score) for run in comparison.figures]
    try:
        rows = _load_rows(services, comparison, by, f"{comparison.metric} {state}")
    except Conflict as error:
        st.info(format_sentence(str(error)))
        return
    cells = [
        [
            TableCell(row["run"], whole=True),
            TableCell(row["group"]),
            *(TableCell(f"{row[name]:,}", number=True) for name in ("parts", "questions")),
            *(TableCell("–" if row[name] is None else f"{row[name]:.3f}", number=True) for name in ("share", "score")),
        ]
        for row in rows
    ]
    heads = ("run", "part", "parts", "questions", "share", metric_label(comparison.metric.name))
    show_table(heads, cells, key="parts", label=PART_TITLES[by])
    if by in _EXPLAINED:
        st.caption(". ".join(f"{name.capitalize()}: {words}" for name, words in _EXPLAINED[by].items()) + ".")


@st.cache_data(max_entries=8, show_spinner="Reading the steps of the runs …")
def _load_rows(
    _services: Services,
    _comparison: RunComparison,
    by: str,
    state: str,  # noqa: ARG001 - a part of the cache's key
) -> list[dict[str, Any]]:
    return list_part_rows(_services, _comparison, by)
