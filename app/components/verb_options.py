"""The options of a verb as fields of a form, so that the page offers what the command line does, in the same words."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import streamlit as st
from typer.models import OptionInfo

from app.components.plain import plain

Value = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Field:
    """One option: `lowest` and `highest` bound a number where the verb bounds it."""

    name: str
    kind: type
    default: Any
    help: str
    flag: str
    lowest: float | None = None
    highest: float | None = None


def fields(verb: Callable[..., None]) -> dict[str, Field]:
    """The options of the verb by name, in its order."""
    hints = get_type_hints(verb, include_extras=True)
    found = {}
    for name, parameter in inspect.signature(verb).parameters.items():
        base, *notes = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
        option = next((note for note in notes if isinstance(note, OptionInfo)), None)
        if option is None:
            continue
        kind = next((one for one in get_args(base) if one is not NoneType), base)
        found[name] = Field(
            name, kind, parameter.default, option.help or "", _flag(name, option), option.min, option.max
        )
    return found


def _flag(name: str, option: OptionInfo) -> str:
    # In an annotation Typer keeps the first of the names that are given as the default.
    named = (option.default, *(option.param_decls or ()))
    return next((one for one in named if isinstance(one, str) and one.startswith("--")), f"--{name.replace('_', '-')}")


def ask(field: Field, key: str, label: str, choices: Sequence[str] = ()) -> Value:
    """Draw the field with its explanation below and give its value; a text with choices may be written freely too."""
    given = _drawn(field, key, label, choices)
    st.caption(plain(field.help))
    return given


def _drawn(field: Field, key: str, label: str, choices: Sequence[str]) -> Value:
    # A browser's numbers end before the largest seed does.
    bounds = (field.lowest, field.highest)
    lowest, highest = (None if limit is None or abs(limit) > 2**53 else limit for limit in bounds)
    if field.kind is bool:
        return st.checkbox(label, value=bool(field.default), key=key)
    if field.kind is int:
        low, high = (None if limit is None else int(limit) for limit in (lowest, highest))
        return st.number_input(label, low, high, int(field.default), step=1, key=key)
    if field.kind is float:
        least, most = (None if limit is None else float(limit) for limit in (lowest, highest))
        return st.number_input(label, least, most, float(field.default), step=0.1, key=key)
    if choices:
        known = list(dict.fromkeys((str(field.default), *choices)))
        return st.selectbox(label, known, key=key, accept_new_options=True)
    return st.text_input(label, value=str(field.default or ""), key=key)


def arguments(given: Mapping[str, Value], known: Mapping[str, Field]) -> list[str]:
    """The values as words of a command line; what is as the verb has it by itself is left out."""
    words = []
    for name, value in given.items():
        field = known[name]
        if value == field.default:
            continue
        # Joined, so that a value that begins with a dash is not taken for an option.
        words.append(field.flag if field.kind is bool else f"{field.flag}={value}")
    return words
