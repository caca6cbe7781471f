"""Choosing demonstrations: time, memory and picks of the greedy search, beside others' selectors in the same run."""

import importlib
import importlib.util
import itertools
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from db.record import TraceRecord
from fewshot_library.encoder import BUNDLED, SentenceEncoder
from fewshot_library.formats import read_traces
from fewshot_library.kernel import actions
from fewshot_library.selection import Pool, Wish, kernel_for, select

SIZES = (20, 1_000, 10_000, 100_000, 1_000_000)
FULL = 10_000
"""Of so many items a whole kernel is still made, and of SAMPLED its eigenvalues."""
SAMPLED = 1_000
MMR = 100_000
DIMENSIONS = 384
_TURNS = 9
_INSTANCES = 200
_ON_ALL = "greedy on the full kernel"

Sequences = list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Task:
    """One size, with as many results to choose."""

    size: int
    k: int
    sequences: Sequences


def lines(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:  # noqa: ARG001 - nothing is kept
    """A line a size and k for ours, and one for each peer that can do it."""
    sequences = _sequences(data)
    context = multiprocessing.get_context("spawn")
    for size in SIZES:
        for k in (3, 8):
            # A process of its own, so that the peak of one is not the other's.
            with ProcessPoolExecutor(1, mp_context=context) as alone:
                yield from alone.submit(measured, Task(size, k, sequences)).result()
    yield from _optimum(sequences)
    yield from _encoding()


def measured(task: Task) -> list[dict[str, Any]]:
    """The lines of one size and k."""
    chance = np.random.default_rng(1)
    pool, question = _pool(task, chance)
    wish = Wish(k=task.k, exchange=False)
    ours, chosen = _timed(lambda: [pick.item for pick in select(pool, question, wish).picks])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    different = len(pool.actions.sequences)
    note = f"k={task.k}; {different} different sequences of actions; median of {_TURNS}, question encoded before"
    found = [_line("select dpp", task.size, ours, note) | {"peak_mb": round(peak)}]
    swapped, _ = _timed(lambda: select(pool, question, Wish(k=task.k)))
    found.append(_line("select dpp, with exchange", task.size, swapped, f"k={task.k}"))
    for peer, act, how in _peers(task, pool, question):
        seconds, other = _timed(act, 3)
        same = f"; the same picks: {'yes' if other == chosen else 'no'}" if peer == _ON_ALL else ""
        line = _line("select dpp", task.size, ours, f"k={task.k}; {how}{same}")
        found.append(line | {"peer": peer, "peer_value": round(seconds * 1000, 3), "ratio": round(seconds / ours, 1)})
    return found


def _peers(task: Task, pool: Pool, question: Any) -> Iterator[tuple[str, Callable[[], Any], str]]:
    if task.size <= FULL:
        yield _ON_ALL, lambda: _greedy_on_all(pool, question, task.k), "kernel made with it"
    if task.size <= SAMPLED:
        wish = Wish(k=task.k, mode="sample", gamma=20.0, distance="metric")
        yield "DPPy, exact k-DPP", lambda: select(pool, question, wish), "of the 300 most relevant, a sample, no mode"
    if task.size <= MMR:
        yield "langchain MMR", lambda: _mmr(pool, question, task.k), "by embeddings only"
    if importlib.util.find_spec("submodlib") is not None and task.size <= SAMPLED:
        yield (
            "submodlib",
            lambda: _submodlib(pool, question, task.k),
            "LogDeterminant, NaiveGreedy, kernel made with it",
        )


def _full_kernel(pool: Pool, question: Any) -> Any:
    kernel = kernel_for(pool, question, Wish())
    rows = np.stack([kernel.rows(group) for group in range(len(kernel.groups))])
    matrix = (1 - kernel.nugget) * rows[np.ix_(kernel.groups.of, kernel.groups.of)]
    np.fill_diagonal(matrix, 1.0)
    quality = np.exp(kernel.log_quality)
    matrix *= quality
    matrix *= quality[:, None]
    return matrix


def _greedy_on_all(pool: Pool, question: Any, k: int) -> list[int]:
    """The textbook's greedy search with the whole N x N kernel."""
    matrix = _full_kernel(pool, question)
    left, columns, chosen = matrix.diagonal().copy(), np.zeros((0, len(matrix))), []
    for _ in range(min(k, len(matrix))):
        item = int(np.argmax(left))
        chosen.append(item)
        column = (matrix[item] - columns[:, item] @ columns) / np.sqrt(left[item])
        columns = np.vstack((columns, column))
        left = left - column**2
        left[chosen] = -np.inf
    return chosen


def _mmr(pool: Pool, question: Any, k: int) -> list[int]:
    peer = importlib.import_module("langchain_core.vectorstores.utils")
    return list(peer.maximal_marginal_relevance(question, pool.embeddings, k=k))


def _submodlib(pool: Pool, question: Any, k: int) -> list[int]:
    peer = importlib.import_module("submodlib")

    matrix = _full_kernel(pool, question)
    found = peer.LogDeterminantFunction(n=len(matrix), mode="dense", lambdaVal=0, sijs=matrix)
    return [int(item) for item, _ in found.maximize(budget=min(k, len(matrix) - 1), optimizer="NaiveGreedy")]


def _optimum(sequences: Sequences) -> Iterator[dict[str, Any]]:
    """How much of the greatest determinant over all sets of three the picks have, and how often all of it."""
    every = np.array(list(itertools.combinations(range(20), 3)))
    for exchange in (False, True):
        shares = []
        for seed in range(_INSTANCES):
            pool, question = _pool(Task(20, 3, sequences), np.random.default_rng(seed))
            matrix = _full_kernel(pool, question)
            found = select(pool, question, Wish(exchange=exchange))
            best = np.linalg.det(matrix[every[:, :, None], every[:, None, :]]).max()
            shares.append(np.exp(found.log_det) / best)
        whole = sum(share > 1 - 1e-9 for share in shares)
        name = "share of the optimum" + (", with exchange" if exchange else "")
        note = f"k=3; of {_INSTANCES} instances {whole} at the optimum, the least {min(shares):.4f}"
        yield {"name": name, "size": 20, "value": round(float(np.mean(shares)), 5), "unit": "", "note": note}


def _encoding() -> Iterator[dict[str, Any]]:
    encoder = SentenceEncoder(BUNDLED)
    encoder(["Which towns lie by the sea?"])
    seconds = []
    for number in range(30):
        start = time.perf_counter()
        encoder([f"Which of the {number} towns by the sea was founded by the father of a king?"])
        seconds.append(time.perf_counter() - start)
    yield _line("encode one question, warm", 1, statistics.median(seconds), "median of 30")


def _pool(task: Task, chance: np.random.Generator) -> tuple[Pool, Any]:
    rows = chance.standard_normal((task.size, DIMENSIONS), np.float32)
    rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    drawn = chance.integers(0, len(task.sequences), task.size)
    return Pool(rows, actions([task.sequences[place] for place in drawn])), rows[task.size // 2]


def _sequences(data: Path | None) -> Sequences:
    """What real agents and people did; without the data, sequences of chance."""
    if data is None:
        chance = np.random.default_rng(0)
        lengths = chance.integers(2, 12, 300)
        return [tuple(f"tool {tool}" for tool in chance.integers(0, 6, length)) for length in lengths]
    files = sorted([*(data / "humaniq").glob("*.json"), *(data / "humaniq" / "agent_traces").glob("*.json")])
    records = (found for file in files for found in read_traces(file) if isinstance(found, TraceRecord))
    return [tuple(step.tool for step in record.steps if step.tool is not None) for record in records]


def _timed(act: Callable[[], Any], turns: int = _TURNS) -> tuple[float, Any]:
    """The median of some turns after a first one, in seconds, and what came of it."""
    found = act()
    seconds = []
    for _ in range(turns):
        start = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), found


def _line(name: str, size: int, seconds: float, note: str) -> dict[str, Any]:
    return {"name": name, "size": size, "value": round(seconds * 1000, 3), "unit": "ms", "note": note}
