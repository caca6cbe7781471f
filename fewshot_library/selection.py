"""Selects the demonstrations for a question, in one of several modes, and explains each pick."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from showhow.fewshot_library import dpp
from showhow.fewshot_library.dpp import FloatArray, Kernel, Pick, likelihood_matrix
from showhow.fewshot_library.sequence_similarity import DISTANCES, ActionSequences, ActionSimilarities
from showhow.guard.plugins import Registry
from showhow.option_fields import option

_TOLERANCE = 1e-10
"""Negative eigenvalues up to this share of the largest are rounding errors."""


class SamplingError(ValueError):
    """The kernel does not define a probability distribution."""


def sample_kdpp(kernel: Kernel, items: Sequence[int], k: int, seed: int) -> list[int]:
    """Sample k of the items, each set with probability proportional to its determinant; deterministic by seed."""
    from dppy.finite_dpps import FiniteDPP  # noqa: PLC0415 - DPPy and scipy load for a second

    if k == 0:
        return []
    matrix = likelihood_matrix(kernel, items)
    values = np.linalg.eigvalsh(matrix)
    if values[0] < -_TOLERANCE * values[-1]:
        raise SamplingError(
            f"the kernel of these {len(items)} demonstrations has the negative eigenvalue {values[0]:.2g}, so it "
            "defines no probability distribution; raise gamma, use the distance metric, or use mode dpp"
        )
    process = FiniteDPP("likelihood", L=matrix)
    sample = process.sample_exact_k_dpp(size=k, random_state=np.random.RandomState(seed))
    return [items[index] for index in sample]


MAX_SHORTLIST = 300
"""A k-DPP is sampled from this many of the most relevant demonstrations, since it needs all kernel eigenvalues."""
_COSINE_DECIMALS = 6
"""Cosines are rounded to this, since further digits depend on the machine and would decide ties."""
DEFAULT_ALPHA, DEFAULT_GAMMA = 2.0, 2.0
GUARDS = {
    "question": "demonstrations of the same question",
    "entities": "those, and demonstrations that name an entity of the question",
    "answers": "those, and demonstrations that show an answer of the question",
}
"""Which demonstrations are left out; each value includes those before it."""


class SelectionError(ValueError):
    """The selection is not possible with this configuration."""


@dataclass(frozen=True, slots=True)
class CandidatePool:
    """N demonstrations to choose from."""

    embeddings: npt.NDArray[np.float32]
    """The embeddings of their questions, rows of unit length, shape (N, dimensions)."""
    actions: ActionSequences

    def __len__(self) -> int:
        return len(self.embeddings)


@dataclass(frozen=True, slots=True)
class SelectionConfig:
    """How demonstrations are selected."""

    k: int = option(3, "How many demonstrations to select.", flag="-k", minimum=0)
    mode: str = option("dpp", lambda: ", ".join(SELECTION_MODES))
    alpha: float = option(DEFAULT_ALPHA, "Relevance weight.")
    """Quality is exp(alpha * cosine)."""
    gamma: float = option(DEFAULT_GAMMA, "Diversity: how fast similarity falls with the distance of action sequences.")
    """Similarity is exp(-gamma * distance)."""
    distance: str = option(
        "longer", "longer: edits divided by the length of the longer sequence; metric: the Yujian-Bo distance."
    )
    exchange: bool = option(default=True, help="Exchange picks while that raises the determinant.")
    balance: float = option(0.5, "Balance of the mode mmr; 1 is relevance alone.")
    """0 is dissimilarity to the picks alone."""
    seed: int = option(0, "Random seed of the modes random and sample, which draw anew for each question.")
    guard: str = option(
        "question",
        "Leave out demonstrations that give something away: question (none but those of the same question), "
        "entities (those that name an entity of it), answers (also those that show an answer of it).",
        choices=tuple(GUARDS),
    )
    left_out: frozenset[int] = frozenset()
    """The indexes of demonstrations that must not be chosen."""

    def check(self) -> None:
        """Raise SelectionError for an invalid value."""
        if self.mode not in SELECTION_MODES:
            raise SelectionError(f"there is no mode {self.mode!r}; choose one of {', '.join(SELECTION_MODES)}")
        if self.distance not in DISTANCES:
            raise SelectionError(f"there is no distance {self.distance!r}; choose one of {', '.join(DISTANCES)}")
        if self.guard not in GUARDS:
            raise SelectionError(f"there is no guard {self.guard!r}; choose one of {', '.join(GUARDS)}")
        if self.k < 0:
            raise SelectionError(f"k is {self.k}; it must be 0 or more")
        if not (0 <= self.alpha <= 100 and 0 < self.gamma <= 100):
            raise SelectionError(f"alpha {self.alpha:g} and gamma {self.gamma:g} must lie between 0 and 100")
        if not 0 <= self.balance <= 1:
            raise SelectionError(f"the balance {self.balance:g} must lie between 0 and 1")

    def seeded_by(self, question: str) -> "SelectionConfig":
        """The configuration whose seed is drawn from this one and the question, so that draws differ by question."""
        digest = sha256(f"{self.seed} {question}".encode(errors="replace")).digest()
        return replace(self, seed=int.from_bytes(digest[:4], "big"))


@dataclass(frozen=True, slots=True)
class Selection:
    """The picks of a selection, with the figures that explain them."""

    config: SelectionConfig
    picks: list[Pick]
    """In the order of choice; the gains are those of the DPP in every mode."""
    cosines: FloatArray
    """The cosine of the question with each demonstration's question, shape (N,)."""

    @property
    def filler_count(self) -> int:
        """The number of picks by relevance alone, for lack of independent demonstrations."""
        return sum(pick.is_filler for pick in self.picks) if self.config.mode in ("dpp", "diversity") else 0

    @property
    def log_det(self) -> float:
        """log det L of the picks; minus infinity if the determinant vanishes."""
        return float(sum(pick.gain for pick in self.picks))


