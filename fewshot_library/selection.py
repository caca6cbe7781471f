"""Which demonstrations are put before a question: the ways to choose, and what each choice rests on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fewshot_library import dpp
from fewshot_library.dpp import FloatArray, Kernel, Pick
from fewshot_library.kernel import DISTANCES, ActionSequences, ActionSimilarities

SELECTION_MODES = ("dpp", "relevance", "diversity", "mmr", "random", "static", "sample")
MAX_SHORTLIST = 300
"""Of so many demonstrations, the most relevant, a k-DPP is sampled: that needs all eigenvalues of their kernel."""
_COSINE_DECIMALS = 6
"""Of a cosine; what lies below depends on the machine, and would break ties between equal questions anyhow."""


DEFAULT_ALPHA, DEFAULT_GAMMA = 2.0, 2.0


class SelectionError(ValueError):
    """A wish that cannot be fulfilled, in one sentence."""


@dataclass(frozen=True, slots=True)
class CandidatePool:
    """N demonstrations to choose from."""

    embeddings: npt.NDArray[np.float32]
    """Of their questions, rows of unit length, shape (N, dimensions)."""
    actions: ActionSequences

    def __len__(self) -> int:
        return len(self.embeddings)


@dataclass(frozen=True, slots=True)
class SelectionConfig:
    """How many demonstrations, and how they are to be chosen."""

    k: int = 3
    mode: str = "dpp"
    alpha: float = DEFAULT_ALPHA
    """How much relevance counts: quality is exp(alpha * cosine)."""
    gamma: float = DEFAULT_GAMMA
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

    def validate(self) -> None:
        """Raise SelectionError for what cannot be done."""
        if self.mode not in SELECTION_MODES:
            raise SelectionError(f"there is no mode {self.mode!r}; choose one of {', '.join(SELECTION_MODES)}")
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

    config: SelectionConfig
    picks: list[Pick]
    """In the order of choice; their gains are those of the determinantal point process in every mode."""
    cosines: FloatArray
    """Of the question with every demonstration's question, shape (N,)."""

    @property
    def filler_count(self) -> int:
        """Picks that are there by relevance alone, for want of independent ones."""
        return sum(pick.is_filler for pick in self.picks) if self.config.mode in ("dpp", "diversity") else 0

    @property
    def log_det(self) -> float:
        """log det L of the picks; minus infinity where it vanishes."""
        return float(sum(pick.gain for pick in self.picks))


def select_demonstrations(pool: CandidatePool, question: npt.NDArray[np.float32], wish: SelectionConfig) -> Selection:
    """At most `wish.k` demonstrations for a question, by its embedding, a row of unit length."""
    wish.validate()
    cosines = _question_cosines(pool, question)
    kernel = _kernel_from_cosines(pool, cosines, wish)
    chosen = _SELECTORS[wish.mode](pool, kernel, cosines, wish)
    return Selection(wish, dpp.explain_picks(kernel, chosen), cosines)


def build_kernel(pool: CandidatePool, question: npt.NDArray[np.float32], wish: SelectionConfig) -> Kernel:
    """What the determinantal point process chooses by, for a question's embedding."""
    return _kernel_from_cosines(pool, _question_cosines(pool, question), wish)


def _question_cosines(pool: CandidatePool, row: npt.NDArray[np.float32]) -> FloatArray:
    cosines: FloatArray = (pool.embeddings @ row).astype(np.float64)
    return np.round(cosines, _COSINE_DECIMALS)


def _kernel_from_cosines(pool: CandidatePool, cosines: FloatArray, wish: SelectionConfig) -> Kernel:
    quality = wish.alpha * cosines
    if wish.left_out:
        quality[sorted(wish.left_out)] = -np.inf
    rows = ActionSimilarities(pool.actions.sequences, wish.gamma, wish.distance)
    return Kernel(quality, pool.actions.groups, rows)


def _select_by_dpp(_pool: CandidatePool, kernel: Kernel, _cosines: FloatArray, wish: SelectionConfig) -> list[int]:
    chosen = dpp.select_greedily(kernel, wish.k)
    if wish.exchange:
        chosen = dpp.improve_by_exchange(kernel, chosen)
    return dpp.fill_by_quality(kernel, chosen, wish.k)


def _select_by_diversity(pool: CandidatePool, kernel: Kernel, cosines: FloatArray, wish: SelectionConfig) -> list[int]:
    alike = np.where(kernel.log_quality > -np.inf, 0.0, -np.inf)
    return _select_by_dpp(pool, Kernel(alike, kernel.groups, kernel.rows, kernel.nugget), cosines, wish)


def _select_by_relevance(
    _pool: CandidatePool, _kernel: Kernel, cosines: FloatArray, wish: SelectionConfig
) -> list[int]:
    return _most_relevant(cosines, wish, wish.k)


def _select_by_mmr(pool: CandidatePool, _kernel: Kernel, cosines: FloatArray, wish: SelectionConfig) -> list[int]:
    """Maximal marginal relevance by the questions' embeddings (Carbonell and Goldstein, SIGIR 1998)."""
    free = _available_items(pool, wish)
    nearest = np.full(len(pool), -np.inf)
    chosen: list[int] = []
    while len(chosen) < min(wish.k, len(free)):
        scores = cosines if not chosen else wish.balance * cosines - (1 - wish.balance) * nearest
        left = np.setdiff1d(free, chosen)
        chosen.append(int(left[np.argmax(scores[left])]))
        nearest = np.maximum(nearest, _question_cosines(pool, pool.embeddings[chosen[-1]]))
    return chosen


def _select_randomly(pool: CandidatePool, _kernel: Kernel, _cosines: FloatArray, wish: SelectionConfig) -> list[int]:
    free = _available_items(pool, wish)
    picked = np.random.default_rng(wish.seed).permutation(len(free))[: wish.k]
    return [int(item) for item in free[picked]]


def _select_first(pool: CandidatePool, _kernel: Kernel, _cosines: FloatArray, wish: SelectionConfig) -> list[int]:
    return [int(item) for item in _available_items(pool, wish)[: wish.k]]


def _select_by_sampling(_pool: CandidatePool, kernel: Kernel, cosines: FloatArray, wish: SelectionConfig) -> list[int]:
    from fewshot_library.sampling import SamplingError, sample_kdpp  # noqa: PLC0415 - DPPy and scipy load for a second

    shortlist = _most_relevant(cosines, wish, MAX_SHORTLIST)
    if wish.k > len(shortlist):
        raise SelectionError(f"{wish.k} cannot be sampled of {len(shortlist)} demonstrations; lower k or use mode dpp")
    try:
        return sample_kdpp(kernel, shortlist, wish.k, wish.seed)
    except SamplingError as refused:
        raise SelectionError(str(refused)) from refused


def _most_relevant(cosines: FloatArray, wish: SelectionConfig, count: int) -> list[int]:
    order = np.argsort(-cosines, kind="stable")[: count + len(wish.left_out)]
    return [int(item) for item in order if int(item) not in wish.left_out][:count]


def _available_items(pool: CandidatePool, wish: SelectionConfig) -> npt.NDArray[np.int64]:
    return np.setdiff1d(np.arange(len(pool)), sorted(wish.left_out))


_Selector = Callable[[CandidatePool, Kernel, FloatArray, SelectionConfig], Sequence[int]]
_SELECTORS: dict[str, _Selector] = {
    "dpp": _select_by_dpp,
    "relevance": _select_by_relevance,
    "diversity": _select_by_diversity,
    "mmr": _select_by_mmr,
    "random": _select_randomly,
    "static": _select_first,
    "sample": _select_by_sampling,
}
