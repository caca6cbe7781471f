"""Every reasoner by its name, and how it is made."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from reasoners.fusion import Fusion
from reasoners.humaniq import HumanIQ
from reasoners.reasoner import Reasoner
from reasoners.replay import Replay
from reasoners.setup import Setup, SetupError

Maker = Callable[[Mapping[str, Any]], Reasoner]


class UnknownReasoner(ValueError):
    """There is no reasoner of that name; the message lists those that there are."""


def _humaniq(options: Mapping[str, Any]) -> Reasoner:
    return HumanIQ(Setup.read(options))


def _fusion(options: Mapping[str, Any]) -> Reasoner:
    return Fusion(Setup.read(options))


def _replay(options: Mapping[str, Any]) -> Reasoner:
    if options:
        raise SetupError(f"replay follows demonstrations as they are and has no option {min(options)!r}")
    return Replay()


MAKERS: dict[str, Maker] = {"replay": _replay, "humaniq": _humaniq, "fusion": _fusion}


def make(name: str, options: Mapping[str, Any] | None = None, *, heard: bool = True) -> Reasoner:
    """The reasoner of that name with these options; UnknownReasoner, or its own error for an option that is wrong.

    Where nobody hears what a model says as it comes, its replies are asked for whole, which costs less.
    """
    if name not in MAKERS:
        raise UnknownReasoner(f"there is no reasoner {name!r}; there are {', '.join(MAKERS)}")
    made = MAKERS[name](options or {})
    return made if heard or not isinstance(made, HumanIQ | Fusion) else replace(made, stream=False)
