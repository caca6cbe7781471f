"""The options of verbs that have questions answered: by which reasoner, with which demonstrations, in which limits."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any

import typer

from app.resources import chat
from app.solving import REPLAY, REPLAYED_STEPS, Way
from app.verbs.output import CommandFailed, progress
from reasoners.limits import SECONDS, STEPS, Limits
from reasoners.registry import MAKERS, UnknownReasoner
from reasoners.setup import CHOICES, SELECTIONS, Setup, SetupError

Reasoner = Annotated[
    str | None, typer.Option(help=f"{', '.join(MAKERS)}; default: {REPLAY}, or humaniq once a model is set up.")
]
LibraryName = Annotated[str | None, typer.Option("--library", help="Demonstrations of a version, NAME or NAME:NUMBER.")]
K = Annotated[int | None, typer.Option("-k", min=0, help="How many demonstrations.")]
Mode = Annotated[str | None, typer.Option(help=f"How they are selected: {', '.join(SELECTIONS)}")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help=f"Of the reasoner: {', '.join(CHOICES)} ..."),
]
Steps = Annotated[
    int | None, typer.Option(min=1, help=f"The most steps of a question; {STEPS}, or {REPLAYED_STEPS} of replay.")
]
Tokens = Annotated[int | None, typer.Option(min=1, help="The most tokens of a question.")]
Seconds = Annotated[float, typer.Option(min=1, help="The most seconds of a question.")]
Money = Annotated[float | None, typer.Option(min=0, help="The most US dollars of a question.")]
SECONDS_DEFAULT = SECONDS


def default_reasoner() -> str:
    """What answers where nobody says otherwise: a model where one is set up, else demonstrations are followed."""
    return REPLAY if chat() is None else "humaniq"


def way_of(
    reasoner: str | None, library: str | None, k: int | None, mode: str | None, options: Sequence[str] | None
) -> Way:
    """The way that these options ask for; CommandFailed in one sentence for what cannot be."""
    told = dict(map(_pair, options or ()))
    told |= {name: value for name, value in (("k", k), ("selection", mode)) if value is not None}
    name = reasoner or default_reasoner()
    if name == REPLAY and told:
        progress("replay looks at every demonstration, the most alike first; -k, --mode and --option are for models")
        told = {}
    way = Way(name, told, library)
    try:
        way.make()
    except (UnknownReasoner, SetupError) as wrong:
        raise CommandFailed(str(wrong)) from wrong
    if name != REPLAY and chat() is None:
        raise CommandFailed(f"{name} needs a language model: set SHOWHOW_MODEL, or use --reasoner {REPLAY}")
    return way


def limits_of(way: Way, steps: int | None, tokens: int | None, seconds: float, money: float | None) -> Limits:
    """The limits of each question."""
    return Limits(steps=steps or way.steps, tokens=tokens, seconds=seconds, money=money)


def _pair(option: str) -> tuple[str, Any]:
    name, found, value = option.partition("=")
    kinds: dict[str, type[Any]] = {each.name: type(each.default) for each in fields(Setup)}
    if not found or name not in kinds:
        raise CommandFailed(f"{option!r} is no option of a reasoner; write one of {', '.join(kinds)} as NAME=VALUE")
    kind = kinds[name]
    try:
        return name, _truth(value) if kind is bool else kind(value)
    except ValueError as wrong:
        raise CommandFailed(
            f"{option!r} is wrong: {name} takes {'yes or no' if kind is bool else 'a number'}"
        ) from wrong


def _truth(value: str) -> bool:
    known = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    if value.lower() not in known:
        raise ValueError(value)
    return known[value.lower()]
