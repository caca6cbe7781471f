"""Demonstration selection: time, memory and picks of greedy MAP inference, compared with other selectors."""

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

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.selection import CandidatePool, SelectionConfig, build_kernel, select_demonstrations
from showhow.fewshot_library.sequence_similarity import encode_actions

LIBRARY_SIZES = (20, 1_000, 10_000, 100_000, 1_000_000)
MAX_FULL_KERNEL = 10_000
"""Largest library for which the full kernel is built; MAX_SAMPLED_KERNEL limits its eigendecomposition."""
MAX_SAMPLED_KERNEL = 1_000
MAX_MMR_SIZE = 100_000
DIMENSIONS = 384
_REPETITIONS = 9
_OPTIMUM_INSTANCES = 200
_FULL_KERNEL_PEER = "greedy on the full kernel"

SequenceList = list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class SelectionTask:
    """Library size, number of picks, and the action sequences to draw from."""

    size: int
    k: int
    sequences: SequenceList


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:  # noqa: ARG001 - stores nothing
    """One result per library size and k, and one for each peer that supports the size."""
    sequences = _load_sequences(data)
    context = multiprocessing.get_context("spawn")
    for size in LIBRARY_SIZES:
        for k in (3, 8):
            # A separate process, so that peak memory is measured per size.
            with ProcessPoolExecutor(1, mp_context=context) as executor:
                yield from executor.submit(measure_task, SelectionTask(size, k, sequences)).result()
    yield from _measure_optimum(sequences)
    yield from _measure_encoding()


