"""How questions are answered: the fields from which verbs and forms are drawn, and the specification that they make."""

from dataclasses import dataclass, field, replace
from typing import Any

from showhow.db.run_spec import DEFAULT_MAX_SECONDS, MODEL_SKILLS, RunLimits, RunSpec
from showhow.option_fields import option
from showhow.oracles.skill_sources import list_skill_choices, parse_skill_source
from showhow.reasoners.humaniq.options import AgentOptionsError, list_selections
from showhow.reasoners.registry import (
    DEFAULT_PRESET,
    REASONERS,
    ReasonerEntry,
    default_reasoner,
    find_reasoner,
)
from showhow.runs.preparation import build_reasoner, find_library, find_profile, needs_model
from showhow.runs.services import Services
from showhow.settings import DEFAULT_LIBRARY
from showhow.tasks.task import TaskError


def _describe_reasoners() -> str:
    with_model, without = (default_reasoner(has_model=has_model).name for has_model in (True, False))
    described = "; ".join(f"{entry.name}: {entry.description}" for entry in REASONERS.values())
    return f"{described}. Default: {without}, or {with_model} once a model is set up."


def _describe_options() -> str:
    """The options of every reasoner; those with the same options are named together."""
    sharing: dict[str, list[str]] = {}
    for entry in REASONERS.values():
        sharing.setdefault(", ".join(entry.option_names), []).append(entry.name)
    listed = "; ".join(f"{', '.join(names)}: {options}" for options, names in sharing.items() if options)
    return f"Option of the reasoner; `reasoners show NAME` explains them. {listed}."


