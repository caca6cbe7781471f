"""The limiter learns a server's limit, keeps to it, and shares it between threads and processes."""

import heapq
import itertools
import json
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from showhow.llm.client import build_chat_client
from showhow.llm.errors import ChatRateLimited
from showhow.llm.rate_limit_headers import RateBudget
from showhow.llm.rate_limiter import (
    RATE_LIMITS_FILE_NAME,
    LimitState,
    LimitStore,
    ModelRateLimiter,
    RequestLimits,
    SharedLimitStore,
    StartedRequest,
    get_rate_limiter_of_model,
)
from showhow.llm.types import Message, ModelProfile
from tests.servers.model import Fails, ModelServer, Request, Says
from tests.servers.rate_limits import (
    Allowance,
    FixedWindow,
    RateLimitedScript,
    SlidingWindow,
    TokenBucket,
    refuse_in_text,
    refuse_silently,
    refuse_with_milliseconds,
    refuse_with_whole_seconds,
)

QUESTION = [Message("user", "Which city?")]
NETWORK_SECONDS = 0.004


class Clock:
    """A simulated clock."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def simulate(
    allowance: Allowance, hint: Callable[[float], float | None], clock: Clock, requests: int, threads: int
) -> tuple[float, list[int]]:
    """Send requests of threads in simulated time; the seconds, and how many were accepted before each refusal."""
    state = LimitState()
    noise = random.Random(7)
    events: list[tuple[float, int, str, int]] = []
    order = itertools.count()
    started_at, left, accepted = clock.now, requests - threads, 0
    refusals: list[int] = []
    for _ in range(threads):
        heapq.heappush(events, (clock.now, next(order), "start", 0))
    while events:
        clock.now, _, kind, serial = heapq.heappop(events)
        if kind == "start":
            delay = state.try_start(clock.now)
            if delay:
                heapq.heappush(events, (clock.now + min(delay, 1.0) + noise.uniform(0, 0.003), next(order), "start", 0))
            else:
                latency = NETWORK_SECONDS * noise.uniform(0.5, 1.5)
                heapq.heappush(events, (clock.now + latency, next(order), "arrive", state.started))
        elif kind == "arrive":
            wait = allowance.take()
            reply_time = clock.now + NETWORK_SECONDS + (0.0 if wait else noise.uniform(0.5, 3.0))
            if wait:
                refusals.append(accepted)
            accepted += not wait
            heapq.heappush(
                events, (reply_time, next(order), f"refuse {hint(wait) or ''}" if wait else "confirm", serial)
            )
        elif kind == "confirm":
            state.confirm(serial, clock.now)
            if left > 0:
                left -= 1
                heapq.heappush(events, (clock.now, next(order), "start", 0))
        else:
            state.refuse(serial, clock.now, float(kind[7:]) if kind[7:] else None)
            heapq.heappush(events, (clock.now, next(order), "start", 0))
    return clock.now - started_at, refusals


HINTS: dict[str, Callable[[float], float | None]] = {
    "exact": lambda wait: wait,
    "whole seconds": lambda wait: int(wait) + 1,
    "none": lambda _: None,
}
ALLOWANCES: dict[str, Callable[[Clock], Allowance]] = {
    "bucket of 1": lambda clock: TokenBucket(2, 1, clock),
    "bucket of 2": lambda clock: TokenBucket(2, 2, clock),
    "bucket of 20": lambda clock: TokenBucket(2, 20, clock),
    "2 in any second": lambda clock: SlidingWindow(2, 1, clock),
    "2 in each second": lambda clock: FixedWindow(2, 1, clock),
    "20 in any 10 seconds": lambda clock: SlidingWindow(20, 10, clock),
    "20 in each 10 seconds": lambda clock: FixedWindow(20, 10, clock),
}


@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize("allowance", ALLOWANCES)
def test_two_requests_a_second_are_used_to_nine_tenths_and_refusals_end_once_the_limit_is_known(
    allowance: str, hint: str
) -> None:
    clock = Clock()
    seconds, refusals = simulate(ALLOWANCES[allowance](clock), HINTS[hint], clock, requests=200, threads=16)
    # The last reply takes up to three seconds; servers that name rounded times or none cost some waiting until the rate
    # is known.
    assert seconds <= 200 / 2 / (0.9 if hint == "exact" else 0.87) + 3, (seconds, refusals)
    later = [accepted for accepted in refusals if accepted > 100]
    assert len(refusals) <= 16 + 8, refusals
    assert len(later) <= 1, refusals


def test_a_known_limit_is_never_exceeded() -> None:
    state = LimitState()
    starts = [now for step in range(4000) if not state.try_start(now := 100 + step * 0.005, RequestLimits(5.0))]
    assert 95 <= len(starts) <= 100
    assert all(later - earlier >= 0.2 - 1e-9 for earlier, later in itertools.pairwise(starts))


def test_threads_that_wake_late_never_start_requests_beyond_a_known_limit() -> None:
    # A busy machine wakes threads late.
    state, lateness = LimitState(), itertools.cycle((0.0, 0.002, 0.09, 0.0, 0.01))
    starts, now = [], 100.0
    while now < 200:
        delay = state.try_start(now, RequestLimits(2.0))
        if delay:
            now += delay + next(lateness)
        else:
            starts.append(now)
    assert min(later - earlier for earlier, later in itertools.pairwise(starts)) >= 0.5
    assert len(starts) >= 0.9 * 200


def test_time_without_requests_does_not_lower_the_learnt_rate() -> None:
    state = LimitState()
    now = 100.0
    for _ in range(10):
        assert state.try_start(now) == 0
    state.refuse(10, now, 1.0)
    assert state.rate is not None
    assert state.rate > 8
    now += 40
    for _ in range(5):
        while delay := state.try_start(now):
            now += delay
    state.refuse(state.started, now, 0.2)
    assert state.rate > 4


def test_requests_are_spread_over_what_is_left_of_a_budget() -> None:
    state = LimitState()
    assert state.try_start(100.0) == 0
    state.observe_budgets(
        StartedRequest(1, 100.0, 10), [RateBudget(counts_tokens=False, remaining=3, reset_seconds=2.0)], 100.5
    )
    assert state.try_start(100.4) == pytest.approx(0.1)
    assert state.try_start(100.5) == 0
    assert state.try_start(100.6) == pytest.approx(0.4)
    state.observe_budgets(
        StartedRequest(2, 100.5, 10), [RateBudget(counts_tokens=True, remaining=0, reset_seconds=30.0)], 100.6
    )
    assert state.try_start(101.0) == pytest.approx(29.5)


def test_the_budget_of_an_older_request_does_not_replace_that_of_a_newer_one() -> None:
    state = LimitState(started=2)
    state.observe_budgets(
        StartedRequest(2, 100.0, 10), [RateBudget(counts_tokens=False, remaining=0, reset_seconds=5.0)], 100.0
    )
    state.observe_budgets(
        StartedRequest(1, 99.0, 10), [RateBudget(counts_tokens=False, remaining=1000, reset_seconds=5.0)], 100.1
    )
    assert state.try_start(101.0) == pytest.approx(4.0)


@pytest.mark.long
@pytest.mark.parametrize(
    "refuse", [refuse_in_text, refuse_with_milliseconds, refuse_silently], ids=["text", "milliseconds", "silent"]
)
def test_threads_share_a_limit_and_no_request_fails(refuse: Callable[[float], Fails]) -> None:
    script = RateLimitedScript(SlidingWindow(20, 1), refuse)
    with ModelServer(script) as server:
        chat = server.chat()
        with ThreadPoolExecutor(16) as pool:
            replies = list(pool.map(lambda _: chat.ask(QUESTION).text, range(60)))
    assert replies == ["ok"] * 60
    assert len(script.refused_at) < 16 + 8


def test_threads_keep_to_a_limit_that_the_server_states_without_a_refusal() -> None:
    bucket = TokenBucket(20, 10)

    def reply(_: object) -> Says:
        used = 10 - int(bucket.tokens)
        return Says(
            "ok",
            headers={
                "x-ratelimit-limit-requests": "10",
                "x-ratelimit-remaining-requests": str(int(bucket.tokens)),
                "x-ratelimit-reset-requests": f"{used * 50}ms",
            },
        )

    script = RateLimitedScript(bucket, refuse_silently, reply)
    with ModelServer(script) as server:
        chat = server.chat()
        chat.ask(QUESTION)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: chat.ask(QUESTION), range(40)))
    assert script.refused_at == []


def test_a_configured_limit_is_kept_from_the_first_request() -> None:
    script = RateLimitedScript(SlidingWindow(11, 1), refuse_silently)
    with ModelServer(script) as server:
        chat = build_chat_client(ModelProfile("scripted", server.url, requests_per_minute=600))
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: chat.ask(QUESTION), range(15)))
    assert script.refused_at == []


def test_tokens_per_minute_count_what_was_used_instead_of_what_was_estimated() -> None:
    state, limits = LimitState(), RequestLimits(tokens_per_second=100.0)
    assert state.try_start(100.0, limits, 500) == 0
    assert state.try_start(100.0, limits, 500) == pytest.approx(5.0)
    # The request used 200 tokens, not 500.
    state.use_tokens(100.5, limits, -300)
    assert state.try_start(100.5, limits, 500) == pytest.approx(1.5)
    assert state.try_start(102.0, limits, 500) == 0
    assert LimitState(tokens_until=900.0).try_start(100.0) == 0


def test_a_limit_of_tokens_per_minute_spreads_requests() -> None:
    with ModelServer(lambda _: Says("ok", usage=(90, 10))) as server:
        chat = build_chat_client(ModelProfile("scripted", server.url, tokens_per_minute=12_000))
        started = time.monotonic()
        for _ in range(6):
            chat.ask(QUESTION)
        # 100 tokens a request at 200 tokens a second.
        assert time.monotonic() - started >= 2.4


class ConcurrencyCount:
    """A script that counts how many requests are under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now = self.most = 0

    def __call__(self, _request: Request) -> Says:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.05)
        with self._lock:
            self.now -= 1
        return Says("ok")


