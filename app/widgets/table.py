"""A table whose cells can be buttons; its texts are never read as markup."""

from collections.abc import Callable, Sequence
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
        if go is not None and (chosen := st.session_state[key].go):
            go(str(chosen["to"]))

    mount = st.components.v2.component(
        "showhow_table", html='<div class="sheet"></div>', css=read_asset("table.css"), js=read_asset("table.js")
    )
    cells = [[asdict(entry) if entry else None for entry in row] for row in rows]
    mount(data={"label": label, "columns": list(columns), "rows": cells}, key=key, on_go_change=deliver)
