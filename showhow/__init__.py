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

from showhow.clashes import refuse_clashes

refuse_clashes()

if TYPE_CHECKING:
    from db.run_spec import RunLimits
    from evaluation.shared_model import TotalLimits
    from showhow.answers import Answer, ask
    from showhow.demonstrations import Library, PickedExample, Picks
    from showhow.errors import ShowhowError
    from showhow.evaluations import Evaluation, evaluate
    from showhow.example_selector import ExampleSelector
    from showhow.homes import Home
    from showhow.places import World

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
    "Answer": "showhow.answers",
    "ask": "showhow.answers",
    "Evaluation": "showhow.evaluations",
    "TotalLimits": "evaluation.shared_model",
    "evaluate": "showhow.evaluations",
    "ExampleSelector": "showhow.example_selector",
    "Home": "showhow.homes",
    "Library": "showhow.demonstrations",
    "PickedExample": "showhow.demonstrations",
    "Picks": "showhow.demonstrations",
    "RunLimits": "db.run_spec",
    "ShowhowError": "showhow.errors",
    "World": "showhow.places",
}
"""Where each name is defined; a module is imported with its first use, since the encoder and LangChain take seconds."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"showhow has no {name!r}; it has {', '.join(__all__)}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return [*__all__]
