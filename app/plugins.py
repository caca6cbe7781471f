"""What other installed packages add to Showhow, and what of it is left out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from showhow.evaluation.datasets import QUESTION_FORMATS
from showhow.evaluation.metrics import DATASET_METRICS, METRICS
from showhow.fewshot_library.formats import FORMATS
from showhow.fewshot_library.selection import SELECTION_MODES
from showhow.guard.plugins import Registry, describe_package, list_entry_points
from showhow.oracles.skill_sources import SKILL_SOURCES
from showhow.reasoners.registry import REASONERS
from showhow.tools.registry import BUILT_IN_TOOLS

REGISTRIES: tuple[Registry[Any], ...] = (
    REASONERS,
    BUILT_IN_TOOLS,
    METRICS,
    DATASET_METRICS,
    FORMATS,
    QUESTION_FORMATS,
    SELECTION_MODES,
    SKILL_SOURCES,
)


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """An entry that a package adds."""

    kind: str
    """Such as reasoner or trace format."""
    name: str
    package: str
    """The package with its version."""


def list_plugins() -> list[InstalledPlugin]:
    """The entries of other packages, each kind in turn."""
    return [
        InstalledPlugin(registry.kind, name, package)
        for registry in REGISTRIES
        for name, package in registry.packages.items()
    ]


def list_plugin_problems() -> Iterator[str]:
    """Why entries of other packages are left out, one sentence each."""
    for registry in REGISTRIES:
        yield from registry.problems
    groups = [registry.group for registry in REGISTRIES]
    for point in list_entry_points():
        if point.group not in groups:
            yield (
                f"{point.name} of {describe_package(point)} is left out: there is no group {point.group}; the groups "
                f"are {', '.join(groups)}."
            )
