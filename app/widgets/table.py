"""A table whose cells may lead somewhere; its texts are never read as mark-up."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import streamlit as st

from app.widgets.page_layout import read_asset


@dataclass(frozen=True, slots=True)
class TableCell:
    """One cell: its text, an id beside it, what a click opens ("" for nothing), small bars, what they say."""

    text: str
    id: str = ""
    go: str = ""
    number: bool = False
    whole: bool = False
    """Whether its words stay whole: short ones, as of a kind."""
    bars: tuple[int, ...] = ()
    hint: str = ""


TableRows = Sequence[Sequence[TableCell | None]]


def show_table(
    columns: Sequence[str], rows: TableRows, *, key: str, label: str, go: Callable[[str], None] | None = None
) -> None:
    """Draw it; `label` says to a screen reader what it holds."""

    def deliver() -> None:
        if go is not None and (chosen := st.session_state[key].go):
            go(str(chosen["to"]))

    mount = st.components.v2.component(
        "showhow_table", html='<div class="sheet"></div>', css=read_asset("table.css"), js=read_asset("table.js")
    )
    drawn = [[asdict(entry) if entry else None for entry in row] for row in rows]
    mount(data={"label": label, "columns": list(columns), "rows": drawn}, key=key, on_go_change=deliver)
