"""How alike two demonstrations are in what they do: the edit distance between their sequences of actions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from fewshot_library.dpp import FloatArray, Groups

FIRST_SYMBOL = 0x4E00
"""Where the symbols begin: a block of letters that has room for 20,000 tools."""


@dataclass(frozen=True, slots=True)
class ActionSequences:
    """N demonstrations by the sequence of their actions."""

    sequences: tuple[str, ...]
    """The different sequences, a symbol an action, in the order of their first use."""
    groups: Groups
    """Which demonstrations have which of them."""


def encode_actions(demonstrations: Sequence[Sequence[str]]) -> ActionSequences:
    """The sequences of tool names, each tool one symbol."""
    symbols: dict[str, str] = {}
    places: dict[str, int] = {}
    of = []
    for tools in demonstrations:
        spelled = "".join([symbols.setdefault(tool, chr(FIRST_SYMBOL + len(symbols))) for tool in tools])
        of.append(places.setdefault(spelled, len(places)))
    return ActionSequences(tuple(places), Groups(of))


def _relative_edit_distance(sequence: str, others: Sequence[str]) -> FloatArray:
    """Over the length of the longer one: 0 for equal ones, 1 for those that share nothing."""
    return _distance_row(sequence, others, Levenshtein.normalized_distance)


def _metric_edit_distance(sequence: str, others: Sequence[str]) -> FloatArray:
    """2 d / (|a| + |b| + d), a metric from 0 to 1 (Yujian and Bo, IEEE TPAMI, 2007)."""
    distance = _distance_row(sequence, others, Levenshtein.distance)
    lengths = np.array([len(other) for other in others]) + len(sequence) + distance
    return np.divide(2 * distance, lengths, out=np.zeros(len(others)), where=lengths > 0)


DISTANCES: dict[str, Callable[[str, Sequence[str]], FloatArray]] = {
    "longer": _relative_edit_distance,
    "metric": _metric_edit_distance,
}
"""From one sequence to others, shape (len(others),). Only `metric` obeys the triangle inequality."""


def _distance_row(sequence: str, others: Sequence[str], scorer: Any) -> FloatArray:
    distances: FloatArray = process.cdist([sequence], others, scorer=scorer, dtype=np.float64)[0]
    return distances


class ActionSimilarities:
    """exp(-gamma * distance) from one sequence to all, a row at a time; the last rows are kept."""

    def __init__(self, sequences: Sequence[str], gamma: float, distance: str = "longer") -> None:
        self._sequences = sequences
        self._gamma = gamma
        self._distance = DISTANCES[distance]
        self._kept: dict[int, FloatArray] = {}

    def __call__(self, group: int) -> FloatArray:
        """The similarities of that sequence, shape (len(sequences),); not to be changed."""
        if group not in self._kept:
            if len(self._kept) >= _CACHED_ROWS:
                del self._kept[next(iter(self._kept))]
            self._kept[group] = np.exp(-self._gamma * self._distance(self._sequences[group], self._sequences))
        return self._kept[group]


_CACHED_ROWS = 64
