"""Who a visitor is, and what each visitor has used.

A visitor is a browser with the cookie that a page gave it; clients of an address without one are one visitor.
An address has allowances of its own for all its visitors, so that throwing the cookie away gains nothing; they are
large enough for a team behind one proxy.

The address is that of the connection. `X-Forwarded-For` counts only where FORWARDED_ALLOW_IPS names the proxy.
"""

import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

COOKIE = "showhow_visit"
MEGABYTE = 2**20
MAX_ACCOUNTS = 10_000
"""Accounts that are kept; the one that was used least recently is forgotten first."""
CPU_HALF_LIFE = 5.0
"""Seconds after which a computed second counts half, in the order in which waiting visitors go on."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """A rate, and how much more may be used at once after a pause."""

    per_second: float
    at_once: float


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be used; None for no limit. Bytes of uploads, of widgets and unhandled ones are held at one time."""

    messages: Allowance
    message_bytes: Allowance
    requests: Allowance
    widget_bytes: int
    unhandled_bytes: int
    upload_bytes: int
    uploads: int
    cookies: Allowance | None = None


VISITOR_LIMITS = Limits(
    messages=Allowance(50, 400),
    message_bytes=Allowance(2 * MEGABYTE, 16 * MEGABYTE),
    requests=Allowance(100, 500),
    widget_bytes=16 * MEGABYTE,
    unhandled_bytes=48 * MEGABYTE,
    upload_bytes=400 * MEGABYTE,
    uploads=20,
)
ADDRESS_LIMITS = Limits(
    messages=Allowance(500, 2_000),
    message_bytes=Allowance(8 * MEGABYTE, 64 * MEGABYTE),
    requests=Allowance(500, 5_000),
    widget_bytes=64 * MEGABYTE,
    unhandled_bytes=192 * MEGABYTE,
    upload_bytes=600 * MEGABYTE,
    uploads=60,
    cookies=Allowance(0.5, 40),
)


class Bucket:
    """What is left of an allowance; a user who took more than was there waits for the rest."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._left = allowance.at_once
        self._counted_at = time.monotonic()

    def left(self) -> float:
        """What can be taken without a wait; negative while users wait."""
        now = time.monotonic()
        refilled = self._left + (now - self._counted_at) * self._allowance.per_second
        self._left, self._counted_at = min(refilled, self._allowance.at_once), now
        return self._left

    def take(self, amount: float) -> float:
        """Take the amount, and return the seconds to wait; who takes first waits least."""
        self._left = self.left() - amount
        return max(0.0, -self._left / self._allowance.per_second)


class DecayingSum:
    """A sum in which every part counts half after CPU_HALF_LIFE seconds."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._counted_at = time.monotonic()

    def add(self, amount: float) -> None:
        """Add to the sum."""
        self._sum = self.value() + amount

    def value(self) -> float:
        """The sum at this moment."""
        now = time.monotonic()
        self._sum *= 0.5 ** ((now - self._counted_at) / CPU_HALF_LIFE)
        self._counted_at = now
        return self._sum


@dataclass(eq=False, slots=True)
class Account:
    """What a visitor or an address has used."""

    limits: Limits
    messages: Bucket = field(init=False)
    message_bytes: Bucket = field(init=False)
    requests: Bucket = field(init=False)
    cookies: Bucket | None = field(init=False)
    computed: DecayingSum = field(default_factory=DecayingSum)
    """Seconds of CPU time of runs of pages."""
    seats: int = 0
    """Open connections of pages."""
    widget_bytes: int = 0
    """Bytes of the widgets of all its sessions, those that wait for their browser to come back included."""
    unhandled_bytes: int = 0
    """Bytes of messages that are incomplete, or wait to be handled, on all its connections."""

    def __post_init__(self) -> None:
        self.messages = Bucket(self.limits.messages)
        self.message_bytes = Bucket(self.limits.message_bytes)
        self.requests = Bucket(self.limits.requests)
        self.cookies = Bucket(self.limits.cookies) if self.limits.cookies else None

    @property
    def is_in_use(self) -> bool:
        """Whether it must not be forgotten."""
        return self.seats > 0 or self.widget_bytes > 0


