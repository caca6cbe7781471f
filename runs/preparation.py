"""Prepares a run: its specification with its pins, and the reasoner's task with tools and demonstrations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import Library, Project, Question, Run
from showhow.db.questions.answer_formats import AnswerFormat
from showhow.db.questions.projects import DEFAULT_INSTRUCTION
from showhow.db.run_spec import MODEL_SKILLS, RunSpec
from showhow.db.traces.libraries import find_version, list_versions
from showhow.db.traces.traces import load_traces
from showhow.fewshot_library.library import SelectedDemonstrations
from showhow.fewshot_library.selection import SELECTION_MODES
from showhow.llm.profiles import ProfileError, list_changes, profile_to_json
from showhow.llm.types import ModelProfile
from showhow.reasoners.base import Reasoner, Task
from showhow.reasoners.humaniq.options import AgentOptionsError
from showhow.reasoners.prompting.tool_declarations import prompt_versions
from showhow.reasoners.registry import REASONERS, ReasonerEntry, UnknownReasoner, find_reasoner, make_reasoner
from showhow.reasoners.withheld import list_withheld
from showhow.runs.services import Services
from showhow.runs.shots import make_shot_chooser
from showhow.settings import DEFAULT_LIBRARY
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import Tool
from showhow.worlds.open import read_world_metadata
from showhow.worlds.source import World


def find_entry(spec: RunSpec) -> ReasonerEntry:
    """The reasoner's entry in the registry; UnknownReasoner if there is none."""
    return find_reasoner(spec.reasoner)


def needs_model(spec: RunSpec) -> bool:
    """Whether the reasoner needs a language model, and nothing else replies to its skills."""
    return find_entry(spec).needs_model and spec.skills == MODEL_SKILLS


def build_reasoner(spec: RunSpec) -> Reasoner:
    """Build the reasoner with its options; AgentOptionsError if a person is to play a skill that it lacks."""
    skills = [skill.name for skill in find_entry(spec).skills]
    if unknown := [name for name in spec.person_skills if name not in skills]:
        offered = f"it has {', '.join(skills)}" if skills else "it lists none"
        raise AgentOptionsError(f"{spec.reasoner} has no skill {unknown[0]!r} for a person to play; {offered}")
    return make_reasoner(spec.reasoner, spec.options)


def find_library(services: Services, spec: RunSpec) -> Library | None:
    """The library version that demonstrations come from; None if there is none, or the reasoner is shown none."""
    if not find_entry(spec).uses_demonstrations:
        return None
    with services.library_database.read() as session:
        if spec.library is None and not list_versions(session, DEFAULT_LIBRARY):
            return None
        return find_version(session, spec.library or DEFAULT_LIBRARY)


def warn_of_tested_world(services: Services, spec: RunSpec, world: str) -> str | None:
    """One sentence if a run over questions of the world shows demonstrations of that world; None for another run."""
    library = find_library(services, spec)
    if library is None or world not in library.card.get("worlds", ()) or not shows_demonstrations(spec):
        return None
    return (
        f"the library {library.name}:{library.number} has demonstrations from the world {world}, which is asked about, "
        "so answers do not tell how the method does in an unknown world; freeze a library from another one for that"
    )


def shows_demonstrations(spec: RunSpec) -> bool:
    """Whether the reasoner is shown demonstrations with these options; True if this version cannot tell."""
    try:
        return find_entry(spec).selection_config(spec.options).k > 0
    except (UnknownReasoner, AgentOptionsError):
        return True


def find_profile(services: Services, spec: RunSpec) -> ModelProfile | None:
    """The profile of the run's model; None for a run without one. ProfileError for an unknown profile."""
    return services.model_profile(spec.profile_name) if needs_model(spec) else None


def _list_tools(services: Services, spec: RunSpec, world: World, project: Project) -> Sequence[Tool]:
    """The tools that the reasoner brings, or else those that the project offers."""
    entry = find_entry(spec)
    own = entry.bring_tools(entry.parse_options(spec.options))
    return own or services.tool_registry().offered_tools(world, project.tools)


