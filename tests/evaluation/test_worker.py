"""`showhow worker`: processes that share verifications through PostgreSQL, killed, paused, limited and stopped."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest

from tests.app.cli.in_process import run_in_process
from tests.servers.model import ModelServer
from tests.servers.postgresql import PostgresqlServer
from tests.servers.shared_runs import (
    PROJECT,
    CountingPupil,
    Ledger,
    SharedHome,
    kill_at_random_moments,
)

pytestmark = pytest.mark.long

QUESTIONS, PLACES, LEASE_SECONDS = 40, 4, 5.0
REASONERS = {"humaniq": 4, "cot": 1}
"""The model calls that each needs for a question."""
KILLS = 5


@dataclass
class Team:
    """Two workers on one home, and what its tests have interrupted so far."""

    home: SharedHome
    pupil: CountingPupil
    workers: list["subprocess.Popen[str]"]

    def start_worker(self) -> "subprocess.Popen[str]":
        return self.home.start_worker("--at-once", PLACES, "--lease", LEASE_SECONDS)

    def shares_of_workers(self, run: UUID) -> dict[str, int]:
        """The attempts of a run by worker."""
        return dict(self.home.rows("SELECT worker, count(*) FROM attempt WHERE run_id = :run GROUP BY worker", run=run))


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory, postgresql_server: PostgresqlServer) -> Iterator[Team]:
    """Two workers of PLACES places each, with a project of QUESTIONS questions."""
    pupil = CountingPupil()
    database = postgresql_server.create_database(f"w{uuid4().hex}")
    with (
        ModelServer(pupil) as server,
        SharedHome(tmp_path_factory.mktemp("workers") / "home", database, server, QUESTIONS) as home,
    ):
        team = Team(home, pupil, [])
        team.workers += [team.start_worker(), team.start_worker()]
        yield team


SCORES = (
    "SELECT run.reasoner, question.text, score.metric, score.value FROM score "
    "JOIN attempt ON attempt.id = score.attempt_id JOIN run ON run.id = attempt.run_id "
    "JOIN question ON question.id = attempt.question_id"
)


ATTEMPTS = "SELECT id, state, ending, lease_token, worker, trace_id FROM attempt WHERE run_id = :run ORDER BY id"
CALLS = "SELECT model_call.id, state FROM model_call JOIN trace ON trace.id = trace_id WHERE run_id = :run ORDER BY 1"


def test_killed_workers_lose_nothing_and_score_as_one_process_on_sqlite(team, tmp_path):
    team.pupil.latency = 0.1
    runs = [team.home.share("--reasoner", reasoner) for reasoner in REASONERS]
    total = QUESTIONS * len(REASONERS)
    shares = [(number + 1) * total // (KILLS + 2) for number in range(KILLS)]
    kill_at_random_moments(team.home, team.workers, shares, team.start_worker, seed=7)
    team.home.wait_until(team.home.are_finished)
    ledger = Ledger.read(team.home, runs, 0)
    assert ledger.find_faults(most_lost=KILLS * PLACES) == []
    assert (ledger.attempts, ledger.calls - ledger.lost) == (total, QUESTIONS * sum(REASONERS.values()))
    # The same questions, asked by threads of one process on SQLite.
    team.pupil.latency = 0.0
    with SharedHome(tmp_path / "home", f"sqlite:///{tmp_path / 'one.db'}", team.home.server, QUESTIONS) as alone:
        for reasoner in REASONERS:
            alone.run("verify", "--project", PROJECT, "--reasoner", reasoner, "--at-once", 8)
        assert sorted(team.home.rows(SCORES)) == sorted(alone.rows(SCORES))
        assert len(alone.rows(SCORES)) == 2 * total


def test_a_restart_of_postgresql_loses_nothing(team, postgresql_server):
    team.pupil.latency = 0.2
    before, first_request = team.home.count_ended(), len(team.home.server.requests)
    run = team.home.share("--reasoner", "humaniq", "--limit", 24)
    team.home.wait_until(lambda: team.home.count_ended() >= before + 6)
    postgresql_server.stop()
    postgresql_server.start()
    team.home.wait_until(team.home.are_finished)
    assert Ledger.read(team.home, [run], first_request).find_faults(most_lost=2 * PLACES) == []
    assert [worker.poll() for worker in team.workers] == [None, None]


def test_a_worker_that_was_paused_past_its_lease_changes_nothing_of_others(team):
    team.pupil.latency = 0.3
    before, first_request = team.home.count_ended(), len(team.home.server.requests)
    run = team.home.share("--reasoner", "humaniq", "--limit", 20)
    team.home.wait_until(lambda: team.home.count_ended() >= before + 2)
    paused = team.workers[0]
    paused.send_signal(signal.SIGSTOP)
    try:
        # The other worker takes its attempts once the leases have run out.
        team.home.wait_until(team.home.are_finished)
        attempts, calls = team.home.rows(ATTEMPTS, run=run), team.home.rows(CALLS, run=run)
    finally:
        paused.send_signal(signal.SIGCONT)
    # It goes on, and works on the next run; what it had begun stays as the other worker ended it.
    later = team.home.share("--reasoner", "cot", "--limit", 20)
    team.home.wait_until(lambda: len(team.shares_of_workers(later)) == 2)
    team.home.wait_until(team.home.are_finished)
    assert team.home.rows(ATTEMPTS, run=run) == attempts
    assert team.home.rows(CALLS, run=run) == calls
    assert Ledger.read(team.home, [run, later], first_request).find_faults(most_lost=PLACES) == []


def test_pause_number_at_once_and_priority_hold_for_all_workers(team):
    team.pupil.latency = 0.2
    low = team.home.share("--reasoner", "cot", "--limit", 12, "--at-once", 1)
    high = team.home.share("--reasoner", "humaniq", "--limit", 16, "--at-once", 2, "--priority", 5)
    most = {low: 0, high: 0}

    def count(run: UUID, state: str) -> int:
        """The attempts of the run in this state; notes how many are at work."""
        rows = team.home.rows("SELECT run_id, state, count(*) FROM attempt WHERE state != 'open' GROUP BY 1, 2")
        counts = {(run_id, its_state): number for run_id, its_state, number in rows}
        for watched, number in most.items():
            most[watched] = max(number, counts.get((watched, "leased"), 0))
        return counts.get((run, state), 0)

    team.home.wait_until(lambda: count(high, "ended") >= 2)
    team.home.run("verify", "--pause", high)
    team.home.wait_until(lambda: count(high, "leased") == 0)
    paused_at = count(high, "ended")
    # The workers go on with the other run meanwhile.
    ended = count(low, "ended")
    team.home.wait_until(lambda: count(low, "ended") >= min(12, ended + 3))
    assert count(high, "ended") == paused_at < 12
    assert most == {low: 1, high: 2}
    team.home.run("verify", "--resume", high, "--at-once", 4)
    team.home.wait_until(lambda: bool(count(high, "leased") == 4))
    team.home.wait_until(team.home.are_finished)


def test_the_money_of_a_run_is_never_exceeded_by_its_workers_together(team):
    """A request has some thousand tokens at most at a dollar a million, and in fact 110 tokens."""
    team.pupil.latency = 0.05
    first_request = len(team.home.server.requests)
    arguments = ("--reasoner", "cot", "--limit", 30)
    # One request has room at a time, though eight places are free.
    limit = 0.0055
    run = team.home.share(*arguments, "--most-money", limit)
    active = "SELECT 1 FROM worker_run JOIN run ON id = run_id WHERE is_active AND finished_at IS NULL AND id = :run"
    team.home.wait_until(lambda: not team.home.rows(active, run=run))
    team.home.wait_until(lambda: not team.home.rows("SELECT 1 FROM attempt WHERE state = 'leased'"))
    ((used, reason),) = team.home.rows("SELECT used_money, stop_reason FROM worker_run WHERE run_id = :run", run=run)
    requests = len(team.home.server.requests) - first_request
    assert used == pytest.approx(requests * 110 / 1e6)
    most = re.match(
        r"the limit of \$0\.0055 for all questions leaves no room for a request of at most \$([\d.]+)", reason
    )
    assert most is not None
    assert used <= limit < used + float(most[1]) + 1e-4
    # With more money the same verification goes on, and pays for nothing again.
    assert team.home.share(*arguments, "--most-money", 10) == run
    team.home.wait_until(team.home.are_finished)
    assert Ledger.read(team.home, [run], first_request).find_faults(most_lost=0) == []


def test_a_worker_that_is_told_to_stop_stores_what_is_under_way(team):
    team.pupil.latency = 0.5
    before, first_request = team.home.count_ended(), len(team.home.server.requests)
    run = team.home.share("--reasoner", "humaniq", "--limit", 14)
    team.home.wait_until(lambda: team.home.count_ended() > before)
    stopped = team.workers[0]
    stopped.terminate()
    stdout, _ = stopped.communicate(timeout=60)
    assert stopped.returncode == 0
    assert "the worker was stopped after" in stdout
    team.workers[0] = team.start_worker()
    team.home.wait_until(team.home.are_finished)
    # No reply was lost, so nothing was asked again.
    assert Ledger.read(team.home, [run], first_request).find_faults(most_lost=0) == []


def test_a_worker_on_sqlite_says_what_it_needs(tmp_path):
    done = run_in_process(tmp_path, "worker")
    assert done.returncode == 1
    assert "workers share a PostgreSQL database, and this one is an SQLite file" in done.stderr
    assert "showhow[workers]" in done.stderr


def test_a_worker_without_the_extra_says_how_to_install_it(tmp_path, postgresql_server, monkeypatch):
    monkeypatch.setitem(sys.modules, "procrastinate", None)
    database = postgresql_server.create_database(f"w{uuid4().hex}")
    done = run_in_process(tmp_path, "worker", SHOWHOW_DATABASE_URL=database)
    assert done.returncode == 1
    assert "not installed: pip install 'showhow[workers]'" in done.stderr
