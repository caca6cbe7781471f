"""World generation: time of each stage at five sizes."""

import json
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import psutil

from showhow.benchmarks.servers import SHOWHOW_COMMAND, server_environment
from showhow.fiction.generator.world_files import UNIVERSE_FILE
from showhow.fiction.questions.evaluate import ExpressionEvaluator
from showhow.fiction.questions.expressions import decode_expression
from showhow.fiction.questions.question_file import read_question_rows
from showhow.fiction.universe.universe import Universe

WORLD_SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
GRAMMAR_DEPTH, QUESTIONS_PER_TEMPLATE, WORLD_SEED = 20, 10, 11
"""A grammar of depth 20 has 50 templates."""
_GRAMMAR_KINDS = ("who", "what", "how many")
"""Question kinds of the paper's grammar."""
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class CommandRun:
    """Result of a command: wall and CPU seconds, peak memory of all its processes together, and output."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    stdout: str
    stderr: str


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """Generate a world of each size by the command line."""
    del data  # only generated worlds are read
    for people in WORLD_SIZES:
        name = f"people-{people}"
        options = {"people": people, "seed": WORLD_SEED, "depth": GRAMMAR_DEPTH, "per-template": QUESTIONS_PER_TEMPLATE}
        words = [f"--{option}={value}" for option, value in options.items()]
        command = [str(SHOWHOW_COMMAND), "--json-progress", "world", "generate", name, *words, "--json"]
        run = _run_command(command, home)
        folder = home / "worlds" / name
        yield from _stage_results(people, run, sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()))
        yield _answering_result(people, folder)
        shutil.rmtree(folder)


def _stage_results(people: int, run: CommandRun, size: int) -> Iterator[dict[str, Any]]:
    metadata = json.loads(run.stdout)
    note = f"load {os.getloadavg()[0]:.1f}"
    stages = _read_stage_seconds(run.stderr)
    for stage, seconds in stages.items():
        yield _world_result(f"worlds_{stage}", people, seconds, "s", note)
    seconds = sum(stages[stage] for stage in ("people", "articles", "questions"))
    yield _world_result("worlds_facts_articles_questions", people, seconds, "s", "articles written and indexed")
    yield _world_result("worlds_whole", people, run.seconds, "s", "from the start of the process to its end")
    yield _world_result("worlds_processor", people, run.cpu_seconds, "s", "of all processes")
    yield _world_result("worlds_peak", people, run.peak_mb, "MB", "of all processes at once") | {
        "peak_mb": round(run.peak_mb)
    }
    counts = ", ".join(f"{metadata[noun]:,} {noun}" for noun in ("articles", "pages", "triples", "questions"))
    yield _world_result("worlds_disk", people, size / 2**20, "MB", counts)


def _read_stage_seconds(stderr: str) -> dict[str, float]:
    """Total seconds of each stage, from the JSON lines of --json-progress; the last line of a stage has its total."""
    events = [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]
    return {event["stage"]: event["seconds"] for event in events if event["stage"] and event["seconds"] is not None}


def _answering_result(people: int, folder: Path) -> dict[str, Any]:
    rows = [row for row in read_question_rows(folder) if row["kind"] in _GRAMMAR_KINDS]
    expressions = [decode_expression(row["expression"]) for row in rows]
    universe = Universe.load(folder / UNIVERSE_FILE)
    # The lists of children and friends are built once per universe.
    started = time.perf_counter()
    list_entries = len(universe.children.values) + len(universe.friends_of.values)
    lists_built = time.perf_counter()
    cpu_before = time.process_time()
    evaluation = ExpressionEvaluator(universe)
    for expression in expressions:
        evaluation.evaluate(expression)
    seconds, cpu_seconds = time.perf_counter() - lists_built, time.process_time() - cpu_before
    lists = f"building lists of {list_entries:,} children and friends before it {lists_built - started:.2f} s"
    note = f"{len(expressions)} questions, CPU {cpu_seconds * 1000:.0f} ms; {lists}; load {os.getloadavg()[0]:.1f}"
    return _world_result("worlds_answering", people, seconds * 1000, "ms", note)


def _world_result(name: str, people: int, value: float, unit: str, note: str) -> dict[str, Any]:
    return {"name": name, "size": f"{people:,} people", "value": round(value, 2), "unit": unit, "note": note}


def _run_command(command: Sequence[str], home: Path) -> CommandRun:
    """Run a command and sample the memory of its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    memory_samples = [0.0]
    with (home / "out").open("w+") as out, (home / "err").open("w+") as err:
        process = subprocess.Popen(command, env=server_environment(home), stdout=out, stderr=err)  # noqa: S603 - as named above
        sampler = Thread(target=_sample_memory, args=(process, memory_samples), daemon=True)
        sampler.start()
        status = process.wait()
        sampler.join()
        seconds = time.perf_counter() - started
        out.seek(0)
        err.seek(0)
        stdout, stderr = out.read(), err.read()
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with status {status}: {stderr[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return CommandRun(seconds, cpu_seconds, max(memory_samples), stdout, stderr)


def _sample_memory(process: "subprocess.Popen[bytes]", memory_samples: list[float]) -> None:
    while process.poll() is None:
        memory_samples.append(_tree_memory(process.pid))
        time.sleep(_POLL_SECONDS)


def _tree_memory(root: int) -> float:
    """Memory of a process and its descendants in MB; shared pages count for each."""
    total = 0
    # A process may end meanwhile.
    with suppress(psutil.Error):
        process = psutil.Process(root)
        for part in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                total += part.memory_info().rss
    return total / 2**20
