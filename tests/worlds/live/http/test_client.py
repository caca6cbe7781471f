"""The HTTP client with a real server that fails in many ways."""

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

from showhow.worlds.live.http.client import RecordingHttpClient
from showhow.worlds.live.http.request import (
    Access,
    HttpRequest,
    HttpResponse,
    HttpStatusError,
    InvalidResponse,
    RequestPolicy,
    ServerBusy,
)
from showhow.worlds.live.http.response_cache import RESPONSE_CACHE_FILE, ResponseCache
from showhow.worlds.source import SourceError, SourceTimeout, SourceUnavailable
from tests.servers.faulty_server import (
    FaultyServer,
    Handler,
    Responder,
    hangs,
    resets,
    run_faulty_server,
    says,
    sends,
    status,
    streams_for_ever,
    trickles,
    trickles_headers,
)

WHO = Access("ada@example.org")
KEY = "planted-key-4711-0815"
LIMIT = 1.5
FAR_BEYOND_THE_LIMIT = 20.0
"""The faulty server goes on for longer; a busy machine still ends a call of LIMIT seconds before."""


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with run_faulty_server() as started:
        yield started


@pytest.fixture
def response_cache(tmp_path: Path) -> Iterator[ResponseCache]:
    opened = ResponseCache(tmp_path / RESPONSE_CACHE_FILE)
    yield opened
    opened.close()


@pytest.fixture
def create_client(server: FaultyServer, response_cache: ResponseCache) -> Callable[..., RecordingHttpClient]:
    """Creates clients of that server; keywords change the policy."""

    def make(access: Access = WHO, **policy: object) -> RecordingHttpClient:
        defaults = {"hosts": frozenset({server.host}), "timeout_seconds": 30.0, "max_per_minute": 100_000}
        return RecordingHttpClient(RequestPolicy(**{**defaults, **policy}), response_cache, access)  # type: ignore[arg-type]

    return make


