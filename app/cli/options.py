"""The options of verbs that have questions answered: by which reasoner, with which demonstrations, in which limits.

The options of verbs that say which approved traces are meant.
The options of verbs by which live worlds answer from what they have answered before.
The options of verbs that choose demonstrations.
"""

import os
from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any

import typer

from app.cli.output import CommandError, print_progress
from app.services import services
from db.libraries import MODELS, PEOPLE, DemonstrationFilter
from fewshot_library.selection import SELECTION_MODES
from reasoners.humaniq.options import OPTION_CHOICES, SELECTION_DESCRIPTIONS, AgentOptions, AgentOptionsError
from reasoners.registry import REASONER_FACTORIES, UnknownReasoner
from runs.budget import DEFAULT_MAX_SECONDS, DEFAULT_MAX_STEPS, RunLimits
from runs.preparation import REPLAY, REPLAY_STEP_LIMIT, RunConfig

ProjectFilter = Annotated[str | None, typer.Option("--project", help="Only traces of this project.")]
KindFilter = Annotated[str | None, typer.Option(help="Only of questions of this kind.")]
RatingFilter = Annotated[float | None, typer.Option(min=1, max=5, help="Only with at least this mean of stars.")]
AuthorFilter = Annotated[str | None, typer.Option(help=f"Only by {PEOPLE} or {MODELS}.")]
TextFilter = Annotated[str | None, typer.Option(help="Only of questions that have these words.")]


def build_demonstration_filter(**given: Any) -> DemonstrationFilter:
    """The options as conditions; CommandFailed for one that cannot be."""
    if given.get("by") not in (None, PEOPLE, MODELS):
        raise CommandError(f"demonstrations are by {PEOPLE} or by {MODELS}, not by {given['by']!r}")
    return DemonstrationFilter(**given)


OfflineOption = Annotated[bool, typer.Option("--offline", help="Live worlds answer from their record only.")]
AsOfOption = Annotated[
    str | None, typer.Option("--as-of", metavar="MOMENT", help="As they answered at that moment: 2026-11-21T14:00.")
]


def apply_record_options(as_of: str | None, *, offline: bool) -> None:
    """Have this process answer from the record where that is wished; called before anything reads the settings."""
    if offline:
        os.environ["SHOWHOW_OFFLINE"] = "1"
    if as_of:
        os.environ["SHOWHOW_AS_OF"] = as_of


LibraryReferenceArgument = Annotated[str, typer.Argument(help="NAME for its latest version, NAME:NUMBER for another.")]
PickCountOption = Annotated[int, typer.Option("-k", min=0, help="How many.")]
SelectionModeOption = Annotated[str, typer.Option(help=", ".join(SELECTION_MODES))]
AlphaOption = Annotated[float, typer.Option(help="How much relevance counts.")]
GammaOption = Annotated[float, typer.Option(help="How fast likeness falls with the distance of the actions.")]
DistanceOption = Annotated[str, typer.Option(help="longer: over the longer sequence; metric: Yujian and Bo's.")]
ExchangeOption = Annotated[bool, typer.Option(help="Exchange picks while that raises the determinant.")]
SeedOption = Annotated[int, typer.Option(help="Of the modes random and sample.")]
BalanceOption = Annotated[float, typer.Option(help="Of mmr: 1 is relevance alone.")]
LeaveOutOption = Annotated[bool, typer.Option("--leave-out-itself", help="Not the question itself.")]

ReasonerOption = Annotated[
    str | None,
    typer.Option(help=f"{', '.join(REASONER_FACTORIES)}; default: {REPLAY}, or humaniq once a model is set up."),
]
LibraryOption = Annotated[
    str | None, typer.Option("--library", help="Demonstrations of a version, NAME or NAME:NUMBER.")
]
DemonstrationCountOption = Annotated[int | None, typer.Option("-k", min=0, help="How many demonstrations.")]
SelectionOption = Annotated[
    str | None, typer.Option(help=f"How they are selected: {', '.join(SELECTION_DESCRIPTIONS)}")
]
ReasonerSettingsOption = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help=f"Of the reasoner: {', '.join(OPTION_CHOICES)} ..."),
]
StepLimitOption = Annotated[
    int | None,
    typer.Option(min=1, help=f"The most steps of a question; {DEFAULT_MAX_STEPS}, or {REPLAY_STEP_LIMIT} of replay."),
]
TokenLimitOption = Annotated[int | None, typer.Option(min=1, help="The most tokens of a question.")]
TimeLimitOption = Annotated[float, typer.Option(min=1, help="The most seconds of a question.")]
CostLimitOption = Annotated[float | None, typer.Option(min=0, help="The most US dollars of a question.")]
DEFAULT_TIME_LIMIT = DEFAULT_MAX_SECONDS


def default_reasoner() -> str:
    """What answers where nobody says otherwise: a model where one is set up, else demonstrations are followed."""
    return REPLAY if services().chat is None else "humaniq"


def parse_run_config(
    reasoner: str | None, library: str | None, k: int | None, mode: str | None, options: Sequence[str] | None
) -> RunConfig:
    """The way that these options ask for; CommandFailed in one sentence for what cannot be."""
    told = dict(map(_parse_option, options or ()))
    told |= {name: value for name, value in (("k", k), ("selection", mode)) if value is not None}
    name = reasoner or default_reasoner()
    if name == REPLAY and told:
        print_progress(
            "replay looks at every demonstration, the most alike first; -k, --mode and --option are for models"
        )
        told = {}
    way = RunConfig(name, told, library)
    try:
        way.make_reasoner()
    except (UnknownReasoner, AgentOptionsError) as wrong:
        raise CommandError(str(wrong)) from wrong
    if name != REPLAY and services().chat is None:
        raise CommandError(f"{name} needs a language model: set SHOWHOW_MODEL, or use --reasoner {REPLAY}")
    return way


def build_limits(
    way: RunConfig, steps: int | None, tokens: int | None, seconds: float, money: float | None
) -> RunLimits:
    """The limits of each question."""
    return RunLimits(steps=steps or way.default_step_limit, tokens=tokens, seconds=seconds, money=money)


def _parse_option(option: str) -> tuple[str, Any]:
    name, found, value = option.partition("=")
    kinds: dict[str, type[Any]] = {each.name: type(each.default) for each in fields(AgentOptions)}
    if not found or name not in kinds:
        raise CommandError(f"{option!r} is no option of a reasoner; write one of {', '.join(kinds)} as NAME=VALUE")
    kind = kinds[name]
    try:
        return name, _parse_bool(value) if kind is bool else kind(value)
    except ValueError as wrong:
        raise CommandError(
            f"{option!r} is wrong: {name} takes {'yes or no' if kind is bool else 'a number'}"
        ) from wrong


def _parse_bool(value: str) -> bool:
    known = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    if value.lower() not in known:
        raise ValueError(value)
    return known[value.lower()]
