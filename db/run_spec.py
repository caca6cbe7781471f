"""What a run is asked to do (RunSpec), and what it made of a question besides the steps (RunResult): values as JSON.

    spec = RunSpec(reasoner="replay", library="default:2", limits=RunLimits(steps=50))
    Run(name="ask", reasoner=spec.reasoner, world="harbour", spec=spec)
    trace.result = trace.result.replace(worker=worker_id)

Former forms are read by db/former_configuration.py.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationError

MODEL_SKILLS = "model"
"""The language model as what replies to skills."""
DEFAULT_STEP_LIMIT, DEFAULT_MAX_SECONDS = 20, 600.0


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of a run on each question; None for no limit."""

    steps: int | None = DEFAULT_STEP_LIMIT
    tokens: int | None = None
    """Input and output tokens of all model calls."""
    seconds: float | None = DEFAULT_MAX_SECONDS
    """Seconds since the run was started or resumed."""
    money: float | None = None
    """US dollars."""
    model_calls: int | None = None
    """Calls of the model, by the reasoner and by its tools."""
    retrievals: int | None = None
    """Calls of tools."""

    def to_json(self) -> dict[str, Any]:
        """The limits that are set, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def _read_limits(value: Any) -> Any:
    # A limit that is not stored does not apply, whatever the defaults are.
    return {"steps": None, "seconds": None, **value} if isinstance(value, Mapping) else value


_StoredLimits = Annotated[
    RunLimits, BeforeValidator(_read_limits), PlainSerializer(RunLimits.to_json, return_type=dict[str, Any])
]


class StoredValue(BaseModel):
    """A frozen value that a column stores as JSON; a default is not written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read the stored form; a ValueError says which value is invalid."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}") from error

    @classmethod
    def fits(cls, name: str, value: Any) -> bool:
        """Whether a JSON value is that of the field, so that it is returned as it is."""
        try:
            read = cls.from_json({name: value})
        except ValueError:
            return False
        return bool(read.model_dump(mode="json", include={name})[name] == value)

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def replace(self, **changes: Any) -> Self:
        """The same value with these changes."""
        return self.model_copy(update=changes)


class RunSpec(StoredValue):
    """How a run answers questions, with everything needed to repeat it; fixed when the run starts."""

    schema_version: Literal[1] = 1
    reasoner: str = ""
    options: dict[str, Any] = {}
    """The values of the reasoner's options (reasoners/registry.py) that are not their defaults."""
    preset: str | None = None
    """The name of the preset that set those of the options that nobody gave; None for none."""
    library: str | None = None
    """The library version of the demonstrations as NAME:NUMBER; before the start, None for the default library."""
    profile: dict[str, Any] | None = None
    """The model's profile with its name and without its key; before the start it may have no more than its name."""
    model: str | None = None
    """The language model's name; None for a reasoner without one, or if it was not recorded."""
    skills: str = MODEL_SKILLS
    """What replies to the skills that no person plays: the model, or gold reasoning (oracles/skill_sources.py)."""
    person_skills: tuple[str, ...] = ()
    """The names of the skills whose replies a person writes during the run."""
    limits: _StoredLimits = RunLimits()
    project_id: UUID | None = None
    """Evaluations only: the project of the questions."""
    sample: int | None = None
    """Evaluations only: the number of questions, of all kinds alike; None for all."""
    seed: int = 0
    """Evaluations only: the random seed of the sample."""
    answerable_only: bool = False
    """Whether questions whose gold answer is that they cannot be answered are left out."""
    repetitions: int = 1
    """The number of times that each question is asked."""
    repeats: UUID | None = None
    """The run whose failures are asked again."""
    date_notation: str | None = None
    """The notation in which the answers of a single question are stored that are days; None for that of the model."""
    asked_by: str | None = None
    """The name of the person who started it."""
    prompt_versions: dict[str, str] = {}
    """The version of each prompt by the purpose of its requests (reasoners/prompting/tool_declarations.py)."""
    tools: tuple[str, ...] | None = None
    """The names of the tools that were offered; None if they were not recorded."""
    plugins: dict[str, str] = {}
    """The package and version of each entry of another package that is used, such as "reasoner x": "showhow-x 1.0"."""
    encoder: str | None = None
    world_hash: str | None = None
    """The hash of the world's content at the start; None for a live world."""
    code_version: str | None = None
    details: dict[str, Any] = {}
    """What the run of another program or version has beyond these, by its name there."""

    @property
    def method(self) -> "RunSpec":
        """The same way of answering, for another run."""
        names = ("reasoner", "options", "preset", "library", "skills", "person_skills", "limits")
        profile = None if self.profile is None else {"name": self.profile_name}
        return RunSpec(profile=profile, **{name: getattr(self, name) for name in names})

    @property
    def profile_name(self) -> str | None:
        """The name of the model's profile; None for the default one."""
        return None if self.profile is None else self.profile["name"]

    @property
    def model_label(self) -> str | None:
        """The model with its profile, such as "local (openai:qwen3:8b)"; None for a run without a model."""
        return self.model if self.profile is None or self.model is None else f"{self.profile_name} ({self.model})"

    def to_json(self) -> dict[str, Any]:
        """The stored form, always with its version and limits."""
        return super().to_json() | {"schema_version": self.schema_version, "limits": self.limits.to_json()}


