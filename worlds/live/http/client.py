"""HTTP client of live sources: recorded responses first, then the host, within rate limits and a timeout.

Identical concurrent requests are sent once: the others wait and read the recorded response.
"""

import json
import math
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from html import escape
from urllib.parse import quote, quote_plus, urljoin, urlsplit

from worlds.live.http.access import Access, RequestPolicy
from worlds.live.http.rate_limiter import MAX_RETRY_AFTER, get_rate_limiter, parse_retry_after
from worlds.live.http.request import (
    HttpRequest,
    HttpResponse,
    HttpStatusError,
    InvalidResponse,
    ServerBusy,
    format_status,
    get_host,
)
from worlds.live.http.response_cache import ResponseCache
from worlds.live.http.transport import DeadlineExceeded, TransportError, send_once
from worlds.source import SourceTimeout, SourceUnavailable


@dataclass(slots=True)
class _KeyLock:
    lock: threading.Lock = field(default_factory=threading.Lock)
    callers: int = 0


class SingleFlight:
    """One turn a key; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: dict[str, _KeyLock] = {}

    @contextmanager
    def acquire(self, key: str, ends: float) -> Iterator[None]:
        """Be the only one with that key; Late when others had it until `ends` (of time.monotonic)."""
        with self._lock:
            turn = self._turns.setdefault(key, _KeyLock())
            turn.callers += 1
        try:
            if not turn.lock.acquire(timeout=max(0.0, ends - time.monotonic())):
                raise DeadlineExceeded
            try:
                yield
            finally:
                turn.lock.release()
        finally:
            with self._lock:
                turn.callers -= 1
                if not turn.callers:
                    del self._turns[key]


_MAX_REDIRECTS = 5
_INITIAL_BACKOFF = 0.5
_MAX_ERROR_BODY = 10_000
_MIN_SECRET_LENGTH = 8
_URL_SAFE_CHARACTERS = "%/:?#[]@!$&'()*+,;=~"
_STATUS_ADVICE = {
    401: "; it wants a key: check the headers in world.toml and the variables that they name",
    403: "; it lets this program not in: check the contact, and the headers in world.toml",
    404: "; check its address in world.toml",
    410: "; check its address in world.toml",
    413: "; ask for less",
    414: "; ask for less",
}
_CALL_DEADLINE: ContextVar[float] = ContextVar("ends", default=math.inf)
"""When the call that sends several requests has to be over."""


@dataclass(slots=True)
class _RequestDeadline:
    """How long one call may still take, and how long it stood before closed gates."""

    deadline: float
    queued_seconds: float = 0.0


class RecordingHttpClient:
    """HTTP client for the hosts of one source under its RequestPolicy; thread-safe.

    `send` returns a complete, validated response (recorded, or new and then recorded) or raises a SourceError.
    """

    def __init__(self, policy: RequestPolicy, answers: ResponseCache, access: Access) -> None:
        self._policy = policy
        self._answers = answers
        self._access = access
        self._turns = SingleFlight()
        words = {
            word for _, value in policy.headers for word in (value, *value.split()) if len(word) >= _MIN_SECRET_LENGTH
        }
        self._secrets = sorted({form for word in words for form in _secret_encodings(word)}, key=len, reverse=True)

    def send(self, request: HttpRequest) -> HttpResponse:
        """The response within RequestPolicy.timeout_seconds; else HttpStatusError or InvalidResponse."""
        key = request.cache_key
        if (recorded := self._cached_response(key)) is not None:
            return _require_success(recorded)
        if not self._access.network_allowed:
            raise SourceUnavailable(self._not_cached_message(request))
        own = {"User-Agent": self._access.build_user_agent(), "Accept-Encoding": "gzip", **dict(self._policy.headers)}
        call = _RequestDeadline(min(time.monotonic() + self._policy.timeout_seconds, _CALL_DEADLINE.get()))
        try:
            with self._turns.acquire(key, call.deadline):
                if (recorded := self._cached_response(key)) is not None:
                    return recorded
                answer = self._send_with_retries(request, {**request.headers, **own}, call)
                self._answers.store(key, answer)
                return _require_success(answer)
        except DeadlineExceeded as late:
            raise SourceTimeout(self._timeout_message(request, call)) from late

    @contextmanager
    def shared_deadline(self) -> Iterator[None]:
        """All requests that this thread sends inside share one deadline of RequestPolicy.timeout_seconds."""
        ends = min(time.monotonic() + self._policy.timeout_seconds, _CALL_DEADLINE.get())
        token = _CALL_DEADLINE.set(ends)
        try:
            yield
        finally:
            _CALL_DEADLINE.reset(token)

    def _cached_response(self, key: str) -> HttpResponse | None:
        """The recorded response; when the network is allowed, only a successful one within its lifetime."""
        recorded = self._answers.get_latest(key, self._access.as_of)
        fresh = (
            recorded is not None
            and recorded.is_success
            and datetime.now(UTC) - recorded.received_at < self._policy.cache_lifetime
        )
        return recorded if fresh or not self._access.network_allowed else None

    def _not_cached_message(self, request: HttpRequest) -> str:
        host = get_host(request.url)
        if self._access.as_of is not None:
            then = self._access.as_of.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            return f"{host} had not been asked this by {then}, so nothing is known of what it would have answered."
        return f"{host} has not been asked this before, and Showhow is offline; ask it once while connected."

    def _send_with_retries(self, request: HttpRequest, headers: dict[str, str], call: _RequestDeadline) -> HttpResponse:
        """Ask until there is an answer, no attempt is left, or the time is over."""
        trouble = ""
        for attempt in range(self._policy.max_attempts):
            wait = _INITIAL_BACKOFF * 2**attempt * random.uniform(0.5, 1.5)  # noqa: S311 (spreads callers, guards nothing)
            try:
                answer = self._follow_redirects(request, headers, call)
                if answer.status not in request.retry_statuses:
                    self._validate_response(request, answer)
                    return answer
                trouble = f"answered {format_status(answer.status)}"
                wait = self._retry_delay(answer, wait)
            except TransportError as broken:
                trouble = f"could not be reached ({self._redact(str(broken))})"
            except ServerBusy as busy:
                trouble = f"had no time ({busy})"
            if attempt + 1 == self._policy.max_attempts or time.monotonic() + wait > call.deadline:
                break
            time.sleep(wait)
        times = f", {attempt + 1} times in a row" if attempt else ""
        raise SourceUnavailable(f"{get_host(request.url)} {trouble}{times}; try again {_format_retry_time(wait)}.")

    def _retry_delay(self, answer: HttpResponse, wait: float) -> float:
        """Seconds to wait after an error status; after Retry-After or a 429 all threads wait."""
        retry_after = parse_retry_after(answer.headers.get("retry-after"))
        if retry_after is None and answer.status != 429:
            return wait
        wait = wait if retry_after is None else min(retry_after, MAX_RETRY_AFTER)
        get_rate_limiter(get_host(answer.url)).pause(wait)
        return wait

    def _follow_redirects(self, request: HttpRequest, headers: dict[str, str], call: _RequestDeadline) -> HttpResponse:
        """The answer at the end of the redirects, each to a host of the policy."""
        for _ in range(_MAX_REDIRECTS):
            host = self._require_allowed_host(request.url)
            with get_rate_limiter(host).acquire(self._policy, call.deadline) as waited:
                call.queued_seconds += waited
                answer = self._redact_response(send_once(request, headers, call.deadline, self._policy.max_bytes))
            place = answer.headers.get("location")
            if answer.status not in {301, 302, 303, 307, 308} or place is None:
                return answer
            request = replace(request, url=self._resolve_redirect(request.url, place))
        raise InvalidResponse(f"{get_host(request.url)} redirects more than {_MAX_REDIRECTS} times; check its address.")

    def _resolve_redirect(self, url: str, place: str) -> str:
        try:
            # Bytes beyond ASCII travel as browsers send them.
            onward = urljoin(url, quote(place.encode("latin-1"), safe=_URL_SAFE_CHARACTERS))
            get_host(onward)
        except ValueError as wrong:
            raise InvalidResponse(
                f"{get_host(url)} redirects to what is no address; check its address in world.toml."
            ) from wrong
        if url.startswith("https:") and not onward.startswith("https:"):
            raise SourceUnavailable(
                f"{get_host(url)} leads from https to an open connection, on which anybody could read along; "
                "check its address in world.toml."
            )
        return onward

    def _redact_response(self, answer: HttpResponse) -> HttpResponse:
        """Remove our keys from the response, so that neither the cache nor a message contains them."""
        body = answer.body
        for secret in self._secrets:
            body = body.replace(secret.encode(), b"...")
        # Where it leads on has to stay as it is; it is followed, and neither recorded nor told.
        headers = {name: value if name == "location" else self._redact(value) for name, value in answer.headers.items()}
        return replace(answer, url=self._redact(answer.url), headers=headers, body=body)

    def _redact(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "...")
        return text

    def _timeout_message(self, request: HttpRequest, call: _RequestDeadline) -> str:
        waited = (
            f" ({call.queued_seconds:.0f} s of them spent waiting for one of its {self._policy.max_concurrent} places)"
        )
        return (
            f"{get_host(request.url)} did not answer within {self._policy.timeout_seconds:g} s"
            f"{waited if call.queued_seconds >= 1 else ''}; ask for less, or try again in a minute."
        )

    def _require_allowed_host(self, url: str) -> str:
        parts = urlsplit(url)
        host = get_host(url)
        if parts.scheme not in {"http", "https"} or parts.username is not None or host not in self._policy.hosts:
            raise SourceUnavailable(
                f"Nothing is fetched from {host or 'that address'}: this world only asks "
                f"{', '.join(sorted(self._policy.hosts))}."
            )
        return host

    def _validate_response(self, request: HttpRequest, answer: HttpResponse) -> None:
        """Raise unless the response is a valid reply to the request."""
        if answer.status in request.recorded_error_statuses:
            return
        if _require_success(answer).content_type not in request.accepted_types:
            raise InvalidResponse(
                f"{get_host(answer.url)} answered with {answer.content_type or 'something of no type'} instead of "
                f"{request.accepted_types[0]}; check the address in world.toml."
            )
        request.validate_response(answer)


def _require_success(answer: HttpResponse) -> HttpResponse:
    """The response; HttpStatusError for an error status."""
    if answer.is_success:
        return answer
    advice = _STATUS_ADVICE.get(answer.status, "")
    raise HttpStatusError(
        f"{get_host(answer.url)} answered {format_status(answer.status)}{advice}.",
        answer.status,
        answer.body[:_MAX_ERROR_BODY],
    )


def _secret_encodings(word: str) -> set[str]:
    """A word as answers may hold it: as it is, and escaped as JSON (PHP's too), mark-up and addresses are."""
    in_json = json.dumps(word)[1:-1]
    return {
        word,
        in_json,
        in_json.replace("/", "\\/"),
        escape(word),
        quote(word),
        quote(word, safe=""),
        quote_plus(word),
    }


def _format_retry_time(seconds: float) -> str:
    return f"after {(datetime.now(UTC) + timedelta(seconds=max(seconds, 5.0))).strftime('%H:%M:%S UTC')}"
