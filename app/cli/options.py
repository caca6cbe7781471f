"""Options that several verbs share: the reasoner and its limits, filters of demonstrations, selection."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

from app.cli.output import CommandError
from app.progress import print_progress
from db.libraries import MODELS, PEOPLE, DemonstrationFilter
from fewshot_library.selection import SELECTION_MODES, SelectionConfig, SelectionError
from reasoners.humaniq.options import OPTION_CHOICES, AgentOptionsError, list_selections
from reasoners.registry import REASONERS, ReasonerEntry, UnknownReasoner, default_reasoner, find_reasoner
from runs.budget import DEFAULT_MAX_SECONDS, MAX_CONCURRENT_QUESTIONS, RunLimits
from runs.preparation import RunConfig
from runs.services import Services

ProjectFilter = Annotated[str | None, typer.Option("--project", help="Only traces of this project.")]
KindFilter = Annotated[str | None, typer.Option(help="Only traces of questions of this kind.")]
RatingFilter = Annotated[float | None, typer.Option(min=1, max=5, help="Only traces with at least this mean rating.")]
AuthorFilter = Annotated[str | None, typer.Option(help=f"Only traces by {PEOPLE} or {MODELS}.")]
TextFilter = Annotated[str | None, typer.Option(help="Only traces of questions that contain these words.")]


def build_demonstration_filter(**conditions: Any) -> DemonstrationFilter:
    """Build the filter from the options; raises CommandError for an unknown kind of author."""
    if conditions.get("by") not in (None, PEOPLE, MODELS):
        raise CommandError(f"demonstrations are by {PEOPLE} or by {MODELS}, not by {conditions['by']!r}")
    return DemonstrationFilter(**conditions)


LibraryReferenceArgument = Annotated[str, typer.Argument(help="NAME for its latest version, NAME:NUMBER for another.")]
LeaveOutOption = Annotated[bool, typer.Option("--leave-out-itself", help="Never select the question itself.")]

_SELECTION_OPTIONS: dict[str, Any] = {
    "k": Annotated[int, typer.Option("-k", min=0, help="How many demonstrations to select.")],
    "mode": Annotated[str, typer.Option(help=", ".join(SELECTION_MODES))],
    "alpha": Annotated[float, typer.Option(help="Relevance weight.")],
    "gamma": Annotated[
        float, typer.Option(help="Diversity: how fast similarity falls with the distance of action sequences.")
    ],
    "distance": Annotated[
        str,
        typer.Option(
            help="longer: edits divided by the length of the longer sequence; metric: the Yujian-Bo distance."
        ),
    ],
    "exchange": Annotated[bool, typer.Option(help="Exchange picks while that raises the determinant.")],
    "seed": Annotated[int, typer.Option(help="Random seed of the modes random and sample.")],
    "balance": Annotated[float, typer.Option(help="Balance of the mode mmr; 1 is relevance alone.")],
}
"""The options of a verb for the fields of SelectionConfig; their defaults are those of the fields."""
DistanceOption = _SELECTION_OPTIONS["distance"]


def with_selection_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Replace the verb's parameter `config` by the options of a selection; the verb gets a valid SelectionConfig."""

    @wraps(verb)
    def run(**arguments: Any) -> None:
        config = SelectionConfig(**{name: arguments.pop(name) for name in _SELECTION_OPTIONS})
        try:
            config.validate()
        except SelectionError as error:
            raise CommandError(str(error)) from error
        verb(**arguments, config=config)

    defaults = {field.name: field.default for field in fields(SelectionConfig)}
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name], annotation=option)
        for name, option in _SELECTION_OPTIONS.items()
    ]
    own = signature(verb).parameters.values()
    positional = [parameter for parameter in own if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD]
    keyword = [parameter for parameter in own if parameter not in positional and parameter.name != "config"]
    parameters = [*positional, *options, *keyword]
    # Typer reads the options from the signature and the annotations.
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = Signature(parameters)
    return run


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
ProfileOption = Annotated[
    str | None,
    typer.Option(
        help="Profile of the language model; default: that of the environment, else the first of `models list`."
    ),
]
GoldWorldOption = Annotated[
    str | None, typer.Option("--world", help="The world whose graph has the names of gold answers that are ids.")
]
AnswerableOption = Annotated[
    bool, typer.Option("--answerable-only", help="Leave out the questions whose gold answer is that they have none.")
]
DemonstrationCountOption = Annotated[int | None, typer.Option("-k", min=0, help="Number of demonstrations.")]
SelectionOption = Annotated[
    str | None, typer.Option(help=f"How demonstrations are selected: {', '.join(list_selections())}")
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
ModelCallLimitOption = Annotated[
    int | None, typer.Option(min=1, help="Stop a question after this many calls of the model; plans are cut to fit.")
]
RetrievalLimitOption = Annotated[
    int | None, typer.Option(min=1, help="Stop a question after this many calls of tools; plans are cut to fit.")
]
ConcurrencyOption = Annotated[
    int, typer.Option(min=1, max=MAX_CONCURRENT_QUESTIONS, help="Number of questions answered in parallel.")
]
TotalCostLimitOption = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="Send no request that could make all questions together cost more US dollars; one whose reply is lost "
        "counts with the most that it can cost.",
    ),
]
TotalTokenLimitOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Send no request that could make all questions together use more tokens; one whose reply is lost counts "
        "with the most that it can use.",
    ),
]
TotalTimeLimitOption = Annotated[
    float | None,
    typer.Option(min=1, help="Stop after this many seconds; until then, questions that the server failed are retried."),
]
DEFAULT_TIME_LIMIT = DEFAULT_MAX_SECONDS


