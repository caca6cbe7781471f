"""Requests of several processes are limited together, and a process that dies frees what it held."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from showhow.worlds.live.http.client import RecordingHttpClient
from showhow.worlds.live.http.rate_limiter import WIKIMEDIA, SharedLimits, find_operator
from showhow.worlds.live.http.request import Access, HttpRequest, RequestPolicy
from showhow.worlds.live.http.response_cache import ResponseCache
from showhow.worlds.source import SourceTimeout, SourceUnavailable
from tests.servers.faulty_server import FaultyServer, Responder, hangs, run_faulty_server, says, status

SENDER = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from tests.worlds.live.http.test_rate_limiter_shared import create_client
from showhow.worlds.live.http.request import HttpRequest
from showhow.worlds.source import SourceError
url, folder, name, count, policy = sys.argv[1:4] + [int(sys.argv[4]), json.loads(sys.argv[5])]
client = create_client(url, folder, name, **policy)
def send(number):
    try:
        return client.send(HttpRequest(f"{url}/{name}/{number}")).status
    except SourceError as error:
        return str(error)
print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(count) as pool:
    print(json.dumps(list(pool.map(send, range(count)))))
"""


def create_client(url: str, folder: str | Path, name: str, **policy: float) -> RecordingHttpClient:
    """A client with a response cache of its own, as each world has."""
    limits = {"timeout_seconds": 60.0, "max_per_minute": 1000} | policy
    requests = RequestPolicy(frozenset({url.removeprefix("http://")}), limits_folder=Path(folder) / "limits", **limits)
    return RecordingHttpClient(requests, ResponseCache(Path(folder) / f"{name}.sqlite"), Access("ada@example.org"))


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with run_faulty_server() as started:
        yield started


@pytest.fixture
def start_sender(server: FaultyServer, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a process that sends so many requests at once as soon as it reads a line."""
    processes: list[subprocess.Popen[str]] = []

    def start(name: str, count: int, **policy: float) -> subprocess.Popen[str]:
        arguments = [server.url, str(tmp_path), name, str(count), json.dumps(policy)]
        root = str(Path(__file__).parents[4])
        command = [sys.executable, "-c", SENDER, *arguments]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in processes:
        process.kill()
        with process:
            pass


def _send(*senders: subprocess.Popen[str]) -> list[list[int | str]]:
    """Have all processes send at the same time; the results of each."""
    for sender in senders:
        assert sender.stdin is not None
        sender.stdin.write("go\n")
        sender.stdin.flush()
    return [json.loads(sender.communicate()[0]) for sender in senders]


def _slow(seconds: float = 0.1) -> Responder:
    return says({}, seconds)


def test_processes_share_the_slots_of_an_operator_and_none_starves(server, start_sender):
    server.respond_with(_slow())
    assert _send(*[start_sender(f"p{number}", 16) for number in range(3)]) == [[200] * 16] * 3
    assert server.max_concurrent_requests == 3
    # Of each process, something was answered among the first half of all requests, even if it began late.
    assert {asked.path.split("/")[1] for asked in server.asked[:24]} == {"p0", "p1", "p2"}


def test_a_killed_process_frees_its_slots(server, start_sender, tmp_path):
    server.respond_with(hangs, hangs, hangs, says({}))
    hanging = start_sender("hanging", 3)
    assert hanging.stdin is not None
    hanging.stdin.write("go\n")
    hanging.stdin.flush()
    while len(server.asked) < 3:
        time.sleep(0.01)
    client = create_client(server.url, tmp_path, "other", timeout_seconds=0.5)
    with pytest.raises(SourceTimeout, match="other requests used all 3 connections"):
        client.send(HttpRequest(f"{server.url}/other"))
    os.kill(hanging.pid, signal.SIGKILL)
    hanging.wait()
    patient = create_client(server.url, tmp_path, "patient")
    assert patient.send(HttpRequest(f"{server.url}/other")).status == 200


def test_requests_per_minute_are_counted_over_processes(server, start_sender, tmp_path):
    server.respond_with(says({}))
    (first,) = _send(start_sender("first", 3, max_per_minute=5))
    (second,) = _send(start_sender("second", 4, max_per_minute=5, timeout_seconds=5))
    assert first == [200] * 3
    assert sorted(map(type, second), key=str) == [int, int, str, str]
    assert all("The limit of 5 requests per minute" in str(result) for result in second if result != 200)
    assert len(server.asked) == 5


def test_a_new_folder_is_opened_by_many_at_once(tmp_path):
    for number in range(20):
        with ThreadPoolExecutor(6) as pool:
            opened = list(pool.map(SharedLimits, [tmp_path / str(number)] * 6))
        assert {limits.reserve_start("h", "h", RequestPolicy(frozenset())) for limits in opened} == {(0.0, False)}


def test_a_pause_that_one_process_was_asked_for_holds_for_all(server, start_sender, tmp_path):
    server.respond_with(status(429, Retry_After="600"), says({}))
    ((paused,),) = _send(start_sender("paused", 1))
    assert "429" in paused
    with pytest.raises(SourceUnavailable, match="asked for a pause of"):
        create_client(server.url, tmp_path, "other").send(HttpRequest(f"{server.url}/other"))
    assert len(server.asked) == 1


def test_a_clock_that_was_set_back_neither_pauses_nor_counts_for_hours(server, tmp_path, monkeypatch):
    limits = SharedLimits(tmp_path)
    policy = RequestPolicy(frozenset(), max_per_minute=1)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 86_400)
    limits.pause("h.example", 60)
    assert limits.reserve_start("other.example", "other.example", policy) == (0.0, False)
    monkeypatch.setattr(time, "time", lambda: now)
    assert limits.reserve_start("h.example", "h.example", policy) == (0.0, False)
    assert limits.reserve_start("other.example", "other.example", policy) == (0.0, False)


def test_an_unusable_folder_is_one_sentence(server, tmp_path):
    (tmp_path / "limits").write_text("no folder")
    with pytest.raises(SourceUnavailable, match=r"limits, in which live sources count their requests, cannot be used"):
        create_client(server.url, tmp_path, "any").send(HttpRequest(server.url))


def test_threads_of_one_process_hold_no_more_slots_than_there_are(server, tmp_path):
    server.respond_with(_slow(0.02))
    clients = [create_client(server.url, tmp_path, name) for name in ("a", "b")]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: clients[n % 2].send(HttpRequest(f"{server.url}/{n}")), range(32)))
    assert server.max_concurrent_requests == 3


@pytest.mark.parametrize(
    ("host", "operator"),
    [
        ("en.wikipedia.org", WIKIMEDIA),
        ("www.wikidata.org", WIKIMEDIA),
        ("query.wikidata.org:443", WIKIMEDIA),
        ("wikipedia.org", WIKIMEDIA),
        ("notwikipedia.org", "notwikipedia.org"),
        ("wikipedia.org.example", "wikipedia.org.example"),
        ("127.0.0.1:8080", "127.0.0.1:8080"),
    ],
)
def test_sites_of_one_operator_are_limited_together(host, operator):
    assert find_operator(host) == operator
