"""The scores of the compared runs by groups of questions, or by source, once a grouping is chosen."""

import streamlit as st

from showhow.app.pages.compare.parts import PART_TITLES, show_parts
from showhow.app.pages.compare.questions import choose_parameter
from showhow.app.widgets.table import TableCell, show_table
from showhow.evaluation.comparison.comparison import RunComparison, metric_label
from showhow.evaluation.comparison.groups import SOURCE, list_group_rows
from showhow.runs.services import Services

_NONE = "none"
_TITLES = {
    _NONE: "All questions together",
    "difficulty": "Difficulty",
    "hops": "Hops",
    "kind": "Kind",
    "answers": "Number of answers",
    "size": "Size of the world",
    "agreement": "Agreement of the sources",
    SOURCE: "Source of the answer",
    **PART_TITLES,
}


def show_groups(services: Services, comparison: RunComparison) -> None:
    """Draw the choice of a grouping, and its table."""
    by = choose_parameter("Scores by", "by", _TITLES, 260)
    if by == _NONE:
        return
    if by in PART_TITLES:
        show_parts(services, comparison, by)
        return
    rows = list_group_rows(services.database, comparison, by, services.count_articles)
    names = ("recall", "precision", "chosen") if by == SOURCE else ("share", metric_label(comparison.metric.name))
    cells = [
        [
            TableCell(row["run"], whole=True),
            TableCell(row["group"]),
            TableCell(f"{row['questions']:,}", number=True),
            *(TableCell(_format(row[name]), number=True) for name in ("share", "score", "chosen")[: len(names)]),
            TableCell("" if row["score_low"] is None else f"[{row['score_low']:.3f}, {row['score_high']:.3f}]"),
        ]
        for row in rows
    ]
    columns = ("run", _TITLES[by].casefold(), "questions", *names, "95%")
    show_table(columns, cells, key="groups", label=f"Scores by {_TITLES[by].casefold()}")
    if by == SOURCE:
        st.caption(
            "Recall: how often the source had an answer; precision: how often that was right; chosen: how often the "
            "final answer is that of the source."
        )


def _format(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