def select_demonstrations(pool: CandidatePool, question: npt.NDArray[np.float32], config: SelectionConfig) -> Selection:
    """Select at most `config.k` demonstrations for a question, given its embedding of unit length."""
    config.check()
    cosines = _question_cosines(pool, question)
    kernel = _kernel_from_cosines(pool, cosines, config)
    chosen = [int(item) for item in SELECTION_MODES[config.mode].select(pool, kernel, cosines, config)]
    if len({*chosen}) < len(chosen) or len(chosen) > config.k or not {*chosen} <= {*_available_items(pool, config)}:
        raise SelectionError(f"the mode {config.mode} chose {chosen}, which are not {config.k} of the demonstrations")
    return Selection(config, dpp.explain_picks(kernel, chosen), cosines)


def build_kernel(pool: CandidatePool, question: npt.NDArray[np.float32], config: SelectionConfig) -> Kernel:
    """Build the DPP kernel for a question's embedding."""
    return _kernel_from_cosines(pool, _question_cosines(pool, question), config)


def _question_cosines(pool: CandidatePool, row: npt.NDArray[np.float32]) -> FloatArray:
    cosines: FloatArray = (pool.embeddings @ row).astype(np.float64)
    return np.round(cosines, _COSINE_DECIMALS)


def _kernel_from_cosines(pool: CandidatePool, cosines: FloatArray, config: SelectionConfig) -> Kernel:
    quality = config.alpha * cosines
    if config.left_out:
        quality[sorted(config.left_out)] = -np.inf
    rows = ActionSimilarities(pool.actions.sequences, config.gamma, config.distance)
    return Kernel(quality, pool.actions.groups, rows)


def _select_by_dpp(_pool: CandidatePool, kernel: Kernel, _cosines: FloatArray, config: SelectionConfig) -> list[int]:
    chosen = dpp.select_greedily(kernel, config.k)
    if config.exchange:
        chosen = dpp.improve_by_exchange(kernel, chosen)
    return dpp.fill_by_quality(kernel, chosen, config.k)


def _select_by_diversity(
    pool: CandidatePool, kernel: Kernel, cosines: FloatArray, config: SelectionConfig
) -> list[int]:
    equal_quality = np.where(kernel.log_quality > -np.inf, 0.0, -np.inf)
    return _select_by_dpp(pool, Kernel(equal_quality, kernel.groups, kernel.rows, kernel.nugget), cosines, config)