def parse_run_config(  # noqa: PLR0913, PLR0917 - one parameter for each option of the verbs
    services: Services,
    reasoner: str | None,
    library: str | None,
    k: int | None,
    mode: str | None,
    options: Sequence[str] | None,
    profile: str | None,
    *,
    uses_model: bool = True,
) -> RunConfig:
    """Build the configuration of a run; raises CommandError for an unknown or invalid value.

    Without `uses_model`, a reasoner that needs a model does without, since something else replies to its skills.
    """
    has_model = bool(services.model_profiles())
    try:
        entry = find_reasoner(reasoner) if reasoner else default_reasoner(has_model=has_model)
        values = dict(_parse_option(option, entry) for option in options or ())
        values |= {name: value for name, value in (("k", k), ("selection", mode)) if value is not None}
        if values and not entry.option_names:
            print_progress(f"{entry.name} has no options; it ignores -k, --mode and --option")
            values = {}
        config = RunConfig(entry.name, values, library, profile)
        config.make_reasoner()
    except (UnknownReasoner, AgentOptionsError) as error:
        raise CommandError(str(error)) from error
    if not uses_model:
        return config
    if entry.needs_model and not has_model:
        raise CommandError(
            f"{entry.name} needs a language model: add a profile on the Settings page, set SHOWHOW_MODEL, or use "
            f"--reasoner {_FREE_REASONER}"
        )
    if profile is not None and not entry.needs_model:
        raise CommandError(f"{entry.name} needs no language model; leave out --profile, or choose another reasoner")
    config.model_profile(services)
    return config


def build_limits(config: RunConfig, limits: RunLimits) -> RunLimits:
    """The limits of each question; the default step limit is that of the reasoner."""
    return limits if limits.steps is not None else replace(limits, steps=config.default_step_limit)


def _parse_option(option: str, entry: ReasonerEntry) -> tuple[str, Any]:
    name, equals, value = option.partition("=")
    # An option that is not set by default is a number.
    types: dict[str, type[Any]] = {
        field.name: int if field.default is None else type(field.default) for field in fields(entry.options)
    }
    if not types:
        return name, value
    if not equals or name not in types:
        raise CommandError(f"{option!r} is not an option of a reasoner; write one of {', '.join(types)} as NAME=VALUE")
    kind = types[name]
    try:
        return name, _parse_bool(value) if kind is bool else kind(value)
    except ValueError as error:
        expected = "yes or no" if kind is bool else "a number"
        raise CommandError(f"{option!r} is invalid: {name} takes {expected}") from error


def _parse_bool(text: str) -> bool:
    values = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    if text.lower() not in values:
        raise ValueError(text)
    return values[text.lower()]
