"""Start-up times: command line help, warm start until the first page, import of a real world."""

import json
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.servers import SHOWHOW_COMMAND, run_app_server, server_environment
from tests.browser.session import open_session

RUN_COUNT = 5


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """Medians of RUN_COUNT runs; the import is measured once."""
    yield _startup_result("help", "showhow --help", _median_seconds(lambda: _time_command(home, "--help")))
    _time_command(home, "setup")
    yield _startup_result("setup_repeated", "nothing to do", _median_seconds(lambda: _time_command(home, "setup")))
    yield _startup_result(
        "warm_start", "showhow run until /healthz answers", _median_seconds(lambda: _time_start(home)[0])
    )
    yield _startup_result(
        "first_page", "showhow run until the Annotate page is drawn", _median_seconds(lambda: _time_start(home)[1])
    )
    yield _measure_import(home, data)


def _startup_result(name: str, size: str, seconds: float) -> dict[str, Any]:
    return {"name": f"startup_{name}", "size": size, "value": round(seconds, 2), "unit": "s"}


def _median_seconds(measure: Callable[[], float]) -> float:
    return float(statistics.median(measure() for _ in range(RUN_COUNT)))


def _time_command(home: Path, *words: str) -> float:
    started = time.perf_counter()
    subprocess.run([SHOWHOW_COMMAND, *words], env=server_environment(home), check=True, capture_output=True)  # noqa: S603 - our own
    return time.perf_counter() - started


def _time_start(home: Path) -> tuple[float, float]:
    started = time.perf_counter()
    with run_app_server(home) as server:
        with open_session(server.url, "", {"you": "first"}):
            first_page = time.perf_counter() - started
        return server.start_seconds, first_page


def _measure_import(home: Path, data: Path | None) -> dict[str, Any]:
    result = {"name": "import_world", "unit": "s", "size": "7,035 paragraphs and 14,553 triples"}
    if data is None:
        return {**result, "value": None, "note": "not measured: the test data are missing"}
    source = data / "world_2wiki"
    files = ["--articles", str(source / "paragraphs.jsonl"), "--graph", str(source / "kg_full.ttl")]
    started = time.perf_counter()
    command = [str(SHOWHOW_COMMAND), "world", "import", "real", *files, "--json"]
    process = subprocess.run(command, env=server_environment(home), check=True, capture_output=True)  # noqa: S603 - our own
    metadata = json.loads(process.stdout)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    size = f"{metadata['articles']:,} paragraphs and {metadata['triples']:,} triples"
    note = f"load {os.getloadavg()[0]:.1f}"
    return {**result, "size": size, "value": round(time.perf_counter() - started, 2), "peak_mb": peak, "note": note}