def _select_by_relevance(
    _pool: CandidatePool, _kernel: Kernel, cosines: FloatArray, config: SelectionConfig
) -> list[int]:
    return _most_relevant(cosines, config, config.k)


def _select_by_mmr(pool: CandidatePool, _kernel: Kernel, cosines: FloatArray, config: SelectionConfig) -> list[int]:
    """Maximal marginal relevance by the questions' embeddings (Carbonell and Goldstein, SIGIR 1998)."""
    available = _available_items(pool, config)
    nearest = np.full(len(pool), -np.inf)
    chosen: list[int] = []
    while len(chosen) < min(config.k, len(available)):
        scores = cosines if not chosen else config.balance * cosines - (1 - config.balance) * nearest
        remaining = np.setdiff1d(available, chosen)
        chosen.append(int(remaining[np.argmax(scores[remaining])]))
        nearest = np.maximum(nearest, _question_cosines(pool, pool.embeddings[chosen[-1]]))
    return chosen


def _select_randomly(pool: CandidatePool, _kernel: Kernel, _cosines: FloatArray, config: SelectionConfig) -> list[int]:
    available = _available_items(pool, config)
    picked = np.random.default_rng(config.seed).permutation(len(available))[: config.k]
    return [int(item) for item in available[picked]]


def _select_first(pool: CandidatePool, _kernel: Kernel, _cosines: FloatArray, config: SelectionConfig) -> list[int]:
    return [int(item) for item in _available_items(pool, config)[: config.k]]


def _select_by_sampling(
    _pool: CandidatePool, kernel: Kernel, cosines: FloatArray, config: SelectionConfig
) -> list[int]:
    shortlist = _most_relevant(cosines, config, MAX_SHORTLIST)
    if config.k > len(shortlist):
        raise SelectionError(f"there are only {len(shortlist)} demonstrations to sample {config.k} from; lower k")
    try:
        return sample_kdpp(kernel, shortlist, config.k, config.seed)
    except SamplingError as error:
        raise SelectionError(str(error)) from error


def _most_relevant(cosines: FloatArray, config: SelectionConfig, count: int) -> list[int]:
    order = np.argsort(-cosines, kind="stable")[: count + len(config.left_out)]
    return [int(item) for item in order if int(item) not in config.left_out][:count]


def _available_items(pool: CandidatePool, config: SelectionConfig) -> npt.NDArray[np.int64]:
    return np.setdiff1d(np.arange(len(pool)), sorted(config.left_out))


@dataclass(frozen=True, slots=True)
class SelectionMode:
    """A way to select demonstrations."""

    name: str
    label: str
    """The name shown on pages."""
    select: Callable[[CandidatePool, Kernel, FloatArray, SelectionConfig], Sequence[int]]
    """Chooses indexes of the pool, at most `k`, given the kernel and the cosines of the questions."""
    hint: str = ""
    """What the mode does, in one sentence for pages."""


SELECTION_MODES: "Registry[SelectionMode]" = Registry(
    "selection_modes",
    SelectionMode,
    (
        SelectionMode("dpp", "DPP: relevant and diverse", _select_by_dpp),
        SelectionMode(
            "relevance",
            "Relevance only",
            _select_by_relevance,
            "This mode selects the most similar questions, even if their actions are all the same.",
        ),
        SelectionMode(
            "diversity",
            "Diversity only",
            _select_by_diversity,
            "This mode selects demonstrations with different actions, regardless of their questions.",
        ),
        SelectionMode(
            "mmr",
            "MMR: relevant, with different questions",
            _select_by_mmr,
            "This mode trades relevance against similarity of the questions; it ignores the actions.",
        ),
        SelectionMode(
            "random",
            "Random",
            _select_randomly,
            "This mode selects at random, anew for each question; the same seed repeats the picks.",
        ),
        SelectionMode(
            "static",
            "Static: always the first ones",
            _select_first,
            "This mode selects the first demonstrations of the version for every question.",
        ),
        SelectionMode(
            "sample",
            "Sampled from the DPP",
            _select_by_sampling,
            "This mode samples a set with probability proportional to its determinant; the seed decides which set.",
        ),
    ),
    raises=(SelectionError,),
)
