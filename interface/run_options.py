"""What a run answers questions with, from the arguments of `ask` and `evaluate`."""

from collections.abc import Mapping
from typing import Any

from showhow.db.run_spec import MODEL_SKILLS, RunLimits, RunSpec
from showhow.interface.demonstrations import Library
from showhow.interface.errors import ShowhowError
from showhow.interface.homes import Home
from showhow.interface.places import World
from showhow.tasks.method import PlayedMethod, build_spec, require_demonstrations


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
    preset: str | None,
    model: Any,
    library: Library | str | None,
    options: Mapping[str, Any],
    limits: RunLimits | None,
    skills: str = MODEL_SKILLS,
) -> RunSpec:
    """How a run answers questions, as build_spec; it has the demonstrations that its reasoner needs."""
    services = home.services
    profile = services.lend_model(model) if model is not None and not isinstance(model, str) else model
    if isinstance(library, Library) and library.reference is None:
        raise ShowhowError("runs name the version that they use: give this library a name with its method store")
    method = PlayedMethod(
        reasoner=reasoner,
        preset=preset,
        library=library.reference if isinstance(library, Library) else library,
        profile=profile,
        values=dict(options),
        skills=skills,
    )
    spec = build_spec(
        services,
        method,
        limits,
        has_model=model is not None or bool(services.model_profiles()),
        model_word="`model`",
        remedy="give `model` a chat model of LangChain, a function, or the name of a profile, or use the reasoner {}",
    )
    require_demonstrations(services, spec)
    return spec