def _describe_presets() -> str:
    names = dict.fromkeys(name for entry in REASONERS.values() for name in entry.presets)
    return (
        f"Options that are set together: {', '.join((DEFAULT_PRESET, *names))}, where {DEFAULT_PRESET} is every "
        "default; given options replace them. `reasoners show NAME` lists what each sets."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A reasoner with its options, its demonstrations and its model."""

    reasoner: str | None = option(None, _describe_reasoners)
    preset: str | None = option(None, _describe_presets)
    library: str | None = option(None, "Library version of the demonstrations, NAME or NAME:NUMBER.")
    k: int | None = option(None, "Number of demonstrations.", flag="-k", minimum=0)
    mode: str | None = option(None, lambda: f"How demonstrations are selected: {', '.join(list_selections())}")
    options: tuple[str, ...] = option((), _describe_options, flag="--option", metavar="NAME=VALUE")
    profile: str | None = option(
        None, "Profile of the language model; default: that of the environment, else the first of `models list`."
    )
    values: dict[str, Any] = field(default_factory=dict)
    """Options by name, as forms and programs give them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedMethod(Method):
    """A method, and what replies to skills in place of the model."""

    skills: str = option(MODEL_SKILLS, lambda: f"What replies to the skills of a reasoner: {list_skill_choices()}.")


def _describe_step_limits() -> str:
    limits = ", ".join(f"{entry.default_step_limit} with {entry.name}" for entry in REASONERS.values())
    return f"Stop a question after this many steps; default: {limits}."


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionLimits:
    """The limits of each question, RunLimits, as they are drawn."""

    steps: int | None = option(None, _describe_step_limits, minimum=1)
    question_tokens: int | None = option(None, "Stop a question after this many tokens.", flag="--tokens", minimum=1)
    question_seconds: float = option(
        DEFAULT_MAX_SECONDS, "Stop a question after this many seconds.", flag="--seconds", minimum=1
    )
    question_money: float | None = option(
        None, "Stop a question after this many US dollars.", flag="--money", minimum=0
    )
    model_calls: int | None = option(
        None, "Stop a question after this many calls of the model; plans are cut to fit.", minimum=1
    )
    retrievals: int | None = option(
        None, "Stop a question after so many calls of tools; plans are cut to fit.", minimum=1
    )

    def build(self) -> RunLimits:
        """The limits; without a number of steps, that of the reasoner is still to be set."""
        values = (self.question_tokens, self.question_seconds, self.question_money, self.model_calls, self.retrievals)
        return RunLimits(self.steps, *values)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSample:
    """Which of the questions are asked."""

    limit: int | None = option(
        None, "Sample size, evenly over the kinds of questions; default: all.", label="Sample size", minimum=1
    )
    seed: int = option(0, "Random seed of the sample; the same seed gives the same questions.", minimum=0)
    answerable: bool = option(
        default=False,
        help="Leave out the questions whose gold answer is that they have none.",
        flag="--answerable-only",
    )

    def choose(self, spec: RunSpec) -> RunSpec:
        """The specification with this choice."""
        return spec.replace(sample=self.limit, seed=self.seed, answerable_only=self.answerable)


MODEL_REMEDY = "add a profile on the Settings page, set SHOWHOW_MODEL, or use --reasoner {}"


def build_spec(  # noqa: PLR0913 - the words differ between verbs and Python
    services: Services,
    method: Method,
    limits: RunLimits | None,
    *,
    has_model: bool | None = None,
    model_word: str = "--profile",
    remedy: str = MODEL_REMEDY,
) -> RunSpec:
    """How a run answers questions; an error of one sentence for a reasoner, option or model that does not fit.

    A reasoner whose skills something else plays does without a model. The default step limit is that of the reasoner.
    """
    has_model = bool(services.model_profiles()) if has_model is None else has_model
    entry = find_reasoner(method.reasoner) if method.reasoner else default_reasoner(has_model=has_model)
    limits = limits or RunLimits(steps=None)
    values = _read_values(entry, method)
    spec = RunSpec(
        reasoner=entry.name,
        preset=method.preset,
        options=values if method.preset is None else entry.apply_preset(method.preset, values),
        library=method.library,
        profile=None if method.profile is None else {"name": method.profile},
        skills=method.skills if isinstance(method, PlayedMethod) else MODEL_SKILLS,
        limits=replace(limits, steps=limits.steps or entry.default_step_limit),
    )
    parse_skill_source(spec.skills)
    build_reasoner(spec)
    if needs_model(spec) and not has_model:
        free = default_reasoner(has_model=False).name
        raise TaskError(f"{entry.name} needs a language model: {remedy.format(free)}")
    if method.profile is not None and not entry.needs_model:
        raise TaskError(f"{entry.name} needs no language model; leave out {model_word}, or choose another reasoner")
    find_profile(services, spec)
    return spec


def require_demonstrations(services: Services, spec: RunSpec) -> None:
    """TaskError for a reasoner that does nothing without demonstrations, and has none."""
    entry = find_reasoner(spec.reasoner)
    if entry.uses_demonstrations and not entry.needs_model and find_library(services, spec) is None:
        raise TaskError(
            f"{spec.reasoner} follows demonstrations, and there is no library {DEFAULT_LIBRARY!r}: run "
            "showhow setup, or name another library with --library (showhow library list shows them)"
        )


def _read_values(entry: ReasonerEntry, method: Method) -> dict[str, Any]:
    """The options of the method by name; AgentOptionsError in the user's words for one that the reasoner lacks."""
    for name in method.values:
        entry.require_option(name)
    values = dict(method.values) | dict(_read_option(entry, text) for text in method.options)
    shorthands = (("k", "-k", method.k), ("selection", f"--mode {method.mode}", method.mode))
    for name, written, value in shorthands:
        if value is not None:
            entry.require_option(name, f"{entry.name} does not take {written}")
            values[name] = value
    return values


def _read_option(entry: ReasonerEntry, text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    written = f"--option {text}"
    if not equals:
        raise AgentOptionsError(f"{written} has no value; write it as NAME=VALUE")
    entry.require_option(name, f"{entry.name} does not take {written}")
    kind, is_optional = entry.option_kinds[name]
    if is_optional and value.lower() == "none":
        return name, None
    try:
        return name, _BOOLEANS[value.lower()] if kind is bool else kind(value)
    except (KeyError, ValueError, TypeError) as error:
        expected = "yes or no" if kind is bool else "a whole number" if kind is int else "a number"
        raise AgentOptionsError(f"{written} is invalid: {name} takes {expected}") from error


_BOOLEANS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
