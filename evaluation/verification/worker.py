"""Workers: any number of processes on any machines that answer the questions of shared verifications.

    share_verification(services, run.id, options)      # workers take its attempts from now on
    follow_workers(services, run.id, options, stop, on_progress)

    Worker(services, WorkerOptions(at_once=8)).run(stop)    # in `showhow worker`

The tables of attempts and leases are the truth (leases.py). The queue, procrastinate's tables in a schema of their
own, only says "look at this attempt": each worker puts waiting attempts into it again and again, so a lost queue or job
loses nothing, and a job that comes twice finds the attempt taken.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from importlib.util import find_spec
from threading import Event, Lock
from typing import TYPE_CHECKING, Any
from uuid import UUID

from showhow.db.database import Conflict, Database, StoreError, StoreUnavailable
from showhow.db.models import Run
from showhow.db.runs import attempts, leases, runs, verifications
from showhow.db.runs.leases import LEASE_SECONDS, WaitingAttempt
from showhow.db.traces.model_calls import list_unfinished_usages
from showhow.evaluation.scoring.scoring import list_usages
from showhow.evaluation.shared_model import SharedModel, ignore_note
from showhow.evaluation.value_format import format_count
from showhow.evaluation.verification.verify import (
    RETRYABLE_ENDINGS,
    AttemptWorker,
    ExecutionOptions,
    finish_verification,
    open_verification,
)
from showhow.runs.ask import ASK_ERRORS
from showhow.runs.preparation import needs_model
from showhow.runs.process import LeaseKeeper, StopSignal, current_worker_id, is_worker_gone
from showhow.runs.services import Services

if TYPE_CHECKING:
    from procrastinate import App

INSTALL_HINT = "pip install 'showhow[workers]'"
_QUEUE = "attempts"
_TASK = "look_at_attempt"
_QUEUED_AHEAD = 256
"""The most attempts of a run that are in the queue."""
_SWEEP_SECONDS, _SHORTEST_SWEEP_SECONDS = 1.0, 0.1
"""Seconds between two looks for waiting attempts, and when an attempt has just ended."""
_FOLLOW_SECONDS = 0.5
_IDLE_NOTE_SECONDS = 10.0
_RECONNECT_SECONDS = 1.0
_DRAIN_SECONDS = 20.0
"""Seconds that requests under way have to end before a stopped worker abandons them."""


def check_workers_available(services: Services) -> None:
    """Raise Conflict unless the database is one that machines can share."""
    if services.database.is_sqlite:
        raise Conflict(
            "workers share a PostgreSQL database, and this one is an SQLite file; set SHOWHOW_DATABASE_URL to "
            f"postgresql://USER@HOST/NAME on each machine, and install the extra with {INSTALL_HINT}"
        )


def share_verification(services: Services, run_id: UUID, options: ExecutionOptions) -> None:
    """Let workers take the run's attempts from now on, within these limits of all workers together.

    Conflict if the model, the world or a question changed since the run was started, or if a limit cannot be kept.
    """
    check_workers_available(services)
    run = open_verification(services, run_id)
    model = services.chat_client(run.spec.profile_name) if needs_model(run.spec) else None
    limits = options.limits
    with services.database.begin() as session:
        now = leases.database_time(session)
        shared = leases.lock_or_add_worker_run(session, run_id)
        groups, unfinished = attempts.group_attempts(session, run_id), list_unfinished_usages(session, run_id)
        used = SharedModel(model, limits, Event(), used=list_usages(groups, unfinished)).used
        shared.used_money, shared.used_tokens = used.max_cost or 0.0, used.max_tokens or 0
        shared.money_limit, shared.token_limit = limits.money, limits.tokens
        shared.works_until = None if limits.seconds is None else now + timedelta(seconds=limits.seconds)
        shared.is_active, shared.priority = True, options.priority
        shared.stop_reason, shared.has_failed = None, False
        runs.set_concurrency(session, run_id, options.concurrency)
        runs.pause_run(session, run_id, is_paused=False)
        if options.retry:
            attempts.reopen_attempts(session, run_id, RETRYABLE_ENDINGS)


def follow_workers(
    services: Services, run_id: UUID, options: ExecutionOptions, on_progress: Callable[[int, int], None]
) -> None:
    """Watch the workers until the run is finished or stopped; `on_progress` gets the finished and the total count.

    Conflict if an error that every question would meet has stopped it. An exception inside stops the workers.
    """
    seen = -1
    idle_since = time.monotonic()
    try:
        while True:
            with services.database.read() as session:
                run = verifications.find_verification(session, run_id)
                shared = leases.find_worker_run(session, run_id)
                left = attempts.count_unfinished_attempts(session, run_id)
                total = sum(group.attempts for group in attempts.group_attempts(session, run_id))
                at_work = leases.count_leased_by_worker(session, run_id)
            if total - left != seen:
                seen = total - left
                on_progress(seen, total)
            if run.finished_at is not None:
                return
            if shared is None or not (shared.is_active or at_work):
                break
            if at_work or run.is_paused:
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since > _IDLE_NOTE_SECONDS:
                options.on_note("no worker has taken a question yet; `showhow worker` starts one on any machine")
                idle_since = float("inf")
            time.sleep(_FOLLOW_SECONDS)
    except BaseException:
        stop_sharing(services, run_id)
        raise
    if shared is None or shared.stop_reason is None:
        raise Conflict("the workers of this verification were stopped; the same command continues it")
    if shared.has_failed:
        raise Conflict(f"{shared.stop_reason} The same command again continues the verification.")
    options.on_note(shared.stop_reason)


def stop_sharing(services: Services, run_id: UUID) -> None:
    """Have workers take no further attempt of the run, and send no further request for it."""
    with services.database.begin() as session:
        leases.stop_workers(session, run_id)


def describe_workers(database: Database, run: Run, *, is_own: bool = False) -> str | None:
    """Which processes work on the run, in one line: workers that share it, or a verb in a shell; None if none does.

    The work of the caller's own job (`is_own`) is none of another process.
    """
    with database.read() as session:
        shared = leases.find_worker_run(session, run.id)
        at_work = leases.count_leased_by_worker(session, run.id)
    if run.finished_at is not None:
        return None
    if shared is None and is_own:
        return None
    if shared is None:
        count = sum(count for worker, count in at_work.items() if not is_worker_gone(worker))
        return f"Another process works on it, now on {format_count(count, 'question')}." if count else None
    if at_work:
        return f"Questions at work by worker: {', '.join(f'{worker} ({count:,})' for worker, count in at_work.items())}"
    if not shared.is_active:
        return None
    return "Shared with workers, and none has a question now; `showhow worker` starts one on any machine."


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker works."""

    at_once: int = 8
    """The attempts, of all runs, that it works on at the same time."""
    lease_seconds: float = LEASE_SECONDS
    """Seconds without a sign of life after which other workers take its attempts."""
    on_note: Callable[[str], None] = ignore_note
    """Called with sentences about what happens, from any thread."""


