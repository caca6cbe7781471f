"""Fifty annotators against one server, each committing a step every five seconds for a minute."""

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

import httpx

from benchmarks.servers import SHOWHOW_COMMAND, AppServer, run_app_server, server_environment
from db.database import Database
from db.traces import iterate_traces

ANNOTATOR_COUNT, STEP_INTERVAL, DURATION_SECONDS = 50, 5.0, 60.0
PROJECT_NAME = "Fictional people"


@dataclass(slots=True)
class SimulatedAnnotator:
    """One annotator's session: committed thoughts, seconds of each commit, and errors."""

    name: str
    url: str
    thoughts: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def run_until(self, until: float) -> None:
        """Open the page, then commit a step every STEP_INTERVAL seconds until `until` (monotonic)."""
        pause = random.Random(self.name)  # noqa: S311 - spreads the load, guards nothing
        # The server closes connections after five idle seconds, exactly when the next commit would reuse one.
        with httpx.Client(base_url=self.url, timeout=60, limits=httpx.Limits(max_keepalive_connections=0)) as client:
            page = self._send_request(
                client, {"page": "", "query_params": {"you": [self.name], "project": [PROJECT_NAME]}}
            )
            time.sleep(pause.random() * STEP_INTERVAL)
            while page is not None and time.monotonic() < until:
                begun = time.perf_counter()
                page = self._commit_step(client, page)
                took = time.perf_counter() - begun
                self.seconds.append(took)
                time.sleep(max(0.0, STEP_INTERVAL - took))

    def _commit_step(self, client: httpx.Client, page: dict[str, Any]) -> dict[str, Any] | None:
        keys = _widget_keys(page["tree"])
        thought = next(key for key in keys if key.endswith("_thought"))
        query = next(key for key in keys if key.endswith("_arg_wikisearch_query"))
        text = f"{self.name} wants to know, step {len(self.thoughts) + 1}"
        values = {thought: text, query: f"person born in town number {len(self.thoughts)}"}
        answer = self._send_request(
            client, {"session_id": page["session_id"], "widget_state": values, "trigger": {"key": "run"}}
        )
        if answer is not None:
            self.thoughts.append(text)
        return answer

    def _send_request(self, client: httpx.Client, request: dict[str, Any]) -> dict[str, Any] | None:
        try:
            reply = client.post("/_stcore/agent/interact", json=request)
        except httpx.HTTPError as failed:
            self.errors.append(f"{type(failed).__name__}: {failed}")
            return None
        payload: dict[str, Any] = reply.json()
        if reply.status_code != 200 or payload.get("status") != "ready":
            self.errors.append(f"{reply.status_code}: {str(payload)[:200]}")
            return None
        return payload


def _widget_keys(tree: Any) -> list[str]:
    if isinstance(tree, dict):
        own = [tree["key"]] if isinstance(tree.get("key"), str) else []
        return own + [key for value in tree.values() for key in _widget_keys(value)]
    return [key for value in tree for key in _widget_keys(value)] if isinstance(tree, list) else []


def run_benchmark(home: Path, _data: Path | None) -> Iterator[dict[str, Any]]:
    """Commit latency under load, number of errors, and whether each step was stored exactly once."""
    subprocess.run([SHOWHOW_COMMAND, "setup"], env=server_environment(home), check=True, capture_output=True)  # noqa: S603 - our own
    with run_app_server(home) as server:
        people = [SimulatedAnnotator(f"annotator {number}", server.url) for number in range(ANNOTATOR_COUNT)]
        _run_annotators(people)
        yield from _load_results(people, server, home)


def _run_annotators(people: list[SimulatedAnnotator]) -> None:
    until = time.monotonic() + DURATION_SECONDS
    threads = [threading.Thread(target=person.run_until, args=(until,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _load_results(people: list[SimulatedAnnotator], server: AppServer, home: Path) -> Iterator[dict[str, Any]]:
    size = f"{ANNOTATOR_COUNT} annotators, a step every {STEP_INTERVAL:g} s, {DURATION_SECONDS:g} s"
    note = f"load at the end {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    seconds = sorted(second for person in people for second in person.seconds)
    peak = round(server.peak_mb())
    share = {"p50": statistics.median(seconds), "p95": seconds[int(len(seconds) * 0.95)], "worst": seconds[-1]}
    for name, value in share.items():
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
        stored = sorted(step.thought for record in iterate_traces(session) for step in record.steps)
    stored_note = "every step stored once" if stored == acknowledged else f"{len(stored)} stored"
    yield {"name": "load_steps", "size": size, "value": len(acknowledged), "unit": "steps", "note": stored_note}
