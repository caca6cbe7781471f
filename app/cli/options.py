"""Options that several verbs share: the reasoner and its limits."""

from collections.abc import Callable
from copy import copy
from dataclasses import Field, asdict, dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

import typer

from showhow.app.cli.output import CommandError
from showhow.db.run_spec import DEFAULT_MAX_SECONDS, MODEL_SKILLS, RunLimits, RunSpec
from showhow.evaluation.shared_model import TotalLimits
from showhow.oracles.skill_sources import list_skill_choices, parse_skill_source
from showhow.reasoners.humaniq.options import AgentOptionsError, list_selections
from showhow.reasoners.registry import REASONERS, ReasonerEntry, UnknownReasoner, default_reasoner, find_reasoner
from showhow.runs.budget import MAX_CONCURRENT_QUESTIONS
from showhow.runs.preparation import build_reasoner, find_profile
from showhow.runs.services import Services
from showhow.tasks.progress import print_progress

LibraryReferenceArgument = Annotated[str, typer.Argument(help="NAME for its latest version, NAME:NUMBER for another.")]


def with_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Replace the verb's parameters that are groups, dataclasses with a TITLE, by the options that their fields are."""
    hints = get_type_hints(verb, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if hasattr(kind, "TITLE")}

    @wraps(verb)
    def run(**arguments: Any) -> None:
        values = {
            name: kind(**{option.name: arguments.pop(option.name) for option in fields(kind)})
            for name, kind in groups.items()
        }
        verb(**arguments, **values)

    options = [
        Parameter(
            option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=_option_in_group(kind, option)
        )
        for kind in groups.values()
        for option in fields(kind)
    ]
    own = signature(verb).parameters.values()
    positional = [parameter for parameter in own if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD]
    keyword = [parameter for parameter in own if parameter not in positional and parameter.name not in groups]
    parameters = [*positional, *options, *keyword]
    # Typer reads the options from the signature and the annotations.
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = Signature(parameters)
    return run


def _option_in_group(kind: Any, option: Field[Any]) -> Any:
    """The annotation of the option with the title under which --help shows it."""
    plain, info = get_args(get_type_hints(kind, include_extras=True)[option.name])
    info = copy(info)
    info.rich_help_panel = kind.TITLE
    return Annotated[plain, info]


_MODEL_REASONER, _FREE_REASONER = (default_reasoner(has_model=has_model).name for has_model in (True, False))
_REASONER_HELP = "; ".join(f"{entry.name}: {entry.description}" for entry in REASONERS.values())
_STEP_LIMITS = ", ".join(f"{entry.default_step_limit} with {entry.name}" for entry in REASONERS.values())
ProfileOption = Annotated[
    str | None,
    typer.Option(
        help="Profile of the language model; default: that of the environment, else the first of `models list`."
    ),
]
GoldWorldOption = Annotated[
    str | None, typer.Option("--world", help="The world whose graph has the names of gold answers that are ids.")
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


@dataclass(frozen=True)
class MethodArguments:
    """How questions are answered (`parse_spec`)."""

    TITLE: ClassVar[str] = "Reasoner and model"
    reasoner: Annotated[
        str | None,
        typer.Option(help=f"{_REASONER_HELP}. Default: {_FREE_REASONER}, or {_MODEL_REASONER} once a model is set up."),
    ] = None
    library: Annotated[
        str | None, typer.Option("--library", help="Library version of the demonstrations, NAME or NAME:NUMBER.")
    ] = None
    k: Annotated[int | None, typer.Option("-k", min=0, help="Number of demonstrations.")] = None
    mode: Annotated[
        str | None, typer.Option(help=f"How demonstrations are selected: {', '.join(list_selections())}")
    ] = None
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="NAME=VALUE", help="Option of the reasoner; `reasoners show NAME` lists them."
        ),
    ] = None
    profile: ProfileOption = None


@dataclass(frozen=True)
class PlayedMethodArguments(MethodArguments):
    """How questions are answered, and what replies to skills in place of the model."""

    skills: Annotated[str, typer.Option(help=f"What replies to the skills of a reasoner: {list_skill_choices()}.")] = (
        MODEL_SKILLS
    )