def build_run(services: Services, spec: RunSpec, *, name: str, project: Project) -> Run:
    """Build a run over questions of the project that pins library, model, encoder, world, code and tools."""
    library, entry = find_library(services, spec), find_entry(spec)
    offered = _list_tools(services, spec, services.open_world(project.world), project)
    prompts: Mapping[str, str] = {f"skill:{skill.name}": skill.reference for skill in entry.skills}
    if entry.needs_model and not prompts:
        prompts = prompt_versions(
            offered,
            str(spec.options.get("sources", "both")),
            project.instruction or DEFAULT_INSTRUCTION,
            AnswerFormat.from_json(project.answer_format),
        )
    profile = find_profile(services, spec)
    plugins = {
        **spec.plugins,
        **REASONERS.record(spec.reasoner),
        **SELECTION_MODES.record(entry.selection_config(spec.options).mode),
        **BUILT_IN_TOOLS.record(*(tool.name for tool in offered)),
    }
    pinned = spec.replace(
        library=None if library is None else f"{library.name}:{library.number}",
        profile=None if profile is None else record_profile(profile),
        model=None if profile is None else profile.model,
        prompt_versions=dict(prompts),
        tools=tuple(tool.name for tool in offered),
        plugins=plugins,
        encoder=services.settings.encoder,
        world_hash=_world_hash(services, project.world),
        code_version=version("showhow"),
    )
    return Run(
        name=name,
        reasoner=spec.reasoner,
        world=project.world,
        spec=pinned,
        library_id=None if library is None else library.id,
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
    if needs_model(run.spec) and (conflict := _find_model_conflict(services, run)) is not None:
        return conflict
    if run.spec.world_hash is not None and run.spec.world_hash != _world_hash(services, run.world):
        return f"the world {run.world} was rebuilt since this run was started; start a new run"
    return None


def _find_model_conflict(services: Services, run: Run) -> str | None:
    recorded, name = run.spec.profile, run.spec.profile_name
    try:
        current = services.model_profile(name)
    except ProfileError:
        return (
            f"this run was started with the model profile {name}, which was removed; add it again, or start a new run"
        )
    if current is None or run.spec.model != current.model:
        return (
            f"this run was started with the model {run.spec.model or '(none is recorded)'}, and "
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


def build_bare_task(services: Services, question: Question, project: Project, spec: RunSpec) -> Task:
    """Build the task of a question without demonstrations; a run that needs no model gets none."""
    context = services.tool_context(project.world, spec.profile_name)
    if not needs_model(spec):
        context = replace(context, chat=None)
    tools = _list_tools(services, spec, context.world, project)
    return Task(
        question.full_text,
        context,
        tools,
        person_skills=frozenset(spec.person_skills),
        instruction=project.instruction or DEFAULT_INSTRUCTION,
        answer_format=AnswerFormat.from_json(project.answer_format),
        gold_type=(question.details or {}).get("structure") or question.kind,
    )


def prepare_task(
    services: Services, question: Question, project: Project, spec: RunSpec, *, is_evaluated: bool = True
) -> PreparedTask:
    """Build the task of a question with demonstrations.

    Those of the same question are left out, unless nothing is evaluated and the reasoner repeats demonstrations. In an
    evaluation, so are those that show what the guard of the selection withholds.
    """
    task = build_bare_task(services, question, project, spec)
    entry = find_entry(spec)
    library_version, selection = find_library(services, spec), entry.selection_config(spec.options)
    task = replace(task, choose_shots=make_shot_chooser(services, library_version, question, spec, entry))
    if library_version is None or selection.k == 0:
        return PreparedTask(task, None)
    reference = f"{library_version.name}:{library_version.number}"
    library = services.open_demonstrations(reference, entry.planning_skill)
    leave_out = is_evaluated or not entry.repeats
    guard = selection.guard if is_evaluated else "question"
    withheld = list_withheld(guard, question.full_text, question.gold_answers, task.context)
    selected = library.select(question.full_text, selection, leave_out_itself=leave_out, withheld=withheld)
    picks = [pick for pick in selected.demonstrations if not leave_out or pick.question_id != question.id]
    ids = [pick.trace_id for pick in picks]
    with services.library_database.read() as session:
        demonstrations = list(load_traces(session, ids))
    if len(demonstrations) != len(ids):
        raise RowNotFound(f"the library {reference} has traces that no longer exist; freeze a new version")
    return PreparedTask(replace(task, demonstrations=demonstrations), selected)
