"""What a run answers questions with, from the arguments of `ask` and `evaluate`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reasoners.registry import default_reasoner, find_reasoner
from runs.budget import RunLimits
from runs.preparation import RunConfig
from showhow.demonstrations import Library
from showhow.errors import ShowhowError
from showhow.homes import Home
from showhow.places import World


def choose_world(home: Home, world: World | str | None, project: str | None) -> str | None:
    """The name of the world; ShowhowError unless either a world or a project is given."""
    if (world is None) == (project is None):
        raise ShowhowError("name either a world or a project")
    if isinstance(world, str):
        return World.open(world, home=home).name
    return None if world is None else world.name


def choose_config(
    home: Home,
    reasoner: str | None,
    model: Any,
    library: Library | str | None,
    options: Mapping[str, Any],
    **settings: Any,
) -> RunConfig:
    """The configuration of a run; ShowhowError for what it lacks."""
    services = home.services
    profile = services.lend_model(model) if model is not None and not isinstance(model, str) else model
    has_model = model is not None or bool(services.model_profiles())
    entry = find_reasoner(reasoner) if reasoner else default_reasoner(has_model=has_model)
    if isinstance(library, Library) and library.reference is None:
        raise ShowhowError("runs name the version that they use: give this library a name with its method store")
    reference = library.reference if isinstance(library, Library) else library
    config = RunConfig(entry.name, dict(options), reference, profile, **settings)
    config.make_reasoner()
    if config.needs_model and not has_model:
        raise ShowhowError(
            f"{entry.name} needs a language model: give `model` a chat model of LangChain, a function, or the name of "
            "a profile"
        )
    if profile is not None and not config.needs_model:
        raise ShowhowError(f"{entry.name} needs no language model: leave out `model`, or name another reasoner")
    if entry.uses_demonstrations and not entry.needs_model and config.library_version(services) is None:
        raise ShowhowError(f"{entry.name} follows demonstrations: give `library` a library of the home")
    config.model_profile(services)
    return config


def choose_limits(config: RunConfig, limits: RunLimits | None) -> RunLimits:
    """The limits of each question; the step limit is that of the reasoner, unless another one is set."""
    default = RunLimits(steps=config.default_step_limit)
    return replace(limits, steps=limits.steps or default.steps) if limits is not None else default