@dataclass(frozen=True, slots=True)
class Visitor:
    """The accounts that a connection uses."""

    key: str
    own: Account
    address: Account
    has_cookie: bool

    @property
    def accounts(self) -> tuple[Account, Account]:
        """Its own account and that of its address."""
        return self.own, self.address

    @property
    def may_get_cookie(self) -> bool:
        """Whether it has no cookie and its next page may give it one."""
        return not self.has_cookie and self.address.cookies is not None and self.address.cookies.left() >= 1

    def take_message(self, length: int) -> float:
        """Count a message; returns the seconds to wait before it is handled."""
        waits = (
            wait for account in self.accounts for wait in (account.messages.take(1), account.message_bytes.take(length))
        )
        return max(waits)

    def take_request(self) -> float:
        """Count an HTTP request; returns the seconds to wait before it is handled."""
        return max(account.requests.take(1) for account in self.accounts)

    def take_seat(self) -> None:
        """Count a connection of a page."""
        for account in self.accounts:
            account.seats += 1

    def leave_seat(self) -> None:
        """Count a connection of a page no more."""
        for account in self.accounts:
            account.seats -= 1

    def hold_widgets(self, more: int) -> None:
        """Count these bytes of widgets more, or less."""
        for account in self.accounts:
            account.widget_bytes += more

    @property
    def holds_too_many_widgets(self) -> bool:
        """Whether its widgets, or those of its address, hold more bytes than they may."""
        return any(account.widget_bytes > account.limits.widget_bytes for account in self.accounts)

    def hold_unhandled(self, more: int) -> bool:
        """Count these bytes of unhandled messages more, or less; returns whether there are more than there may be."""
        for account in self.accounts:
            account.unhandled_bytes += more
        return any(account.unhandled_bytes > account.limits.unhandled_bytes for account in self.accounts)

    def add_computed(self, seconds: float) -> None:
        """Count CPU time."""
        for account in self.accounts:
            account.computed.add(seconds)

    @property
    def recent_use(self) -> float:
        """The recent CPU time by which waiting visitors are ordered; many busy visitors of one address count as ten."""
        return max(self.own.computed.value(), self.address.computed.value() / 10)


class Visitors:
    """The accounts of all visitors of this process, and the cookies by which they are known."""

    def __init__(self, key: bytes, *, trusts_proxy: bool) -> None:
        self._trusts_proxy = trusts_proxy
        self._key = key
        self._own: OrderedDict[str, Account] = OrderedDict()
        self._addresses: OrderedDict[str, Account] = OrderedDict()

    def identify(self, connection: HTTPConnection) -> Visitor:
        """The visitor who opened the connection."""
        address = self.address_of(connection)
        cookie = connection.cookies.get(COOKIE, "")
        number, _, signature = cookie.partition(".")
        has_cookie = bool(number) and hmac.compare_digest(signature.encode(), self._sign(number).encode())
        key = f"cookie {number}" if has_cookie else f"address {address}"
        own = _account(self._own, key, VISITOR_LIMITS)
        return Visitor(key, own, _account(self._addresses, address, ADDRESS_LIMITS), has_cookie)

    def issue_cookie(self, visitor: Visitor) -> str | None:
        """The cookie of a new visitor; None while too many were issued to its address."""
        bucket = visitor.address.cookies
        if bucket is None or not visitor.may_get_cookie:
            return None
        bucket.take(1)
        number = secrets.token_hex(16)
        return f"{COOKIE}={number}.{self._sign(number)}; Path=/; HttpOnly; SameSite=Lax"

    def _sign(self, number: str) -> str:
        return hmac.digest(self._key, number.encode(errors="replace"), "sha256").hex()

    def address_of(self, connection: HTTPConnection) -> str:
        """The address, or network, from which the connection comes."""
        if "x-forwarded-for" in connection.headers and not self._trusts_proxy:
            # uvicorn believes what any local process writes there, so that each connection could have its own address.
            return "a proxy"
        host = connection.client.host if connection.client else ""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return host
        if isinstance(address, ipaddress.IPv6Address):
            if address.ipv4_mapped is None:
                # A subscriber has all addresses of such a network.
                return str(ipaddress.ip_network((address, 64), strict=False))
            address = address.ipv4_mapped
        return str(address)


def _account(accounts: OrderedDict[str, Account], key: str, limits: Limits) -> Account:
    account = accounts.get(key)
    if account is None:
        account = accounts[key] = Account(limits)
        while len(accounts) > MAX_ACCOUNTS:
            oldest, forgotten = accounts.popitem(last=False)
            if forgotten.is_in_use:
                accounts[oldest] = forgotten
                break
    accounts.move_to_end(key)
    return account
