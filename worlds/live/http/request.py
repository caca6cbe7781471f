"""HTTP requests: by whose contact and within which limits they are sent, responses, and the errors of an exchange.

SourceUnavailable
  HttpStatusError     the host responded with an error status
  InvalidResponse     the response has another content type, is truncated or too long
  PrivateAddress      the host is not on the public internet, where only such hosts are read
  ServerBusy          the host reports overload under a success status; the client retries
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from showhow.guard.proxy import HttpProxy
from showhow.worlds.source import SourceUnavailable

RETRY_STATUSES = frozenset({429, 500, 502, 503, 504})
"""Statuses after which a retry may succeed."""
_WHOLE_STATES = ("", "00000")
"""What Virtuoso's X-SQL-State says of a query that was not interrupted."""
_LATE_STATUS = "x-neptune-status"
"""The status of a query after its result was begun, such as 500 TimeLimitExceededException, in a trailer."""


class HttpStatusError(SourceUnavailable):
    """The host responded with an error status; `body` has at most the first 1,000,000 bytes."""

    def __init__(self, message: str, status: int, body: bytes) -> None:
        super().__init__(message)
        self.status = status
        self.body = body


class InvalidResponse(SourceUnavailable):
    """The response has another content type, is truncated or too long, or has an unexpected structure."""


class PrivateAddress(SourceUnavailable):
    """The host has no address on the public internet, and the policy allows no other; nothing was sent."""


class ServerBusy(SourceUnavailable):
    """The host reports overload under a success status; the client retries when a validator raises this."""


@dataclass(frozen=True, slots=True)
class Access:
    """The operator's contact, and whether only recorded responses may be used."""

    contact: str | None = None
    """An e-mail address or web page where the operator can be reached; required for every request."""
    offline: bool = False
    """Send no requests: use the latest recorded responses, however old."""
    proxy: HttpProxy | None = field(default=None, repr=False)
    """The proxy through which hosts beyond this machine are reached."""
    as_of: datetime | None = None
    """A time with its zone: send no requests and use the responses recorded by then."""

    @property
    def network_allowed(self) -> bool:
        """Whether requests may leave the machine."""
        return not self.offline and self.as_of is None

    def build_user_agent(self) -> str:
        """The User-Agent header; SourceUnavailable if no contact is configured."""
        contact = (self.contact or "").strip()
        if not contact or not contact.isascii() or not contact.isprintable():
            raise SourceUnavailable(
                "Live sources need a contact: set SHOWHOW_CONTACT to an e-mail address or a web page where you can be "
                "reached, in ASCII; Wikimedia requires it of every program."
            )
        return f"Showhow/{_read_version()} ({contact})"


@cache
def _read_version() -> str:
    """The installed version, read once: reading takes as long as half of a request's other work."""
    # Imported here, because every verb imports this module and few use live sources.
    from importlib.metadata import version  # noqa: PLC0415

    return version("showhow")


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """Request limits for the hosts of one source; all threads share them, and all processes with the same folder."""

    hosts: frozenset[str] | None
    """`name` or `name:port`; requests and redirects to any other host are refused. None for every host."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Sent with every request, for example a key; never stored or logged."""
    max_concurrent: int = 3
    """Concurrent requests to the operator of a host."""
    max_per_minute: int = 180
    """Requests to the operator of a host that may start within a minute."""
    timeout_seconds: float = 20.0
    """Timeout of a whole call: the wait for the rate limiter, all attempts, and the last byte."""
    max_attempts: int = 4
    max_bytes: int = 10_000_000
    """Size of one response, decompressed."""
    cache_lifetime: timedelta = timedelta(days=7)
    """How long a recorded response is reused before the host is requested again."""
    limits_folder: Path | None = None
    """Where processes count their requests together; None counts those of this process only."""
    public_only: bool = False
    """Connect only to addresses of the public internet; needed where `hosts` is None."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A host's response; the client returns only complete, validated ones with a success status."""

    url: str
    """The final URL, after redirects."""
    status: int
    headers: Mapping[str, str]
    """Names in lower case, with those of trailers; a recorded response has only those that describe its body."""
    body: bytes
    received_at: datetime
    """The time at which the response was complete."""

    @property
    def is_success(self) -> bool:
        """Whether the status is a success."""
        return 200 <= self.status < 300

    @property
    def content_type(self) -> str:
        """The media type without its parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def partial_reason(self) -> str:
        """What status or headers say about a result of which a part is missing; "" for a whole one."""
        state = self.headers.get("x-sql-state", "").strip()
        if self.status == HTTPStatus.PARTIAL_CONTENT or state not in _WHOLE_STATES:
            return self.headers.get("x-sql-message", "").strip() or f"status {self.status} {state}".strip()
        late = self.headers.get(_LATE_STATUS, "").strip()
        return f"status {late}" if late and not late.startswith("2") else ""


def require_complete_json(response: HttpResponse) -> None:
    """InvalidResponse unless the body is complete JSON."""
    try:
        json.loads(response.body)
    except (ValueError, RecursionError) as error:
        raise InvalidResponse(
            f"{get_host(response.url)} answered with JSON that is truncated or invalid; "
            "request less, or try again in a minute."
        ) from error


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request; its method, URL and content are recorded, so secrets belong into RequestPolicy.headers."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""
    accepted_types: tuple[str, ...] = ("application/json",)
    """The media types that the response may have, each in full: `type/*+suffix` is not supported."""
    validate_response: Callable[[HttpResponse], None] = require_complete_json
    """Raises a SourceError for an invalid response, such as an error with status 200; it is then not recorded."""
    retry_statuses: frozenset[int] = RETRY_STATUSES
    """The statuses after which the request is sent again."""
    recorded_error_statuses: frozenset[int] = frozenset()
    """Error statuses that are caused by the request, not by the host's state: recorded, and raised again offline."""
    is_permanent_error: Callable[[HttpResponse], bool] = lambda _response: False
    """Whether an error reply with one of `retry_statuses` would come again, so that it is raised at once."""
    advice: str = ""
    """What to do about an unusable reply, for messages; "" for the advice about the servers in world.toml."""

    @property
    def cache_key(self) -> str:
        """The key of the recorded response: method, URL and content."""
        return f"{self.method} {self.url}\n{self.content.decode('utf-8', 'replace')}".rstrip("\n")


def get_host(url: str) -> str:
    """The host of a URL as `name`, or `name:port` if the port is not the scheme's default; "" without a host."""
    parts = urlsplit(url)
    default_port = {"http": 80, "https": 443}.get(parts.scheme)
    name = (parts.hostname or "").lower()
    # An IPv6 address.
    name = f"[{name}]" if ":" in name else name
    return name if parts.port in (None, default_port) else f"{name}:{parts.port}"


def format_status(status: int) -> str:
    """The status with its standard phrase, such as 404 (Not Found)."""
    try:
        return f"{status} ({HTTPStatus(status).phrase})"
    except ValueError:
        return str(status)
