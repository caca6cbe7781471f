"""HTTP requests, responses and the errors of an exchange.

SourceUnavailable
  HttpStatusError     the host responded with an error status
  InvalidResponse     the response has another content type, is truncated or too long
  ServerBusy          the host reports overload under a success status; the client retries
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from urllib.parse import urlsplit

from worlds.source import SourceUnavailable

RETRY_STATUSES = frozenset({429, 500, 502, 503, 504})
"""Statuses after which it is worth to ask once more."""


class HttpStatusError(SourceUnavailable):
    """The host responded with an error status; `body` has at most the first 10,000 bytes."""

    def __init__(self, sentence: str, status: int, body: bytes) -> None:
        super().__init__(sentence)
        self.status = status
        self.body = body


class InvalidResponse(SourceUnavailable):
    """What came is no answer: of another type, cut off, or too long."""


class ServerBusy(SourceUnavailable):
    """The host reports that it is overloaded; the client retries when a validator raises this."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A host's response; the client returns only complete, validated ones with a success status."""

    url: str
    """Where it came from in the end, after redirects."""
    status: int
    headers: Mapping[str, str]
    """Names in lower case; of a recorded answer only those that describe it, such as content-type and x-sparql-*."""
    body: bytes
    received_at: datetime
    """When the host gave it."""

    @property
    def is_success(self) -> bool:
        """Whether the status is a success."""
        return 200 <= self.status < 300

    @property
    def content_type(self) -> str:
        """The media type without its parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def require_complete_json(answer: HttpResponse) -> None:
    """InvalidResponse for anything but complete JSON."""
    try:
        json.loads(answer.body)
    except (ValueError, RecursionError) as broken:
        raise InvalidResponse(
            f"{get_host(answer.url)} answered with JSON that is cut off or broken; "
            "ask for less, or try again in a minute."
        ) from broken


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One thing to ask. Method, address and content are its key in the record, so no secret may stand in them:
    those go into Policy.headers."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""
    accepted_types: tuple[str, ...] = ("application/json",)
    """The media types that an answer may have; `type/*+suffix` is not understood, name each."""
    validate_response: Callable[[HttpResponse], None] = require_complete_json
    """Raises a SourceError for what is no answer (an error told under status 200, say); such a one is not recorded."""
    retry_statuses: frozenset[int] = RETRY_STATUSES
    """The statuses after which the same is asked once more."""
    recorded_error_statuses: frozenset[int] = frozenset()
    """Statuses of failure that judge what is asked, not how the host is: recorded, and told again offline."""

    @property
    def cache_key(self) -> str:
        """What two requests have in common that are answered alike."""
        return f"{self.method} {self.url}\n{self.content.decode('utf-8', 'replace')}".rstrip("\n")


def get_host(url: str) -> str:
    """The `name` or, where it is not the scheme's own, `name:port` of an address; "" where it has none."""
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    name = (parts.hostname or "").lower()
    return name if parts.port in (None, usual) else f"{name}:{parts.port}"


def format_status(status: int) -> str:
    """The status with its usual name."""
    try:
        return f"{status} ({HTTPStatus(status).phrase})"
    except ValueError:
        return str(status)
