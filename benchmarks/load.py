"""Annotators against one server, each committing a step every few seconds for a minute: 50, then 200."""

import os
import random
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from showhow.benchmarks.servers import SHOWHOW_COMMAND, AppServer, run_app_server, server_environment
from showhow.db.database import Database
from showhow.db.traces.traces import iterate_traces
from tests.browser.session import BrowserSession, SessionError, open_session

DURATION_SECONDS = 60.0
LOADS = ((50, 5.0), (200, 20.0))
"""Annotators at once, and seconds from one step of a person to the next; both make ten steps a second."""
PROJECT_NAME = "Fictional people"


@dataclass(slots=True)
class SimulatedAnnotator:
    """One annotator's session: committed thoughts, seconds of each commit, and errors."""

    name: str
    url: str
    interval: float
    thoughts: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def run(self, all_opened: threading.Barrier) -> None:
        """Open the page and wait for the others; then commit a step at each of one's own moments for the duration.

        The moments are spread evenly at random. People who only waited for `interval` after each step would soon commit
        all at once.
        """
        moment = random.Random(self.name).random() * self.interval  # noqa: S311 - spreads the load, not used as a secret
        try:
            with open_session(self.url, "", {"you": self.name, "project": PROJECT_NAME}, seconds=300) as page:
                all_opened.wait()
                opened = time.monotonic()
                while moment < DURATION_SECONDS:
                    time.sleep(max(0.0, opened + moment - time.monotonic()))
                    started = time.perf_counter()
                    self._commit_step(page)
                    self.seconds.append(time.perf_counter() - started)
                    moment += self.interval
        except SessionError as error:
            self.errors.append(str(error))
            all_opened.abort()
        except threading.BrokenBarrierError:
            self.errors.append("the page of another annotator did not open")

    def _commit_step(self, page: BrowserSession) -> None:
        text = f"{self.name} wants to know, step {len(self.thoughts) + 1}"
        query = f"person born in town number {len(self.thoughts)}"
        page.rerun({"_thought": text, "_arg_wikisearch_query": query}, click="run")
        if f"**Step {len(self.thoughts) + 2}**" not in page.texts:
            raise SessionError(f"the step was not acknowledged: {' | '.join(page.texts)[:300]}")
        self.thoughts.append(text)


def run_benchmark(home: Path, _data: Path | None) -> Iterator[dict[str, Any]]:
    """Commit latency under load, number of errors, and whether each step was stored exactly once."""
    for count, interval in LOADS:
        folder = home / str(count)
        folder.mkdir()
        subprocess.run([SHOWHOW_COMMAND, "setup"], env=server_environment(folder), check=True, capture_output=True)  # noqa: S603 - our own
        with run_app_server(folder) as server:
            people = [SimulatedAnnotator(f"annotator {number}", server.url, interval) for number in range(count)]
            _run_annotators(people)
            yield from _load_results(people, server, folder)


def _run_annotators(people: list[SimulatedAnnotator]) -> None:
    all_opened = threading.Barrier(len(people))
    threads = [threading.Thread(target=person.run, args=(all_opened,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _load_results(people: list[SimulatedAnnotator], server: AppServer, home: Path) -> Iterator[dict[str, Any]]:
    size = f"{len(people)} annotators, a step every {people[0].interval:g} s, {DURATION_SECONDS:g} s"
    note = f"load at the end {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    seconds = sorted(second for person in people for second in person.seconds)
    peak = round(server.peak_mb())
    latencies = {"p50": statistics.median(seconds), "p95": seconds[int(len(seconds) * 0.95)], "worst": seconds[-1]}
    for name, value in latencies.items():
        yield {
            "name": f"load_commit_{name}",
            "size": size,
            "value": round(value * 1000),
            "unit": "ms",
            "peak_mb": peak,
            "note": note,
        }
    errors = [error for person in people for error in person.errors]
    yield {
        "name": "load_errors",
        "size": size,
        "value": len(errors),
        "unit": "errors",
        "note": errors[0] if errors else None,
    }
    acknowledged = sorted(thought for person in people for thought in person.thoughts)
    with Database(f"sqlite:///{home / 'showhow.db'}").read() as session:
        # Setup adds traces of its own.
        recorded = (record for record in iterate_traces(session) if record.author in {person.name for person in people})
        stored = sorted(step.thought for record in recorded for step in record.steps)
    stored_note = "every step stored once" if stored == acknowledged else f"{len(stored)} stored"
    yield {"name": "load_steps", "size": size, "value": len(acknowledged), "unit": "steps", "note": stored_note}
