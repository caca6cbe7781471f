"""Which secret may go where: one table for language models, live worlds, web search, and servers of tools.

    table = SecretTable(environ, home / DESTINATIONS_FILE_NAME, owners={"OPENAI_API_KEY": "api.openai.com"})
    table.find_refusal("OPENAI_API_KEY", "https://api.openai.com/v1")    None: a provider gets its own key
    table.find_refusal("OPENAI_API_KEY", "https://models.example/v1")    a sentence, until an administrator allows it

A destination is an origin: scheme, host and port, in one spelling. No secret goes over http:// beyond this machine.
"""

import json
import os
import re
import socket
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address, ip_address
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

DESTINATIONS_FILE_NAME = "destinations.json"
_LOCK_SECONDS = 10.0
_MAX_HOST_LENGTH = 253
_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class InvalidOrigin(ValueError):
    """An address has no origin to which a secret could go; the message completes "the address ..."."""


class DestinationError(Exception):
    """The table of destinations cannot be read or written; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port in one spelling, so that equal origins are the same server."""

    scheme: str
    host: str
    """In lower case, IDNA and without a final dot; IP addresses in their usual form, IPv6 in brackets."""
    port: int | None = None
    """None for the scheme's default port."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}{'' if self.port is None else f':{self.port}'}"

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine: localhost or a loopback address, not a name that resolves to one."""
        try:
            return self.host == "localhost" or ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def is_private(self) -> bool:
        """Whether nobody between this machine and the server can read what is sent: encrypted, or on this machine."""
        return self.scheme == "https" or self.is_loopback


def parse_origin(address: str) -> Origin:
    """The origin of an address; InvalidOrigin for one without, or that programs read in different ways."""
    if not address.isprintable() or "\\" in address or any(character.isspace() for character in address):
        raise InvalidOrigin("has spaces, backslashes or unprintable characters")
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise InvalidOrigin("is no address") from error
    if "@" in parts.netloc:
        raise InvalidOrigin("contains a user or a password")
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or port == 0:
        raise InvalidOrigin("is no address such as https://models.example/v1")
    return Origin(parts.scheme, _normalize_host(parts.hostname), None if port == _DEFAULT_PORTS[parts.scheme] else port)


def _normalize_host(host: str) -> str:
    if ":" in host:
        try:
            address = IPv6Address(host)
        except AddressValueError as error:
            raise InvalidOrigin("has no valid IPv6 address") from error
        if address.scope_id is not None:
            raise InvalidOrigin("has an IPv6 address with a zone")
        return str(address.ipv4_mapped) if address.ipv4_mapped else f"[{address.compressed}]"
    if not host.isascii():
        import idna  # noqa: PLC0415 - few addresses need it

        try:
            host = idna.encode(host, uts46=True).decode("ascii")
        except idna.IDNAError as error:
            raise InvalidOrigin("has a host that is no valid international name") from error
    host = host.lower().removesuffix(".")
    if not _HOST.fullmatch(host) or len(host) > _MAX_HOST_LENGTH:
        raise InvalidOrigin("has no valid host")
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        # The system reads 127.1, 0x7f.1 and 2130706433 as 127.0.0.1.
        try:
            return socket.inet_ntoa(socket.inet_aton(host))
        except OSError as error:
            raise InvalidOrigin("has no valid IPv4 address") from error
    return host


def normalize_address(address: str) -> str:
    """The address with its origin as it is compared, so that what was checked is what is connected to."""
    origin = parse_origin(address)
    parts = urlsplit(address)
    return urlunsplit((origin.scheme, str(origin).partition("://")[2], parts.path, parts.query, parts.fragment))


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """A variable whose value may be sent to a destination."""

    variable: str
    destination: str
    """An origin as text: http:// does not stand for https://."""

    def __str__(self) -> str:
        return f"{self.variable} to {self.destination}"


