"""The HTTP proxy through which this machine reaches others.

    proxy = parse_proxy("http://ada:a-long-password@proxy.example:3128")
    choose_proxy(proxy, "https://models.example/v1")    the proxy
    choose_proxy(proxy, "http://127.0.0.1:11434")       None: this machine itself is reached directly

Encrypted requests pass it as a tunnel: it sees the host and nothing else, unless SSL_CERT_FILE names its authority.
"""

from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from showhow.guard.destinations import InvalidOrigin, parse_origin


@dataclass(frozen=True, slots=True)
class HttpProxy:
    """The origin of a proxy, and the name and password that it asks for."""

    address: str
    credentials: tuple[str, str] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.address

    @property
    def url(self) -> str:
        """The address with the name and the password; never stored, shown or logged."""
        if self.credentials is None:
            return self.address
        scheme, _, place = self.address.partition("://")
        return f"{scheme}://{':'.join(quote(part, safe='') for part in self.credentials)}@{place}"


def parse_proxy(written: str) -> HttpProxy:
    """The proxy of a URL; InvalidOrigin for one with more than scheme, name, password, host and port."""
    try:
        parts = urlsplit(written)
    except ValueError as error:
        raise InvalidOrigin("is no address") from error
    user, at, place = parts.netloc.rpartition("@")
    name, colon, password = user.partition(":")
    # A word without a colon, or a sign that ends the password early, would not be known as a secret.
    if parts.path.strip("/") or parts.query or parts.fragment or (at and not (name and colon and password)):
        raise InvalidOrigin("is no address of a proxy")
    if "@" in user or ":" in password:
        raise InvalidOrigin("has a password with : or @, which are written as %3A and %40")
    origin = parse_origin(f"{parts.scheme}://{place}")
    return HttpProxy(str(origin), (unquote(name), unquote(password)) if at else None)


def choose_proxy(proxy: HttpProxy | None, address: str) -> HttpProxy | None:
    """The proxy through which the address is reached; None for one of this machine itself, which a proxy cannot reach.

    InvalidOrigin for an address that programs read in different ways.
    """
    return None if proxy is None or parse_origin(address).is_loopback else proxy
