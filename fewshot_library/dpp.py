"""Determinantal point processes (DPP): selects exactly k items of high quality and low similarity by greedy search.

An item has a quality q_i > 0, and two items a similarity s_ij in [0, 1] with s_ii = 1. A set A has the weight
det(L_A), L_ij = q_i s_ij q_j (Kulesza and Taskar, Determinantal Point Processes for Machine Learning, 2012). `greedy`
adds k times the item that multiplies the weight most (Chen, Zhang and Zhou, NeurIPS 2018).

The search is sound although similarities from an edit distance can have negative eigenvalues. Each turn compares the
exact Schur complements det(S_{A+i}) / det(S_A). As long as the chosen one is positive, all leading minors of S_A are
positive, so S_A is positive definite (Sylvester), whatever the rest of S. If it is not positive, the determinant would
vanish, and the item is never chosen by weight. For k <= 4 and a metric distance this cannot happen: a metric on four
points embeds into l1, so exp(-gamma d) is positive definite on them (Schoenberg).

Items belong to groups of equal items (demonstrations with the same actions), and similarities are defined between
groups: a chosen item costs one row of G similarities instead of N, and a turn O(G) operations. The nugget
distinguishes two items of one group: s_ij = (1 - nugget) S[group of i, group of j] for i != j.
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
"""The dissimilarity of two items of one group."""
MIN_SCHUR_COMPLEMENT = 1e-10
"""Smaller Schur complements are rounding errors."""


class Groups:
    """The groups of items that differ only in quality; independent of the question, so built once."""

    def __init__(self, labels: npt.ArrayLike) -> None:
        """`labels` has the group of each item, shape (N,), numbered from 0 without gaps."""
        self.labels: IntArray = np.asarray(labels, np.int64)
        self.order: IntArray = np.argsort(self.labels, kind="stable")
        self.starts: IntArray = np.flatnonzero(np.diff(self.labels[self.order], prepend=-1))

    def __len__(self) -> int:
        return len(self.starts)

    def group_slice(self, group: int) -> slice:
        """The slice of `order` with the items of a group, the lowest first."""
        end = self.starts[group + 1] if group + 1 < len(self.starts) else len(self.order)
        return slice(int(self.starts[group]), int(end))


class Kernel:
    """The kernel L of N items: log qualities, shape (N,), groups, and the similarities between groups."""

    def __init__(self, log_quality: FloatArray, groups: Groups, rows: SimilarityRow, nugget: float = NUGGET) -> None:
        self.log_quality, self.groups, self.rows, self.nugget = log_quality, groups, rows, nugget
        self.by_group: FloatArray = 2 * log_quality[groups.order]
        """2 log q of every item, ordered by group."""
        self.best: FloatArray = np.maximum.reduceat(self.by_group, groups.starts) if len(groups) else self.by_group
        """The maximum of each group, shape (G,)."""

    def __len__(self) -> int:
        return len(self.log_quality)


@dataclass(frozen=True, slots=True)
class Pick:
    """A chosen item, and what it contributes to the items chosen before it."""

    item: int
    novelty: float
    """Its Schur complement: 1 if it is similar to none of the earlier items, 0 if it is determined by them."""
    gain: float
    """The increase of log det L; minus infinity for an item added by quality alone."""
    runner_up: int | None
    """The item that would have the highest gain in its place, of those not chosen."""
    lead: float | None
    """Its gain minus the runner-up's; negative if a later exchange made up for it."""

    @property
    def is_filler(self) -> bool:
        """Whether it was added by quality alone, because fewer than k items were independent."""
        return self.gain == -np.inf


def select_greedily(kernel: Kernel, k: int) -> list[int]:
    """Choose at most k items, in order of choice; fewer only if any further item makes the determinant vanish.

    Ties go to the lowest item; an item of quality zero (log quality minus infinity) is never chosen.
    """
    factor = _GreedyCholesky(kernel)
    chosen: list[int] = []
    while len(chosen) < k and (item := factor.best_item()) is not None:
        chosen.append(item)
        if len(chosen) < k:
            factor.add(item)
    return chosen


def fill_by_quality(kernel: Kernel, chosen: Sequence[int], k: int) -> list[int]:
    """Extend the chosen items to k by the items of highest quality; ties go to the lowest item."""
    if len(chosen) >= min(k, len(kernel)):
        return list(chosen)
    remaining_quality = kernel.log_quality.copy()
    remaining_quality[list(chosen)] = -np.inf
    best = np.argsort(-remaining_quality, kind="stable")[: max(0, min(k, len(kernel)) - len(chosen))]
    return [*chosen, *best[remaining_quality[best] > -np.inf].tolist()]


def improve_by_exchange(kernel: Kernel, chosen: Sequence[int], passes: int = 10) -> list[int]:
    """Exchange chosen items for others, the best exchange first, until none raises the determinant."""
    current = list(chosen)
    for _ in range(passes):
        better = _find_best_exchange(kernel, current)
        if better is None:
            break
        current = better
    return current if current == list(chosen) else order_greedily(kernel, current)


