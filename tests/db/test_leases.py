"""Leases of attempts by the clock of the database, and what workers share of a run."""

import threading
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from showhow.db.database import Conflict, Database, StoreUnavailable
from showhow.db.models import Attempt, Run
from showhow.db.runs import attempts, leases, runs
from showhow.db.runs.attempts import MetricScore
from showhow.db.runs.leases import CallPermission, Lease, Taker, WorkerRun
from showhow.db.runs.runs import RunOutcome
from showhow.db.runs.verifications import VERIFICATION_NAME
from showhow.db.traces.model_calls import ModelRequest, begin_model_call

HERE, THERE = Taker("here:1:1", for_workers=True), Taker("there:2:2", for_workers=True)


@pytest.fixture
def run(scene: Any) -> Run:
    """A shared run over three questions."""
    made = Run(name=VERIFICATION_NAME, reasoner="cot", world="harbour")
    with scene.database.begin() as session:
        runs.start_run(session, made)
    attempts.add_attempts(scene.database, made, scene.questions)
    with scene.database.begin() as session:
        leases.lock_or_add_worker_run(session, made.id)
    return made


def take(database: Database, run: Run, number: int, taker: Taker) -> Lease | None:
    """Take the attempt of this number, and start or reopen its trace."""
    with database.begin() as session:
        attempt_id = attempts.list_unfinished_attempts(session, run.id)[number]
        attempt = leases.take_attempt(session, attempt_id, taker)
        if attempt is None:
            return None
        if attempt.trace_id is None:
            attempt.trace_id = runs.start_run_trace(session, run, attempt.question_id, "").id
        else:
            runs.reopen_run_trace(session, attempt.trace_id)
        return Lease(attempt.id, run.id, attempt.trace_id, attempt.lease_token, taker.for_workers)


def open_call(database: Database, lease: Lease, money: float = 0.0, tokens: int = 0) -> CallPermission:
    """Open a call that can use so much, and store it if it is granted."""
    with database.begin() as session:
        permission = leases.open_call(session, lease, money, tokens)
        if permission == CallPermission.GRANTED:
            begin_model_call(session, ModelRequest("step", "m", [{"role": "user"}]), trace_id=lease.trace_id)
        return permission


def let_run_out(database: Database, lease: Lease) -> None:
    with database.begin() as session:
        session.get_one(Attempt, lease.attempt_id).leased_until = leases.database_time(session) - timedelta(seconds=1)


def test_an_attempt_has_one_worker_until_its_lease_runs_out(scene, run):
    first = take(scene.database, run, 0, HERE)
    assert take(scene.database, run, 0, THERE) is None
    # Its own process does not take it twice either.
    assert take(scene.database, run, 0, HERE) is None
    let_run_out(scene.database, first)
    with scene.database.begin() as session:
        # A worker that was only slow keeps what nobody has taken.
        assert leases.renew_leases(session, [first], 30.0) == {first.attempt_id}
    assert take(scene.database, run, 0, THERE) is None
    let_run_out(scene.database, first)
    second = take(scene.database, run, 0, THERE)
    assert (second.attempt_id, second.token) == (first.attempt_id, first.token + 1)
    with scene.database.begin() as session:
        assert leases.renew_leases(session, [first], 30.0) == set()
        assert leases.count_leased_by_worker(session, run.id) == {THERE.worker: 1}


def test_a_lost_lease_opens_no_call_and_stores_no_score(scene, run):
    first = take(scene.database, run, 0, HERE)
    assert open_call(scene.database, first) == CallPermission.GRANTED
    let_run_out(scene.database, first)
    second = take(scene.database, run, 0, THERE)
    with pytest.raises(Conflict, match="taken by another worker"):
        open_call(scene.database, first)
    with pytest.raises(Conflict, match="taken by another worker"), scene.database.begin() as session:
        attempts.save_scores(session, first.attempt_id, first.token, [MetricScore("f1", 2, 1.0)])
    with scene.database.begin() as session:
        # To release it would interrupt the other one.
        leases.release_attempt(session, first)
        assert leases.count_leased_by_worker(session, run.id) == {THERE.worker: 1}
    assert open_call(scene.database, second) == CallPermission.GRANTED


def test_an_ended_attempt_is_not_taken_and_a_stopped_one_is(scene, run):
    for number, (ending, is_waiting) in enumerate({"refused": False, "stopped": True}.items()):
        lease = take(scene.database, run, 0 if number else 2, HERE)
        with scene.database.begin() as session:
            seen = runs.trace_version(session, lease.trace_id)
            runs.finish_run_trace(session, lease.trace_id, RunOutcome(ending, "so"), seen=seen)
        with scene.database.read() as session:
            waiting = leases.list_waiting_attempts(session, {}, 10)
        assert (lease.attempt_id in {row.attempt_id for row in waiting}) == is_waiting
        with pytest.raises(Conflict):
            open_call(scene.database, lease)


