"""Demonstration selection: time and memory of greedy MAP inference, with and without exchange."""

import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.selection import CandidatePool, SelectionConfig, select_demonstrations
from showhow.fewshot_library.sequence_similarity import encode_actions

LIBRARY_SIZES = (20, 1_000, 10_000, 100_000, 1_000_000)
DIMENSIONS = 384
_REPETITIONS = 9

SequenceList = list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class SelectionTask:
    """Library size, number of picks, and the action sequences to draw from."""

    size: int
    k: int
    sequences: SequenceList


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:  # noqa: ARG001 - stores nothing
    """Results of each library size and k."""
    sequences = _load_sequences(data)
    context = multiprocessing.get_context("spawn")
    for size in LIBRARY_SIZES:
        for k in (3, 8):
            # A separate process, so that peak memory is measured per size.
            with ProcessPoolExecutor(1, mp_context=context) as executor:
                yield from executor.submit(measure_task, SelectionTask(size, k, sequences)).result()


def measure_task(task: SelectionTask) -> list[dict[str, Any]]:
    """Results for one size and k."""
    pool, question = _random_pool(task, np.random.default_rng(1))
    sequence_count = len(pool.actions.sequences)
    note = f"k={task.k}; {sequence_count} distinct action sequences; median of {_REPETITIONS}, question encoded before"
    results = []
    for name, exchange in (("select dpp", False), ("select dpp, with exchange", True)):
        config = SelectionConfig(k=task.k, exchange=exchange)
        seconds = _time_median(partial(select_demonstrations, pool, question, config))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        results.append(
            {
                "name": name,
                "size": task.size,
                "value": round(seconds * 1000, 3),
                "unit": "ms",
                "peak_mb": round(peak),
                "note": note,
            }
        )
    return results


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


def _time_median(call: Callable[[], Any]) -> float:
    """Median seconds of repeated calls after a warm-up."""
    call()
    seconds = []
    for _ in range(_REPETITIONS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
