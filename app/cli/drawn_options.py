"""Options of verbs are drawn from the fields of dataclasses (option_fields.py), as forms are."""

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from math import isfinite
from typing import Annotated, Any, get_type_hints

import typer

from showhow.option_fields import OptionField, build_request, list_options

MAX_INTEGER = 2**63 - 1
"""The most that a database stores."""


def draw_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter of the verb that is a dataclass by the options of its fields (option_fields.py).

    A dataclass with a `check` states its bounds itself, in one sentence.
    """
    hints = get_type_hints(verb, include_extras=True)
    drawn = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}

    @wraps(verb)
    def run(**arguments: Any) -> None:
        for name, request in drawn.items():
            entries = list_options(request)
            values = {entry.name: arguments.pop(entry.name) for entry in entries}
            for entry in entries:
                _check_number(entry, values[entry.name])
            values |= {entry.name: tuple(values[entry.name] or ()) for entry in entries if entry.is_repeated}
            arguments[name] = build_request(request, values)
        verb(**arguments)

    parameters: list[Parameter] = []
    for name, parameter in signature(verb).parameters.items():
        if name in drawn:
            parameters += map(_make_parameter, list_options(drawn[name]))
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))
    # Typer reads the options from the signature and the annotations.
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = Signature(parameters)
    return run


def _check_number(entry: OptionField, value: Any) -> None:
    """The bounds of all numbers, which need not be said in the help."""
    if isinstance(value, float) and not isfinite(value):
        raise typer.BadParameter(f"{entry.flag} is {value}; it must be a number")
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise typer.BadParameter(f"{entry.flag} is {value}; it must be at most {MAX_INTEGER:,}")


def _make_parameter(entry: OptionField) -> Parameter:
    note = entry.note
    if note.is_argument:
        place = typer.Argument(help=entry.help or None)
    else:
        flag = f"{entry.flag}/--no-{entry.flag[2:]}" if entry.default is True else entry.flag
        is_bounded = entry.kind in (int, float) and not entry.is_checked
        lowest, highest = (note.minimum, note.maximum) if is_bounded else (None, None)
        place = typer.Option(
            flag,
            help=entry.help,
            rich_help_panel=entry.title or None,
            min=lowest,
            max=highest,
            metavar=note.metavar or None,
        )
    is_optional = entry.default is None or entry.is_repeated
    kind = list[entry.kind] if entry.is_repeated else entry.kind  # type: ignore[name-defined]
    return Parameter(
        entry.name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if entry.is_required else None if is_optional else entry.default,
        annotation=Annotated[kind | None if is_optional else kind, place],
    )
