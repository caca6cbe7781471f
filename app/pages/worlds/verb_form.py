"""The options of a verb as fields of a form, so that the page offers what the command line does, in the same words."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import streamlit as st
from typer.models import OptionInfo

from app.widgets.plain_text import escape_markdown

OptionValue = bool | int | float | str


@dataclass(frozen=True, slots=True)
class VerbOption:
    """One option of a verb: its type, default, help text, flag and, for a number, its bounds."""

    name: str
    kind: type
    default: Any
    help: str
    flag: str
    minimum: float | None = None
    maximum: float | None = None


def read_verb_options(verb: Callable[..., None]) -> dict[str, VerbOption]:
    """The options of the verb by name, in their order."""
    hints = get_type_hints(verb, include_extras=True)
    options = {}
    for name, parameter in inspect.signature(verb).parameters.items():
        base, *notes = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
        option = next((note for note in notes if isinstance(note, OptionInfo)), None)
        if option is None:
            continue
        kind = next((part for part in get_args(base) if part is not NoneType), base)
        options[name] = VerbOption(
            name, kind, parameter.default, option.help or "", _option_flag(name, option), option.min, option.max
        )
    return options


def _option_flag(name: str, option: OptionInfo) -> str:
    # In an annotation Typer keeps the first of the option's names as its default.
    names = (option.default, *(option.param_decls or ()))
    flags = (flag for flag in names if isinstance(flag, str) and flag.startswith("--"))
    return next(flags, f"--{name.replace('_', '-')}")


def show_option_field(field: VerbOption, key: str, label: str, choices: Sequence[str] = ()) -> OptionValue:
    """Draw the field with its help text below; a text field with choices also takes other text."""
    value = _show_option_widget(field, key, label, choices)
    st.caption(escape_markdown(field.help))
    return value


def _show_option_widget(field: VerbOption, key: str, label: str, choices: Sequence[str]) -> OptionValue:
    # The largest seed is beyond the integers of a browser.
    bounds = (field.minimum, field.maximum)
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
        options = list(dict.fromkeys((str(field.default), *choices)))
        return st.selectbox(label, options, key=key, accept_new_options=True)
    return st.text_input(label, value=str(field.default or ""), key=key)


def build_command_arguments(values: Mapping[str, OptionValue], options: Mapping[str, VerbOption]) -> list[str]:
    """The values as arguments of the command line; defaults are left out."""
    arguments = []
    for name, value in values.items():
        option = options[name]
        if value == option.default:
            continue
        # Joined by "=", so that a value that begins with a dash is not taken for an option.
        arguments.append(option.flag if option.kind is bool else f"{option.flag}={value}")
    return arguments
