"""One exchange over HTTP: connections are kept and used again, and the whole answer has one deadline and one size.

A time limit of a socket counts anew with every byte that trickles in; here each read and write gets what is left.
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

from worlds.live.request import Answer, NoAnswer, Request, host_of

_CONNECT_SECONDS = 5.0
_CHUNK = 1 << 16


class Late(Exception):
    """The deadline went by."""


class Broken(Exception):
    """The connection failed or the answer was cut off; asking again may help."""


class _Deadline(threading.local):
    ends: float = 0.0

    def left(self, timeout: float | None, late: type[Exception]) -> float:
        left = self.ends - time.monotonic()
        if left <= 0:
            raise late("the deadline went by")
        return left if timeout is None else min(left, timeout)


_DEADLINE = _Deadline()


class _Stream(httpcore.NetworkStream):
    """A connection whose reads and writes end at the calling thread's deadline."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _DEADLINE.left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _DEADLINE.left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = _DEADLINE.left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Network(httpcore.SyncBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failed = httpcore.ConnectError("the name has no address")
        for address in _addresses(host, port, _DEADLINE.left(timeout, httpcore.ConnectTimeout)):
            left = _DEADLINE.left(timeout, httpcore.ConnectTimeout)
            try:
                return _Stream(super().connect_tcp(address, port, left, local_address, socket_options))
            except httpcore.ConnectError as refused:
                failed = refused
        raise failed


def _addresses(host: str, port: int, seconds: float) -> list[str]:
    """The addresses of a name; looking it up cannot be told to hurry, so that it is done aside and left when late."""
    found: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            found.put([str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)])
        except (OSError, UnicodeError) as failed:
            found.put(OSError(str(failed)))

    threading.Thread(target=look_up, daemon=True).start()
    try:
        result = found.get(timeout=seconds)
    except queue.Empty as late:
        raise httpcore.ConnectTimeout(f"the name {host} was not found in time") from late
    if isinstance(result, OSError):
        raise httpcore.ConnectError(str(result)) from result
    return result


@functools.cache
def _connections() -> httpcore.ConnectionPool:
    # What the system trusts, a company's own authority in SSL_CERT_FILE included, and what browsers do.
    trust = ssl.create_default_context()
    trust.load_verify_locations(certifi.where())
    pool = httpcore.ConnectionPool(
        ssl_context=trust,
        max_connections=None,
        max_keepalive_connections=20,
        keepalive_expiry=60.0,
        network_backend=_Network(),
    )
    atexit.register(pool.close)
    return pool


def exchange(request: Request, headers: dict[str, str], ends: float, most_bytes: int) -> Answer:
    """Send once and read the whole answer, whatever its status, until `ends` (of time.monotonic).

    Late when the time is over, Broken when the connection fails, NoAnswer when the answer is too long.
    """
    _DEADLINE.ends = ends
    asked = [("Host", host_of(request.url)), *headers.items()]
    try:
        with _connections().stream(
            request.method,
            request.url,
            headers=asked,
            content=request.content or None,
            extensions={"timeout": {"connect": _CONNECT_SECONDS}},
        ) as response:
            told = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            chunks = _decoded(response.iter_stream(), told.get("content-encoding", "").strip().lower())
            body = _collected(chunks, request, most_bytes)
    except httpcore.TimeoutException as late:
        if time.monotonic() < ends:
            raise Broken("no connection could be made") from late
        raise Late from late
    except (httpcore.NetworkError, httpcore.ProtocolError) as failed:
        raise Broken(str(failed) or "the connection was lost") from failed
    return Answer(request.url, response.status, told, body, datetime.now(UTC))


def _collected(chunks: Iterator[bytes], request: Request, most_bytes: int) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > most_bytes:
            raise NoAnswer(
                f"{host_of(request.url)} sends more than {most_bytes / 1e6:g} MB, which is not read; ask for less."
            )
        if time.monotonic() > _DEADLINE.ends:
            raise Late
    return bytes(body)


def _decoded(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    if encoding in {"", "identity"}:
        yield from chunks
        return
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise Broken(f"the answer is packed as {encoding!r}, which was not asked for")
    unpacker = zlib.decompressobj(47)
    try:
        for chunk in chunks:
            rest = chunk
            while rest:
                if unpacker.eof:
                    # Some pack their answers in several parts, one after the other.
                    unpacker = zlib.decompressobj(47)
                yield unpacker.decompress(rest, _CHUNK)
                rest = unpacker.unused_data or unpacker.unconsumed_tail
    except zlib.error as broken:
        raise Broken("the answer is packed wrongly") from broken
    if not unpacker.eof:
        raise Broken("the answer was cut off")