def test_workers_take_no_more_than_the_run_allows(scene, run):
    with scene.database.begin() as session:
        runs.set_concurrency(session, run.id, 2)
    assert take(scene.database, run, 0, HERE)
    with scene.database.read() as session:
        (waiting,) = leases.list_waiting_attempts(session, {}, 10)
        assert leases.list_waiting_attempts(session, {waiting.attempt_id: run.id}, 10) == []
    assert take(scene.database, run, 1, THERE)
    assert take(scene.database, run, 2, HERE) is None
    with scene.database.begin() as session:
        runs.set_concurrency(session, run.id, None)
        runs.pause_run(session, run.id)
    assert take(scene.database, run, 2, HERE) is None
    with scene.database.begin() as session:
        runs.pause_run(session, run.id, is_paused=False)
        leases.stop_workers(session, run.id)
    assert take(scene.database, run, 2, HERE) is None
    assert take(scene.database, run, 2, Taker("here:1:1")) is not None


def test_a_call_waits_for_what_others_have_reserved_and_stops_the_run_where_nothing_is_left(scene, run):
    with scene.database.begin() as session:
        leases.lock_or_add_worker_run(session, run.id).money_limit = 1.0
    first, second = take(scene.database, run, 0, HERE), take(scene.database, run, 1, THERE)
    assert open_call(scene.database, first, 0.7) == CallPermission.GRANTED
    assert open_call(scene.database, second, 0.7) == CallPermission.WAIT
    with scene.database.begin() as session:
        leases.settle_call(session, first, (0.7, 0), (0.25, 0))
    assert open_call(scene.database, second, 0.7) == CallPermission.GRANTED
    for lease in (first, second):
        with scene.database.begin() as session:
            seen = runs.trace_version(session, lease.trace_id)
            runs.finish_run_trace(session, lease.trace_id, RunOutcome("refused", "so"), seen=seen)
    third = take(scene.database, run, 0, HERE)
    assert open_call(scene.database, third, 0.7) == CallPermission.STOPPED
    with scene.database.read() as session:
        shared = session.get_one(WorkerRun, run.id)
        assert (shared.is_active, shared.used_money) == (False, pytest.approx(0.95))
        assert shared.stop_reason == (
            "the limit of $1 for all questions leaves no room for a request of at most $0.7 after $0.95"
        )


def test_no_call_is_opened_after_the_time_limit(scene, run):
    lease = take(scene.database, run, 0, HERE)
    with scene.database.begin() as session:
        shared = leases.lock_or_add_worker_run(session, run.id)
        shared.works_until = leases.database_time(session) - timedelta(seconds=1)
    assert open_call(scene.database, lease) == CallPermission.STOPPED


def test_many_workers_at_once_never_reserve_more_than_the_limit(scene, run):
    with scene.database.begin() as session:
        leases.lock_or_add_worker_run(session, run.id).token_limit = 100
    held = [take(scene.database, run, number, HERE) for number in range(3)]
    granted: list[CallPermission] = []

    def open_many(lease: Lease) -> None:
        granted.extend(open_call(scene.database, lease, 0.0, 7) for _ in range(10))

    threads = [threading.Thread(target=open_many, args=(lease,)) for lease in held for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert granted.count(CallPermission.GRANTED) == 100 // 7
    assert set(granted) == {CallPermission.GRANTED, CallPermission.WAIT}


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_transaction_that_waits_too_long_for_its_process_is_undone(scene, run):
    """A process that is paused inside a transaction keeps no lock for longer."""
    paused = Database(scene.database.connection_string)
    paused.end_idle_transactions_after(0.2)
    is_locked, goes_on = threading.Event(), threading.Event()
    errors: list[Exception] = []

    def pause() -> None:
        try:
            with paused.begin() as session:
                leases.lock_or_add_worker_run(session, run.id).priority = 9
                session.flush()
                is_locked.set()
                goes_on.wait()
        except StoreUnavailable as error:
            errors.append(error)

    thread = threading.Thread(target=pause)
    thread.start()
    is_locked.wait()
    assert take(scene.database, run, 0, THERE)
    goes_on.set()
    thread.join()
    paused.close()
    assert len(errors) == 1
    with scene.database.read() as session:
        assert session.get_one(WorkerRun, run.id).priority == 0


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_the_queue_has_a_schema_of_its_own_and_is_made_once(scene):
    makers = [
        threading.Thread(target=leases.create_queue, args=(scene.database, "a_queue", "CREATE TABLE job (id int)"))
        for _ in range(4)
    ]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    with psycopg.connect(scene.database.connection_string) as connection:
        assert connection.execute("SELECT count(*) FROM a_queue.job").fetchone() == (0,)
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT 1 FROM job")
