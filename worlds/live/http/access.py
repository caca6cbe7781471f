"""Contact, offline mode and request limits for live sources."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from worlds.source import SourceUnavailable


@dataclass(frozen=True, slots=True)
class Access:
    """The operator's contact, and whether only recorded responses may be used."""

    contact: str | None = None
    """An e-mail address or web page where the operator can be reached; required for every request."""
    offline: bool = False
    """Send no requests: use the latest recorded responses, however old."""
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
        # Imported here, because every verb imports this module and few use live sources.
        from importlib.metadata import version  # noqa: PLC0415

        return f"Showhow/{version('showhow')} ({contact})"


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
