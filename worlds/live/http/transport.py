"""One HTTP exchange over pooled connections, with one deadline and one size limit for the whole response.

A socket timeout restarts with every byte received; here each read and write gets the remaining time.
"""

import atexit
import functools
import ipaddress
import queue
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import certifi
import httpcore

from showhow.guard.destinations import InvalidOrigin, parse_origin
from showhow.guard.proxy import HttpProxy, choose_proxy
from showhow.worlds.live.http.request import (
    HttpRequest,
    HttpResponse,
    InvalidResponse,
    PrivateAddress,
    RequestPolicy,
    get_host,
)

_CONNECT_TIMEOUT = 5.0
_CHUNK_SIZE = 1 << 16
_MAX_TRAILER_BYTES = 8192
_LAST_BYTES = "last_bytes"


class DeadlineExceeded(Exception):
    """The deadline has passed."""


class TransportError(Exception):
    """The connection failed or the response was truncated; a retry may succeed."""


class _Deadline(threading.local):
    ends: float = 0.0

    def remaining(self, timeout: float | None, timeout_error: type[Exception]) -> float:
        seconds = self.ends - time.monotonic()
        if seconds <= 0:
            raise timeout_error("the deadline has passed")
        return seconds if timeout is None else min(seconds, timeout)


_DEADLINE = _Deadline()


class _DeadlineStream(httpcore.NetworkStream):
    """A connection whose reads and writes end at the calling thread's deadline."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self._end = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._stream.read(max_bytes, _DEADLINE.remaining(timeout, httpcore.ReadTimeout))
        self._end = (self._end + data)[-_MAX_TRAILER_BYTES:]
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _DEADLINE.remaining(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        seconds = _DEADLINE.remaining(timeout, httpcore.ConnectTimeout)
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, seconds))

    def get_extra_info(self, info: str) -> Any:
        return self._end if info == _LAST_BYTES else self._stream.get_extra_info(info)


def _read_trailers(response: httpcore.Response) -> dict[str, str]:
    """The fields behind the last chunk of a response that was read, which httpcore passes over."""
    end: bytes = response.extensions["network_stream"].get_extra_info(_LAST_BYTES) or b""
    fields: dict[str, str] = {}
    for line in reversed(end.removesuffix(b"\r\n\r\n").decode("latin-1").split("\r\n")):
        if line.startswith("0") and not line.partition(";")[0].strip("0 "):
            return fields
        name, separator, value = line.partition(":")
        if not separator:
            break
        fields[name.lower()] = value.strip()
    return {}


_SPECIAL_IPV4 = tuple(
    map(
        ipaddress.IPv4Network,
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 "
        "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4".split(),
    )
)
_GLOBAL_IPV6 = ipaddress.IPv6Network("2000::/3")
_SPECIAL_IPV6 = tuple(map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20")))
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public_address(address: str) -> bool:
    """Whether an IP address belongs to the public internet, by IANA's registries of special-purpose addresses.

    An IPv6 address that leads to an IPv4 address (mapped, NAT64 or 6to4) is judged by that address.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv4Address):
        return not any(ip in network for network in _SPECIAL_IPV4)
    embedded = ip.ipv4_mapped or ip.sixtofour
    if ip in _NAT64:
        embedded = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    if embedded is not None:
        return is_public_address(str(embedded))
    return ip in _GLOBAL_IPV6 and not any(ip in network for network in _SPECIAL_IPV6)


class _DeadlineBackend(httpcore.SyncBackend):
    """Connects within the calling thread's deadline; with `public_only` to addresses of the public internet only.

    The name is resolved once, and the address that was checked is the one that is connected to.
    """

    def __init__(self, *, public_only: bool) -> None:
        self._public_only = public_only

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        last_error = httpcore.ConnectError("the name has no address")
        addresses = _resolve_addresses(host, port, _DEADLINE.remaining(timeout, httpcore.ConnectTimeout))
        if self._public_only and addresses:
            addresses = [address for address in addresses if is_public_address(address)]
            if not addresses:
                raise _refuse_private(host)
        for address in addresses:
            seconds = _DEADLINE.remaining(timeout, httpcore.ConnectTimeout)
            try:
                return _DeadlineStream(super().connect_tcp(address, port, seconds, local_address, socket_options))
            except httpcore.ConnectError as error:
                last_error = error
        raise last_error


def _refuse_private(host: str) -> PrivateAddress:
    # The message has no IP address, so that it reveals nothing about the internal network.
    return PrivateAddress(
        f"{host} is not on the public internet, so nothing there is read; if it should be, set "
        "allow_private_pages = true under [web] in world.toml."
    )


