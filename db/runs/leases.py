"""Leases of attempts, and the runs that workers of any machine share.

    attempt = take_attempt(session, attempt_id, Taker(worker))   # None if it is not to be had now
    permission = open_call(session, Lease.of(attempt), money, tokens)   # in the transaction that stores the call

A lease ends by the clock of the database, since the clocks of machines differ; its worker extends it while it lives.
Whoever takes an attempt raises its lease token: from then on the former worker opens no call and stores no score. Rows
are locked in one order, so that there is no deadlock: the shared run, the trace, the attempt, the model call.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    ForeignKey,
    and_,
    exists,
    func,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.orm import Mapped, Session, mapped_column
from sqlalchemy.schema import CreateSchema

from showhow.db.database import Conflict, Database
from showhow.db.models import Attempt, ModelCall, Run, Trace
from showhow.db.people.users import ADMIN, REVIEWER, require_acting_role
from showhow.db.runs.attempts import lock_attempt
from showhow.db.traces.traces import lock_trace
from showhow.db.types import Base, utc_now

LEASE_SECONDS = 30.0


class WorkerRun(Base):
    """A run that `showhow worker` works on, with the limits of all its workers together."""

    __tablename__ = "worker_run"

    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id"), primary_key=True)
    is_active: Mapped[bool] = mapped_column(default=True)
    """Whether workers take its attempts."""
    priority: Mapped[int] = mapped_column(default=0)
    """Attempts of runs with a higher number are taken first."""
    money_limit: Mapped[float | None] = mapped_column(default=None)
    """US dollars; None for no limit."""
    token_limit: Mapped[int | None] = mapped_column(BigInteger, default=None)
    works_until: Mapped[datetime | None] = mapped_column(default=None)
    """The moment after which no request is sent, by the clock of the database; None for no limit."""
    used_money: Mapped[float] = mapped_column(default=0.0)
    used_tokens: Mapped[int] = mapped_column(BigInteger, default=0)
    """What its model calls can have used at most, open ones included; counted only if one of both has a limit."""
    stop_reason: Mapped[str | None] = mapped_column(default=None)
    """Why its workers stopped before its end, as a sentence: a limit, or an error that every question would meet."""
    has_failed: Mapped[bool] = mapped_column(default=False)
    """Whether that is an error."""

    @property
    def has_budget(self) -> bool:
        """Whether its money or its tokens are limited."""
        return self.money_limit is not None or self.token_limit is not None


class Lease(NamedTuple):
    """The right to work on an attempt; it is lost once the attempt has another token."""

    attempt_id: UUID
    run_id: UUID
    trace_id: UUID
    token: int
    for_workers: bool = False
    """Whether it was taken by `showhow worker`, so that what the run's workers share applies."""


@dataclass(frozen=True, slots=True)
class Taker:
    """Who takes attempts, and for how long."""

    worker: str
    seconds: float = LEASE_SECONDS
    is_gone: Callable[[str], bool] = lambda _worker: False
    """Whether another worker's process is known to have ended, so that its leases need not run out."""
    for_workers: bool = False
    """Whether only attempts of active runs are taken, as many as the run allows at the same time."""


class CallPermission(StrEnum):
    """Whether a model call may be opened."""

    GRANTED = "granted"
    WAIT = "wait"
    """Other calls hold what is left of a limit, and may use less."""
    STOPPED = "stopped"
    """The run is stopped, or a limit of its workers is reached."""


def database_time(session: Session) -> datetime:
    """The present moment by the clock that all machines share: the server's, or that of the only machine."""
    if session.get_bind().dialect.name == "sqlite":
        return utc_now()
    now: datetime = session.execute(select(func.clock_timestamp())).scalar_one()
    return now


def take_attempt(session: Session, attempt_id: UUID, taker: Taker) -> Attempt | None:
    """Take the attempt: a former worker cannot write to it any more.

    None if it has ended, if another worker has its lease, or if its run allows no further one at the same time.
    """
    run_id, trace_id = session.execute(select(Attempt.run_id, Attempt.trace_id).where(Attempt.id == attempt_id)).one()
    if taker.for_workers and not _has_room(session, run_id):
        return None
    if trace_id is not None:
        lock_trace(session, trace_id)
    attempt = lock_attempt(session, attempt_id)
    now = database_time(session)
    is_leased = attempt.leased_until is not None and attempt.leased_until > now
    is_free = not is_leased or (attempt.state == "leased" and taker.is_gone(attempt.worker or ""))
    if attempt.state == "ended" or not is_free or attempt.trace_id != trace_id:
        return None
    attempt.state, attempt.worker, attempt.ending = "leased", taker.worker, None
    attempt.lease_token += 1
    attempt.leased_until = now + timedelta(seconds=taker.seconds)
    session.flush()
    return attempt


