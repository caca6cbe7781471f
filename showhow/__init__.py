"""Showhow for notebooks and other programs: what the verbs do, as typed functions.

    home = showhow.Home.temporary()
    world = showhow.World.generate("village", people=60, depth=4, per_template=1, home=home)
    library = world.demonstrations(12).store("village")

>>> picks = library.select("Who is the mother of the friend of Ada?", k=3)
>>> [message["role"] for message in picks.as_messages()][:2]
['system', 'user']

The examples of the docstrings go on with these.

Worlds, libraries, runs and model profiles are those of a home: that of the verbs, another folder, or a temporary one.
Every error is a ShowhowError with one sentence. What is not named here is private and changes without notice.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from showhow.db.run_spec import RunLimits
    from showhow.evaluation.shared_model import TotalLimits
    from showhow.interface.answers import Answer, ask
    from showhow.interface.demonstrations import Library, PickedExample, Picks
    from showhow.interface.errors import ShowhowError
    from showhow.interface.evaluations import Evaluation, evaluate
    from showhow.interface.example_selector import ExampleSelector
    from showhow.interface.homes import Home
    from showhow.interface.places import World

__all__ = [
    "Answer",
    "Evaluation",
    "ExampleSelector",
    "Home",
    "Library",
    "PickedExample",
    "Picks",
    "RunLimits",
    "ShowhowError",
    "TotalLimits",
    "World",
    "ask",
    "evaluate",
]

_MODULES = {
    "Answer": "showhow.interface.answers",
    "ask": "showhow.interface.answers",
    "Evaluation": "showhow.interface.evaluations",
    "TotalLimits": "showhow.evaluation.shared_model",
    "evaluate": "showhow.interface.evaluations",
    "ExampleSelector": "showhow.interface.example_selector",
    "Home": "showhow.interface.homes",
    "Library": "showhow.interface.demonstrations",
    "PickedExample": "showhow.interface.demonstrations",
    "Picks": "showhow.interface.demonstrations",
    "RunLimits": "showhow.db.run_spec",
    "ShowhowError": "showhow.interface.errors",
    "World": "showhow.interface.places",
}
"""Where each name is defined; a module is imported with its first use, since the encoder and LangChain take seconds."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"showhow has no {name!r}; it has {', '.join(__all__)}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return [*__all__]
