"""Rate limits that machines share through PostgreSQL: the pace, the pause after a refusal, and the places."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from showhow.db.database import Database
from showhow.db.rate_limits import DatabaseLimits
from showhow.llm.client import build_chat_client
from showhow.llm.rate_limiter import ModelRateLimiter, RequestLimits, SharedLimitStore
from showhow.llm.types import Message, ModelProfile
from tests.servers.model import ModelServer, Says
from tests.servers.rate_limits import RateLimitedScript, TokenBucket, refuse_in_text

pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
MODEL = "scripted at http://127.0.0.1:9/v1"


@pytest.fixture
def machines(database: Database) -> Iterator[list[DatabaseLimits]]:
    """Three machines, each with connections of its own."""
    stores = [Database(database.connection_string) for _ in range(3)]
    limits = [DatabaseLimits(store) for store in stores]
    yield limits
    for shared, store in zip(limits, stores, strict=True):
        shared.close()
        store.close()


def limiter_of(machine: DatabaseLimits) -> ModelRateLimiter:
    return ModelRateLimiter(MODEL, SharedLimitStore(machine))


def test_machines_together_keep_to_the_stated_rate(machines):
    limits = RequestLimits(requests_per_second=20.0)
    starts: list[float] = []

    def send(machine: DatabaseLimits) -> None:
        limiter = limiter_of(machine)
        starts.extend(limiter.acquire(10, limits, time.monotonic() + 60).started_at for _ in range(6))

    with ThreadPoolExecutor() as pool:
        list(pool.map(send, machines))
    starts.sort()
    assert len(starts) == 18
    # 17 distances of at least a twentieth of a second, whatever the machine is busy with.
    assert starts[-1] - starts[0] >= 17 / 20


def test_the_serial_numbers_of_requests_are_unique_among_machines(machines):
    def send(machine: DatabaseLimits) -> list[int]:
        limiter = limiter_of(machine)
        return [limiter.acquire(10, RequestLimits(), time.monotonic() + 60).serial for _ in range(20)]

    with ThreadPoolExecutor() as pool:
        serials = [serial for machine in pool.map(send, machines) for serial in machine]
    assert sorted(serials) == list(range(1, 61))


def test_a_refusal_to_one_machine_makes_all_wait(machines):
    first, second, _ = map(limiter_of, machines)
    request = first.acquire(10, RequestLimits(), time.monotonic() + 60)
    first.refuse(request, 1.0)
    started = second.acquire(10, RequestLimits(), time.monotonic() + 60)
    assert started.started_at - request.started_at >= 1.0


def test_no_more_requests_are_under_way_than_the_profile_allows_on_all_machines(machines):
    limits = RequestLimits(concurrency=2)
    lock, under_way, most = threading.Lock(), 0, 0

    def send(limiter: ModelRateLimiter) -> None:
        nonlocal under_way, most
        for _ in range(3):
            with limiter.slot(limits, time.monotonic() + 60):
                with lock:
                    under_way += 1
                    most = max(most, under_way)
                time.sleep(0.02)
                with lock:
                    under_way -= 1

    limiters = [limiter_of(machine) for machine in machines]
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(send, limiters * 4))
    assert most == 2


def test_the_places_of_a_machine_that_is_gone_are_free(machines):
    first, second, _ = machines
    assert first.try_slot(MODEL, 2)
    assert first.try_slot(MODEL, 2)
    assert first.try_slot(MODEL, 2) is None
    assert second.try_slot(MODEL, 2) is None
    assert second.try_slot("another model", 2) is not None
    # As after a kill -9: the server learns from the end of the connection.
    first._connection.invalidate()
    end = time.monotonic() + 30
    while (slot := second.try_slot(MODEL, 2)) is None and time.monotonic() < end:
        time.sleep(0.01)
    assert slot is not None


def test_a_lost_connection_loses_its_places_and_the_next_request_opens_another(machines):
    first, second, _ = machines
    lost = first.try_slot(MODEL, 1)
    first._connection.invalidate()
    end = time.monotonic() + 30
    while (slot := second.try_slot(MODEL, 1)) is None and time.monotonic() < end:
        time.sleep(0.01)
    # The place is the other machine's by now, so releasing the lost one does not free it.
    assert first.try_slot(MODEL, 1) is None
    lost.release()
    assert first.try_slot(MODEL, 1) is None
    slot.release()
    assert first.try_slot(MODEL, 1) is not None


def test_clients_of_two_machines_use_what_a_server_allows_without_an_error(machines):
    script = RateLimitedScript(TokenBucket(20.0, 2), refuse_in_text, lambda _: Says("ok"))
    with ModelServer(script) as server:
        profile = ModelProfile("scripted", server.url)
        clients = [build_chat_client(profile, machine) for machine in machines]
        with ThreadPoolExecutor(12) as pool:
            replies = list(pool.map(lambda number: clients[number % 3].ask([Message("user", "Go")]).text, range(30)))
    assert replies == ["ok"] * 30
    # What one machine learns from a refusal, the others know.
    assert len(script.refused_at) < 30
