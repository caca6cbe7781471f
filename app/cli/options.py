"""Options that several verbs share: the reasoner and its limits, filters of demonstrations, selection."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any

import typer

from app.cli.output import CommandError
from app.progress import print_progress
from db.libraries import MODELS, PEOPLE, DemonstrationFilter
from fewshot_library.selection import SELECTION_MODES
from reasoners.humaniq.options import OPTION_CHOICES, SELECTION_DESCRIPTIONS, AgentOptionsError
from reasoners.registry import REASONERS, ReasonerEntry, UnknownReasoner, default_reasoner, find_reasoner
from runs.budget import DEFAULT_MAX_SECONDS, RunLimits
from runs.preparation import RunConfig
from runs.services import Services

ProjectFilter = Annotated[str | None, typer.Option("--project", help="Only traces of this project.")]
KindFilter = Annotated[str | None, typer.Option(help="Only traces of questions of this kind.")]
RatingFilter = Annotated[float | None, typer.Option(min=1, max=5, help="Only traces with at least this mean rating.")]
AuthorFilter = Annotated[str | None, typer.Option(help=f"Only traces by {PEOPLE} or {MODELS}.")]
TextFilter = Annotated[str | None, typer.Option(help="Only traces of questions that contain these words.")]


def build_demonstration_filter(**conditions: Any) -> DemonstrationFilter:
    """The options as a filter; raises CommandError for an unknown kind of author."""
    if conditions.get("by") not in (None, PEOPLE, MODELS):
        raise CommandError(f"demonstrations are by {PEOPLE} or by {MODELS}, not by {conditions['by']!r}")
    return DemonstrationFilter(**conditions)


LibraryReferenceArgument = Annotated[str, typer.Argument(help="NAME for its latest version, NAME:NUMBER for another.")]
PickCountOption = Annotated[int, typer.Option("-k", min=0, help="How many demonstrations to select.")]
SelectionModeOption = Annotated[str, typer.Option(help=", ".join(SELECTION_MODES))]
AlphaOption = Annotated[float, typer.Option(help="Relevance weight.")]
GammaOption = Annotated[float, typer.Option(help="Diversity: how fast similarity falls with the distance of actions.")]
DistanceOption = Annotated[
    str, typer.Option(help="longer: edits over the longer sequence; metric: that of Yujian and Bo.")
]
ExchangeOption = Annotated[bool, typer.Option(help="Exchange picks while that raises the determinant.")]
SeedOption = Annotated[int, typer.Option(help="Random seed of the modes random and sample.")]
BalanceOption = Annotated[float, typer.Option(help="Balance of the mode mmr; 1 is relevance alone.")]
LeaveOutOption = Annotated[bool, typer.Option("--leave-out-itself", help="Never select the question itself.")]

_MODEL_REASONER, _FREE_REASONER = (default_reasoner(has_model=has_model).name for has_model in (True, False))
_REASONER_HELP = "; ".join(f"{entry.name}: {entry.description}" for entry in REASONERS.values())
_STEP_LIMITS = ", ".join(f"{entry.default_step_limit} with {entry.name}" for entry in REASONERS.values())
ReasonerOption = Annotated[
    str | None,
    typer.Option(help=f"{_REASONER_HELP}. Default: {_FREE_REASONER}, or {_MODEL_REASONER} once a model is set up."),
]
LibraryOption = Annotated[
    str | None, typer.Option("--library", help="Library version of the demonstrations, NAME or NAME:NUMBER.")
]
DemonstrationCountOption = Annotated[int | None, typer.Option("-k", min=0, help="Number of demonstrations.")]
SelectionOption = Annotated[
    str | None, typer.Option(help=f"How demonstrations are selected: {', '.join(SELECTION_DESCRIPTIONS)}")
]
ReasonerSettingsOption = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help=f"Option of the reasoner: {', '.join(OPTION_CHOICES)} ..."),
]
StepLimitOption = Annotated[
    int | None,
    typer.Option(min=1, help=f"Stop a question after this many steps; default: {_STEP_LIMITS}."),
]
TokenLimitOption = Annotated[int | None, typer.Option(min=1, help="Stop a question after this many tokens.")]
TimeLimitOption = Annotated[float, typer.Option(min=1, help="Stop a question after this many seconds.")]
CostLimitOption = Annotated[float | None, typer.Option(min=0, help="Stop a question after this many US dollars.")]
DEFAULT_TIME_LIMIT = DEFAULT_MAX_SECONDS


def parse_run_config(  # noqa: PLR0913, PLR0917 - one parameter for each option of the verbs
    services: Services,
    reasoner: str | None,
    library: str | None,
    k: int | None,
    mode: str | None,
    options: Sequence[str] | None,
) -> RunConfig:
    """The run that these options configure; raises CommandError for an unknown or impossible value."""
    has_model = services.settings.model is not None
    try:
        entry = find_reasoner(reasoner) if reasoner else default_reasoner(has_model=has_model)
        values = dict(_parse_option(option, entry) for option in options or ())
        values |= {name: value for name, value in (("k", k), ("selection", mode)) if value is not None}
        if values and not entry.option_names:
            print_progress(f"{entry.name} has no options; it ignores -k, --mode and --option")
            values = {}
        config = RunConfig(entry.name, values, library)
        config.make_reasoner()
    except (UnknownReasoner, AgentOptionsError) as error:
        raise CommandError(str(error)) from error
    if entry.needs_model and not has_model:
        raise CommandError(
            f"{entry.name} needs a language model: set SHOWHOW_MODEL, or use --reasoner {_FREE_REASONER}"
        )
    return config


def build_limits(
    config: RunConfig, steps: int | None, tokens: int | None, seconds: float, money: float | None
) -> RunLimits:
    """The limits of each question."""
    return RunLimits(steps=steps or config.default_step_limit, tokens=tokens, seconds=seconds, money=money)


def _parse_option(option: str, entry: ReasonerEntry) -> tuple[str, Any]:
    name, equals, value = option.partition("=")
    types: dict[str, type[Any]] = {field.name: type(field.default) for field in fields(entry.options)}
    if not types:
        return name, value
    if not equals or name not in types:
        raise CommandError(f"{option!r} is no option of a reasoner; write one of {', '.join(types)} as NAME=VALUE")
    kind = types[name]
    try:
        return name, _parse_bool(value) if kind is bool else kind(value)
    except ValueError as error:
        expected = "yes or no" if kind is bool else "a number"
        raise CommandError(f"{option!r} is wrong: {name} takes {expected}") from error


def _parse_bool(text: str) -> bool:
    values = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    if text.lower() not in values:
        raise ValueError(text)
    return values[text.lower()]