class DemonstrationReference(StoredValue):
    """A demonstration of a run: the id of its trace, and its question."""

    id: UUID
    question: str


class StoredAgreement(StoredValue):
    """The agreement of the sources: a state, a sentence, the answer of each source, and the sources that agree."""

    state: str
    words: str
    answers: dict[str, str | None]
    agreeing: tuple[str, ...]


class RunResult(StoredValue):
    """What a run made of a question besides the steps, or what the file of a trace says; empty for a person's trace."""

    worker: str = ""
    """The id of the process that works on the trace, or did so last."""
    limits: _StoredLimits | None = None
    """The limits with which it went on last, if they are not those of its run."""
    demonstrations: tuple[DemonstrationReference, ...] | None = None
    """The selected demonstrations, in order; None before the selection."""
    prompt_format: str | None = None
    """The format of the prompts that were sent: chat or text."""
    demonstrations_shown: int | None = None
    """The number of demonstrations that fitted into the prompt."""
    answers: tuple[str, ...] = ()
    """The final answer as a list, if the run gave one; `final_answer` of the trace is its text."""
    cited_steps: tuple[int, ...] = ()
    """The positions of the steps that show the answer, as the run says."""
    response: str | None = None
    """The written response to the question."""
    links: tuple[dict[str, Any], ...] = ()
    """The links of the response to steps."""
    response_error: str | None = None
    """The reason why no response was written."""
    agreement: StoredAgreement | None = None
    calls: dict[str, Any] = {}
    """The calls of models and tools, as counted and as expected, and the seconds that the run waited for them."""
    reuses_parent_steps: bool = False
    """Whether the run takes the results of the later steps of the trace that it was forked from, where they apply."""
    replay: dict[str, Any] | None = None
    """Replay only: the demonstration that was followed, and the alignment of its question."""
    generated: bool = False
    """Whether the trace follows the gold reasoning of a generated world."""
    needs: tuple[str, ...] = ()
    """Gold trace only: the sources that it needs."""
    tools: tuple[dict[str, Any], ...] | None = None
    """Imported trace only: the definitions of its tools."""
    details: dict[str, Any] = {}
    """What its method, or the file that it was read from, has beyond these, by its name there."""

    @property
    def followed_demonstrations(self) -> frozenset[str]:
        """The ids of the demonstrations that a replay followed."""
        return frozenset(entry["id"] for entry in (self.replay or {}).get("demonstrations", ()))

    def add(self, details: Mapping[str, Any]) -> Self:
        """The result with these values by name: those of its fields, and further details."""
        names = type(self).model_fields.keys() - {"details"}
        own = {name: value for name, value in details.items() if name in names and self.fits(name, value)}
        further = {name: value for name, value in details.items() if name not in own}
        return self.from_json(self.to_json() | own | {"details": {**self.details, **further}})