def measure_task(task: SelectionTask) -> list[dict[str, Any]]:
    """Results for one size and k."""
    pool, question = _random_pool(task, np.random.default_rng(1))
    config = SelectionConfig(k=task.k, exchange=False)
    our_seconds, picks = _time_median(
        lambda: [pick.item for pick in select_demonstrations(pool, question, config).picks]
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sequence_count = len(pool.actions.sequences)
    note = f"k={task.k}; {sequence_count} distinct action sequences; median of {_REPETITIONS}, question encoded before"
    results = [_selection_result("select dpp", task.size, our_seconds, note) | {"peak_mb": round(peak)}]
    exchange_seconds, _ = _time_median(lambda: select_demonstrations(pool, question, SelectionConfig(k=task.k)))
    results.append(_selection_result("select dpp, with exchange", task.size, exchange_seconds, f"k={task.k}"))
    for peer, select, description in _peer_selectors(task, pool, question):
        seconds, peer_picks = _time_median(select, 3)
        same = f"; the same picks: {'yes' if peer_picks == picks else 'no'}" if peer == _FULL_KERNEL_PEER else ""
        result = _selection_result("select dpp", task.size, our_seconds, f"k={task.k}; {description}{same}")
        ratio = round(seconds / our_seconds, 1)
        results.append(result | {"peer": peer, "peer_value": round(seconds * 1000, 3), "ratio": ratio})
    return results


def _peer_selectors(
    task: SelectionTask, pool: CandidatePool, question: Any
) -> Iterator[tuple[str, Callable[[], Any], str]]:
    if task.size <= MAX_FULL_KERNEL:
        yield _FULL_KERNEL_PEER, lambda: _select_on_full_kernel(pool, question, task.k), "kernel made with it"
    if task.size <= MAX_SAMPLED_KERNEL:
        config = SelectionConfig(k=task.k, mode="sample", gamma=20.0, distance="metric")
        yield (
            "DPPy, exact k-DPP",
            lambda: select_demonstrations(pool, question, config),
            "of the 300 most relevant, a sample, no mode",
        )
    if task.size <= MAX_MMR_SIZE:
        yield "langchain MMR", lambda: _select_by_mmr(pool, question, task.k), "by embeddings only"
    if importlib.util.find_spec("submodlib") is not None and task.size <= MAX_SAMPLED_KERNEL:
        yield (
            "submodlib",
            lambda: _select_by_submodlib(pool, question, task.k),
            "LogDeterminant, NaiveGreedy, kernel made with it",
        )


def _build_full_kernel(pool: CandidatePool, question: Any) -> Any:
    kernel = build_kernel(pool, question, SelectionConfig())
    rows = np.stack([kernel.rows(group) for group in range(len(kernel.groups))])
    matrix = (1 - kernel.nugget) * rows[np.ix_(kernel.groups.labels, kernel.groups.labels)]
    np.fill_diagonal(matrix, 1.0)
    quality = np.exp(kernel.log_quality)
    matrix *= quality
    matrix *= quality[:, None]
    return matrix


def _select_on_full_kernel(pool: CandidatePool, question: Any, k: int) -> list[int]:
    """Textbook greedy MAP inference on the full N x N kernel."""
    matrix = _build_full_kernel(pool, question)
    gains, columns, picks = matrix.diagonal().copy(), np.zeros((0, len(matrix))), []
    for _ in range(min(k, len(matrix))):
        item = int(np.argmax(gains))
        picks.append(item)
        column = (matrix[item] - columns[:, item] @ columns) / np.sqrt(gains[item])
        columns = np.vstack((columns, column))
        gains = gains - column**2
        gains[picks] = -np.inf
    return picks


def _select_by_mmr(pool: CandidatePool, question: Any, k: int) -> list[int]:
    peer = importlib.import_module("langchain_core.vectorstores.utils")
    return list(peer.maximal_marginal_relevance(question, pool.embeddings, k=k))


def _select_by_submodlib(pool: CandidatePool, question: Any, k: int) -> list[int]:
    peer = importlib.import_module("submodlib")

    matrix = _build_full_kernel(pool, question)
    objective = peer.LogDeterminantFunction(n=len(matrix), mode="dense", lambdaVal=0, sijs=matrix)
    return [int(item) for item, _ in objective.maximize(budget=min(k, len(matrix) - 1), optimizer="NaiveGreedy")]


def _measure_optimum(sequences: SequenceList) -> Iterator[dict[str, Any]]:
    """Determinant of the picks relative to the optimum over all sets of three."""
    subsets = np.array(list(itertools.combinations(range(20), 3)))
    for exchange in (False, True):
        shares = []
        for seed in range(_OPTIMUM_INSTANCES):
            pool, question = _random_pool(SelectionTask(20, 3, sequences), np.random.default_rng(seed))
            matrix = _build_full_kernel(pool, question)
            selection = select_demonstrations(pool, question, SelectionConfig(exchange=exchange))
            best = np.linalg.det(matrix[subsets[:, :, None], subsets[:, None, :]]).max()
            shares.append(np.exp(selection.log_det) / best)
        optimal = sum(share > 1 - 1e-9 for share in shares)
        name = "share of the optimum" + (", with exchange" if exchange else "")
        note = f"k=3; {optimal} of {_OPTIMUM_INSTANCES} instances at the optimum, the smallest share {min(shares):.4f}"
        yield {"name": name, "size": 20, "value": round(float(np.mean(shares)), 5), "unit": "", "note": note}


def _measure_encoding() -> Iterator[dict[str, Any]]:
    encoder = SentenceEncoder(BUNDLED_MODEL)
    encoder(["Which towns lie by the sea?"])
    seconds = []
    for number in range(30):
        start = time.perf_counter()
        encoder([f"Which of the {number} towns by the sea was founded by the father of a king?"])
        seconds.append(time.perf_counter() - start)
    yield _selection_result("encode one question, warm", 1, statistics.median(seconds), "median of 30")


def _random_pool(task: SelectionTask, generator: np.random.Generator) -> tuple[CandidatePool, Any]:
    rows = generator.standard_normal((task.size, DIMENSIONS), np.float32)
    rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    indexes = generator.integers(0, len(task.sequences), task.size)
    return CandidatePool(rows, encode_actions([task.sequences[index] for index in indexes])), rows[task.size // 2]


def _load_sequences(data: Path | None) -> SequenceList:
    """Action sequences of real traces; random ones without the data."""
    if data is None:
        generator = np.random.default_rng(0)
        lengths = generator.integers(2, 12, 300)
        return [tuple(f"tool {tool}" for tool in generator.integers(0, 6, length)) for length in lengths]
    files = sorted([*(data / "humaniq").glob("*.json"), *(data / "humaniq" / "agent_traces").glob("*.json")])
    records = (record for file in files for record in read_traces(file) if isinstance(record, TraceRecord))
    return [tuple(step.tool for step in record.steps if step.tool is not None) for record in records]


def _time_median(call: Callable[[], Any], repetitions: int = _REPETITIONS) -> tuple[float, Any]:
    """Median seconds of repeated calls after a warm-up, and the result of the warm-up."""
    result = call()
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def _selection_result(name: str, size: int, seconds: float, note: str) -> dict[str, Any]:
    return {"name": name, "size": size, "value": round(seconds * 1000, 3), "unit": "ms", "note": note}
