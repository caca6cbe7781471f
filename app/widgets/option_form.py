"""Forms that are drawn from the fields of a dataclass (option_fields.py), as the options of verbs are."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from showhow.app.widgets.page_layout import escape_markdown
from showhow.option_fields import OptionField, list_options


def describe_options(request: type) -> dict[str, str]:
    """The help text of each option by its name, for fields that a form draws in its own way."""
    return {entry.name: entry.help for entry in list_options(request)}


def show_option_fields(entries: Sequence[OptionField], key: str) -> dict[str, Any]:
    """Draw the fields in rows of two, so that they line up, with their help texts below; returns the values by name."""
    values: dict[str, Any] = {}
    for pair in (entries[start : start + 2] for start in range(0, len(entries), 2)):
        for column, entry in zip(st.columns(2), pair, strict=False):
            with column:
                values[entry.name] = _show_field(entry, f"{key}_{entry.name}")
                st.caption(escape_markdown(entry.help))
    return values


def _show_field(entry: OptionField, key: str) -> bool | int | float | str:
    """Draw one field; a text field with choices also takes other text."""
    note, default = entry.note, entry.default
    # The largest seed is beyond the integers of a browser.
    lowest, highest = (
        None if limit is None or abs(limit) > 2**53 else entry.kind(limit) for limit in (note.minimum, note.maximum)
    )
    if entry.kind is bool:
        return st.checkbox(entry.label, value=default, key=key)
    if entry.kind in (int, float):
        step = 1 if entry.kind is int else 0.1
        number: int | float = st.number_input(entry.label, lowest, highest, default, step=step, key=key)
        return number
    if note.choices:
        return st.selectbox(entry.label, dict.fromkeys((default, *note.choices)), key=key, accept_new_options=True)
    return st.text_input(entry.label, value=default or "", key=key).strip()
