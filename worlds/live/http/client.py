"""HTTP client of live sources: recorded responses first, then the host, within rate limits and a timeout.

Identical concurrent requests are sent once: the others wait and read the recorded response.
"""

import logging
import math
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urljoin, urlsplit

from showhow.guard.redaction import Redactor
from showhow.worlds.live.http.rate_limiter import MAX_RETRY_AFTER, get_rate_limiter, parse_retry_after
from showhow.worlds.live.http.request import (
    Access,
    HttpRequest,
    HttpResponse,
    HttpStatusError,
    InvalidResponse,
    RequestPolicy,
    ServerBusy,
    format_status,
    get_host,
)
from showhow.worlds.live.http.response_cache import ResponseCache
from showhow.worlds.live.http.transport import DeadlineExceeded, TransportError, send_once
from showhow.worlds.source import SourceTimeout, SourceUnavailable


@dataclass(slots=True)
class _KeyLock:
    lock: threading.Lock = field(default_factory=threading.Lock)
    callers: int = 0


class SingleFlight:
    """Admits one caller at a time for each key; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key_locks: dict[str, _KeyLock] = {}

    @contextmanager
    def acquire(self, key: str, deadline: float) -> Iterator[None]:
        """Hold the lock of this key; DeadlineExceeded if others hold it until `deadline` (of time.monotonic)."""
        with self._lock:
            key_lock = self._key_locks.setdefault(key, _KeyLock())
            key_lock.callers += 1
        try:
            if not key_lock.lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
                raise DeadlineExceeded
            try:
                yield
            finally:
                key_lock.lock.release()
        finally:
            with self._lock:
                key_lock.callers -= 1
                if not key_lock.callers:
                    del self._key_locks[key]


_log = logging.getLogger(__name__)
_MAX_REDIRECTS = 5
_INITIAL_BACKOFF = 0.5
_MAX_ERROR_BODY = 1_000_000
_URL_SAFE_CHARACTERS = "%/:?#[]@!$&'()*+,;=~"
_STATUS_ADVICE = {
    401: "; it requires a key: check the headers in world.toml and the variables that they name",
    403: "; it denies access: check the contact, and the headers in world.toml",
    404: "; check its address in world.toml",
    410: "; check its address in world.toml",
    413: "; request less",
    414: "; request less",
}
_CALL_DEADLINE: ContextVar[float] = ContextVar("call_deadline", default=math.inf)
"""The deadline of an outer call that sends several requests."""


@dataclass(slots=True)
class _RequestDeadline:
    """The deadline of one call (of time.monotonic), and the seconds it waited for the rate limiter."""

    deadline: float
    queued_seconds: float = 0.0


class RecordingHttpClient:
    """HTTP client for the hosts of one source under its RequestPolicy; thread-safe.

    `send` returns a complete, validated response (recorded, or new and then recorded) or raises a SourceError.
    """

    def __init__(self, policy: RequestPolicy, cache: ResponseCache, access: Access) -> None:
        self._policy = policy
        self._cache = cache
        self._access = access
        self._single_flight = SingleFlight()
        self._redactor = Redactor(word for _, value in policy.headers for word in (value, *value.split()))

    def send(self, request: HttpRequest) -> HttpResponse:
        """The response, within RequestPolicy.timeout_seconds.

        HttpStatusError for an error status, InvalidResponse for an invalid body, SourceTimeout at the deadline, and
        SourceUnavailable if the host cannot be reached or the network is not allowed.
        """
        key = request.cache_key
        if (recorded := self._cached_response(key)) is not None:
            return _require_success(request, recorded)
        if not self._access.network_allowed:
            raise SourceUnavailable(self._not_cached_message(request))
        own_headers = {
            "User-Agent": self._access.build_user_agent(),
            "Accept-Encoding": "gzip",
            **dict(self._policy.headers),
        }
        call = _RequestDeadline(min(time.monotonic() + self._policy.timeout_seconds, _CALL_DEADLINE.get()))
        try:
            with self._single_flight.acquire(key, call.deadline):
                if (recorded := self._cached_response(key)) is not None:
                    return recorded
                response = self._send_with_retries(request, {**request.headers, **own_headers}, call)
                self._cache.store(key, response)
                return _require_success(request, response)
        except DeadlineExceeded as error:
            raise SourceTimeout(self._timeout_message(request, call)) from error

    @contextmanager
    def shared_deadline(self) -> Iterator[None]:
        """All requests that this thread sends inside share one deadline, RequestPolicy.timeout_seconds from now."""
        deadline = min(time.monotonic() + self._policy.timeout_seconds, _CALL_DEADLINE.get())
        token = _CALL_DEADLINE.set(deadline)
        try:
            yield
        finally:
            _CALL_DEADLINE.reset(token)

    def _cached_response(self, key: str) -> HttpResponse | None:
        """The recorded response; when the network is allowed, only a successful one within its lifetime."""
        recorded = self._cache.get_latest(key, self._access.as_of)
        fresh = (
            recorded is not None
            and recorded.is_success
            and not recorded.partial_reason
            and datetime.now(UTC) - recorded.received_at < self._policy.cache_lifetime
        )
        return recorded if fresh or not self._access.network_allowed else None

    def _not_cached_message(self, request: HttpRequest) -> str:
        host = get_host(request.url)
        if self._access.as_of is not None:
            as_of = self._access.as_of.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            return f"No response of {host} to this request was recorded by {as_of}; choose a later time."
        return f"No response of {host} to this request is recorded, and Showhow is offline; send it once while online."

    def _send_with_retries(self, request: HttpRequest, headers: dict[str, str], call: _RequestDeadline) -> HttpResponse:
        """Send the request until a response is valid, no attempt is left, or the deadline has passed."""
        failure = ""
        for attempt in range(self._policy.max_attempts):
            # Random, so that callers do not retry at the same moment.
            delay = _INITIAL_BACKOFF * 2**attempt * random.uniform(0.5, 1.5)  # noqa: S311 - not used as a secret
            try:
                response = self._follow_redirects(request, headers, call)
                if response.status not in request.retry_statuses or request.is_permanent_error(response):
                    self._validate_response(request, response)
                    return response
                failure = f"answered {format_status(response.status)}"
                delay = self._retry_delay(response, delay)
            except TransportError as error:
                failure = f"could not be reached ({self._redactor.redact(str(error))})"
            except ServerBusy as error:
                failure = f"was overloaded ({error})"
            if attempt + 1 == self._policy.max_attempts or time.monotonic() + delay > call.deadline:
                break
            _log.info("%s %s; it is asked again in %.1f s.", get_host(request.url), failure, delay)
            time.sleep(delay)
        times = f", {attempt + 1} times in a row" if attempt else ""
        raise SourceUnavailable(f"{get_host(request.url)} {failure}{times}; try again {_format_retry_time(delay)}.")

    def _retry_delay(self, response: HttpResponse, delay: float) -> float:
        """Seconds to wait after an error status; after Retry-After or a 429 all threads wait."""
        retry_after = parse_retry_after(response.headers.get("retry-after"))
        if retry_after is None and response.status != 429:
            return delay
        delay = delay if retry_after is None else min(retry_after, MAX_RETRY_AFTER)
        host = get_host(response.url)
        get_rate_limiter(host).pause(host, self._policy, delay)
        return delay

    def _follow_redirects(self, request: HttpRequest, headers: dict[str, str], call: _RequestDeadline) -> HttpResponse:
        """The response after all redirects, each to a host of the policy."""
        for _ in range(_MAX_REDIRECTS + 1):
            host = self._require_allowed_host(request.url)
            with get_rate_limiter(host).acquire(host, self._policy, call.deadline) as waited:
                call.queued_seconds += waited
                response = self._redact_response(
                    send_once(request, headers, call.deadline, self._policy, self._access.proxy)
                )
            location = response.headers.get("location")
            if response.status not in {301, 302, 303, 307, 308} or location is None:
                return response
            request = replace(request, url=self._resolve_redirect(request, location))
        advice = request.advice or "check its address"
        raise InvalidResponse(f"{get_host(request.url)} redirects more than {_MAX_REDIRECTS} times; {advice}.")

    def _resolve_redirect(self, request: HttpRequest, location: str) -> str:
        url, advice = request.url, request.advice or "check its address in world.toml"
        try:
            # Bytes beyond ASCII are percent-encoded, as browsers do.
            target = urljoin(url, quote(location.encode("latin-1"), safe=_URL_SAFE_CHARACTERS))
            get_host(target)
        except ValueError as error:
            raise InvalidResponse(f"{get_host(url)} redirects to an invalid address; {advice}.") from error
        if url.startswith("https:") and not target.startswith("https:"):
            raise SourceUnavailable(f"{get_host(url)} redirects from https to an unencrypted connection; {advice}.")
        return target

    def _redact_response(self, response: HttpResponse) -> HttpResponse:
        """Remove our keys from the response, so that neither the cache nor a message contains them."""
        # Location stays as it is, because it is followed; it is neither recorded nor shown.
        headers = {
            name: value if name == "location" else self._redactor.redact(value)
            for name, value in response.headers.items()
        }
        url, body = self._redactor.redact(response.url), self._redactor.redact_bytes(response.body)
        return replace(response, url=url, headers=headers, body=body)

    def _timeout_message(self, request: HttpRequest, call: _RequestDeadline) -> str:
        waited = (
            f" ({call.queued_seconds:.0f} s of them spent waiting for one of {self._policy.max_concurrent} connections)"
        )
        return (
            f"{get_host(request.url)} did not answer within {self._policy.timeout_seconds:g} s"
            f"{waited if call.queued_seconds >= 1 else ''}; request less, or try again in a minute."
        )

    def _require_allowed_host(self, url: str) -> str:
        parts = urlsplit(url)
        host, hosts = get_host(url), self._policy.hosts
        is_plain_http = parts.scheme in {"http", "https"} and parts.username is None
        if is_plain_http and host and (hosts is None or host in hosts):
            return host
        reason = (
            "only http:// and https:// addresses without a user name are read"
            if hosts is None
            else f"this world uses {', '.join(sorted(hosts))} only"
        )
        raise SourceUnavailable(f"Requests to {host or 'this address'} are refused: {reason}.")

    def _validate_response(self, request: HttpRequest, response: HttpResponse) -> None:
        """Raise a SourceError unless the response is a valid reply to the request."""
        if response.status in request.recorded_error_statuses:
            return
        if _require_success(request, response).content_type not in request.accepted_types:
            raise InvalidResponse(
                f"{get_host(response.url)} answered with {response.content_type or 'no content type'} instead of "
                f"{request.accepted_types[0]}; {request.advice or 'check the address in world.toml'}."
            )
        request.validate_response(response)


def _require_success(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The response; HttpStatusError for an error status."""
    if response.is_success:
        return response
    advice = f"; {request.advice}" if request.advice else _STATUS_ADVICE.get(response.status, "")
    raise HttpStatusError(
        f"{get_host(response.url)} answered {format_status(response.status)}{advice}.",
        response.status,
        response.body[:_MAX_ERROR_BODY],
    )


def _format_retry_time(seconds: float) -> str:
    return f"after {(datetime.now(UTC) + timedelta(seconds=max(seconds, 5.0))).strftime('%H:%M:%S UTC')}"