class Worker:
    """Works on the attempts of all shared verifications until it is stopped."""

    def __init__(self, services: Services, options: WorkerOptions) -> None:
        """Conflict if the database cannot be shared, or the extra `workers` is not installed."""
        check_workers_available(services)
        if find_spec("procrastinate") is None:
            raise Conflict(f"workers need the extra `workers`, which is not installed: {INSTALL_HINT}")
        services.database.end_idle_transactions_after(options.lease_seconds)
        self.finished_count = 0
        """The attempts that it has finished."""
        self._services = services
        self._options = options
        # A new version of procrastinate may need other tables; jobs of the former ones need not be kept.
        self._queue_schema = f"showhow_queue_{version('procrastinate').replace('.', '_')}"
        self._lock = Lock()
        self._runs: dict[UUID, AttemptWorker] = {}
        self._has_ended = Event()
        """Set when an attempt has ended and its run may have room for another one, which is looked for at once."""
        self._is_bounded = False
        """Whether a run allows only so many attempts at the same time; others wait in the queue beforehand."""
        self._drain = Event()
        self._abandon = Event()
        self._keeper = LeaseKeeper(services.database, options.lease_seconds, for_workers=True)
        # A lost connection is noted in one sentence; what remains in the log are faults of the program.
        for name in ("procrastinate.worker.worker", "procrastinate.utils", "psycopg.pool"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    def run(self, stop: Event) -> None:
        """Work until `stop` is set: then no attempt is begun, and no request is sent.

        Requests under way are completed and stored; those that take too long are abandoned.
        """
        from procrastinate.exceptions import ConnectorException  # noqa: PLC0415 - of an optional extra
        from psycopg import Error as PostgresqlError  # noqa: PLC0415 - only the queue uses the driver itself

        with self._keeper, ThreadPoolExecutor(self._options.at_once, "showhow attempt") as pool:
            while not stop.is_set():
                try:
                    self._prepare_queue()
                    asyncio.run(self._dispatch(pool, stop))
                except (StoreError, PostgresqlError, ConnectorException) as error:
                    self._options.on_note(f"the queue of questions failed ({_first_line(error)}); trying again")
                stop.wait(0.0 if stop.is_set() else _RECONNECT_SECONDS)
            self._drain.set()
            end = time.monotonic() + _DRAIN_SECONDS
            while self._keeper.count and time.monotonic() < end:
                time.sleep(_SHORTEST_SWEEP_SECONDS)
            self._abandon.set()

    def _prepare_queue(self) -> None:
        """Create the tables of the queue if they are missing."""
        from procrastinate.schema import SchemaManager  # noqa: PLC0415 - of an optional extra

        leases.create_queue(self._services.database, self._queue_schema, SchemaManager.get_schema())

    async def _dispatch(self, pool: ThreadPoolExecutor, stop: Event) -> None:
        """Take jobs from the queue and refill it, until `stop` is set or the connection to the database is lost."""
        from procrastinate import App, PsycopgConnector  # noqa: PLC0415 - an optional extra

        idle = round(1000 * self._options.lease_seconds)
        connector = PsycopgConnector(
            conninfo=self._services.database.connection_string,
            kwargs={"options": f"-c search_path={self._queue_schema} -c idle_in_transaction_session_timeout={idle}"},
            min_size=1,
            max_size=4,
            timeout=10.0,
        )
        app = App(connector=connector)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_ignore_lost_jobs)

        @app.task(name=_TASK, queue=_QUEUE)
        async def look_at_attempt(attempt_id: str, run_id: str) -> None:
            await loop.run_in_executor(pool, self._look_at, UUID(attempt_id), UUID(run_id))

        async with app.open_async():
            seconds = self._options.lease_seconds
            jobs = app.run_worker_async(
                queues=[_QUEUE],
                concurrency=self._options.at_once,
                listen_notify=True,
                delete_jobs="always",
                install_signal_handlers=False,
                # Attempts go on in their threads while the connection is opened again.
                shutdown_graceful_timeout=0.1,
                update_heartbeat_interval=seconds / 4,
                stalled_worker_timeout=seconds,
            )
            tasks = {asyncio.create_task(jobs), asyncio.create_task(self._sweep_repeatedly(app, stop))}
            done, running = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in running:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            for task in done:
                task.result()

    def _look_at(self, attempt_id: UUID, run_id: UUID) -> None:
        """Work on an attempt, unless another worker has it; an error that others would meet too stops the run."""
        reason: str | None = "A fault of the program ended it, which the log of the worker shows."
        try:
            worker = self._open_run(run_id)
            if worker.work(attempt_id, self._abandon) is not None:
                with self._lock:
                    self.finished_count += 1
            reason = worker.shared_model.error
        except StoreUnavailable as error:
            # The attempt stays unfinished, and waits for the next worker.
            self._options.on_note(f"a question was left unfinished: {_first_line(error)}")
            reason = None
        except ASK_ERRORS as error:
            reason = f"{current_worker_id()} cannot work on it: {error}"
        finally:
            if self._is_bounded:
                self._has_ended.set()
            if reason is not None:
                self._stop_run(run_id, reason)

    def _open_run(self, run_id: UUID) -> AttemptWorker:
        """The run as this process works on it; Conflict if its model, its world or a question differ here."""
        with self._services.database.read() as session:
            shared = leases.find_worker_run(session, run_id)
        asks_again = shared is not None and shared.works_until is not None
        with self._lock:
            worker = self._runs.get(run_id)
            if worker is None or worker.shared_model.error is not None:
                run = open_verification(self._services, run_id)
                options = ExecutionOptions(on_note=self._options.on_note)
                stop = StopSignal(self._drain)
                worker = self._runs[run_id] = AttemptWorker(self._services, run, self._keeper, options, stop)
            worker.shared_model.asks_again = asks_again
            return worker

    def _stop_run(self, run_id: UUID, reason: str) -> None:
        self._options.on_note(f"verification {run_id} is stopped: {reason}")
        with self._services.database.begin() as session:
            leases.stop_workers(session, run_id, reason, has_failed=True)

    async def _sweep_repeatedly(self, app: "App", stop: Event) -> None:
        while not stop.is_set():
            await self._sweep(app)
            end = time.monotonic() + _SWEEP_SECONDS
            await asyncio.sleep(_SHORTEST_SWEEP_SECONDS)
            while time.monotonic() < end and not (stop.is_set() or self._has_ended.is_set()):
                await asyncio.sleep(_SHORTEST_SWEEP_SECONDS)
            self._has_ended.clear()

    async def _sweep(self, app: "App") -> None:
        """Put waiting attempts into the queue, those of workers that are gone included, and finish runs."""
        from procrastinate.exceptions import AlreadyEnqueued  # noqa: PLC0415 - of an optional extra
        from procrastinate.jobs import Status  # noqa: PLC0415 - of an optional extra

        jobs = app.job_manager
        for job in await jobs.get_stalled_jobs(queue=_QUEUE, seconds_since_heartbeat=self._options.lease_seconds):
            # Its attempt is put into the queue again, unless it has ended.
            await jobs.finish_job(job, Status.ABORTED, delete_job=True)
        queued = {
            UUID(str(job.task_kwargs["attempt_id"])): UUID(str(job.task_kwargs["run_id"]))
            for job in await jobs.list_jobs_async(queue=_QUEUE, status=Status.TODO.value)
        }
        for waiting in await asyncio.to_thread(self._list_waiting, queued):
            defer = app.configure_task(_TASK, queueing_lock=str(waiting.attempt_id), priority=waiting.priority)
            # Another worker may have been faster.
            with suppress(AlreadyEnqueued):
                await defer.defer_async(attempt_id=str(waiting.attempt_id), run_id=str(waiting.run_id))

    def _list_waiting(self, queued: dict[UUID, UUID]) -> list[WaitingAttempt]:
        database = self._services.database
        with database.read() as session:
            active = [run for _, run in leases.list_active_runs(session)]
        self._is_bounded = any(run.concurrency is not None for run in active)
        for run_id in [run.id for run in active]:
            with database.begin() as session:
                leases.end_leases_of(session, run_id, is_worker_gone)
                is_over = not attempts.count_unfinished_attempts(session, run_id)
            if is_over:
                finish_verification(self._services, run_id)
        with database.read() as session:
            return leases.list_waiting_attempts(session, queued, _QUEUED_AHEAD)


def _ignore_lost_jobs(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Ignore that the end of a job could not be stored: its attempt is, and waiting ones get another job."""
    from procrastinate.exceptions import ConnectorException  # noqa: PLC0415 - of an optional extra

    if not isinstance(context.get("exception"), ConnectorException):
        loop.default_exception_handler(context)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