FAULTS: dict[str, tuple[Responder, type[SourceError], str]] = {
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
    "broken packing": (sends(b"no gzip at all", Content_Encoding="gzip"), SourceUnavailable, "cannot be decompressed"),
    "packing that is cut off": (
        sends(gzip.compress(b'{"a": 1}' * 1000)[:-20], Content_Encoding="gzip"),
        SourceUnavailable,
        "truncated",
    ),
    "truncated JSON": (sends(b'{"results": {"bindings": ['), InvalidResponse, "truncated or invalid"),
    "a body that ends too soon": (sends(b'{"a": 1', content_length=500), SourceUnavailable, "could not be reached"),
    "another content type": (
        sends(b"<html>Sign in first</html>", "text/html"),
        InvalidResponse,
        "instead of application/json",
    ),
    "an empty answer": (sends(b""), InvalidResponse, "truncated or invalid"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_raises_one_sentence_within_the_limit_and_records_nothing(
    fault: str, server: FaultyServer, create_client: Callable[..., RecordingHttpClient], response_cache: ResponseCache
):
    responder, kind, message = FAULTS[fault]
    server.respond_with(responder)
    request = HttpRequest(f"{server.url}/question")
    started = time.monotonic()
    with pytest.raises(kind) as failed:
        create_client(timeout_seconds=LIMIT, max_attempts=2, max_bytes=1_000_000).send(request)
    assert time.monotonic() - started < FAR_BEYOND_THE_LIMIT
    sentence = str(failed.value)
    assert message in sentence
    assert server.host in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert response_cache.get_latest(request.cache_key) is None


def test_the_response_after_a_fault_is_returned_and_recorded(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient], response_cache: ResponseCache
):
    server.respond_with(status(503), resets, says({"found": ["Ada"]}))
    request = HttpRequest(f"{server.url}/question")
    assert json.loads(create_client().send(request).body) == {"found": ["Ada"]}
    assert len(server.asked) == 3
    recorded = response_cache.get_latest(request.cache_key)
    assert recorded is not None
    assert json.loads(recorded.body) == {"found": ["Ada"]}


def test_an_error_status_without_retry_is_raised_with_the_body(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    server.respond_with(status(500, b"S1T00: Transaction timed out"))
    with pytest.raises(HttpStatusError) as failed:
        create_client().send(HttpRequest(server.url, retry_statuses=frozenset({503})))
    assert (failed.value.status, failed.value.body) == (500, b"S1T00: Transaction timed out")
    assert len(server.asked) == 1


def test_a_response_that_reports_overload_is_retried(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    def free(answer: HttpResponse) -> None:
        if b"maxlag" in answer.body:
            raise ServerBusy("it lags")

    server.respond_with(says({"error": "maxlag"}), says({"ok": 1}))
    assert json.loads(create_client().send(HttpRequest(server.url, validate_response=free)).body) == {"ok": 1}
    server.respond_with(says({"error": "maxlag"}))
    with pytest.raises(SourceUnavailable, match="it lags"):
        create_client(max_attempts=2).send(HttpRequest(f"{server.url}/other", validate_response=free))


@pytest.mark.parametrize("as_date", [False, True], ids=["seconds", "date"])
def test_retry_after_pauses_all_threads(
    as_date: bool,  # noqa: FBT001 - a parameter of the test
    server: FaultyServer,
    create_client: Callable[..., RecordingHttpClient],
):
    rest = format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True) if as_date else "2"
    server.respond_with(status(429, Retry_After=rest), says({"a": 1}))
    clients = [create_client(), create_client()]
    with ThreadPoolExecutor() as threads:
        first = threads.submit(clients[0].send, HttpRequest(f"{server.url}/1"))
        while not server.asked:
            time.sleep(0.01)
        # The refusal has been sent; later callers wait for the rate limiter.
        time.sleep(0.3)
        others = [threads.submit(clients[n % 2].send, HttpRequest(f"{server.url}/{n}")) for n in range(2, 6)]
        assert all(json.loads(future.result().body) == {"a": 1} for future in [first, *others])
    refused, *later = (request.moment for request in server.asked)
    assert len(later) == 5
    assert min(later) - refused > 1.5


def test_a_retry_after_beyond_the_timeout_is_reported_at_once_with_its_time(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    server.respond_with(status(429, Retry_After="300"))
    for path in ("first", "second"):
        with pytest.raises(SourceUnavailable, match=r"try again after \d\d:\d\d:\d\d UTC"):
            create_client().send(HttpRequest(f"{server.url}/{path}"))
    assert [request.path for request in server.asked] == ["/first"]


def test_concurrent_requests_stay_within_the_policy_across_clients(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    server.respond_with(says({"a": 1}, seconds=0.1))
    clients = [create_client(max_concurrent=3) for _ in range(4)]
    with ThreadPoolExecutor(12) as threads:
        sent = [threads.submit(clients[n % 4].send, HttpRequest(f"{server.url}/{n}")) for n in range(12)]
        assert all(future.result().status == 200 for future in sent)
    assert server.max_concurrent_requests == 3


def test_twenty_requests_run_concurrently_if_the_policy_allows_it(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    everybody = threading.Barrier(20, timeout=60)

    def answers_when_all_have_asked(handler: Handler) -> None:
        everybody.wait()
        says({"a": 1})(handler)

    server.respond_with(answers_when_all_have_asked)
    shared = create_client(max_concurrent=20, timeout_seconds=90.0)
    with ThreadPoolExecutor(20) as threads:
        sent = [threads.submit(shared.send, HttpRequest(f"{server.url}/{n}")) for n in range(20)]
        assert all(future.result().status == 200 for future in sent)


def test_identical_concurrent_requests_are_sent_once(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    server.respond_with(says({"a": 1}, seconds=0.5))
    shared = create_client()
    with ThreadPoolExecutor(10) as threads:
        sent = [threads.submit(shared.send, HttpRequest(f"{server.url}/same")) for _ in range(10)]
        assert {future.result().body for future in sent} == {b'{"a": 1}'}
    assert len(server.asked) == 1


def test_waiting_for_a_slot_times_out_with_a_message(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    free = threading.Event()
    server.respond_with(lambda handler: (free.wait(60), says({"a": 1})(handler))[1])
    with ThreadPoolExecutor() as threads:
        first = threads.submit(
            create_client(max_concurrent=1, timeout_seconds=60.0).send, HttpRequest(f"{server.url}/1")
        )
        while not server.asked:
            time.sleep(0.01)
        with pytest.raises(SourceTimeout, match="other requests used all 1 connections"):
            create_client(max_concurrent=1, timeout_seconds=0.3).send(HttpRequest(f"{server.url}/2"))
        free.set()
        assert first.result().status == 200


def test_the_requests_per_minute_are_limited(server: FaultyServer, create_client: Callable[..., RecordingHttpClient]):
    server.respond_with(says({"a": 1}))
    careful = create_client(max_per_minute=3, timeout_seconds=5.0)
    for n in range(3):
        careful.send(HttpRequest(f"{server.url}/{n}"))
    with pytest.raises(SourceUnavailable, match=r"limit of 3 requests per minute .*; try again after"):
        careful.send(HttpRequest(f"{server.url}/4"))
    assert len(server.asked) == 3


def test_several_requests_share_one_deadline(server: FaultyServer, create_client: Callable[..., RecordingHttpClient]):
    server.respond_with(says({"a": 1}, seconds=0.4))
    patient = create_client(timeout_seconds=1.0)

    def many() -> None:
        with patient.shared_deadline():
            for n in range(50):
                patient.send(HttpRequest(f"{server.url}/{n}"))

    with pytest.raises(SourceTimeout):
        many()
    assert len(server.asked) < 5
    # The next call has its own deadline.
    assert patient.send(HttpRequest(f"{server.url}/again")).status == 200


def test_no_request_is_sent_without_a_contact_and_the_contact_is_in_the_user_agent(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    server.respond_with(says({"a": 1}))
    for nobody in (None, "", "  ", "ada@example.org\r\nX-Evil: 1"):
        with pytest.raises(SourceUnavailable, match="set SHOWHOW_CONTACT"):
            create_client(Access(nobody)).send(HttpRequest(server.url))
    assert server.asked == []
    create_client().send(HttpRequest(server.url))
    assert server.asked[0].headers["user-agent"].startswith("Showhow/")
    assert server.asked[0].headers["user-agent"].endswith("(ada@example.org)")


def test_only_configured_hosts_are_requested_also_by_redirects(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    with run_faulty_server() as stranger:
        stranger.respond_with(says({"secret": 1}))
        server.respond_with(status(302, Location=f"{stranger.url}/inside"))
        with pytest.raises(SourceUnavailable, match=r"Requests to .* are refused"):
            create_client().send(HttpRequest(f"{server.url}/away"))
        for address in (stranger.url, "file:///etc/passwd", f"http://ada:pass@{server.host}/", "http://localhost/"):
            with pytest.raises(SourceUnavailable, match=r"Requests to .* are refused"):
                create_client().send(HttpRequest(address))
        assert stranger.asked == []


def test_redirects_within_the_host_are_followed_up_to_a_limit(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    server.respond_with(status(301, Location="/there"), says({"a": 1}))
    assert create_client().send(HttpRequest(f"{server.url}/here")).url == f"{server.url}/there"
    server.respond_with(status(302, Location="/round"))
    with pytest.raises(InvalidResponse, match="redirects more than"):
        create_client().send(HttpRequest(f"{server.url}/round"))


def test_an_unresolvable_host_is_reported(response_cache: ResponseCache):
    nowhere = RecordingHttpClient(RequestPolicy(frozenset({"nowhere.invalid"}), max_attempts=1), response_cache, WHO)
    with pytest.raises(SourceUnavailable, match="could not be reached"):
        nowhere.send(HttpRequest("https://nowhere.invalid/api"))


def test_connections_are_reused(server: FaultyServer, create_client: Callable[..., RecordingHttpClient]):
    server.respond_with(says({"a": 1}))
    shared = create_client()
    for n in range(5):
        shared.send(HttpRequest(f"{server.url}/{n}"))
    assert len({request.connection for request in server.asked}) == 1


@pytest.mark.parametrize("encoding", ["gzip", "GZIP"])
@pytest.mark.parametrize("parts", [[b'{"a": 1}'], [b'{"a"', b": 1}"]], ids=["one part", "two parts"])
def test_a_compressed_response_is_decompressed(
    encoding: str, parts: list[bytes], server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    server.respond_with(sends(b"".join(map(gzip.compress, parts)), Content_Encoding=encoding))
    assert create_client().send(HttpRequest(server.url)).body == b'{"a": 1}'


def test_a_recorded_response_is_used_until_its_lifetime_ends(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient], response_cache: ResponseCache
):
    server.respond_with(says({"now": 1}))
    shared = create_client(cache_lifetime=timedelta(days=7))
    old = datetime.now(UTC) - timedelta(days=8)
    request = HttpRequest(server.url)
    response_cache.store(
        request.cache_key, HttpResponse(server.url, 200, {"content-type": "application/json"}, b'{"then": 1}', old)
    )
    assert shared.send(request).body == b'{"now": 1}'
    assert shared.send(request).body == b'{"now": 1}'
    assert len(server.asked) == 1


def test_offline_recorded_responses_are_used_however_old(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient], response_cache: ResponseCache
):
    server.respond_with(says({"now": 1}))
    old = datetime.now(UTC) - timedelta(days=800)
    request = HttpRequest(server.url)
    response_cache.store(
        request.cache_key, HttpResponse(server.url, 200, {"content-type": "application/json"}, b'{"then": 1}', old)
    )
    offline = create_client(Access(offline=True))
    assert offline.send(request).body == b'{"then": 1}'
    with pytest.raises(SourceUnavailable, match="to this request is recorded, and Showhow is offline"):
        offline.send(HttpRequest(f"{server.url}/unknown"))
    assert server.asked == []


def test_a_recorded_refusal_is_repeated_offline_and_requested_again_online(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    server.respond_with(status(400, b"Parse error at 1:7"), status(400, b"Parse error at 1:7"), says({"a": 1}))
    plain, judged = (
        HttpRequest(f"{server.url}/plain"),
        HttpRequest(f"{server.url}/judged", recorded_error_statuses=frozenset({400})),
    )
    for request in (plain, judged):
        with pytest.raises(HttpStatusError, match="400"):
            create_client().send(request)
    offline = create_client(Access(offline=True))
    with pytest.raises(HttpStatusError, match="400") as failure:
        offline.send(judged)
    assert failure.value.body == b"Parse error at 1:7"
    with pytest.raises(SourceUnavailable, match="to this request is recorded, and Showhow is offline"):
        offline.send(plain)
    assert create_client().send(judged).body == b'{"a": 1}'
    assert offline.send(judged).body == b'{"a": 1}'


def test_as_of_returns_the_responses_recorded_by_then(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient], response_cache: ResponseCache
):
    server.respond_with(says({"now": 1}))
    request = HttpRequest(server.url)
    days = [datetime(2026, 3, day, tzinfo=UTC) for day in (1, 10, 20)]
    for day in days:
        body = json.dumps({"day": day.day}).encode()
        response_cache.store(
            request.cache_key, HttpResponse(server.url, 200, {"content-type": "application/json"}, body, day)
        )
    for moment, expected in ((days[0], 1), (days[1] - timedelta(seconds=1), 1), (days[1], 10), (datetime.now(UTC), 20)):
        assert json.loads(create_client(Access(as_of=moment)).send(request).body) == {"day": expected}
    with pytest.raises(SourceUnavailable, match="to this request was recorded by 2026-02-28"):
        create_client(Access(as_of=datetime(2026, 2, 28, tzinfo=UTC))).send(request)
    assert server.asked == []


def json_of_php(text: str) -> str:
    """PHP also escapes characters that JSON need not escape."""
    return json.dumps(text).replace("/", "\\/")


@pytest.mark.parametrize("place", ["http://127.0.0.1:99999/", "http://[bad/", "http://127.0.0.1:abc/"])
def test_a_redirect_to_an_invalid_url_is_reported(
    place: str, server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    server.respond_with(status(302, Location=place))
    with pytest.raises(InvalidResponse, match="redirects to an invalid address"):
        create_client().send(HttpRequest(server.url))


def test_a_redirect_in_other_scripts_is_followed_as_browsers_do(
    server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    server.respond_with(status(301, Location="/wiki/Zürich?a=%C3%BC".encode().decode("latin-1")), says({"found": 1}))
    create_client().send(HttpRequest(server.url))
    assert server.asked[1].path == "/wiki/Z%C3%BCrich?a=%C3%BC"


@pytest.mark.parametrize("spelled", [json.dumps, json_of_php, escape, quote_plus])
def test_a_key_is_redacted_in_any_encoding(
    spelled: Callable[[str], str], server: FaultyServer, create_client: Callable[..., RecordingHttpClient]
):
    key = 'k/9&"+aQ=='
    body = spelled(key) if spelled in {json.dumps, json_of_php} else json.dumps(spelled(key))
    server.respond_with(sends(f"[{body}]".encode()))
    response = create_client(headers=(("X-Key", key),)).send(HttpRequest(server.url))
    assert json.loads(response.body) == ["[key removed]"]


def test_a_key_is_sent_and_never_stored_or_logged(
    server: FaultyServer,
    create_client: Callable[..., RecordingHttpClient],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
):
    def echoes(handler: Handler) -> None:
        says({"you sent": handler.headers["Authorization"]}, Set_Cookie=f"session={KEY}")(handler)

    keyed = create_client(headers=(("Authorization", f"Bearer {KEY}"),), max_attempts=1)
    server.respond_with(echoes)
    response = keyed.send(HttpRequest(server.url))
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    server.respond_with(status(302, Location=f"/there?token={KEY}"), echoes)
    assert KEY not in repr(keyed.send(HttpRequest(f"{server.url}/led")))
    assert server.asked[1].path.endswith(KEY)
    server.respond_with(status(403, f"wrong key {KEY}".encode()))
    with pytest.raises(HttpStatusError) as failed:
        keyed.send(HttpRequest(f"{server.url}/other"))
    server.respond_with(resets)
    with pytest.raises(SourceUnavailable) as lost:
        keyed.send(HttpRequest(f"{server.url}/third"))
    texts = [str(failed.value), repr(failed.value.body), str(lost.value), response.body.decode(), repr(keyed._policy)]
    assert not [text for text in [*texts, *capfd.readouterr()] if KEY in text]
    assert not [file for file in tmp_path.iterdir() if KEY.encode() in file.read_bytes()]
    recorded = ResponseCache(tmp_path / RESPONSE_CACHE_FILE).get_latest(HttpRequest(server.url).cache_key)
    assert recorded is not None
    assert KEY not in repr(recorded)
