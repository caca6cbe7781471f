"""Contact, offline mode and request limits for live sources."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from worlds.source import SourceUnavailable


@dataclass(frozen=True, slots=True)
class Access:
    """The operator's contact, and whether only recorded responses may be used."""

    contact: str | None = None
    """An e-mail address or a page where the operator can be reached; no live call is made without it."""
    offline: bool = False
    """Send no requests: use the latest recorded responses, however old."""
    as_of: datetime | None = None
    """A moment with its time zone: send no requests and use the responses recorded by then."""

    @property
    def network_allowed(self) -> bool:
        """Whether requests may leave the machine."""
        return not self.offline and self.as_of is None

    def build_user_agent(self) -> str:
        """The User-Agent header; SourceUnavailable if no contact is configured."""
        contact = (self.contact or "").strip()
        if not contact or not contact.isascii() or not contact.isprintable():
            raise SourceUnavailable(
                "Live sources are not asked without a contact: set SHOWHOW_CONTACT to an e-mail address or a page "
                "where you can be reached (plain characters), because Wikimedia asks every program for it."
            )
        # Every start of the command line passes by here, and few ask live sources.
        from importlib.metadata import version  # noqa: PLC0415

        return f"Showhow/{version('showhow')} ({contact})"


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """Request limits for the hosts of one source; all threads of the process share them."""

    hosts: frozenset[str]
    """`name` or `name:port`; nothing is fetched from anywhere else, redirects included."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Sent with every request (a key, say) and written nowhere."""
    max_concurrent: int = 3
    """Requests to a host at the same moment."""
    max_per_minute: int = 180
    """Requests to a host that may start within a minute."""
    timeout_seconds: float = 20.0
    """Timeout of a whole call: waiting for a slot, all attempts, and the last byte."""
    max_attempts: int = 4
    max_bytes: int = 10_000_000
    cache_lifetime: timedelta = timedelta(days=7)
    """How long a recorded response is reused before the host is requested again."""