@dataclass(frozen=True)
class LimitOptions:
    """The fields of RunLimits."""

    TITLE: ClassVar[str] = "Limits of each question"
    steps: Annotated[
        int | None, typer.Option(min=1, help=f"Stop a question after this many steps; default: {_STEP_LIMITS}.")
    ] = None
    tokens: Annotated[int | None, typer.Option(min=1, help="Stop a question after this many tokens.")] = None
    seconds: Annotated[float, typer.Option(min=1, help="Stop a question after this many seconds.")] = (
        DEFAULT_MAX_SECONDS
    )
    money: Annotated[float | None, typer.Option(min=0, help="Stop a question after this many US dollars.")] = None
    model_calls: Annotated[
        int | None,
        typer.Option(min=1, help="Stop a question after this many calls of the model; plans are cut to fit."),
    ] = None
    retrievals: Annotated[
        int | None, typer.Option(min=1, help="Stop a question after so many calls of tools; plans are cut to fit.")
    ] = None


@dataclass(frozen=True)
class TotalOptions:
    """The limits of all questions together."""

    TITLE: ClassVar[str] = "Limits of all questions together"
    most_money: TotalCostLimitOption = None
    most_tokens: TotalTokenLimitOption = None
    most_seconds: TotalTimeLimitOption = None

    def build(self) -> TotalLimits:
        """The limits."""
        return TotalLimits(self.most_money, self.most_tokens, self.most_seconds)


@dataclass(frozen=True)
class SampleOptions:
    """Which of the questions are asked."""

    TITLE: ClassVar[str] = "Choice of questions"
    limit: Annotated[
        int | None, typer.Option(min=1, help="Sample size, evenly over the kinds of questions; default: all.")
    ] = None
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of the sample; the same seed gives the same questions.")
    ] = 0
    answerable: Annotated[
        bool,
        typer.Option("--answerable-only", help="Leave out the questions whose gold answer is that they have none."),
    ] = False

    def choose(self, spec: RunSpec) -> RunSpec:
        """The specification with this choice."""
        return spec.replace(sample=self.limit, seed=self.seed, answerable_only=self.answerable)


def parse_spec(services: Services, method: MethodArguments, limits: LimitOptions) -> RunSpec:
    """How a run answers questions; raises CommandError for an unknown or invalid value.

    A reasoner whose skills something else plays does without a model. The default step limit is that of the reasoner.
    """
    has_model = bool(services.model_profiles())
    skills = method.skills if isinstance(method, PlayedMethodArguments) else MODEL_SKILLS
    uses_model = parse_skill_source(skills) is None
    try:
        entry = find_reasoner(method.reasoner) if method.reasoner else default_reasoner(has_model=has_model)
        values = dict(_parse_option(option, entry) for option in method.option or ())
        values |= {name: value for name, value in (("k", method.k), ("selection", method.mode)) if value is not None}
        if values and not entry.option_names:
            print_progress(f"{entry.name} has no options; it ignores -k, --mode and --option")
            values = {}
        spec = RunSpec(
            reasoner=entry.name,
            options=values,
            library=method.library,
            profile=None if method.profile is None else {"name": method.profile},
            skills=skills,
            limits=RunLimits(**asdict(limits) | {"steps": limits.steps or entry.default_step_limit}),
        )
        build_reasoner(spec)
    except (UnknownReasoner, AgentOptionsError) as error:
        raise CommandError(str(error)) from error
    if not uses_model:
        return spec
    if entry.needs_model and not has_model:
        raise CommandError(
            f"{entry.name} needs a language model: add a profile on the Settings page, set SHOWHOW_MODEL, or use "
            f"--reasoner {_FREE_REASONER}"
        )
    if method.profile is not None and not entry.needs_model:
        raise CommandError(f"{entry.name} needs no language model; leave out --profile, or choose another reasoner")
    find_profile(services, spec)
    return spec


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
