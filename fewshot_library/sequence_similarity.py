"""The similarity of demonstrations, from the edit distance between their sequences of actions, and a map of them.

Similar sequences are near each other on the map. It is a classical multidimensional scaling (Torgerson, Psychometrika,
1952) of the distances between the most frequent sequences, the landmarks. The other sequences are placed by their
distances to the landmarks (de Silva and Tenenbaum, 2004), which reproduces the coordinates of the landmarks themselves.
The number of landmarks bounds the cost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from showhow.fewshot_library.dpp import FloatArray, Groups, IntArray

FIRST_SYMBOL = 0x4E00
"""The first of the characters that stand for tools; the block has room for 20,000 tools."""
_MAX_CACHED_ROWS = 64
LANDMARK_COUNT = 300
AXIS_COUNT = 2
_MIN_EIGENVALUE = 1e-9
"""Smaller eigenvalues, relative to the largest, are rounding errors."""


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


@dataclass(frozen=True, slots=True)
class SequenceMap:
    """The coordinates of G sequences."""

    coordinates: FloatArray
    """Shape (G, 2), in units of the distance, centred on the landmarks; the first axis explains most."""
    explained_variance: tuple[float, float]
    """The share of the variance explained by the first axis, and by both axes, from 0 to 1."""
    landmarks: int
    """The number of landmarks."""


def build_sequence_map(
    actions: ActionSequences, distance: str = "longer", landmarks: int = LANDMARK_COUNT
) -> SequenceMap:
    """Map the distinct sequences, in their order; deterministic."""
    sequences = [actions.sequences[index] for index in _most_frequent(actions, landmarks)]
    count = len(sequences)
    squared = np.array([DISTANCES[distance](sequence, sequences) ** 2 for sequence in sequences]).reshape(count, count)
    axes, scale, explained_variance = _scaled_eigenvectors(squared)
    coordinates = np.zeros((len(actions.sequences), AXIS_COUNT))
    means = squared.mean(axis=1) if sequences else np.zeros(0)
    for index, sequence in enumerate(sequences):
        centred = DISTANCES[distance](sequence, actions.sequences) ** 2 - means[index]
        coordinates -= 0.5 * centred[:, None] * (axes[index] * scale)
    return SequenceMap(coordinates, explained_variance, count)


def _most_frequent(actions: ActionSequences, count: int) -> Sequence[int]:
    frequency: IntArray = np.bincount(actions.groups.labels, minlength=len(actions.sequences))
    return [int(index) for index in np.sort(np.argsort(-frequency, kind="stable")[:count])]


def _scaled_eigenvectors(squared: FloatArray) -> tuple[FloatArray, FloatArray, tuple[float, float]]:
    """The first eigenvectors, the inverse roots of their eigenvalues (zero if missing), and the explained variance."""
    count = len(squared)
    axes, scale = np.zeros((count, AXIS_COUNT)), np.zeros(AXIS_COUNT)
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean() if count else squared
    eigenvalues, vectors = np.linalg.eigh(-0.5 * centred) if count else (np.zeros(0), squared)
    total = float(np.abs(eigenvalues).sum())
    if total <= _MIN_EIGENVALUE:
        return axes, scale, (1.0, 1.0)
    largest = [
        index
        for index in np.argsort(-eigenvalues, kind="stable")[:AXIS_COUNT]
        if eigenvalues[index] > _MIN_EIGENVALUE * eigenvalues.max()
    ]
    for axis, index in enumerate(largest):
        axes[:, axis] = vectors[:, index] * _canonical_sign(vectors[:, index])
        scale[axis] = 1 / np.sqrt(eigenvalues[index])
    shares = [*(float(eigenvalues[index]) / total for index in largest), 0.0, 0.0]
    return axes, scale, (shares[0], shares[0] + shares[1])


def _canonical_sign(vector: FloatArray) -> float:
    """The sign that makes the largest component positive, since eigenvectors are unique only up to their sign."""
    sizes = np.round(np.abs(vector), 9)
    return 1.0 if vector[int(np.argmax(sizes))] > 0 else -1.0
