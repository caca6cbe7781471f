"""The response cache: round trips, versions, two processes, and unusable files."""

import sqlite3
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.worlds.live.http.request import HttpResponse
from showhow.worlds.live.http.response_cache import RESPONSE_CACHE_FILE, ResponseCache
from showhow.worlds.source import SourceUnavailable

START = datetime(2026, 1, 1, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[4]
WRITES = """
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from showhow.worlds.live.http.response_cache import ResponseCache
from showhow.worlds.live.http.request import HttpResponse
file, name = Path(sys.argv[1]), sys.argv[2]
cache = ResponseCache(file)
for n in range(150):
    body = f"{name} {n}".encode() * 50
    cache.store(f"{name} {n}", HttpResponse("http://a/", 200, {}, body, datetime(2026, 1, 1, tzinfo=UTC)))
    cache.store("shared", HttpResponse("http://a/", 200, {}, body, datetime.now(UTC)))
    assert cache.get_latest(f"{name} {n}").body == body
"""


def answer(body: bytes, moment: datetime = START) -> HttpResponse:
    return HttpResponse(
        "http://wiki.example/api", 200, {"content-type": "application/json", "x-sparql-maxrows": "9"}, body, moment
    )


@given(requests=st.lists(st.tuples(st.sampled_from("abc"), st.binary(max_size=200), st.integers(0, 50)), max_size=30))
def test_any_time_selects_the_latest_response_before_it(
    requests: list[tuple[str, bytes, int]], tmp_path_factory: pytest.TempPathFactory
):
    cache = ResponseCache(tmp_path_factory.mktemp("answers") / RESPONSE_CACHE_FILE)
    stored: dict[tuple[str, int], bytes] = {}
    for key, body, minute in requests:
        cache.store(key, answer(body, START + timedelta(minutes=minute)))
        stored.setdefault((key, minute), body)
    for key in "abc":
        for until in range(-1, 52, 4):
            before = [minute for stored_key, minute in stored if stored_key == key and minute <= until]
            response = cache.get_latest(key, START + timedelta(minutes=until))
            assert (response.body if response else None) == (stored[key, max(before)] if before else None)
    cache.close()


def test_a_response_is_read_back_unchanged(tmp_path: Path):
    given_answer = answer("naïve 😀".encode() * 1000)
    first = ResponseCache(tmp_path / RESPONSE_CACHE_FILE)
    first.store("GET http://wiki.example/api?q=1", given_answer)
    first.close()
    assert ResponseCache(tmp_path / RESPONSE_CACHE_FILE).get_latest("GET http://wiki.example/api?q=1") == given_answer


def test_only_headers_that_describe_the_body_are_stored(tmp_path: Path):
    cache = ResponseCache(tmp_path / RESPONSE_CACHE_FILE)
    headers = {
        "content-type": "text/plain",
        "set-cookie": "session=secret",
        "www-authenticate": "Bearer",
        "date": "today",
    }
    cache.store("k", HttpResponse("http://a/", 200, headers, b"", START))
    response = cache.get_latest("k")
    assert response is not None
    assert response.headers == {"content-type": "text/plain"}


def test_equal_bodies_are_stored_once(tmp_path: Path):
    cache = ResponseCache(tmp_path / RESPONSE_CACHE_FILE)
    body = bytes(range(256)) * 2000
    for n in range(50):
        cache.store("k", answer(body, START + timedelta(days=n)))
    cache.close()
    assert (tmp_path / RESPONSE_CACHE_FILE).stat().st_size < 2 * len(body)


def test_many_threads_and_two_processes_lose_nothing(tmp_path: Path):
    file = tmp_path / RESPONSE_CACHE_FILE
    mine = ResponseCache(file)
    others = [subprocess.Popen([sys.executable, "-c", WRITES, file, name], cwd=ROOT) for name in ("left", "right")]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: mine.store(f"mine {n}", answer(b"%d" % n)), range(300)))
    assert [process.wait(timeout=120) for process in others] == [0, 0]
    for name in ("left", "right"):
        for n in range(150):
            response = mine.get_latest(f"{name} {n}")
            assert response is not None
            assert response.body == f"{name} {n}".encode() * 50
    assert all((response := mine.get_latest(f"mine {n}")) and response.body == b"%d" % n for n in range(300))
    shared = mine.get_latest("shared")
    assert shared is not None
    assert shared.body.split()[0] in {b"left", b"right"}


def test_a_file_that_is_no_response_cache_is_an_error(tmp_path: Path):
    (tmp_path / RESPONSE_CACHE_FILE).write_bytes(b"this is no database" * 100)
    with pytest.raises(SourceUnavailable, match="cannot be opened") as failed:
        ResponseCache(tmp_path / RESPONSE_CACHE_FILE)
    assert str(failed.value).endswith(".")


@pytest.mark.parametrize(
    "damage",
    [
        *("update bodies set packed = x'00'", "update answers set headers = '{'"),
        f"update bodies set packed = x'{zlib.compress(bytes(100_000_000)).hex()}'",
        *("update bodies set packed = 7", "update answers set moment = -1e300"),
    ],
    ids=lambda damage: damage[:45],
)
def test_a_damaged_response_cache_is_an_error(damage: str, tmp_path: Path):
    file = tmp_path / RESPONSE_CACHE_FILE
    cache = ResponseCache(file)
    cache.store("a question", HttpResponse("http://h.example/", 200, {}, b"{}", datetime.now(UTC)))
    with closing(sqlite3.connect(file)) as other, other:
        other.execute(damage)
    with pytest.raises(SourceUnavailable, match=r"The response cache .* cannot be read"):
        cache.get_latest("a question")
    cache.close()


@pytest.mark.parametrize(
    "brought",
    [
        "create trigger t after insert on bodies begin delete from answers; end",
        "create table x (a); drop table answers; create view answers as select * from x",
        "create virtual table v using fts5(a)",
    ],
)
def test_a_file_with_what_runs_when_it_is_used_is_not_opened(brought: str, tmp_path: Path):
    file = tmp_path / RESPONSE_CACHE_FILE
    ResponseCache(file).close()
    with closing(sqlite3.connect(file)) as other:
        other.executescript(brought)
    with pytest.raises(SourceUnavailable, match=r"cannot be opened \(it has the (trigger|view|table) '\w+', which"):
        ResponseCache(file)


def test_a_new_cache_is_opened_by_many_at_once(tmp_path: Path):
    for number in range(30):
        file = tmp_path / f"{number}.sqlite"
        with ThreadPoolExecutor(6) as pool:
            caches = list(pool.map(ResponseCache, [file] * 6))
        assert {cache.get_latest("any") for cache in caches} == {None}