@pytest.mark.long
def test_requests_at_once_are_limited_over_threads_and_processes(tmp_path: Path) -> None:
    script = ConcurrencyCount()
    with ModelServer(script) as server:
        chat = build_chat_client(ModelProfile("scripted", server.url, concurrency=2), tmp_path)
        command = [sys.executable, "-c", CHILD, server.url, str(tmp_path), "2"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child, ThreadPoolExecutor(8) as pool:
            # The threads send requests as long as the other process does.
            while child.poll() is None:
                list(pool.map(lambda _: chat.ask(QUESTION), range(8)))
            assert child.stdout is not None
            assert child.stdout.read().split() == ["ok"] * 10
    assert script.most == 2


def test_a_request_fails_where_no_place_is_free_before_its_deadline(tmp_path: Path) -> None:
    profile = ModelProfile("scripted", "http://127.0.0.1:9/v1", concurrency=1)
    limiter = get_rate_limiter_of_model("scripted at http://127.0.0.1:9/v1", tmp_path)
    limits = RequestLimits(concurrency=1)
    with limiter.slot(limits, time.monotonic() + 5), pytest.raises(ChatRateLimited, match="1 requests at once"):
        build_chat_client(profile, tmp_path).with_deadline(time.monotonic() + 0.2).ask(QUESTION)
    with limiter.slot(limits, time.monotonic() + 5):
        pass


def test_a_request_fails_at_once_if_the_server_accepts_none_before_its_deadline() -> None:
    with ModelServer([Fails(429, "slow down", {"Retry-After": "900"})]) as server:
        chat = server.chat()
        started = time.monotonic()
        for _ in range(2):
            with pytest.raises(ChatRateLimited, match=r"accepts no requests for another (900|899) s"):
                chat.with_deadline(time.monotonic() + 30).ask(QUESTION)
        assert time.monotonic() - started < 20
        # The second one was not sent.
        assert len(server.requests) == 1


CHILD = """
import sys
from pathlib import Path
from showhow.llm.client import build_chat_client
from showhow.llm.types import Message, ModelProfile

concurrency = int(sys.argv[3]) if sys.argv[3:] else None
chat = build_chat_client(ModelProfile("scripted", sys.argv[1], concurrency=concurrency), Path(sys.argv[2]))
for _ in range(10):
    print(chat.ask([Message("user", "Which city?")]).text)
"""


def test_processes_of_one_home_share_a_limit(tmp_path: Path) -> None:
    script = RateLimitedScript(SlidingWindow(10, 1), refuse_with_whole_seconds)
    with ModelServer(script) as server:
        chat = build_chat_client(ModelProfile("scripted", server.url), tmp_path)
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda _: chat.ask(QUESTION), range(30)))
        learnt = len(script.refused_at)
        command = [sys.executable, "-c", CHILD, server.url, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["ok"] * 10
    with sqlite3.connect(tmp_path / RATE_LIMITS_FILE_NAME) as store:
        ((state,),) = store.execute("SELECT state FROM model_limit").fetchall()
    store.close()
    assert json.loads(state)["started"] == len(script.accepted_at) + len(script.refused_at)
    assert learnt > 0
    assert len(script.refused_at) - learnt <= 3


def test_a_new_file_of_limits_is_opened_by_many_at_once(tmp_path: Path) -> None:
    for number in range(20):
        with ThreadPoolExecutor(6) as pool:
            stores = list(pool.map(LimitStore, [tmp_path / str(number) / "limits.sqlite"] * 6))
        for store in stores:
            with store.update("model") as state:
                state.started += 1
        with stores[0].update("model") as state:
            assert state.started == 6


class ShiftedBackend:
    """The limits of several machines by a clock that is not that of this machine."""

    def __init__(self, shift: float) -> None:
        self.shift = shift
        self.values: dict[str, object] = {}

    def now(self) -> float:
        return time.time() + self.shift

    @contextmanager
    def update(self, _name: str) -> Iterator[dict[str, object]]:
        yield self.values

    def try_slot(self, _name: str, _slots: int) -> None:
        return None

    def close(self) -> None:
        pass


@pytest.mark.parametrize("shift", [-3600.0, 0.0, 3600.0])
def test_a_pause_is_by_the_clock_that_the_machines_share(shift):
    backend = ShiftedBackend(shift)
    limiter = ModelRateLimiter("model", SharedLimitStore(backend))
    request = limiter.acquire(1, RequestLimits(), time.monotonic() + 60)
    before = backend.now()
    limiter.refuse(request, 3000.0)
    assert before + 3000 <= backend.values["paused_until"] <= backend.now() + 3000
    with pytest.raises(ChatRateLimited, match="accepts no requests for another"):
        limiter.acquire(1, RequestLimits(), time.monotonic() + 10)
