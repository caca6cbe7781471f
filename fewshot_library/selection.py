"""Which demonstrations are put before a question: the ways to choose, and what each choice rests on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fewshot_library import dpp
from fewshot_library.dpp import Floats, Kernel, Pick
from fewshot_library.kernel import DISTANCES, Actions, Similarities

MODES = ("dpp", "relevance", "diversity", "mmr", "random", "static", "sample")
MOST_SAMPLED = 300
"""Of so many demonstrations, the most relevant, a k-DPP is sampled: that needs all eigenvalues of their kernel."""
_DECIMALS = 6
"""Of a cosine; what lies below depends on the machine, and would break ties between equal questions anyhow."""


ALPHA, GAMMA = 2.0, 2.0


class SelectionError(ValueError):
    """A wish that cannot be fulfilled, in one sentence."""


@dataclass(frozen=True, slots=True)
class Pool:
    """N demonstrations to choose from."""

    embeddings: npt.NDArray[np.float32]
    """Of their questions, rows of unit length, shape (N, dimensions)."""
    actions: Actions

    def __len__(self) -> int:
        return len(self.embeddings)


@dataclass(frozen=True, slots=True)
class Wish:
    """How many demonstrations, and how they are to be chosen."""

    k: int = 3
    mode: str = "dpp"
    alpha: float = ALPHA
    """How much relevance counts: quality is exp(alpha * cosine)."""
    gamma: float = GAMMA
    """How fast similarity falls with distance: exp(-gamma * distance)."""
    distance: str = "longer"
    exchange: bool = True
    """Whether one pick is exchanged for another as long as that raises the determinant."""
    balance: float = 0.5
    """Of mmr: 1 is relevance alone, 0 is unlikeness to the picks alone."""
    seed: int = 0
    """Of random and sample."""
    left_out: frozenset[int] = frozenset()
    """Demonstrations that are not to be chosen, by place."""

    def check(self) -> None:
        """Raise SelectionError for what cannot be done."""
        if self.mode not in MODES:
            raise SelectionError(f"there is no mode {self.mode!r}; choose one of {', '.join(MODES)}")
        if self.distance not in DISTANCES:
            raise SelectionError(f"there is no distance {self.distance!r}; choose one of {', '.join(DISTANCES)}")
        if self.k < 0:
            raise SelectionError(f"k is {self.k}; ask for no demonstration or more")
        if not (0 <= self.alpha <= 100 and 0 < self.gamma <= 100):
            raise SelectionError(f"alpha {self.alpha:g} and gamma {self.gamma:g} must lie between 0 and 100")
        if not 0 <= self.balance <= 1:
            raise SelectionError(f"the balance {self.balance:g} must lie between 0 and 1")


@dataclass(frozen=True, slots=True)
class Selection:
    """What was chosen and why."""

    wish: Wish
    picks: list[Pick]
    """In the order of choice; their gains are those of the determinantal point process in every mode."""
    cosines: Floats
    """Of the question with every demonstration's question, shape (N,)."""

    @property
    def filled(self) -> int:
        """Picks that are there by relevance alone, for want of independent ones."""
        return sum(pick.filled for pick in self.picks) if self.wish.mode in ("dpp", "diversity") else 0

    @property
    def log_det(self) -> float:
        """log det L of the picks; minus infinity where it vanishes."""
        return float(sum(pick.gain for pick in self.picks))


def select(pool: Pool, question: npt.NDArray[np.float32], wish: Wish) -> Selection:
    """At most `wish.k` demonstrations for a question, by its embedding, a row of unit length."""
    wish.check()
    cosines = _cosines(pool, question)
    kernel = _kernel(pool, cosines, wish)
    chosen = _WAYS[wish.mode](pool, kernel, cosines, wish)
    return Selection(wish, dpp.explained(kernel, chosen), cosines)


def kernel_for(pool: Pool, question: npt.NDArray[np.float32], wish: Wish) -> Kernel:
    """What the determinantal point process chooses by, for a question's embedding."""
    return _kernel(pool, _cosines(pool, question), wish)