class SecretTable:
    """The secrets of this process, and the destinations that each may go to.

    A destination is allowed if its host belongs to the secret's owner, if the operator's settings state it, or if an
    administrator allowed it once, which is recorded in `file`. Thread-safe, and safe for several processes.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        file: Path | None = None,
        *,
        owners: Mapping[str, str] | None = None,
        stated: Iterable[Grant] = (),
    ) -> None:
        self.environ = environ
        self._file = file
        self._owners = owners or {}
        self._stated = frozenset(stated)

    def find_refusal(
        self,
        variable: str,
        address: str,
        advice: str = "an administrator has to allow it",
        former: Collection[Grant] = (),
    ) -> str | None:
        """Why the variable is not sent to this address, in one sentence that ends with the advice; None if it is.

        `former` has what was allowed outside of this table.
        """
        if unsafe := self.find_unsafe(variable, address):
            return unsafe
        origin = parse_origin(address)
        try:
            is_allowed = self.is_owner(variable, address) or Grant(variable, str(origin)) in {
                *former,
                *self.list_grants(),
            }
        except DestinationError as error:
            return f"{variable} is not sent to {origin}: {error}"
        return None if is_allowed else f"{variable} is not sent to {origin}, which is not allowed yet; {advice}."

    @staticmethod
    def find_unsafe(variable: str, address: str) -> str | None:
        """Why nobody can allow the variable to go to this address, in one sentence; None if somebody can."""
        try:
            origin = parse_origin(address)
        except InvalidOrigin as error:
            return f"{variable} is not sent to {address!r}, which {error}."
        if not origin.is_private:
            return (
                f"{variable} is not sent to {origin}, since http:// beyond this machine can be read on the way; use "
                "https://."
            )
        return None

    def is_owner(self, variable: str, address: str) -> bool:
        """Whether the variable's value was issued by the host of this address, which is connected to by https."""
        try:
            owner, origin = self._owners.get(variable), parse_origin(address)
        except InvalidOrigin:
            return False
        is_host = owner is not None and f".{origin.host}".endswith(f".{owner}")
        return is_host and origin.scheme == "https" and origin.port is None

    def list_grants(self) -> frozenset[Grant]:
        """What the settings state and administrators allowed; DestinationError if the file cannot be read."""
        return self._stated | self._load()

    def allow(self, grants: Iterable[Grant]) -> None:
        """Record that an administrator allows these; DestinationError if the file cannot be written."""
        if self._file is None:
            raise DestinationError("There is no file that records the destinations of secrets.")
        # Only this needs it.
        from filelock import FileLock, Timeout  # noqa: PLC0415

        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self._file.with_suffix(".lock"), timeout=_LOCK_SECONDS):
                _write(self._file, self._load() | {Grant(g.variable, str(parse_origin(g.destination))) for g in grants})
        except Timeout:
            raise DestinationError(f"Another process is changing {self._file}; try again.") from None
        except OSError as error:
            raise DestinationError(f"{self._file} cannot be written ({error}); check the write permission.") from error

    def _load(self) -> frozenset[Grant]:
        if self._file is None:
            return frozenset()
        try:
            entries = json.loads(self._file.read_text(encoding="utf-8"))["allowed"]
            return frozenset(Grant(str(entry["variable"]), str(entry["destination"])) for entry in entries)
        except FileNotFoundError:
            return frozenset()
        except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
            raise DestinationError(
                f"{self._file} cannot be read ({error}); remove it, and allow the destinations of secrets again."
            ) from error


def _write(file: Path, grants: Iterable[Grant]) -> None:
    entries = [{"variable": grant.variable, "destination": grant.destination} for grant in sorted(grants)]
    # A temporary file is readable by its owner only, and stays so under its final name.
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, delete=False) as stream:
        try:
            json.dump({"allowed": entries}, stream, indent=1)
            stream.flush()
            os.fsync(stream.fileno())
            Path(stream.name).replace(file)
        # After every exception, also KeyboardInterrupt, no half-written file is left.
        except BaseException:
            Path(stream.name).unlink(missing_ok=True)
            raise
