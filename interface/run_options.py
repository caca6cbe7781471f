"""What a run answers questions with, from the arguments of `ask` and `evaluate`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from showhow.db.run_spec import MODEL_SKILLS, RunLimits, RunSpec
from showhow.interface.demonstrations import Library
from showhow.interface.errors import ShowhowError
from showhow.interface.homes import Home
from showhow.interface.places import World
from showhow.reasoners.registry import default_reasoner, find_reasoner
from showhow.runs.preparation import build_reasoner, find_library, find_profile, needs_model


def choose_world(home: Home, world: World | str | None, project: str | None) -> str | None:
    """The name of the world; ShowhowError unless either a world or a project is given."""
    if (world is None) == (project is None):
        raise ShowhowError("name either a world or a project")
    if isinstance(world, str):
        return World.open(world, home=home).name
    return None if world is None else world.name


def choose_spec(  # noqa: PLR0913, PLR0917 - those of ask and evaluate
    home: Home,
    reasoner: str | None,
    model: Any,
    library: Library | str | None,
    options: Mapping[str, Any],
    limits: RunLimits | None,
    skills: str = MODEL_SKILLS,
) -> RunSpec:
    """How a run answers questions; ShowhowError for what it lacks.

    The step limit of a question is that of the reasoner, unless another one is set.
    """
    services = home.services
    profile = services.lend_model(model) if model is not None and not isinstance(model, str) else model
    has_model = model is not None or bool(services.model_profiles())
    entry = find_reasoner(reasoner) if reasoner else default_reasoner(has_model=has_model)
    if isinstance(library, Library) and library.reference is None:
        raise ShowhowError("runs name the version that they use: give this library a name with its method store")
    reference = library.reference if isinstance(library, Library) else library
    spec = RunSpec(
        reasoner=entry.name,
        options=dict(options),
        library=reference,
        profile=None if profile is None else {"name": profile},
        skills=skills,
        limits=replace(limits or RunLimits(), steps=(limits and limits.steps) or entry.default_step_limit),
    )
    build_reasoner(spec)
    if needs_model(spec) and not has_model:
        raise ShowhowError(
            f"{entry.name} needs a language model: give `model` a chat model of LangChain, a function, or the name of "
            "a profile"
        )
    if profile is not None and not needs_model(spec):
        raise ShowhowError(f"{entry.name} needs no language model: leave out `model`, or name another reasoner")
    if entry.uses_demonstrations and not entry.needs_model and find_library(services, spec) is None:
        raise ShowhowError(f"{entry.name} follows demonstrations: give `library` a library of the home")
    find_profile(services, spec)
    return spec
