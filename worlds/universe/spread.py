"""How the facts of a built world are spread over its sources."""

from pathlib import Path

import numpy as np

from worlds.folder import WorldError
from worlds.universe.universe import FACTS, NONE, SOURCES


def spread(universe: Path, told: Path) -> dict[str, dict[str, int]]:
    """For every kind of fact how many each set of sources tells, as "text + graph"; only the columns needed are read.

    A marriage counts once for each of the two, a friendship once.
    """
    try:
        with np.load(universe) as facts, np.load(told) as masks:
            found = {fact: _counted(masks[fact][facts[fact] > NONE]) for fact in FACTS}
            return {**found, "friend": _counted(masks["friends"])}
    except (OSError, ValueError, KeyError, IndexError) as broken:
        raise WorldError(f"The split {told} cannot be read ({broken}); make the world again.") from broken


def _counted(masks: np.ndarray) -> dict[str, int]:
    counts = np.bincount(masks, minlength=1)
    return {_sources(mask): int(count) for mask, count in enumerate(counts) if count}


def _sources(mask: int) -> str:
    return " + ".join(name for name, bit in SOURCES.items() if mask & bit) or "nowhere"
