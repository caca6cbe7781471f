"""Prepares a run: its configuration and pins, and the reasoner's task with tools and demonstrations."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from db.answer_formats import AnswerFormat
from db.database import Conflict, RowNotFound
from db.libraries import find_version, list_versions
from db.models import Library, Project, Question, Run
from db.projects import DEFAULT_INSTRUCTION
from db.trace_configuration import MODEL_SKILLS, TraceConfiguration
from db.traces import load_traces
from fewshot_library.library import SelectedDemonstrations
from fewshot_library.selection import SELECTION_MODES, SelectionConfig
from llm.profiles import ProfileError, list_changes, profile_to_json
from llm.types import ModelProfile
from reasoners.base import Reasoner, Task
from reasoners.humaniq.options import AgentOptionsError
from reasoners.prompting.tool_declarations import prompt_versions
from reasoners.registry import REASONERS, ReasonerEntry, find_reasoner, make_reasoner
from runs.services import Services
from settings import DEFAULT_LIBRARY
from tools.registry import BUILT_IN_TOOLS
from worlds.open import read_world_metadata


@dataclass(frozen=True, slots=True)
class RunConfig:
    """How a run answers questions: reasoner, options, library and model."""

    reasoner: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """The reasoner's options by name."""
    library: str | None = None
    """NAME or NAME:NUMBER; None for the default library, if there is one."""
    profile: str | None = None
    """The profile of the model; None for the default one."""
    person_skills: tuple[str, ...] = ()
    """The names of the skills whose replies a person writes during the run."""
    skills: str = MODEL_SKILLS
    """What replies to the other skills; anything but the model is a responder that the caller gives to the run."""

    @property
    def entry(self) -> ReasonerEntry:
        """The reasoner's entry in the registry; UnknownReasoner if there is none."""
        return find_reasoner(self.reasoner)

    @property
    def needs_model(self) -> bool:
        """Whether the reasoner needs a language model, and nothing else replies to its skills."""
        return self.entry.needs_model and self.skills == MODEL_SKILLS

    def make_reasoner(self) -> Reasoner:
        """Build the reasoner with its options; AgentOptionsError if a person is to play a skill that it lacks."""
        skills = [skill.name for skill in self.entry.skills]
        if unknown := [name for name in self.person_skills if name not in skills]:
            offered = f"it has {', '.join(skills)}" if skills else "it lists none"
            raise AgentOptionsError(f"{self.reasoner} has no skill {unknown[0]!r} for a person to play; {offered}")
        return make_reasoner(self.reasoner, self.options)

    @property
    def default_step_limit(self) -> int:
        """The step limit, unless the user sets another one."""
        return self.entry.default_step_limit

    def selection_config(self) -> SelectionConfig:
        """How demonstrations are selected."""
        return self.entry.selection_config(self.options)

    def library_version(self, services: Services) -> Library | None:
        """The library version that demonstrations come from; None if there is none, or the reasoner is shown none."""
        if not self.entry.uses_demonstrations:
            return None
        with services.database.read() as session:
            if self.library is None and not list_versions(session, DEFAULT_LIBRARY):
                return None
            return find_version(session, self.library or DEFAULT_LIBRARY)

    def pin(self, services: Services) -> "RunConfig":
        """Return the same configuration with a fixed version number of the library."""
        library = self.library_version(services)
        return replace(self, library=None if library is None else f"{library.name}:{library.number}")

    def to_json(self) -> dict[str, Any]:
        """The configuration as stored by a run; call `pin` first to fix the library version."""
        return {"reasoner": self.reasoner, "options": dict(self.options), "library": self.library}

    def model_profile(self, services: Services) -> ModelProfile | None:
        """The profile of the run's model; None for a run without one. ProfileError for an unknown profile."""
        return services.model_profile(self.profile) if self.needs_model else None

    @classmethod
    def from_stored(cls, configuration: TraceConfiguration) -> "RunConfig":
        """The RunConfig of a stored run or trace."""
        profile = None if configuration.profile is None else configuration.profile.get("name")
        return cls(
            configuration.reasoner or "",
            configuration.options,
            configuration.library,
            profile,
            configuration.person_skills,
            configuration.skills,
        )


