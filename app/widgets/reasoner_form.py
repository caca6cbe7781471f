"""The fields of a reasoner's options and presets, on every form that chooses a reasoner."""

from collections.abc import Collection
from dataclasses import Field
from typing import Any

import streamlit as st

from showhow.app.field_docstrings import read_field_docstrings
from showhow.app.widgets.page_layout import escape_markdown
from showhow.app.widgets.selection_form import selection_label
from showhow.reasoners.humaniq.options import list_selections
from showhow.reasoners.registry import DEFAULT_PRESET, MAX_NUMBER, ReasonerEntry
from showhow.tools.arguments import label_of_name

OPTION_LABELS = {
    "own": "Own knowledge",
    "own_answer": "Also ask the model without tools",
    "k": "Demonstrations",
    "seed": "Random seed",
    "shots": "Plans shown as examples",
    "skill_shots": "Examples of each other skill",
    "source_rule": "Sources of an operation",
    "source_time": "Sources are chosen",
    "combine": "Earlier answers are combined",
    "empty_list": "An empty list means",
    "overlap": "Minimum overlap of words in Filter",
    "most_things": "Things looked up of a set",
    "second_look": "Where the sources do not tell",
    "threshold": "Minimum confidence",
}
"""Labels of options whose names do not say what they are."""
SELECTION_OPTIONS = frozenset({"selection", "k"})
"""The options that choose demonstrations, which forms draw beside the library."""
MAX_DEMONSTRATIONS = 8
FIELD_WIDTH = 380
"""Pixels of a field whose options describe themselves."""


def option_key(form: str, entry: ReasonerEntry, name: str) -> str:
    """The key of the field of an option, or of `preset`; each reasoner has its own."""
    return f"{form}_{entry.name}_{name}"


def show_preset(form: str, entry: ReasonerEntry) -> str | None:
    """Draw the choice of the preset, which fills the fields of the options; None for a reasoner without presets."""
    if not entry.presets:
        return None
    key = option_key(form, entry, "preset")

    def fill_fields() -> None:
        values = entry.apply_preset(st.session_state[key], {})
        for option in entry.own_options:
            st.session_state[option_key(form, entry, option.name)] = values.get(option.name, option.default)

    chosen: str = st.selectbox(
        "Preset",
        [DEFAULT_PRESET, *entry.presets],
        key=key,
        width=122,
        on_change=fill_fields,
        help="Options that are set together: published is the method of its paper, showhow is every default.",
        persist_state="session",
    )
    return chosen


def show_selection_options(form: str, entry: ReasonerEntry) -> dict[str, Any]:
    """Draw how demonstrations are selected and how many; nothing for a reasoner without this choice."""
    if not set(entry.option_names) >= SELECTION_OPTIONS:
        return {}
    for option in entry.own_options:
        if option.name in SELECTION_OPTIONS:
            st.session_state.setdefault(option_key(form, entry, option.name), option.default)
    selection = st.selectbox(
        "Demonstrations",
        list(list_selections()),
        format_func=selection_label,
        key=option_key(form, entry, "selection"),
        width=205,
        help="  \n".join(f"{selection_label(name)}: {description}" for name, description in list_selections().items()),
        persist_state="session",
    )
    k = st.number_input(
        "k",
        0,
        MAX_DEMONSTRATIONS,
        key=option_key(form, entry, "k"),
        width=84,
        disabled=selection in ("one", "none"),
        help="How many demonstrations the prompt contains.",
        persist_state="session",
    )
    return {"selection": selection, "k": int(k)}


def show_options(form: str, entry: ReasonerEntry, *, without: Collection[str] = ()) -> dict[str, Any]:
    """Draw the options of the reasoner besides those; returns the values by name of those that have one."""
    shown = (option for option in entry.own_options if option.name not in without)
    values = {option.name: show_option(form, entry, option) for option in shown}
    return {name: value for name, value in values.items() if value is not None}


def show_option(form: str, entry: ReasonerEntry, option: Field[Any]) -> Any:
    """Draw an option by its type, one of fixed choices, a switch, a number or a text, with what it does below."""
    key, label = option_key(form, entry, option.name), OPTION_LABELS.get(option.name, label_of_name(option.name))
    st.session_state.setdefault(key, option.default)
    choices = entry.list_choices(option)
    kind, is_optional = entry.option_kinds[option.name]
    value: Any
    with st.container(gap="xxsmall", width=FIELD_WIDTH):
        if choices:
            return st.selectbox(
                label,
                list(choices),
                format_func=lambda name: f"{name}: {choices[name]}",
                key=key,
                persist_state="session",
            )
        if kind is bool:
            value = st.checkbox(label, key=key, persist_state="session")
        elif kind in (int, float):
            bounds: dict[str, Any] = {"min_value": kind(0), "max_value": kind(MAX_NUMBER), "step": kind(1)}
            bounds |= {"step": 0.1} if kind is float else {}
            bounds |= {"value": None, "placeholder": "as the model has it"} if is_optional else {}
            value = st.number_input(label, key=key, persist_state="session", **bounds)
        else:
            value = st.text_input(label, key=key, persist_state="session")
        st.caption(escape_markdown(read_field_docstrings(entry.options).get(option.name, "")))
    return value
