"""The door against a real server that misbehaves in every way that servers do."""

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from html import escape
from pathlib import Path
from urllib.parse import quote_plus

import pytest

from tests.servers.moody import (
    Handler,
    Mood,
    Moody,
    hangs,
    moody,
    resets,
    says,
    sends,
    status,
    streams_for_ever,
    trickles,
    trickles_headers,
)
from worlds.live.http.access import Access, RequestPolicy
from worlds.live.http.client import RecordingHttpClient
from worlds.live.http.request import HttpRequest, HttpResponse, HttpStatusError, InvalidResponse, ServerBusy
from worlds.live.http.response_cache import RESPONSE_CACHE_FILE, ResponseCache
from worlds.source import SourceError, SourceTimeout, SourceUnavailable

WHO = Access("ada@example.org")
KEY = "planted-key-4711-0815"
LIMIT = 1.5
FAR_BEYOND_THE_LIMIT = 20.0
"""The misbehaving server would go on for longer; a busy machine still ends a call of LIMIT seconds before."""


@pytest.fixture
def server() -> Iterator[Moody]:
    with moody() as started:
        yield started


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[ResponseCache]:
    opened = ResponseCache(tmp_path / RESPONSE_CACHE_FILE)
    yield opened
    opened.close()


@pytest.fixture
def door(server: Moody, answers: ResponseCache) -> Callable[..., RecordingHttpClient]:
    """Makes a door to that server; keywords change the policy."""

    def make(access: Access = WHO, **policy: object) -> RecordingHttpClient:
        usual = {"hosts": frozenset({server.host}), "timeout_seconds": 30.0, "max_per_minute": 100_000}
        return RecordingHttpClient(RequestPolicy(**{**usual, **policy}), answers, access)  # type: ignore[arg-type]

    return make


