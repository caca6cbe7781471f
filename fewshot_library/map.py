"""Where sequences of actions stand on a map: near each other when they do the same.

Classical multidimensional scaling (Torgerson, Psychometrika, 1952) of the distances between the most used sequences,
the landmarks; the others are placed by their distances to these (de Silva and Tenenbaum, 2004), which for a landmark
gives the very place that the scaling gave it. The cost is bounded by the landmarks, whatever the library holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fewshot_library.dpp import FloatArray, IntArray
from fewshot_library.kernel import DISTANCES, ActionSequences

LANDMARK_COUNT = 300
AXIS_COUNT = 2
_MIN_EIGENVALUE = 1e-9
"""The part of the greatest eigenvalue below which another one is rounding."""


@dataclass(frozen=True, slots=True)
class SequenceMap:
    """The places of G sequences."""

    coordinates: FloatArray
    """Shape (G, 2), in units of the distance, the middle of the landmarks at zero; the first axis tells most."""
    explained_variance: tuple[float, float]
    """How much of the distances the first axis shows, and how much both do: 1 is all of it."""
    landmarks: int
    """How many sequences the map was drawn by."""


def build_sequence_map(
    actions: ActionSequences, distance: str = "longer", landmarks: int = LANDMARK_COUNT
) -> SequenceMap:
    """The map of the different sequences, in their order; the same for the same sequences in every run."""
    chosen = _most_frequent(actions, landmarks)
    names = [actions.sequences[place] for place in chosen]
    squared = np.array([DISTANCES[distance](name, names) ** 2 for name in names]).reshape(len(names), len(names))
    axes, values, explained_variance = _scaled_eigenvectors(squared)
    places = np.zeros((len(actions.sequences), AXIS_COUNT))
    means = squared.mean(axis=1) if names else np.zeros(0)
    for place, name in enumerate(names):
        away = DISTANCES[distance](name, actions.sequences) ** 2 - means[place]
        places -= 0.5 * away[:, None] * (axes[place] * values)
    return SequenceMap(places, explained_variance, len(names))


def _most_frequent(actions: ActionSequences, count: int) -> Sequence[int]:
    used: IntArray = np.bincount(actions.groups.labels, minlength=len(actions.sequences))
    return [int(place) for place in np.sort(np.argsort(-used, kind="stable")[:count])]


def _scaled_eigenvectors(squared: FloatArray) -> tuple[FloatArray, FloatArray, tuple[float, float]]:
    """The first eigenvectors, one over the roots of their eigenvalues (zero for none), and what they show."""
    count = len(squared)
    axes, scale = np.zeros((count, AXIS_COUNT)), np.zeros(AXIS_COUNT)
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean() if count else squared
    eigenvalues, vectors = np.linalg.eigh(-0.5 * centred) if count else (np.zeros(0), squared)
    whole = float(np.abs(eigenvalues).sum())
    if whole <= _MIN_EIGENVALUE:
        return axes, scale, (1.0, 1.0)
    best = [
        place
        for place in np.argsort(-eigenvalues, kind="stable")[:AXIS_COUNT]
        if eigenvalues[place] > _MIN_EIGENVALUE * eigenvalues.max()
    ]
    for axis, place in enumerate(best):
        axes[:, axis] = vectors[:, place] * _canonical_sign(vectors[:, place])
        scale[axis] = 1 / np.sqrt(eigenvalues[place])
    parts = [*(float(eigenvalues[place]) / whole for place in best), 0.0, 0.0]
    return axes, scale, (parts[0], parts[0] + parts[1])


def _canonical_sign(vector: FloatArray) -> float:
    """What makes its greatest part positive, the first of several; an eigenvector is one either way round."""
    sizes = np.round(np.abs(vector), 9)
    return 1.0 if vector[int(np.argmax(sizes))] > 0 else -1.0
