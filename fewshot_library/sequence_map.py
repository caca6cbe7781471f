"""A two-dimensional map of action sequences: similar sequences are near each other.

Classical multidimensional scaling (Torgerson, Psychometrika, 1952) of the distances between the most frequent
sequences, the landmarks. The other sequences are placed by their distances to the landmarks (de Silva and Tenenbaum,
2004), which reproduces the coordinates of the landmarks themselves. The number of landmarks bounds the cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fewshot_library.dpp import FloatArray, IntArray
from fewshot_library.sequence_similarity import DISTANCES, ActionSequences

LANDMARK_COUNT = 300
AXIS_COUNT = 2
_MIN_EIGENVALUE = 1e-9
"""Smaller eigenvalues, relative to the largest, are rounding errors."""


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