def _has_room(session: Session, run_id: UUID) -> bool:
    """Whether a worker may begin another attempt of the run; the run is locked, so that the number holds."""
    shared = _lock_worker_run(session, run_id)
    run = session.get_one(Run, run_id)
    if not shared.is_active or run.is_paused:
        return False
    return run.concurrency is None or _count_leased(session, run_id) < run.concurrency


def _lock_worker_run(session: Session, run_id: UUID) -> WorkerRun:
    # Rows that refer to the run can be stored meanwhile.
    return session.get_one(WorkerRun, run_id, with_for_update={"key_share": True}, populate_existing=True)


def _count_leased(session: Session, run_id: UUID) -> int:
    leased = select(func.count()).where(Attempt.run_id == run_id, _is_leased(database_time(session)))
    return session.execute(leased).scalar_one()


def _is_leased(now: datetime) -> ColumnElement[bool]:
    return and_(Attempt.state == "leased", Attempt.leased_until > now)


def find_worker_run(session: Session, run_id: UUID) -> WorkerRun | None:
    """Find how workers share the run; None if they never did."""
    return session.get(WorkerRun, run_id)


def lock_or_add_worker_run(session: Session, run_id: UUID) -> WorkerRun:
    """Lock how workers share the run; a run that they did not share yet gets the defaults."""
    require_acting_role(session, REVIEWER, ADMIN)
    if session.get(WorkerRun, run_id) is None:
        session.add(WorkerRun(run_id=run_id))
        session.flush()
    return _lock_worker_run(session, run_id)


def renew_leases(session: Session, leases: Collection[Lease], seconds: float) -> set[UUID]:
    """Extend the leases, also ended ones that nobody took; return the ids of the attempts that are still leased."""
    if not leases:
        return set()
    held = tuple_(Attempt.id, Attempt.lease_token).in_([(lease.attempt_id, lease.token) for lease in leases])
    until = database_time(session) + timedelta(seconds=seconds)
    renewed = update(Attempt).where(held, Attempt.state == "leased").values(leased_until=until).returning(Attempt.id)
    return set(session.scalars(renewed))


def release_attempt(session: Session, lease: Lease, delay: float = 0.0) -> None:
    """Let another worker take an unfinished attempt after so many seconds; nothing if the lease is lost."""
    now = database_time(session)
    held = (Attempt.id == lease.attempt_id) & (Attempt.lease_token == lease.token) & (Attempt.state != "ended")
    session.execute(update(Attempt).where(held).values(state="open", leased_until=now + timedelta(seconds=delay)))


def end_leases_of(session: Session, run_id: UUID, is_gone: Callable[[str], bool]) -> None:
    """End the leases of workers that are known to be gone, before they run out."""
    leased = (Attempt.run_id == run_id) & _is_leased(database_time(session))
    workers = session.scalars(select(Attempt.worker).where(leased).distinct()).all()
    if gone := [worker for worker in workers if worker is not None and is_gone(worker)]:
        ended = update(Attempt).where(leased, Attempt.worker.in_(gone))
        session.execute(ended.values(leased_until=database_time(session)))


def count_leased_by_worker(session: Session, run_id: UUID) -> dict[str, int]:
    """Count the attempts of the run on which each worker is at work."""
    leased = select(Attempt.worker, func.count()).where(Attempt.run_id == run_id, _is_leased(database_time(session)))
    rows = session.execute(leased.group_by(Attempt.worker).order_by(Attempt.worker))
    return {worker: count for worker, count in rows if worker is not None}


def open_call(session: Session, lease: Lease, money: float | None, tokens: int | None) -> CallPermission:
    """Check the lease, and reserve the most that a model call can use; call it in the transaction that stores the call.

    Conflict if the attempt was taken by another worker, or has ended.
    """
    shared = session.get(WorkerRun, lease.run_id) if lease.for_workers else None
    if shared is not None and shared.has_budget:
        shared = _lock_worker_run(session, lease.run_id)
    # Whoever takes the attempt locks its trace; only after that lock is the token the present one.
    trace = select(Trace.id).where(Trace.id == lease.trace_id).with_for_update(read=True, key_share=True)
    session.execute(trace)
    attempt = select(Attempt.lease_token, Attempt.state, Attempt.worker).where(Attempt.id == lease.attempt_id)
    token, state, worker = session.execute(attempt).one()
    if token != lease.token or state != "leased":
        raise Conflict(f"the question was taken by another worker or has ended ({worker}); this call is not sent")
    return CallPermission.GRANTED if shared is None else _reserve(session, shared, money, tokens)


