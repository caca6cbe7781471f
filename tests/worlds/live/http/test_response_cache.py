"""The record of answers: round trips, versions, two processes, a file that cannot be used."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worlds.live.http.request import HttpResponse
from worlds.live.http.response_cache import RESPONSE_CACHE_FILE, ResponseCache
from worlds.source import SourceUnavailable

START = datetime(2026, 1, 1, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[4]
WRITES = """
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from worlds.live.http.response_cache import ResponseCache
from worlds.live.http.request import HttpResponse
file, name = Path(sys.argv[1]), sys.argv[2]
answers = ResponseCache(file)
for n in range(150):
    body = f"{name} {n}".encode() * 50
    answers.store(f"{name} {n}", HttpResponse("http://a/", 200, {}, body, datetime(2026, 1, 1, tzinfo=UTC)))
    answers.store("shared", HttpResponse("http://a/", 200, {}, body, datetime.now(UTC)))
    assert answers.get_latest(f"{name} {n}").body == body
"""


def answer(body: bytes, moment: datetime = START) -> HttpResponse:
    return HttpResponse(
        "http://wiki.example/api", 200, {"content-type": "application/json", "x-sparql-maxrows": "9"}, body, moment
    )


@given(requests=st.lists(st.tuples(st.sampled_from("abc"), st.binary(max_size=200), st.integers(0, 50)), max_size=30))
def test_any_moment_gives_the_last_answer_before_it(
    requests: list[tuple[str, bytes, int]], tmp_path_factory: pytest.TempPathFactory
):
    answers = ResponseCache(tmp_path_factory.mktemp("answers") / RESPONSE_CACHE_FILE)
    stored: dict[tuple[str, int], bytes] = {}
    for key, body, minute in requests:
        answers.store(key, answer(body, START + timedelta(minutes=minute)))
        stored.setdefault((key, minute), body)
    for key in "abc":
        for until in range(-1, 52, 4):
            before = [minute for stored_key, minute in stored if stored_key == key and minute <= until]
            response = answers.get_latest(key, START + timedelta(minutes=until))
            assert (response.body if response else None) == (stored[key, max(before)] if before else None)
    answers.close()


def test_an_answer_comes_back_as_it_was(tmp_path: Path):
    given_answer = answer("naïve 😀".encode() * 1000)
    first = ResponseCache(tmp_path / RESPONSE_CACHE_FILE)
    first.store("GET http://wiki.example/api?q=1", given_answer)
    first.close()
    assert ResponseCache(tmp_path / RESPONSE_CACHE_FILE).get_latest("GET http://wiki.example/api?q=1") == given_answer


def test_only_what_describes_an_answer_is_kept_of_its_headers(tmp_path: Path):
    answers = ResponseCache(tmp_path / RESPONSE_CACHE_FILE)
    headers = {
        "content-type": "text/plain",
        "set-cookie": "session=secret",
        "www-authenticate": "Bearer",
        "date": "today",
    }
    answers.store("k", HttpResponse("http://a/", 200, headers, b"", START))
    response = answers.get_latest("k")
    assert response is not None
    assert response.headers == {"content-type": "text/plain"}


def test_equal_bodies_take_their_place_once(tmp_path: Path):
    answers = ResponseCache(tmp_path / RESPONSE_CACHE_FILE)
    body = bytes(range(256)) * 2000
    for n in range(50):
        answers.store("k", answer(body, START + timedelta(days=n)))
    answers.close()
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


@pytest.mark.parametrize("damage", ["update bodies set packed = x'00'", "update answers set headers = '{'"])
def test_a_damaged_response_cache_is_an_error(damage: str, tmp_path: Path):
    file = tmp_path / RESPONSE_CACHE_FILE
    answers = ResponseCache(file)
    answers.store("a question", HttpResponse("http://h.example/", 200, {}, b"{}", datetime.now(UTC)))
    with closing(sqlite3.connect(file)) as other, other:
        other.execute(damage)
    with pytest.raises(SourceUnavailable, match=r"The record of answers .* cannot be read"):
        answers.get_latest("a question")
    answers.close()