FAULTS: dict[str, tuple[Mood, type[SourceError], str]] = {
    "429 without a word": (status(429), SourceUnavailable, "429"),
    "429 until tomorrow": (status(429, Retry_After="86400"), SourceUnavailable, "try again after"),
    "429 for ever": (status(429, Retry_After="9" * 400), SourceUnavailable, "try again after"),
    "429 with nonsense": (status(429, Retry_After="soon\xb2"), SourceUnavailable, "429"),
    "500": (status(500), SourceUnavailable, "500"),
    "502": (status(502), SourceUnavailable, "502"),
    "503": (status(503, b"<html>busy</html>"), SourceUnavailable, "503"),
    "504": (status(504), SourceUnavailable, "504"),
    "403": (status(403), HttpStatusError, "403 (Forbidden)"),
    "a connection reset": (resets, SourceUnavailable, "could not be reached"),
    "silence": (hangs, SourceTimeout, "did not answer within"),
    "a slow trickle": (trickles, SourceTimeout, "did not answer within"),
    "a slow trickle of headers": (trickles_headers, SourceTimeout, "did not answer within"),
    "an endless stream": (streams_for_ever, InvalidResponse, "more than 1 MB"),
    "too many bytes": (sends(b'"' + b"x" * 2_000_000 + b'"'), InvalidResponse, "more than 1 MB"),
    "too many bytes, packed": (
        sends(gzip.compress(b'"' + b"x" * 50_000_000 + b'"'), Content_Encoding="gzip"),
        InvalidResponse,
        "more than 1 MB",
    ),
    "broken packing": (sends(b"no gzip at all", Content_Encoding="gzip"), SourceUnavailable, "packed wrongly"),
    "packing that is cut off": (
        sends(gzip.compress(b'{"a": 1}' * 1000)[:-20], Content_Encoding="gzip"),
        SourceUnavailable,
        "cut off",
    ),
    "truncated JSON": (sends(b'{"results": {"bindings": ['), InvalidResponse, "cut off or broken"),
    "a body that ends too soon": (sends(b'{"a": 1', content_length=500), SourceUnavailable, "could not be reached"),
    "another content type": (
        sends(b"<html>Sign in first</html>", "text/html"),
        InvalidResponse,
        "instead of application/json",
    ),
    "an empty answer": (sends(b""), InvalidResponse, "cut off or broken"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_ends_within_the_limit_as_one_sentence_and_leaves_nothing_in_the_record(
    fault: str, server: Moody, door: Callable[..., RecordingHttpClient], answers: ResponseCache
):
    mood, kind, message = FAULTS[fault]
    server.will(mood)
    request = HttpRequest(f"{server.url}/question")
    began = time.monotonic()
    with pytest.raises(kind) as failed:
        door(timeout_seconds=LIMIT, max_attempts=2, max_bytes=1_000_000).send(request)
    assert time.monotonic() - began < FAR_BEYOND_THE_LIMIT
    sentence = str(failed.value)
    assert message in sentence
    assert server.host in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert answers.get_latest(request.cache_key) is None


def test_what_comes_after_a_fault_is_given_and_recorded(
    server: Moody, door: Callable[..., RecordingHttpClient], answers: ResponseCache
):
    server.will(status(503), resets, says({"found": ["Ada"]}))
    request = HttpRequest(f"{server.url}/question")
    assert json.loads(door().send(request).body) == {"found": ["Ada"]}
    assert len(server.asked) == 3
    recorded = answers.get_latest(request.cache_key)
    assert recorded is not None
    assert json.loads(recorded.body) == {"found": ["Ada"]}


def test_a_status_that_is_not_worth_a_second_try_comes_with_what_the_host_said(
    server: Moody, door: Callable[..., RecordingHttpClient]
):
    server.will(status(500, b"S1T00: Transaction timed out"))
    with pytest.raises(HttpStatusError) as failed:
        door().send(HttpRequest(server.url, retry_statuses=frozenset({503})))
    assert (failed.value.status, failed.value.body) == (500, b"S1T00: Transaction timed out")
    assert len(server.asked) == 1


def test_an_answer_that_says_busy_is_asked_for_again(server: Moody, door: Callable[..., RecordingHttpClient]):
    def free(answer: HttpResponse) -> None:
        if b"maxlag" in answer.body:
            raise ServerBusy("it lags")

    server.will(says({"error": "maxlag"}), says({"ok": 1}))
    assert json.loads(door().send(HttpRequest(server.url, validate_response=free)).body) == {"ok": 1}
    server.will(says({"error": "maxlag"}))
    with pytest.raises(SourceUnavailable, match="it lags"):
        door(max_attempts=2).send(HttpRequest(f"{server.url}/other", validate_response=free))


@pytest.mark.parametrize("as_date", [False, True], ids=["seconds", "date"])
def test_a_host_that_asks_for_rest_gets_it_from_all_threads(
    as_date: bool,  # noqa: FBT001 - a parameter of the test
    server: Moody,
    door: Callable[..., RecordingHttpClient],
):
    rest = format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True) if as_date else "2"
    server.will(status(429, Retry_After=rest), says({"a": 1}))
    doors = [door(), door()]
    with ThreadPoolExecutor() as threads:
        first = threads.submit(doors[0].send, HttpRequest(f"{server.url}/1"))
        while not server.asked:
            time.sleep(0.01)
        # The refusal is on its way; whoever comes now stands before a closed gate.
        time.sleep(0.3)
        others = [threads.submit(doors[n % 2].send, HttpRequest(f"{server.url}/{n}")) for n in range(2, 6)]
        assert all(json.loads(future.result().body) == {"a": 1} for future in [first, *others])
    refused, *later = (request.moment for request in server.asked)
    assert len(later) == 5
    assert min(later) - refused > 1.5


def test_a_retry_after_beyond_the_timeout_is_reported_at_once_with_its_time(
    server: Moody, door: Callable[..., RecordingHttpClient]
):
    server.will(status(429, Retry_After="300"))
    for path in ("first", "second"):
        with pytest.raises(SourceUnavailable, match=r"try again after \d\d:\d\d:\d\d UTC"):
            door().send(HttpRequest(f"{server.url}/{path}"))
    assert [request.path for request in server.asked] == ["/first"]


def test_concurrent_requests_stay_within_the_policy_across_clients(
    server: Moody, door: Callable[..., RecordingHttpClient]
):
    server.will(says({"a": 1}, seconds=0.1))
    doors = [door(max_concurrent=3) for _ in range(4)]
    with ThreadPoolExecutor(12) as threads:
        sent = [threads.submit(doors[n % 4].send, HttpRequest(f"{server.url}/{n}")) for n in range(12)]
        assert all(future.result().status == 200 for future in sent)
    assert server.most_at_once == 3


def test_twenty_annotators_do_not_wait_for_each_other_where_the_policy_lets_them_in(
    server: Moody, door: Callable[..., RecordingHttpClient]
):
    everybody = threading.Barrier(20, timeout=60)

    def answers_when_all_have_asked(handler: Handler) -> None:
        everybody.wait()
        says({"a": 1})(handler)

    server.will(answers_when_all_have_asked)
    shared = door(max_concurrent=20, timeout_seconds=90.0)
    with ThreadPoolExecutor(20) as threads:
        sent = [threads.submit(shared.send, HttpRequest(f"{server.url}/{n}")) for n in range(20)]
        assert all(future.result().status == 200 for future in sent)


def test_what_many_ask_at_the_same_moment_is_asked_once(server: Moody, door: Callable[..., RecordingHttpClient]):
    server.will(says({"a": 1}, seconds=0.5))
    shared = door()
    with ThreadPoolExecutor(10) as threads:
        sent = [threads.submit(shared.send, HttpRequest(f"{server.url}/same")) for _ in range(10)]
        assert {future.result().body for future in sent} == {b'{"a": 1}'}
    assert len(server.asked) == 1


def test_waiting_for_a_slot_times_out_with_a_message(server: Moody, door: Callable[..., RecordingHttpClient]):
    free = threading.Event()
    server.will(lambda handler: (free.wait(60), says({"a": 1})(handler))[1])
    with ThreadPoolExecutor() as threads:
        first = threads.submit(door(max_concurrent=1, timeout_seconds=60.0).send, HttpRequest(f"{server.url}/1"))
        while not server.asked:
            time.sleep(0.01)
        with pytest.raises(SourceTimeout, match="all 1 places there were taken"):
            door(max_concurrent=1, timeout_seconds=0.3).send(HttpRequest(f"{server.url}/2"))
        free.set()
        assert first.result().status == 200


def test_so_many_a_minute_and_no_more(server: Moody, door: Callable[..., RecordingHttpClient]):
    server.will(says({"a": 1}))
    careful = door(max_per_minute=3, timeout_seconds=5.0)
    for n in range(3):
        careful.send(HttpRequest(f"{server.url}/{n}"))
    with pytest.raises(SourceUnavailable, match="at most 3 times a minute; try again after"):
        careful.send(HttpRequest(f"{server.url}/4"))
    assert len(server.asked) == 3


def test_several_requests_are_one_call_with_one_limit(server: Moody, door: Callable[..., RecordingHttpClient]):
    server.will(says({"a": 1}, seconds=0.4))
    patient = door(timeout_seconds=1.0)

    def many() -> None:
        with patient.shared_deadline():
            for n in range(50):
                patient.send(HttpRequest(f"{server.url}/{n}"))

    with pytest.raises(SourceTimeout):
        many()
    assert len(server.asked) < 5
    # The next call has its own time.
    assert patient.send(HttpRequest(f"{server.url}/again")).status == 200


def test_no_request_is_sent_without_a_contact_and_the_contact_is_in_the_user_agent(
    server: Moody, door: Callable[..., RecordingHttpClient]
):
    server.will(says({"a": 1}))
    for nobody in (None, "", "  ", "ada@example.org\r\nX-Evil: 1"):
        with pytest.raises(SourceUnavailable, match="set SHOWHOW_CONTACT"):
            door(Access(nobody)).send(HttpRequest(server.url))
    assert server.asked == []
    door().send(HttpRequest(server.url))
    assert server.asked[0].headers["user-agent"].startswith("Showhow/")
    assert server.asked[0].headers["user-agent"].endswith("(ada@example.org)")


def test_only_configured_hosts_are_asked_redirects_included(server: Moody, door: Callable[..., RecordingHttpClient]):
    with moody() as stranger:
        stranger.will(says({"secret": 1}))
        server.will(status(302, Location=f"{stranger.url}/inside"))
        with pytest.raises(SourceUnavailable, match="Nothing is fetched from"):
            door().send(HttpRequest(f"{server.url}/away"))
        for address in (stranger.url, "file:///etc/passwd", f"http://ada:pass@{server.host}/", "http://localhost/"):
            with pytest.raises(SourceUnavailable, match="Nothing is fetched from"):
                door().send(HttpRequest(address))
        assert stranger.asked == []


def test_redirects_within_the_host_are_followed_but_not_for_ever(
    server: Moody, door: Callable[..., RecordingHttpClient]
):
    server.will(status(301, Location="/there"), says({"a": 1}))
    assert door().send(HttpRequest(f"{server.url}/here")).url == f"{server.url}/there"
    server.will(status(302, Location="/round"))
    with pytest.raises(InvalidResponse, match="redirects more than"):
        door().send(HttpRequest(f"{server.url}/round"))


def test_an_unresolvable_host_is_reported(answers: ResponseCache):
    nowhere = RecordingHttpClient(RequestPolicy(frozenset({"nowhere.invalid"}), max_attempts=1), answers, WHO)
    with pytest.raises(SourceUnavailable, match="could not be reached"):
        nowhere.send(HttpRequest("https://nowhere.invalid/api"))


def test_connections_are_used_again(server: Moody, door: Callable[..., RecordingHttpClient]):
    server.will(says({"a": 1}))
    shared = door()
    for n in range(5):
        shared.send(HttpRequest(f"{server.url}/{n}"))
    assert len({request.connection for request in server.asked}) == 1


@pytest.mark.parametrize("encoding", ["gzip", "GZIP"])
@pytest.mark.parametrize("parts", [[b'{"a": 1}'], [b'{"a"', b": 1}"]], ids=["one part", "two parts"])
def test_a_packed_answer_is_unpacked(
    encoding: str, parts: list[bytes], server: Moody, door: Callable[..., RecordingHttpClient]
):
    server.will(sends(b"".join(map(gzip.compress, parts)), Content_Encoding=encoding))
    assert door().send(HttpRequest(server.url)).body == b'{"a": 1}'


def test_a_recorded_answer_is_given_until_it_is_too_old(
    server: Moody, door: Callable[..., RecordingHttpClient], answers: ResponseCache
):
    server.will(says({"now": 1}))
    shared = door(cache_lifetime=timedelta(days=7))
    old = datetime.now(UTC) - timedelta(days=8)
    request = HttpRequest(server.url)
    answers.store(
        request.cache_key, HttpResponse(server.url, 200, {"content-type": "application/json"}, b'{"then": 1}', old)
    )
    assert shared.send(request).body == b'{"now": 1}'
    assert shared.send(request).body == b'{"now": 1}'
    assert len(server.asked) == 1


def test_offline_recorded_responses_are_used_however_old(
    server: Moody, door: Callable[..., RecordingHttpClient], answers: ResponseCache
):
    server.will(says({"now": 1}))
    old = datetime.now(UTC) - timedelta(days=800)
    request = HttpRequest(server.url)
    answers.store(
        request.cache_key, HttpResponse(server.url, 200, {"content-type": "application/json"}, b'{"then": 1}', old)
    )
    offline = door(Access(offline=True))
    assert offline.send(request).body == b'{"then": 1}'
    with pytest.raises(SourceUnavailable, match="has not been asked this before, and Showhow is offline"):
        offline.send(HttpRequest(f"{server.url}/unknown"))
    assert server.asked == []


def test_a_recorded_refusal_is_repeated_offline_and_requested_again_online(
    server: Moody, door: Callable[..., RecordingHttpClient]
):
    server.will(status(400, b"Parse error at 1:7"), status(400, b"Parse error at 1:7"), says({"a": 1}))
    plain, judged = (
        HttpRequest(f"{server.url}/plain"),
        HttpRequest(f"{server.url}/judged", recorded_error_statuses=frozenset({400})),
    )
    for request in (plain, judged):
        with pytest.raises(HttpStatusError, match="400"):
            door().send(request)
    offline = door(Access(offline=True))
    with pytest.raises(HttpStatusError, match="400") as failure:
        offline.send(judged)
    assert failure.value.body == b"Parse error at 1:7"
    with pytest.raises(SourceUnavailable, match="has not been asked this before"):
        offline.send(plain)
    assert door().send(judged).body == b'{"a": 1}'
    assert offline.send(judged).body == b'{"a": 1}'


def test_as_of_a_moment_the_answers_are_those_of_then(
    server: Moody, door: Callable[..., RecordingHttpClient], answers: ResponseCache
):
    server.will(says({"now": 1}))
    request = HttpRequest(server.url)
    days = [datetime(2026, 3, day, tzinfo=UTC) for day in (1, 10, 20)]
    for day in days:
        body = json.dumps({"day": day.day}).encode()
        answers.store(request.cache_key, HttpResponse(server.url, 200, {"content-type": "application/json"}, body, day))
    for moment, expected in ((days[0], 1), (days[1] - timedelta(seconds=1), 1), (days[1], 10), (datetime.now(UTC), 20)):
        assert json.loads(door(Access(as_of=moment)).send(request).body) == {"day": expected}
    with pytest.raises(SourceUnavailable, match="had not been asked this by 2026-02-28"):
        door(Access(as_of=datetime(2026, 2, 28, tzinfo=UTC))).send(request)
    assert server.asked == []


def json_of_php(text: str) -> str:
    """PHP escapes what JSON need not escape."""
    return json.dumps(text).replace("/", "\\/")


@pytest.mark.parametrize("place", ["http://127.0.0.1:99999/", "http://[bad/", "http://127.0.0.1:abc/"])
def test_a_redirect_to_an_invalid_url_is_reported(place: str, server: Moody, door: Callable[..., RecordingHttpClient]):
    server.will(status(302, Location=place))
    with pytest.raises(InvalidResponse, match="redirects to what is no address"):
        door().send(HttpRequest(server.url))


def test_a_redirect_in_other_scripts_is_followed_as_browsers_do(
    server: Moody, door: Callable[..., RecordingHttpClient]
):
    server.will(status(301, Location="/wiki/Zürich?a=%C3%BC".encode().decode("latin-1")), says({"found": 1}))
    door().send(HttpRequest(server.url))
    assert server.asked[1].path == "/wiki/Z%C3%BCrich?a=%C3%BC"


@pytest.mark.parametrize("spelled", [json.dumps, json_of_php, escape, quote_plus])
def test_a_key_is_redacted_in_any_encoding(
    spelled: Callable[[str], str], server: Moody, door: Callable[..., RecordingHttpClient]
):
    key = 'k/9&"+aQ=='
    body = spelled(key) if spelled in {json.dumps, json_of_php} else json.dumps(spelled(key))
    server.will(sends(f"[{body}]".encode()))
    response = door(headers=(("X-Key", key),)).send(HttpRequest(server.url))
    assert json.loads(response.body) == ["..."]


def test_a_key_is_sent_and_stands_nowhere_else(
    server: Moody, door: Callable[..., RecordingHttpClient], tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    def echoes(handler: Handler) -> None:
        says({"you sent": handler.headers["Authorization"]}, Set_Cookie=f"session={KEY}")(handler)

    keyed = door(headers=(("Authorization", f"Bearer {KEY}"),), max_attempts=1)
    server.will(echoes)
    response = keyed.send(HttpRequest(server.url))
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    server.will(status(302, Location=f"/there?token={KEY}"), echoes)
    assert KEY not in repr(keyed.send(HttpRequest(f"{server.url}/led")))
    assert server.asked[1].path.endswith(KEY)
    server.will(status(403, f"wrong key {KEY}".encode()))
    with pytest.raises(HttpStatusError) as failed:
        keyed.send(HttpRequest(f"{server.url}/other"))
    server.will(resets)
    with pytest.raises(SourceUnavailable) as lost:
        keyed.send(HttpRequest(f"{server.url}/third"))
    texts = [str(failed.value), repr(failed.value.body), str(lost.value), response.body.decode(), repr(keyed._policy)]
    assert not [text for text in [*texts, *capfd.readouterr()] if KEY in text]
    assert not [file for file in tmp_path.iterdir() if KEY.encode() in file.read_bytes()]
    recorded = ResponseCache(tmp_path / RESPONSE_CACHE_FILE).get_latest(HttpRequest(server.url).cache_key)
    assert recorded is not None
    assert KEY not in repr(recorded)
