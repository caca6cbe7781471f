"""The fields of a tool's arguments, by what each of them takes; what stands in them is text until the step is run."""

import re
from collections.abc import Iterable
from typing import Any

import streamlit as st

from app.components.plain import plain
from tools.parameter import Parameter
from tools.tool import Tool

LONG = frozenset({"sparql"})
FEW = 4
"""Up to so many choices stand side by side, more in a box that opens."""
YES_NO = ("yes", "no")
LEFT_OUT = ""
TALL = {"list": 100, "json": 120}
_FORMS = {
    "number": "a number",
    "whole number": "a whole number",
    "list": "one a line",
    "json": "JSON",
}


def field_of(tool: Tool, parameter: Parameter) -> str:
    """The name under which the form keeps the argument."""
    return f"arg_{tool.name}_{parameter.name}"


def css_of(key: str) -> str:
    """The class that Streamlit gives to the widget of that key, without its prefix."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", key)


def options_of(parameter: Parameter) -> tuple[str, ...]:
    """What can be chosen, as it is shown; () where something is written."""
    return YES_NO if parameter.kind == "yes/no" else tuple(map(str, parameter.choices)) if _chosen(parameter) else ()


def argument_field(parameter: Parameter, key: str, first: str) -> None:
    """Draw the field; `first` stands in it until something else was written."""
    options = options_of(parameter)
    if key not in st.session_state:
        st.session_state[key] = first
    if options and not parameter.required:
        options = (LEFT_OUT, *options) if parameter.default is None else options
    if options and st.session_state[key] not in options:
        # A choice that is no longer offered, or nothing yet.
        st.session_state[key] = LEFT_OUT if LEFT_OUT in options else None
    label = plain(parameter.name.replace("_", " ")) + ("" if parameter.required else " (optional)")
    told = plain(parameter.hint) if _explained(parameter) else None
    if options and len(options) <= FEW:
        st.radio(label, options, key=key, horizontal=True, format_func=_option, help=told)
    elif options:
        st.selectbox(
            label, options, key=key, format_func=lambda one: one or "left out", placeholder="Choose one", help=told
        )
    elif parameter.name in LONG or parameter.kind == "json" or (parameter.kind == "list" and parameter.item != "id"):
        height = 190 if parameter.name in LONG else TALL[parameter.kind]
        st.text_area(label, key=key, height=height, placeholder=_placeholder(parameter), help=told)
    else:
        st.text_input(label, key=key, placeholder=_placeholder(parameter), help=told)


def read_fields(parameters: Iterable[Parameter], written: dict[str, str]) -> dict[str, Any]:
    """The arguments with the types that they have; one that may be left out and is empty is left out.

    ValueError says which one is wrong, and how.
    """
    given: dict[str, Any] = {}
    for parameter in parameters:
        text = written[parameter.name]
        if text or parameter.required:
            try:
                given[parameter.name] = parameter.read(text)
            except ValueError as wrong:
                raise ValueError(f"{parameter.name.replace('_', ' ')}: {wrong}") from wrong
    return given


def _option(option: str) -> str:
    return plain(option) or "left out"


def _chosen(parameter: Parameter) -> bool:
    return parameter.kind == "choice"


def _explained(parameter: Parameter) -> bool:
    """Whether the hint needs a place of its own, since the field is not empty when it is first seen."""
    return (
        bool(parameter.hint) and (parameter.kind != "text" or parameter.default is not None) and parameter.item != "id"
    )


def _placeholder(parameter: Parameter) -> str:
    form = "" if parameter.item == "id" else _FORMS.get(parameter.kind, "")
    return ": ".join(filter(None, (form, parameter.hint)))
