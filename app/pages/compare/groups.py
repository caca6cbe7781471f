"""The scores of the compared runs by groups of questions, or by source, once a grouping is chosen."""

import streamlit as st

from showhow.app.pages.compare.parts import PART_TITLES, show_parts
from showhow.app.pages.compare.questions import choose_parameter
from showhow.app.widgets.page_layout import format_sentence
from showhow.app.widgets.table import TableCell, show_table
from showhow.app.widgets.url_state import get_url_parameter
from showhow.db.database import Conflict
from showhow.evaluation.comparison.comparison import RunComparison, metric_label
from showhow.evaluation.comparison.groups import DATE, ERROR, SOURCE, list_group_rows
from showhow.runs.services import Services

_NONE = "none"
_TITLES = {
    _NONE: "All questions together",
    "difficulty": "Difficulty",
    "hops": "Hops",
    "kind": "Kind",
    "answers": "Number of answers",
    "date": "Date",
    "tag": "Tag",
    "size": "Size of the world",
    "agreement": "Agreement of the sources",
    SOURCE: "Source of the answer",
    ERROR: "Category of the error",
    **PART_TITLES,
}


def show_groups(services: Services, comparison: RunComparison) -> None:
    """Draw the choice of a grouping, and its table."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = choose_parameter("Scores by", "by", _TITLES, 260)
        cutoff = _choose_cutoff() if by == DATE else ""
    if by == _NONE:
        return
    if by in PART_TITLES:
        show_parts(services, comparison, by)
        return
    try:
        rows = list_group_rows(services.database, comparison, by, services.count_articles, cutoff)
    except Conflict as error:
        st.warning(format_sentence(str(error)))
        return
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


def _choose_cutoff() -> str:
    st.session_state["compare_cutoff"] = get_url_parameter("cutoff")

    def change() -> None:
        st.query_params["cutoff"] = st.session_state["compare_cutoff"]

    return st.text_input(
        "Cutoff",
        key="compare_cutoff",
        on_change=change,
        width=170,
        placeholder="2021-09-30, 2021-09",
        help="The last day of a model's training data. Questions with a date are those until it and those after it; "
        "without a cutoff, those of each year.",
    ).strip()


def _format(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