def log_det(kernel: Kernel, items: Iterable[int]) -> float:
    """log det L of the items; minus infinity if the determinant vanishes."""
    factor = _GreedyCholesky(kernel)
    total = 0.0
    for item in items:
        gain = factor.gain(item)
        if gain == -np.inf:
            return gain
        total += gain
        factor.add(item)
    return total


def explain_picks(kernel: Kernel, chosen: Sequence[int]) -> list[Pick]:
    """Return a Pick for each chosen item, in their order."""
    factor = _GreedyCholesky(kernel)
    factor.exclude(chosen)
    picks = []
    for item in chosen:
        gain, runner_up = factor.gain(item), factor.best_item()
        lead = None if runner_up is None else gain - factor.gain(runner_up)
        picks.append(Pick(item, factor.novelty(item), gain, runner_up, lead))
        if gain > -np.inf:
            factor.add(item)
    return picks


def order_greedily(kernel: Kernel, items: Iterable[int]) -> list[int]:
    """The items in the order of a greedy search among them."""
    factor, remaining, ordered = _GreedyCholesky(kernel), sorted(items), []
    while remaining:
        gains = [factor.gain(item) for item in remaining]
        ordered.append(remaining.pop(int(np.argmax(gains))))
        factor.add(ordered[-1])
    return ordered


def similarity_matrix(kernel: Kernel, items: Sequence[int]) -> FloatArray:
    """S of the items, shape (len(items), len(items))."""
    groups = kernel.groups.labels[list(items)]
    group_similarities = np.stack([kernel.rows(int(group))[groups] for group in groups])
    similarities: FloatArray = np.where(
        np.eye(len(items), dtype=np.bool_), 1.0, (1 - kernel.nugget) * group_similarities
    )
    return similarities


def likelihood_matrix(kernel: Kernel, items: Sequence[int]) -> FloatArray:
    """L of the items, shape (len(items), len(items)), scaled so that the best quality is one."""
    log_quality = kernel.log_quality[list(items)]
    quality = np.exp(log_quality - log_quality.max())
    likelihoods: FloatArray = quality[:, None] * similarity_matrix(kernel, items) * quality
    return likelihoods


def _find_best_exchange(kernel: Kernel, chosen: list[int]) -> list[int] | None:
    highest, best = log_det(kernel, chosen) + 1e-9, None
    for index in range(len(chosen)):
        rest = chosen[:index] + chosen[index + 1 :]
        factor = _GreedyCholesky(kernel)
        for item in rest:
            factor.add(item)
        replacement = factor.best_item()
        if replacement is None:
            continue
        total = log_det(kernel, [*rest, replacement])
        if total > highest:
            highest, best = total, [*rest, replacement]
    return best


class _GreedyCholesky:
    """The incremental Cholesky factor of the items added so far, and the best available item of each group."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel, self._groups = kernel, kernel.groups
        self._best = kernel.best.copy()
        self._excluded: dict[int, list[int]] = {}
        self._schur = np.ones(len(self._groups))
        self._log_schur = np.zeros(len(self._groups))
        self._columns: list[FloatArray] = []

    def novelty(self, item: int) -> float:
        """The Schur complement of an item that was not added."""
        return max(float(self._schur[self._groups.labels[item]]), 0.0)

    def gain(self, item: int) -> float:
        """The increase of log det L by the item; minus infinity if the determinant would vanish."""
        return float(2 * self._kernel.log_quality[item] + self._log_schur[self._groups.labels[item]])

    def best_item(self) -> int | None:
        """The available item with the highest gain, the lowest of ties; None if every gain is minus infinity."""
        gains = self._best + self._log_schur
        if not len(gains) or (highest := gains.max()) == -np.inf:
            return None
        return min(self._best_of_group(group) for group in np.flatnonzero(gains == highest).tolist())

    def add(self, item: int) -> None:
        """Add the item to the factor."""
        group = int(self._groups.labels[item])
        column = (1 - self._kernel.nugget) * self._kernel.rows(group)
        for earlier in self._columns:
            column -= earlier[group] * earlier
        column /= np.sqrt(self._schur[group])
        self._columns.append(column)
        self._schur -= column**2
        independent = self._schur > MIN_SCHUR_COMPLEMENT
        self._log_schur = np.log(self._schur, out=np.full(len(self._schur), -np.inf), where=independent)
        self.exclude([item])

    def exclude(self, items: Iterable[int]) -> None:
        """Make these items unavailable."""
        for item in items:
            group = int(self._groups.labels[item])
            self._excluded.setdefault(group, []).append(item)
            self._best[group] = self._free_scores(group).max()

    def _best_of_group(self, group: int) -> int:
        return int(self._groups.order[self._groups.group_slice(group)][np.argmax(self._free_scores(group))])

    def _free_scores(self, group: int) -> FloatArray:
        span = self._groups.group_slice(group)
        scores = self._kernel.by_group[span]
        excluded = self._excluded.get(group)
        if excluded:
            scores = scores.copy()
            scores[np.searchsorted(self._groups.order[span], excluded)] = -np.inf
        return scores