def _cosines(pool: Pool, row: npt.NDArray[np.float32]) -> Floats:
    found: Floats = (pool.embeddings @ row).astype(np.float64)
    return np.round(found, _DECIMALS)


def _kernel(pool: Pool, cosines: Floats, wish: Wish) -> Kernel:
    quality = wish.alpha * cosines
    if wish.left_out:
        quality[sorted(wish.left_out)] = -np.inf
    rows = Similarities(pool.actions.sequences, wish.gamma, wish.distance)
    return Kernel(quality, pool.actions.groups, rows)


def _by_dpp(_pool: Pool, kernel: Kernel, _cosines: Floats, wish: Wish) -> list[int]:
    chosen = dpp.greedy(kernel, wish.k)
    if wish.exchange:
        chosen = dpp.exchanged(kernel, chosen)
    return dpp.filled(kernel, chosen, wish.k)


def _by_diversity(pool: Pool, kernel: Kernel, cosines: Floats, wish: Wish) -> list[int]:
    alike = np.where(kernel.log_quality > -np.inf, 0.0, -np.inf)
    return _by_dpp(pool, Kernel(alike, kernel.groups, kernel.rows, kernel.nugget), cosines, wish)


def _by_relevance(_pool: Pool, _kernel: Kernel, cosines: Floats, wish: Wish) -> list[int]:
    return _most(cosines, wish, wish.k)


def _by_mmr(pool: Pool, _kernel: Kernel, cosines: Floats, wish: Wish) -> list[int]:
    """Maximal marginal relevance by the questions' embeddings (Carbonell and Goldstein, SIGIR 1998)."""
    free = _free(pool, wish)
    nearest = np.full(len(pool), -np.inf)
    chosen: list[int] = []
    while len(chosen) < min(wish.k, len(free)):
        scores = cosines if not chosen else wish.balance * cosines - (1 - wish.balance) * nearest
        left = np.setdiff1d(free, chosen)
        chosen.append(int(left[np.argmax(scores[left])]))
        nearest = np.maximum(nearest, _cosines(pool, pool.embeddings[chosen[-1]]))
    return chosen


def _by_chance(pool: Pool, _kernel: Kernel, _cosines: Floats, wish: Wish) -> list[int]:
    free = _free(pool, wish)
    picked = np.random.default_rng(wish.seed).permutation(len(free))[: wish.k]
    return [int(item) for item in free[picked]]


def _always_the_same(pool: Pool, _kernel: Kernel, _cosines: Floats, wish: Wish) -> list[int]:
    return [int(item) for item in _free(pool, wish)[: wish.k]]


def _by_sampling(_pool: Pool, kernel: Kernel, cosines: Floats, wish: Wish) -> list[int]:
    from fewshot_library.sampling import NotSampled, sample  # noqa: PLC0415 - DPPy and scipy load for a second

    shortlist = _most(cosines, wish, MOST_SAMPLED)
    if wish.k > len(shortlist):
        raise SelectionError(f"{wish.k} cannot be sampled of {len(shortlist)} demonstrations; lower k or use mode dpp")
    try:
        return sample(kernel, shortlist, wish.k, wish.seed)
    except NotSampled as refused:
        raise SelectionError(str(refused)) from refused


def _most(cosines: Floats, wish: Wish, count: int) -> list[int]:
    order = np.argsort(-cosines, kind="stable")[: count + len(wish.left_out)]
    return [int(item) for item in order if int(item) not in wish.left_out][:count]


def _free(pool: Pool, wish: Wish) -> npt.NDArray[np.int64]:
    return np.setdiff1d(np.arange(len(pool)), sorted(wish.left_out))


_Way = Callable[[Pool, Kernel, Floats, Wish], Sequence[int]]
_WAYS: dict[str, _Way] = {
    "dpp": _by_dpp,
    "relevance": _by_relevance,
    "diversity": _by_diversity,
    "mmr": _by_mmr,
    "random": _by_chance,
    "static": _always_the_same,
    "sample": _by_sampling,
}
