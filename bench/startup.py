"""How long people wait: the command line's help, a warm start until the first page, the import of the real world."""

import json
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from bench.server import SHOWHOW, environment, serving

RUNS = 5


def lines(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """Medians of five runs; the import once."""
    yield _line("help", "showhow --help", _median(lambda: _timed(home, "--help")))
    _timed(home, "setup")
    yield _line("setup_repeated", "nothing to do", _median(lambda: _timed(home, "setup")))
    yield _line("warm_start", "showhow run until /healthz answers", _median(lambda: _start(home)[0]))
    yield _line("first_page", "showhow run until the Annotate page is drawn", _median(lambda: _start(home)[1]))
    yield _import(home, data)


def _line(name: str, size: str, seconds: float) -> dict[str, Any]:
    return {"name": f"startup_{name}", "size": size, "value": round(seconds, 2), "unit": "s"}


def _median(measure: Callable[[], float]) -> float:
    return float(statistics.median(measure() for _ in range(RUNS)))


def _timed(home: Path, *words: str) -> float:
    started = time.perf_counter()
    subprocess.run([SHOWHOW, *words], env=environment(home), check=True, capture_output=True)  # noqa: S603 - our own
    return time.perf_counter() - started


def _start(home: Path) -> tuple[float, float]:
    started = time.perf_counter()
    with serving(home) as server:
        request = {"page": "", "query_params": {"you": ["first"]}}
        reply = httpx.post(f"{server.url}/_stcore/agent/interact", json=request, timeout=60)
        if reply.json().get("status") != "ready":
            raise RuntimeError(f"the first page was not drawn: {reply.text[:200]}")
        return server.seconds, time.perf_counter() - started


def _import(home: Path, data: Path | None) -> dict[str, Any]:
    told = {"name": "import_world", "unit": "s", "size": "7,035 paragraphs and 14,553 triples"}
    if data is None:
        return {**told, "value": None, "note": "not measured: the test data is not here"}
    source = data / "world_2wiki"
    files = ["--articles", str(source / "paragraphs.jsonl"), "--graph", str(source / "kg_full.ttl")]
    started = time.perf_counter()
    command = [str(SHOWHOW), "world", "import", "real", *files, "--json"]
    done = subprocess.run(command, env=environment(home), check=True, capture_output=True)  # noqa: S603 - our own
    about = json.loads(done.stdout)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    size = f"{about['articles']:,} paragraphs and {about['triples']:,} triples"
    note = f"load {os.getloadavg()[0]:.1f}"
    return {**told, "size": size, "value": round(time.perf_counter() - started, 2), "peak_mb": peak, "note": note}