def _resolve_addresses(host: str, port: int, seconds: float) -> list[str]:
    """The addresses of a host; DNS lookup has no timeout, so it runs in a thread that is abandoned at the deadline."""
    results: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            results.put([str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)])
        except (OSError, UnicodeError) as error:
            results.put(OSError(str(error)))

    threading.Thread(target=look_up, daemon=True).start()
    try:
        result = results.get(timeout=seconds)
    except queue.Empty as error:
        raise httpcore.ConnectTimeout(f"the name {host} was not found in time") from error
    if isinstance(result, OSError):
        raise httpcore.ConnectError(str(result)) from result
    return result


@functools.cache
def _connection_pool(proxy: HttpProxy | None, *, public_only: bool) -> httpcore.ConnectionPool:
    """The open connections; those to public addresses apart, since a pooled connection is not checked again.

    Those through a proxy apart too: only the proxy looks up the names of hosts, and its own address may be private.
    """
    # Certificates of the system (SSL_CERT_FILE may name a company's own authority) and those of browsers.
    ssl_context = ssl.create_default_context()
    ssl_context.load_verify_locations(certifi.where())
    options: dict[str, Any] = {
        "ssl_context": ssl_context,
        "max_connections": None,
        "max_keepalive_connections": 20,
        "keepalive_expiry": 60.0,
        "network_backend": _DeadlineBackend(public_only=public_only and proxy is None),
    }
    pool = httpcore.ConnectionPool(**options)
    if proxy is not None:
        pool = httpcore.HTTPProxy(proxy.address, proxy.credentials, **options)
    atexit.register(pool.close)
    return pool


def _choose_proxy(url: str, policy: RequestPolicy, proxy: HttpProxy | None) -> HttpProxy | None:
    """The proxy for this URL; PrivateAddress for an address that is written as one where only public ones are read."""
    try:
        chosen = choose_proxy(proxy, url)
        if chosen is not None and policy.public_only:
            host = parse_origin(url).host
            with suppress(ValueError):
                if not is_public_address(host.strip("[]")):
                    raise _refuse_private(host)
    except InvalidOrigin as error:
        raise TransportError(f"the address {error}") from error
    return chosen


def send_once(
    request: HttpRequest,
    headers: dict[str, str],
    deadline: float,
    policy: RequestPolicy,
    proxy: HttpProxy | None = None,
) -> HttpResponse:
    """Send the request once and return the complete response, whatever its status.

    DeadlineExceeded after `deadline` (of time.monotonic), TransportError if the connection fails, InvalidResponse if
    the decompressed body has more than `max_bytes` of the policy, PrivateAddress if its `public_only` forbids the host.
    """
    _DEADLINE.ends = deadline
    proxy = _choose_proxy(request.url, policy, proxy)
    request_headers = [("Host", get_host(request.url)), *headers.items()]
    try:
        with _connection_pool(proxy, public_only=policy.public_only).stream(
            request.method,
            request.url,
            headers=request_headers,
            content=request.content or None,
            extensions={"timeout": {"connect": _CONNECT_TIMEOUT}},
        ) as response:
            response_headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
            }
            chunks = _decompress(response.iter_stream(), response_headers.get("content-encoding", "").strip().lower())
            body = _read_body(chunks, request, policy.max_bytes)
            if response_headers.get("transfer-encoding", "").strip().lower().endswith("chunked"):
                response_headers = _read_trailers(response) | response_headers
    except httpcore.TimeoutException as error:
        if time.monotonic() < deadline:
            raise TransportError(f"no connection could be made{_name(proxy)}") from error
        raise DeadlineExceeded from error
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError) as error:
        raise TransportError(f"{str(error) or 'the connection was lost'}{_name(proxy)}") from error
    return HttpResponse(request.url, response.status, response_headers, body, datetime.now(UTC))


def _name(proxy: HttpProxy | None) -> str:
    return "" if proxy is None else f"; SHOWHOW_PROXY is {proxy}"


def _read_body(chunks: Iterator[bytes], request: HttpRequest, max_bytes: int) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > max_bytes:
            raise InvalidResponse(
                f"{get_host(request.url)} sent more than {max_bytes / 1e6:g} MB, the limit of a response; "
                f"{request.advice or 'request less'}."
            )
        if time.monotonic() > _DEADLINE.ends:
            raise DeadlineExceeded
    return bytes(body)


def _decompress(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    if encoding in {"", "identity"}:
        yield from chunks
        return
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise TransportError(f"the response has the content encoding {encoding!r}, which was not requested")
    decompressor = zlib.decompressobj(47)
    try:
        for chunk in chunks:
            rest = chunk
            while rest:
                if decompressor.eof:
                    # Some servers send several compressed streams in sequence.
                    decompressor = zlib.decompressobj(47)
                yield decompressor.decompress(rest, _CHUNK_SIZE)
                rest = decompressor.unused_data or decompressor.unconsumed_tail
    except zlib.error as error:
        raise TransportError("the response cannot be decompressed") from error
    if not decompressor.eof:
        raise TransportError("the response was truncated")
