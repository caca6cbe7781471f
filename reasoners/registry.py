"""Every reasoner by its name, and how it is made."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from reasoners.base import Reasoner
from reasoners.humaniq.agent import HumanIQ
from reasoners.humaniq.late_fusion import LateFusion
from reasoners.humaniq.options import AgentOptions, AgentOptionsError
from reasoners.replay.agent import ReplayReasoner

ReasonerFactory = Callable[[Mapping[str, Any]], Reasoner]


class UnknownReasoner(ValueError):
    """There is no reasoner of that name; the message lists those that there are."""


def _make_humaniq(options: Mapping[str, Any]) -> Reasoner:
    return HumanIQ(AgentOptions.from_mapping(options))


def _make_late_fusion(options: Mapping[str, Any]) -> Reasoner:
    return LateFusion(AgentOptions.from_mapping(options))


def _make_replay(options: Mapping[str, Any]) -> Reasoner:
    if options:
        raise AgentOptionsError(f"replay follows demonstrations as they are and has no option {min(options)!r}")
    return ReplayReasoner()


REASONER_FACTORIES: dict[str, ReasonerFactory] = {
    "replay": _make_replay,
    "humaniq": _make_humaniq,
    "fusion": _make_late_fusion,
}


def make_reasoner(name: str, options: Mapping[str, Any] | None = None, *, heard: bool = True) -> Reasoner:
    """The reasoner of that name with these options; UnknownReasoner, or its own error for an option that is wrong.

    Where nobody hears what a model says as it comes, its replies are asked for whole, which costs less.
    """
    if name not in REASONER_FACTORIES:
        raise UnknownReasoner(f"there is no reasoner {name!r}; there are {', '.join(REASONER_FACTORIES)}")
    made = REASONER_FACTORIES[name](options or {})
    return made if heard or not isinstance(made, HumanIQ | LateFusion) else replace(made, stream=False)