def _reserve(session: Session, shared: WorkerRun, money: float | None, tokens: int | None) -> CallPermission:
    reason = None
    if shared.works_until is not None and database_time(session) >= shared.works_until:
        reason = "the time limit for all questions is reached"
    elif shared.has_budget:
        reason = _find_exceeded_limit(shared, money, tokens)
        if reason is not None and _has_open_calls(session, shared.run_id):
            return CallPermission.WAIT
    if reason is not None:
        stop_workers(session, shared.run_id, reason)
    if reason is not None or not shared.is_active:
        return CallPermission.STOPPED
    if shared.has_budget:
        shared.used_money += money or 0.0
        shared.used_tokens += tokens or 0
        session.flush()
    return CallPermission.GRANTED


def _find_exceeded_limit(shared: WorkerRun, money: float | None, tokens: int | None) -> str | None:
    """Why a call that can use so much is not sent, as a sentence; None if both limits leave room for it."""
    limits = (
        (shared.money_limit, shared.used_money, money, "${:,.4g}"),
        (shared.token_limit, shared.used_tokens, tokens, "{:,} tokens"),
    )
    for limit, used, most, style in limits:
        if limit is not None and (most is None or used + most > limit):
            request = "an unknown amount" if most is None else f"at most {style.format(most)}"
            return (
                f"the limit of {style.format(limit)} for all questions leaves no room for a request of {request} after "
                f"{style.format(used)}"
            )
    return None


def _has_open_calls(session: Session, run_id: UUID) -> bool:
    calls = select(ModelCall.id).join(Attempt, Attempt.trace_id == ModelCall.trace_id)
    calls = calls.where(Attempt.run_id == run_id, Attempt.state == "leased", ModelCall.state == "open")
    return bool(session.execute(select(exists(calls))).scalar_one())


def settle_call(session: Session, lease: Lease, reserved: tuple[float, int], used: tuple[float, int]) -> None:
    """Replace what was reserved for a call, US dollars and tokens, by what it used; before the call is locked."""
    shared = session.get(WorkerRun, lease.run_id) if lease.for_workers else None
    if shared is not None and shared.has_budget:
        shared = _lock_worker_run(session, lease.run_id)
        shared.used_money += used[0] - reserved[0]
        shared.used_tokens += used[1] - reserved[1]
        session.flush()


def stop_workers(session: Session, run_id: UUID, reason: str | None = None, *, has_failed: bool = False) -> None:
    """Have workers take no attempt of the run and send no request for it; `reason` is a sentence, None on request."""
    require_acting_role(session, REVIEWER, ADMIN)
    session.execute(
        update(WorkerRun)
        .where(WorkerRun.run_id == run_id)
        .values(is_active=False, stop_reason=reason, has_failed=has_failed)
    )


class WaitingAttempt(NamedTuple):
    """An attempt of an active run that a worker may take."""

    attempt_id: UUID
    run_id: UUID
    priority: int


def list_waiting_attempts(session: Session, queued: Mapping[UUID, UUID], most: int) -> list[WaitingAttempt]:
    """List the attempts that wait for a worker: at most `most` of a run, and no more than it allows at the same time.

    `queued` are attempts, with their runs, that workers already look for; they count, but are not listed.
    """
    waiting: list[WaitingAttempt] = []
    for shared, run in list_active_runs(session):
        if run.is_paused:
            continue
        now = database_time(session)
        room = most if run.concurrency is None else min(most, run.concurrency - _count_leased(session, run.id))
        room -= sum(queued_run == run.id for queued_run in queued.values())
        if room <= 0:
            continue
        is_free = Attempt.state.in_(["open", "leased"]) & or_(
            Attempt.leased_until.is_(None), Attempt.leased_until <= now
        )
        attempts = select(Attempt.id).where(Attempt.run_id == run.id, is_free, Attempt.id.not_in(list(queued)))
        ids = session.scalars(attempts.order_by(Attempt.position).limit(room))
        waiting += [WaitingAttempt(attempt_id, run.id, shared.priority) for attempt_id in ids]
    return waiting


def list_active_runs(session: Session) -> Sequence[tuple[WorkerRun, Run]]:
    """List the runs that workers work on, in the order of their priority."""
    rows = select(WorkerRun, Run).join(Run, Run.id == WorkerRun.run_id).where(WorkerRun.is_active)
    rows = rows.where(Run.finished_at.is_(None)).order_by(WorkerRun.priority.desc(), Run.started_at, Run.id)
    return [(shared, run) for shared, run in session.execute(rows)]


def create_queue(database: Database, schema: str, statements: str) -> None:
    """Create the tables of a queue in a schema of their own, once; on PostgreSQL."""
    with database.begin() as session:
        # Of workers that start together, one creates them.
        session.execute(select(func.pg_advisory_xact_lock(func.hashtext(schema))))
        known = select(func.count()).select_from(text("pg_namespace")).where(text("nspname = :schema"))
        if not session.execute(known, {"schema": schema}).scalar_one():
            session.execute(CreateSchema(schema))
            session.execute(text(f"SET LOCAL search_path = {schema}"))
            # The statements are those of a script, without parameters.
            session.connection().connection.cursor().execute(statements)
