"""Determinantal point processes: the k items that are good and unlike each other, exactly k, by greedy search.

An item has a quality q_i > 0, and two items a similarity s_ij in [0, 1] with s_ii = 1. A set A has the weight
det(L_A), L_ij = q_i s_ij q_j (Kulesza and Taskar, Determinantal Point Processes for Machine Learning, 2012). `greedy`
adds k times the item that multiplies the weight most (Chen, Zhang and Zhou, NeurIPS 2018).

Sound although similarities made from an edit distance have negative eigenvalues: each turn compares the exact Schur
complements det(S_{A+i}) / det(S_A). While the one that is taken is positive, every leading minor of the chosen S_A is,
so S_A is positive definite (Sylvester) whatever the rest of S is like. Where it is not, the determinant would vanish,
and the item is never taken for its weight. For k <= 4 and a metric distance this cannot even happen: a metric on four
points embeds into l1, so that exp(-gamma d) is positive definite on them (Schoenberg).

Items come in groups that are as similar as can be (demonstrations with the same actions), and similarities are between
groups: a chosen item costs one row of G similarities, not of N, and a turn O(G) operations. The nugget keeps two items
of one group apart: s_ij = (1 - nugget) S[group of i, group of j] for i != j.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
SimilarityRow = Callable[[int], FloatArray]
"""The similarities of a group to all groups, shape (G,), 1 to itself."""

NUGGET = 1e-3
"""How far two items of one group are from being the same item."""
MIN_SCHUR_COMPLEMENT = 1e-10
"""A Schur complement below it is rounding and no novelty."""


class Groups:
    """Which items are alike in everything but quality; the same for every question, so made once."""

    def __init__(self, of: npt.ArrayLike) -> None:
        """`of` has the group of each item, shape (N,), numbers from 0 without a gap."""
        self.labels: IntArray = np.asarray(of, np.int64)
        self.order: IntArray = np.argsort(self.labels, kind="stable")
        self.starts: IntArray = np.flatnonzero(np.diff(self.labels[self.order], prepend=-1))

    def __len__(self) -> int:
        return len(self.starts)

    def group_slice(self, group: int) -> slice:
        """Where in `order` the items of a group stand, the lowest first."""
        end = self.starts[group + 1] if group + 1 < len(self.starts) else len(self.order)
        return slice(int(self.starts[group]), int(end))


class Kernel:
    """L of N items: the logarithms of their qualities, shape (N,), their groups, the similarities of the groups."""

    def __init__(self, log_quality: FloatArray, groups: Groups, rows: SimilarityRow, nugget: float = NUGGET) -> None:
        self.log_quality, self.groups, self.rows, self.nugget = log_quality, groups, rows, nugget
        self.by_group: FloatArray = 2 * log_quality[groups.order]
        """2 log q of every item, in the order of the groups."""
        self.best: FloatArray = np.maximum.reduceat(self.by_group, groups.starts) if len(groups) else self.by_group
        """The greatest of each group, shape (G,)."""

    def __len__(self) -> int:
        return len(self.log_quality)


@dataclass(frozen=True, slots=True)
class Pick:
    """Why an item is there, given those before it."""

    item: int
    novelty: float
    """What they leave of it: 1 for an item like none of them, 0 for one that they make up."""
    gain: float
    """By how much it raises log det L; minus infinity for one that is filled in by quality alone."""
    runner_up: int | None
    """Of all items that are not chosen, the one that would raise it most in its place."""
    lead: float | None
    """By how much more it raises log det L than the runner-up; below zero where a later exchange paid."""

    @property
    def is_filler(self) -> bool:
        """Whether it is there because fewer than k items were independent."""
        return self.gain == -np.inf


def select_greedily(kernel: Kernel, k: int) -> list[int]:
    """At most k items in the order of choice; fewer only where the others would make the determinant vanish.

    A tie goes to the lowest item; an item of quality zero (its logarithm minus infinity) is never taken.
    """
    turn = _GreedyCholesky(kernel)
    chosen: list[int] = []
    while len(chosen) < k and (item := turn.best_item()) is not None:
        chosen.append(item)
        if len(chosen) < k:
            turn.add(item)
    return chosen


def fill_by_quality(kernel: Kernel, chosen: Sequence[int], k: int) -> list[int]:
    """The chosen items and, up to k together, the best others by quality alone, the lowest first of equal ones."""
    if len(chosen) >= min(k, len(kernel)):
        return list(chosen)
    rest = kernel.log_quality.copy()
    rest[list(chosen)] = -np.inf
    best = np.argsort(-rest, kind="stable")[: max(0, min(k, len(kernel)) - len(chosen))]
    return [*chosen, *best[rest[best] > -np.inf].tolist()]


def improve_by_exchange(kernel: Kernel, chosen: Sequence[int], passes: int = 10) -> list[int]:
    """The chosen items after exchanging one for another, the best exchange first, until none raises the determinant."""
    current = list(chosen)
    for _ in range(passes):
        better = _find_best_exchange(kernel, current)
        if better is None:
            break
        current = better
    return current if current == list(chosen) else order_greedily(kernel, current)


def log_det(kernel: Kernel, items: Iterable[int]) -> float:
    """log det L of the items; minus infinity where it vanishes."""
    turn = _GreedyCholesky(kernel)
    total = 0.0
    for item in items:
        gain = turn.gain(item)
        if gain == -np.inf:
            return gain
        total += gain
        turn.add(item)
    return total


def explain_picks(kernel: Kernel, chosen: Sequence[int]) -> list[Pick]:
    """A pick an item, in their order."""
    turn = _GreedyCholesky(kernel)
    turn.exclude(chosen)
    picks = []
    for item in chosen:
        gain, second = turn.gain(item), turn.best_item()
        lead = None if second is None else gain - turn.gain(second)
        picks.append(Pick(item, turn.novelty(item), gain, second, lead))
        if gain > -np.inf:
            turn.add(item)
    return picks


def order_greedily(kernel: Kernel, items: Iterable[int]) -> list[int]:
    """The items in the order in which greedy search would take them if there were no others."""
    turn, remaining, ordered = _GreedyCholesky(kernel), sorted(items), []
    while remaining:
        gains = [turn.gain(item) for item in remaining]
        ordered.append(remaining.pop(int(np.argmax(gains))))
        turn.add(ordered[-1])
    return ordered


def similarity_matrix(kernel: Kernel, items: Sequence[int]) -> FloatArray:
    """S of the items, shape (len(items), len(items))."""
    groups = kernel.groups.labels[list(items)]
    similar = np.stack([kernel.rows(int(group))[groups] for group in groups])
    similarities: FloatArray = np.where(np.eye(len(items), dtype=np.bool_), 1.0, (1 - kernel.nugget) * similar)
    return similarities


def likelihood_matrix(kernel: Kernel, items: Sequence[int]) -> FloatArray:
    """L of the items, shape (len(items), len(items)), scaled so that the best quality is one."""
    log_quality = kernel.log_quality[list(items)]
    quality = np.exp(log_quality - log_quality.max())
    likelihoods: FloatArray = quality[:, None] * similarity_matrix(kernel, items) * quality
    return likelihoods


def _find_best_exchange(kernel: Kernel, chosen: list[int]) -> list[int] | None:
    most, best = log_det(kernel, chosen) + 1e-9, None
    for place in range(len(chosen)):
        rest = chosen[:place] + chosen[place + 1 :]
        turn = _GreedyCholesky(kernel)
        for item in rest:
            turn.add(item)
        other = turn.best_item()
        if other is None:
            continue
        total = log_det(kernel, [*rest, other])
        if total > most:
            most, best = total, [*rest, other]
    return best


class _GreedyCholesky:
    """The incremental Cholesky factor of the items that were taken, and each group's best item that is still free."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel, self._groups = kernel, kernel.groups
        self._best = kernel.best.copy()
        self._gone: dict[int, list[int]] = {}
        self._left = np.ones(len(self._groups))
        self._log_left = np.zeros(len(self._groups))
        self._columns: list[FloatArray] = []

    def novelty(self, item: int) -> float:
        """The Schur complement of an item that is not taken."""
        return max(float(self._left[self._groups.labels[item]]), 0.0)

    def gain(self, item: int) -> float:
        """By how much the item raises log det L; minus infinity where the determinant would vanish."""
        return float(2 * self._kernel.log_quality[item] + self._log_left[self._groups.labels[item]])

    def best_item(self) -> int | None:
        """The free item that raises it most, the lowest of several; None where none raises it."""
        gains = self._best + self._log_left
        if not len(gains) or (most := gains.max()) == -np.inf:
            return None
        return min(self._best_of_group(group) for group in np.flatnonzero(gains == most).tolist())

    def add(self, item: int) -> None:
        """Take the item into the factor."""
        group = int(self._groups.labels[item])
        column = (1 - self._kernel.nugget) * self._kernel.rows(group)
        for earlier in self._columns:
            column -= earlier[group] * earlier
        column /= np.sqrt(self._left[group])
        self._columns.append(column)
        self._left -= column**2
        independent = self._left > MIN_SCHUR_COMPLEMENT
        self._log_left = np.log(self._left, out=np.full(len(self._left), -np.inf), where=independent)
        self.exclude([item])

    def exclude(self, items: Iterable[int]) -> None:
        """Let these items not be the best of their groups any more."""
        for item in items:
            group = int(self._groups.labels[item])
            self._gone.setdefault(group, []).append(item)
            self._best[group] = self._free_scores(group).max()

    def _best_of_group(self, group: int) -> int:
        return int(self._groups.order[self._groups.group_slice(group)][np.argmax(self._free_scores(group))])

    def _free_scores(self, group: int) -> FloatArray:
        span = self._groups.group_slice(group)
        scores = self._kernel.by_group[span]
        gone = self._gone.get(group)
        if gone:
            scores = scores.copy()
            scores[np.searchsorted(self._groups.order[span], gone)] = -np.inf
        return scores