def build_run(
    services: Services, config: RunConfig, *, name: str, project: Project, configuration: Mapping[str, Any]
) -> Run:
    """Build a run over questions of the project that pins library, model, encoder, world, code and tools."""
    library = config.library_version(services)
    offered = services.tool_registry().offered_tools(services.open_world(project.world), project.tools)
    prompts: Mapping[str, str] = {f"skill:{skill.name}": skill.reference for skill in config.entry.skills}
    if config.entry.needs_model and not prompts:
        prompts = prompt_versions(
            offered,
            str(config.options.get("sources", "both")),
            project.instruction or DEFAULT_INSTRUCTION,
            AnswerFormat.from_json(project.answer_format),
        )
    profile = config.model_profile(services)
    packages = {
        **configuration.get("plugins", {}),
        **REASONERS.record(config.reasoner),
        **SELECTION_MODES.record(config.selection_config().mode),
        **BUILT_IN_TOOLS.record(*(tool.name for tool in offered)),
    }
    recorded = (
        ({"plugins": packages} if packages else {})
        | ({"prompts": dict(prompts)} if prompts else {})
        | ({"profile": record_profile(profile)} if profile else {})
    )
    return Run(
        name=name,
        reasoner=config.reasoner,
        world=project.world,
        configuration={**configuration, **recorded},
        library_id=library.id if library is not None else None,
        model=profile.model if profile else None,
        encoder=services.settings.encoder,
        world_hash=_world_hash(services, project.world),
        code_version=version("showhow"),
        tools=[tool.name for tool in offered],
        options=dict(config.options),
    )


def record_profile(profile: ModelProfile) -> dict[str, Any]:
    """The profile as a run records it: with its name, without its key."""
    return {"name": profile.name, **profile_to_json(profile)}


def check_pins(services: Services, run: Run) -> None:
    """Raise Conflict if the model or the world changed since the run was started."""
    conflict = find_pin_conflict(services, run)
    if conflict is not None:
        raise Conflict(conflict)


def find_pin_conflict(services: Services, run: Run) -> str | None:
    """Why the run cannot continue with the current settings, as a sentence; None if it can."""
    needs_model = TraceConfiguration.from_json(run.configuration).skills == MODEL_SKILLS
    needs_model &= find_reasoner(run.reasoner).needs_model
    if needs_model and (conflict := _find_model_conflict(services, run)) is not None:
        return conflict
    if run.world_hash is not None and run.world_hash != _world_hash(services, run.world):
        return f"the world {run.world} was rebuilt since this run was started; start a new run"
    return None


def _find_model_conflict(services: Services, run: Run) -> str | None:
    recorded = TraceConfiguration.from_json(run.configuration).profile
    name = None if recorded is None else recorded["name"]
    try:
        current = services.model_profile(name)
    except ProfileError:
        return (
            f"this run was started with the model profile {name}, which was removed; add it again, or start a new run"
        )
    if current is None or run.model != current.model:
        return (
            f"this run was started with the model {run.model or '(none is recorded)'}, and "
            f"{current.model if current else 'none'} is set up now; set the former one, or start a new run"
        )
    if recorded is not None and (changes := list_changes(recorded, profile_to_json(current))):
        return (
            f"the model profile {name} was changed since this run was started: {'; '.join(changes)}; change it back, "
            "or start a new run"
        )
    return None


def _world_hash(services: Services, world: str) -> str | None:
    return read_world_metadata(services.settings.worlds_folder, world).get("hash")


@dataclass(frozen=True, slots=True)
class PreparedTask:
    """A reasoner's task, and how its demonstrations were selected."""

    task: Task
    selection: SelectedDemonstrations | None
    """None if there is no library, or if k is 0."""


def build_bare_task(services: Services, question: Question, project: Project, config: RunConfig) -> Task:
    """Build the task of a question without demonstrations; a run that needs no model gets none."""
    context = services.tool_context(project.world, config.profile)
    if not config.needs_model:
        context = replace(context, chat=None)
    tools = services.tool_registry().offered_tools(context.world, project.tools)
    return Task(
        question.full_text,
        context,
        tools,
        person_skills=frozenset(config.person_skills),
        instruction=project.instruction or DEFAULT_INSTRUCTION,
        answer_format=AnswerFormat.from_json(project.answer_format),
    )


def prepare_task(
    services: Services, question: Question, project: Project, config: RunConfig, *, is_evaluated: bool = True
) -> PreparedTask:
    """Build the task of a question with demonstrations.

    Those of the same question are left out, unless nothing is evaluated and the reasoner repeats demonstrations.
    """
    task = build_bare_task(services, question, project, config)
    library_version, selection = config.library_version(services), config.selection_config()
    if library_version is None or selection.k == 0:
        return PreparedTask(task, None)
    reference = f"{library_version.name}:{library_version.number}"
    library = services.open_demonstrations(reference, config.entry.planning_skill)
    leave_out = is_evaluated or not config.entry.repeats
    selected = library.select(question.full_text, selection, leave_out_itself=leave_out)
    picks = [pick for pick in selected.demonstrations if not leave_out or pick.question_id != question.id]
    ids = [pick.trace_id for pick in picks]
    with services.database.read() as session:
        demonstrations = list(load_traces(session, ids))
    if len(demonstrations) != len(ids):
        raise RowNotFound(f"the library {reference} has traces that no longer exist; freeze a new version")
    return PreparedTask(replace(task, demonstrations=demonstrations), selected)
