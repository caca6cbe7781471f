"""Annotators, each committing a step every few seconds for a minute: 50, then 200, against one process on SQLite.

Then 200 against several processes on PostgreSQL, behind the proxy of compose.yaml.
"""

import os
import random
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from showhow.benchmarks.servers import SHOWHOW_COMMAND, AppServer, run_app_server, server_environment
from showhow.db.database import Database
from showhow.db.people import users
from showhow.db.storage.move import move_database
from showhow.db.traces.traces import iterate_traces
from tests.browser.session import BrowserSession, SessionError, confirm_name, open_session
from tests.servers.haproxy import run_haproxy
from tests.servers.postgresql import PostgresqlServer

DURATION_SECONDS = 60.0
PROCESSES = max(2, min(4, os.cpu_count() or 2))
LOADS = ((50, 5.0, 1), (200, 20.0, 1), (200, 5.0, PROCESSES))
"""Annotators at once, seconds from one step of a person to the next, and processes; 10, 10 and 40 steps a second."""
PROJECT_NAME = "Fictional people"


@dataclass(slots=True)
class SimulatedAnnotator:
    """One annotator's session: committed thoughts, seconds of each commit, and errors."""

    name: str
    url: str
    interval: float
    cookie: str = ""
    thoughts: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def run(self, all_opened: threading.Barrier) -> None:
        """Open the page and wait for the others; then commit a step at each of one's own moments for the duration.

        The moments are spread evenly at random. People who only waited for `interval` after each step would soon commit
        all at once.
        """
        moment = random.Random(self.name).random() * self.interval  # noqa: S311 - spreads the load, not used as a secret
        parameters = {"you": self.name, "project": PROJECT_NAME}
        try:
            with open_session(self.url, "", parameters, cookie=self.cookie, seconds=300) as page:
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


@dataclass(frozen=True, slots=True)
class LoadedServers:
    """Where the annotators go, the processes that serve them, and their database."""

    url: str
    processes: list[AppServer]
    database_url: str


def run_benchmark(home: Path, _data: Path | None) -> Iterator[dict[str, Any]]:
    """Commit latency under load, number of errors, and whether each step was stored exactly once."""
    for count, interval, processes in LOADS:
        folder = home / f"{count} at {processes}"
        folder.mkdir()
        subprocess.run([SHOWHOW_COMMAND, "setup"], env=server_environment(folder), check=True, capture_output=True)  # noqa: S603 - our own
        names = [f"annotator {number}" for number in range(count)]
        with ExitStack() as running:
            servers = _run_servers(running, folder, processes, names)
            people = [
                SimulatedAnnotator(name, servers.url, interval, confirm_name(folder, name) if processes > 1 else "")
                for name in names
            ]
            _run_annotators(people)
            yield from _load_results(people, servers)


def _run_servers(running: ExitStack, home: Path, processes: int, names: list[str]) -> LoadedServers:
    sqlite = f"sqlite:///{home / 'showhow.db'}"
    if processes == 1:
        server = running.enter_context(run_app_server(home))
        return LoadedServers(server.url, [server], sqlite)
    postgresql = running.enter_context(PostgresqlServer(durable=True, connections=60 * processes))
    address = postgresql.create_database("load")
    with closing(Database(sqlite)) as source, closing(Database(address)) as target:
        move_database(source, target)
        with target.begin() as session:
            for name in names:
                users.register_user(session, name)
    environ = {"SHOWHOW_DATABASE_URL": address}
    started = [running.enter_context(run_app_server(home, environ)) for _ in range(processes)]
    ports = [int(server.url.rpartition(":")[2]) for server in started]
    return LoadedServers(running.enter_context(run_haproxy(ports)), started, address)


def _run_annotators(people: list[SimulatedAnnotator]) -> None:
    all_opened = threading.Barrier(len(people))
    threads = [threading.Thread(target=person.run, args=(all_opened,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _load_results(people: list[SimulatedAnnotator], servers: LoadedServers) -> Iterator[dict[str, Any]]:
    size = f"{len(people)} annotators, a step every {people[0].interval:g} s, {DURATION_SECONDS:g} s"
    size += f", {count} processes" if (count := len(servers.processes)) > 1 else ""
    note = f"load at the end {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    seconds = sorted(second for person in people for second in person.seconds)
    peak = round(sum(server.peak_mb() for server in servers.processes))
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
    with Database(servers.database_url).read() as session:
        # Setup adds traces of its own.
        recorded = (record for record in iterate_traces(session) if record.author in {person.name for person in people})
        stored = sorted(step.thought for record in recorded for step in record.steps)
    stored_note = "every step stored once" if stored == acknowledged else f"{len(stored)} stored"
    yield {"name": "load_steps", "size": size, "value": len(acknowledged), "unit": "steps", "note": stored_note}
