"""The similarity of demonstrations, from the edit distance between their sequences of actions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from fewshot_library.dpp import FloatArray, Groups

FIRST_SYMBOL = 0x4E00
"""The first of the characters that stand for tools; the block has room for 20,000 tools."""


@dataclass(frozen=True, slots=True)
class ActionSequences:
    """The action sequences of N demonstrations."""

    sequences: tuple[str, ...]
    """The distinct sequences in the order of their first use, one character for each action."""
    groups: Groups
    """The demonstrations grouped by sequence."""


def encode_actions(demonstrations: Sequence[Sequence[str]]) -> ActionSequences:
    """Encode the tool names of each demonstration as a sequence with one character for each tool."""
    symbols: dict[str, str] = {}
    index_by_sequence: dict[str, int] = {}
    labels = []
    for tools in demonstrations:
        sequence = "".join([symbols.setdefault(tool, chr(FIRST_SYMBOL + len(symbols))) for tool in tools])
        labels.append(index_by_sequence.setdefault(sequence, len(index_by_sequence)))
    return ActionSequences(tuple(index_by_sequence), Groups(labels))


def _relative_edit_distance(sequence: str, others: Sequence[str]) -> FloatArray:
    """The edit distance over the length of the longer sequence: 0 for equal ones, 1 for ones with nothing in common."""
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
"""Distances from one sequence to others, shape (len(others),). Only `metric` obeys the triangle inequality."""


def _distance_row(sequence: str, others: Sequence[str], scorer: Any) -> FloatArray:
    distances: FloatArray = process.cdist([sequence], others, scorer=scorer, dtype=np.float64)[0]
    return distances


class ActionSimilarities:
    """The similarities exp(-gamma * distance) of one sequence to all, computed by row; caches the last rows."""

    def __init__(self, sequences: Sequence[str], gamma: float, distance: str = "longer") -> None:
        self._sequences = sequences
        self._gamma = gamma
        self._distance = DISTANCES[distance]
        self._cached_rows: dict[int, FloatArray] = {}

    def __call__(self, group: int) -> FloatArray:
        """The similarities of a sequence to all, shape (len(sequences),); callers must not modify the array."""
        if group not in self._cached_rows:
            if len(self._cached_rows) >= _MAX_CACHED_ROWS:
                del self._cached_rows[next(iter(self._cached_rows))]
            self._cached_rows[group] = np.exp(-self._gamma * self._distance(self._sequences[group], self._sequences))
        return self._cached_rows[group]


_MAX_CACHED_ROWS = 64
