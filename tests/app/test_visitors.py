"""Who counts as one visitor, and whose turn is next; tests/browser/test_visitor_budget.py has the server's part."""

import asyncio
import time

import pytest
from starlette.requests import HTTPConnection

from showhow.app.run_queue import COMPUTING, MAX_WAIT, VISITOR_COMPUTING, RunQueue, Seat
from showhow.app.visitors import ADDRESS_LIMITS, COOKIE, Allowance, Bucket, Visitor, Visitors


def connection(address: str = "192.0.2.1", **headers: str) -> HTTPConnection:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return HTTPConnection({"type": "http", "client": (address, 1234), "headers": raw})


def take_cookie(visitors: Visitors, address: str = "192.0.2.1") -> str | None:
    cookie = visitors.issue_cookie(visitors.identify(connection(address)))
    return None if cookie is None else cookie.partition(";")[0]


def test_a_cookie_of_this_server_makes_a_visitor_and_a_forged_one_does_not():
    visitors = Visitors(b"key", trusts_proxy=False)
    address = visitors.identify(connection())
    cookie = take_cookie(visitors)
    assert cookie
    visitor = visitors.identify(connection(cookie=cookie))
    assert visitor.has_cookie
    assert visitor.own is not address.own
    assert visitor.address is address.address
    assert visitors.identify(connection("192.0.2.2", cookie=cookie)).own is visitor.own
    # Another process of the home knows it, too.
    assert Visitors(b"key", trusts_proxy=False).identify(connection(cookie=cookie)).key == visitor.key
    others = Visitors(b"another key", trusts_proxy=False)
    for forged in (cookie[:-1], f"{COOKIE}=x.é", f"{COOKIE}=.", take_cookie(others)):
        assert visitors.identify(connection(cookie=forged or "")).own is address.own


@pytest.mark.parametrize(("trusts_proxy", "is_one"), [(False, True), (True, False)])
def test_a_forwarded_address_counts_only_behind_a_proxy_that_is_named(trusts_proxy: bool, is_one: bool):  # noqa: FBT001
    visitors = Visitors(b"key", trusts_proxy=trusts_proxy)
    # uvicorn has put the forwarded address in the place of the connection's.
    first, second = (
        visitors.identify(connection(address, x_forwarded_for=address)) for address in ("198.51.100.1", "198.51.100.2")
    )
    assert (first.own is second.own) == is_one


def test_the_addresses_of_one_network_of_ipv6_are_one_address_and_a_mapped_one_is_its_own():
    visitors = Visitors(b"key", trusts_proxy=False)
    first, second, other = (
        visitors.identify(connection(address)).own for address in ("2001:db8::1", "2001:db8::2:2", "2001:db8:0:1::1")
    )
    assert first is second
    assert first is not other
    assert visitors.identify(connection("::ffff:192.0.2.1")).own is visitors.identify(connection("192.0.2.1")).own


def test_a_team_behind_a_proxy_gets_cookies_and_a_client_that_throws_them_away_soon_gets_none():
    visitors = Visitors(b"key", trusts_proxy=False)
    assert ADDRESS_LIMITS.cookies
    issued = [take_cookie(visitors) for _ in range(100)]
    assert all(issued[:40])
    assert issued.count(None) > 50
    assert take_cookie(visitors, "192.0.2.9")


def test_who_takes_more_than_its_allowance_waits_for_the_rest():
    bucket = Bucket(Allowance(per_second=10, at_once=5))
    waits = [bucket.take(1) for _ in range(15)]
    assert waits[:5] == [0] * 5
    assert waits[5:] == pytest.approx([number / 10 for number in range(1, 11)], abs=0.05)


def seats_of(visitors: Visitors, count: int) -> list[Seat]:
    return [Seat(visitors.identify(connection(cookie=take_cookie(visitors) or ""))) for _ in range(count)]


async def let_in(queue: RunQueue, seats: list[Seat]) -> list[Seat]:
    """The seats that may begin a run, in their order, once the queue has decided."""
    order: list[Seat] = []

    async def wait(seat: Seat) -> None:
        await queue.admit(seat)
        order.append(seat)

    for seat in seats:
        asyncio.ensure_future(wait(seat))  # noqa: RUF006 - the loop ends before those that wait
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return order


def test_a_visitor_computes_a_few_runs_at_once_and_who_computed_least_is_next():
    async def scenario() -> None:
        visitors, queue = Visitors(b"key", trusts_proxy=False), RunQueue()
        busy, idle, quiet = seats_of(visitors, 3)
        of_busy = [busy, Seat(busy.visitor), Seat(busy.visitor)]
        assert await let_in(queue, of_busy) == of_busy[:VISITOR_COMPUTING]
        assert await let_in(queue, [idle]) == [idle]
        running = [queue.begin(seat) for seat in (*of_busy[:VISITOR_COMPUTING], idle)]
        assert len(running) == COMPUTING
        waiting = await let_in(queue, [quiet])
        assert waiting == []
        # The busy visitor's third message waited longer; yet the quiet one's goes first.
        queue.end(running[0], 2.0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert waiting == [quiet]

    asyncio.run(scenario())


def test_a_quiet_visitor_waits_only_shortly_for_long_runs_and_a_busy_one_waits_on():
    async def scenario() -> None:
        visitors, queue = Visitors(b"key", trusts_proxy=False), RunQueue()
        *long, quiet, busy = seats_of(visitors, COMPUTING + 2)
        for seat in long:
            queue.begin(seat)
        add_computed(busy.visitor)
        started = time.monotonic()
        waiting = await let_in(queue, [busy])
        await queue.admit(quiet)
        assert time.monotonic() - started >= MAX_WAIT
        assert waiting == []

    asyncio.run(scenario())


def test_a_page_that_was_busy_long_ago_waits_no_longer_than_another_of_its_visitor(monkeypatch):
    monkeypatch.setattr("showhow.app.visitors.CPU_HALF_LIFE", 1e-4)

    async def scenario() -> None:
        (first,) = seats_of(Visitors(b"key", trusts_proxy=False), 1)
        queue = RunQueue()
        first.computed.add(60.0)
        running, _ = [queue.begin(Seat(first.visitor)) for _ in range(VISITOR_COMPUTING)]
        assert await let_in(queue, [first, Seat(first.visitor)]) == []
        while first.computed.value() > 1e-3:
            await asyncio.sleep(1e-3)
        queue.end(running, 0.0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert first.admitted is not None

    asyncio.run(scenario())


def add_computed(visitor: Visitor) -> None:
    visitor.own.computed.add(30.0)
