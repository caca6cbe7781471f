"""On whose behalf live sources are asked, and how often a host may be."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from worlds.source import SourceUnavailable


@dataclass(frozen=True, slots=True)
class Access:
    """Who asks live sources, and whether only what is recorded may answer."""

    contact: str | None = None
    """An e-mail address or a page where the operator can be reached; no live call is made without it."""
    offline: bool = False
    """Nothing leaves the machine: the latest recorded answers count, however old they are."""
    as_of: datetime | None = None
    """A moment (with its time zone): nothing leaves the machine, and the answers are those of then."""

    @property
    def network_allowed(self) -> bool:
        """Whether a host may be asked at all."""
        return not self.offline and self.as_of is None

    def build_user_agent(self) -> str:
        """What we call ourselves; SourceUnavailable says how to give a contact where there is none."""
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
    """How the hosts of one source may be asked; the limits of a host are shared by all threads of the process."""

    hosts: frozenset[str]
    """`name` or `name:port`; nothing is fetched from anywhere else, redirects included."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Sent with every request (a key, say) and written nowhere."""
    max_concurrent: int = 3
    """Requests to a host at the same moment."""
    max_per_minute: int = 180
    """Requests to a host that may start within a minute."""
    timeout_seconds: float = 20.0
    """For a whole call: waiting for a place, every attempt, and the last byte."""
    max_attempts: int = 4
    max_bytes: int = 10_000_000
    cache_lifetime: timedelta = timedelta(days=7)
    """How long a recorded answer is given again before the host is asked anew."""
