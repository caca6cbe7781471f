"""Verifications that worker processes share through PostgreSQL: four against one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.servers.model import ModelServer
from tests.servers.postgresql import PostgresqlServer
from tests.servers.shared_runs import CountingPupil, SharedHome

TEAM, TEAM_PLACES, SLOW_LATENCY, TEAM_QUESTIONS = 4, 2, 0.5, 80
"""Workers that are compared with one, the places of each, the seconds of a reply, and the questions."""
SECONDS = "SELECT extract(epoch FROM max(submitted_at) - min(started_at)) FROM trace WHERE run_id = :run"


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:  # noqa: ARG001 - the questions are made
    """Compare the time of one worker with that of TEAM."""
    # Commits wait for the disk, as in production.
    with PostgresqlServer(durable=True) as postgresql:
        yield from _measure_speed_up(home / "team", postgresql.create_database("team"))


def _measure_speed_up(folder: Path, database: str) -> Iterator[dict[str, Any]]:
    with ModelServer(CountingPupil()) as server, SharedHome(folder, database, server, TEAM_QUESTIONS) as shared:
        seconds = {number: _time_workers(shared, number) for number in (1, TEAM)}
    ideal = TEAM_QUESTIONS * 4 * SLOW_LATENCY / TEAM_PLACES
    yield {
        "name": "speed-up by workers",
        "size": TEAM,
        "value": round(seconds[1] / seconds[TEAM], 2),
        "unit": "times one worker",
        "note": (
            f"{TEAM_QUESTIONS} questions of 4 requests of {SLOW_LATENCY} s, {TEAM_PLACES} places a worker: "
            f"{seconds[1]:.1f} s (at best {ideal:.1f}) and {seconds[TEAM]:.1f} s (at best {ideal / TEAM:.1f})"
        ),
    }


def _time_workers(shared: SharedHome, number: int) -> float:
    """Seconds from the beginning of the first question to the end of the last, by so many workers."""
    workers = [shared.start_worker("--at-once", TEAM_PLACES) for _ in range(number)]
    _set_latency(shared, 0.05)
    # Each worker has loaded what it needs once it has answered questions.
    warm: set[str] = set()
    while len(warm) < number:
        run = shared.share("--reasoner", "humaniq", "--limit", 8 * number)
        shared.wait_until(shared.are_finished)
        rows = shared.rows("SELECT DISTINCT worker FROM attempt WHERE run_id = :run", run=run)
        warm |= {worker for (worker,) in rows}
    _set_latency(shared, SLOW_LATENCY)
    run = shared.share("--reasoner", "humaniq")
    shared.wait_until(shared.are_finished, 600)
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.wait()
    return _seconds_of(shared, run)


def _set_latency(shared: SharedHome, latency: float) -> None:
    shared.server.script = CountingPupil(latency)


def _seconds_of(shared: SharedHome, run: UUID) -> float:
    return float(shared.rows(SECONDS, run=run)[0][0])
