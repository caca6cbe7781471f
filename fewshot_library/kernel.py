"""How alike two demonstrations are in what they do: the edit distance between their sequences of actions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from fewshot_library.dpp import Floats, Groups

FIRST_SYMBOL = 0x4E00
"""Where the symbols begin: a block of letters that has room for 20,000 tools."""


@dataclass(frozen=True, slots=True)
class Actions:
    """N demonstrations by the sequence of their actions."""

    sequences: tuple[str, ...]
    """The different sequences, a symbol an action, in the order of their first use."""
    groups: Groups
    """Which demonstrations have which of them."""


def actions(demonstrations: Sequence[Sequence[str]]) -> Actions:
    """The sequences of tool names, each tool one symbol."""
    symbols: dict[str, str] = {}
    places: dict[str, int] = {}
    of = []
    for tools in demonstrations:
        spelled = "".join([symbols.setdefault(tool, chr(FIRST_SYMBOL + len(symbols))) for tool in tools])
        of.append(places.setdefault(spelled, len(places)))
    return Actions(tuple(places), Groups(of))


def _by_longer(sequence: str, others: Sequence[str]) -> Floats:
    """Over the length of the longer one: 0 for equal ones, 1 for those that share nothing."""
    return _row(sequence, others, Levenshtein.normalized_distance)


def _metric(sequence: str, others: Sequence[str]) -> Floats:
    """2 d / (|a| + |b| + d), a metric from 0 to 1 (Yujian and Bo, IEEE TPAMI, 2007)."""
    distance = _row(sequence, others, Levenshtein.distance)
    lengths = np.array([len(other) for other in others]) + len(sequence) + distance
    return np.divide(2 * distance, lengths, out=np.zeros(len(others)), where=lengths > 0)


DISTANCES: dict[str, Callable[[str, Sequence[str]], Floats]] = {"longer": _by_longer, "metric": _metric}
"""From one sequence to others, shape (len(others),). Only `metric` obeys the triangle inequality."""


def _row(sequence: str, others: Sequence[str], scorer: Any) -> Floats:
    found: Floats = process.cdist([sequence], others, scorer=scorer, dtype=np.float64)[0]
    return found


class Similarities:
    """exp(-gamma * distance) from one sequence to all, a row at a time; the last rows are kept."""

    def __init__(self, sequences: Sequence[str], gamma: float, distance: str = "longer") -> None:
        self._sequences = sequences
        self._gamma = gamma
        self._distance = DISTANCES[distance]
        self._kept: dict[int, Floats] = {}

    def __call__(self, group: int) -> Floats:
        """The similarities of that sequence, shape (len(sequences),); not to be changed."""
        if group not in self._kept:
            if len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[group] = np.exp(-self._gamma * self._distance(self._sequences[group], self._sequences))
        return self._kept[group]


_KEPT = 64
