"""One HTTP exchange over pooled connections, with one deadline and one size limit for the whole response.

A socket timeout restarts with every byte received; here each read and write gets the remaining time.
"""

import atexit
import functools
import queue
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import certifi
import httpcore

from worlds.live.http.request import HttpRequest, HttpResponse, InvalidResponse, get_host

_CONNECT_TIMEOUT = 5.0
_CHUNK_SIZE = 1 << 16


class DeadlineExceeded(Exception):
    """The deadline went by."""


class TransportError(Exception):
    """The connection failed or the answer was cut off; asking again may help."""


class _Deadline(threading.local):
    ends: float = 0.0

    def remaining(self, timeout: float | None, late: type[Exception]) -> float:
        left = self.ends - time.monotonic()
        if left <= 0:
            raise late("the deadline went by")
        return left if timeout is None else min(left, timeout)


_DEADLINE = _Deadline()


class _DeadlineStream(httpcore.NetworkStream):
    """A connection whose reads and writes end at the calling thread's deadline."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _DEADLINE.remaining(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _DEADLINE.remaining(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = _DEADLINE.remaining(timeout, httpcore.ConnectTimeout)
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _DeadlineBackend(httpcore.SyncBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failed = httpcore.ConnectError("the name has no address")
        for address in _resolve_addresses(host, port, _DEADLINE.remaining(timeout, httpcore.ConnectTimeout)):
            left = _DEADLINE.remaining(timeout, httpcore.ConnectTimeout)
            try:
                return _DeadlineStream(super().connect_tcp(address, port, left, local_address, socket_options))
            except httpcore.ConnectError as refused:
                failed = refused
        raise failed


def _resolve_addresses(host: str, port: int, seconds: float) -> list[str]:
    """The addresses of a host; DNS lookup has no timeout, so it runs in a thread that is abandoned when late."""
    results: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            results.put([str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)])
        except (OSError, UnicodeError) as failed:
            results.put(OSError(str(failed)))

    threading.Thread(target=look_up, daemon=True).start()
    try:
        result = results.get(timeout=seconds)
    except queue.Empty as late:
        raise httpcore.ConnectTimeout(f"the name {host} was not found in time") from late
    if isinstance(result, OSError):
        raise httpcore.ConnectError(str(result)) from result
    return result


@functools.cache
def _connection_pool() -> httpcore.ConnectionPool:
    # What the system trusts, a company's own authority in SSL_CERT_FILE included, and what browsers do.
    trust = ssl.create_default_context()
    trust.load_verify_locations(certifi.where())
    pool = httpcore.ConnectionPool(
        ssl_context=trust,
        max_connections=None,
        max_keepalive_connections=20,
        keepalive_expiry=60.0,
        network_backend=_DeadlineBackend(),
    )
    atexit.register(pool.close)
    return pool


def send_once(request: HttpRequest, headers: dict[str, str], ends: float, most_bytes: int) -> HttpResponse:
    """Send once and read the whole answer, whatever its status, until `ends` (of time.monotonic).

    DeadlineExceeded after `ends`, TransportError if the connection fails, InvalidResponse if the body is too long.
    """
    _DEADLINE.ends = ends
    request_headers = [("Host", get_host(request.url)), *headers.items()]
    try:
        with _connection_pool().stream(
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
            body = _read_body(chunks, request, most_bytes)
    except httpcore.TimeoutException as late:
        if time.monotonic() < ends:
            raise TransportError("no connection could be made") from late
        raise DeadlineExceeded from late
    except (httpcore.NetworkError, httpcore.ProtocolError) as failed:
        raise TransportError(str(failed) or "the connection was lost") from failed
    return HttpResponse(request.url, response.status, response_headers, body, datetime.now(UTC))


def _read_body(chunks: Iterator[bytes], request: HttpRequest, most_bytes: int) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > most_bytes:
            raise InvalidResponse(
                f"{get_host(request.url)} sends more than {most_bytes / 1e6:g} MB, which is not read; ask for less."
            )
        if time.monotonic() > _DEADLINE.ends:
            raise DeadlineExceeded
    return bytes(body)


def _decompress(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    if encoding in {"", "identity"}:
        yield from chunks
        return
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise TransportError(f"the answer is packed as {encoding!r}, which was not asked for")
    unpacker = zlib.decompressobj(47)
    try:
        for chunk in chunks:
            rest = chunk
            while rest:
                if unpacker.eof:
                    # Some pack their answers in several parts, one after the other.
                    unpacker = zlib.decompressobj(47)
                yield unpacker.decompress(rest, _CHUNK_SIZE)
                rest = unpacker.unused_data or unpacker.unconsumed_tail
    except zlib.error as broken:
        raise TransportError("the answer is packed wrongly") from broken
    if not unpacker.eof:
        raise TransportError("the answer was cut off")
