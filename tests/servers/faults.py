"""A proxy on loopback in front of a real server, which injects a fault into its responses while one is set.

with proxied("http://127.0.0.1:7000/w/api.php") as proxy:
    proxy.url                   # the same path, behind the proxy
    proxy.fault = FAULTS["truncated JSON under status 200"]     # None: everything passes
"""

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from tests.servers.loopback import QuietServer

_UPSTREAM_SECONDS = 120
_NOT_PASSED_ON = {"connection", "accept-encoding", "host", "transfer-encoding", "content-length", "keep-alive"}


@dataclass(frozen=True, slots=True)
class Reply:
    """The response of the real server."""

    status: int
    kind: str
    body: bytes


Fault = Callable[["Handler", Callable[[], Reply]], None]
"""Responds in place of the real server, whose response it may fetch by a call."""


class Proxy:
    """The state of a proxy: its address, the fault and the number of requests."""

    def __init__(self, upstream: str, port: int) -> None:
        parts = urlsplit(upstream)
        self.upstream = parts.netloc
        self.url = f"http://127.0.0.1:{port}{parts.path}"
        self.fault: Fault | None = None
        self.asked = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    proxy: Proxy

    def do_GET(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.proxy.asked += 1
        fault = self.proxy.fault
        # Half of the faults make the client close the connection.
        with suppress(ConnectionError, ValueError):
            if fault is None:
                passes(self, lambda: self._real(content))
            else:
                fault(self, lambda: self._real(content))
            self.wfile.flush()

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""

    def _real(self, content: bytes) -> Reply:
        connection = http.client.HTTPConnection(self.proxy.upstream, timeout=_UPSTREAM_SECONDS)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _NOT_PASSED_ON}
            connection.request(self.command, self.path, content or None, headers)
            answer = connection.getresponse()
            return Reply(answer.status, answer.headers.get("Content-Type", ""), answer.read())
        finally:
            connection.close()

    def begin(self, status: int, kind: str, length: int | None, **headers: str) -> None:
        """Send status and headers; without a length the end of the connection ends the body."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        else:
            self.close_connection = True
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()


@contextmanager
def proxied(upstream: str) -> Iterator[Proxy]:
    """Run a proxy in front of this address on a free port."""
    server = QuietServer(("127.0.0.1", 0), type("Own", (Handler,), {}))
    proxy = Proxy(upstream, server.server_port)
    server.RequestHandlerClass.proxy = proxy  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def passes(handler: Handler, real: Callable[[], Reply]) -> None:
    """Return the response unchanged."""
    reply = real()
    handler.begin(reply.status, reply.kind, len(reply.body))
    handler.wfile.write(reply.body)


def _fails(status: int, **headers: str) -> Fault:
    def fault(handler: Handler, _real: Callable[[], Reply]) -> None:
        body = b"<html><title>Something is wrong</title></html>"
        handler.begin(status, "text/html", len(body), **headers)
        handler.wfile.write(body)

    return fault


def _hangs(_handler: Handler, _real: Callable[[], Reply]) -> None:
    time.sleep(60)


def _trickles(handler: Handler, real: Callable[[], Reply]) -> None:
    reply = real()
    handler.begin(200, reply.kind, len(reply.body) + 1200)
    # Endless white space before the JSON, which is valid: each read succeeds, and the response never ends.
    for byte in b" " * 1200 + reply.body:
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()
        time.sleep(0.05)


def _truncates(handler: Handler, real: Callable[[], Reply]) -> None:
    reply = real()
    half = reply.body[: len(reply.body) // 2]
    handler.begin(200, reply.kind, len(half))
    handler.wfile.write(half)


def _breaks_off(handler: Handler, real: Callable[[], Reply]) -> None:
    reply = real()
    handler.begin(200, reply.kind, len(reply.body))
    handler.wfile.write(reply.body[: len(reply.body) // 2])
    handler.close_connection = True


def _resets(handler: Handler, _real: Callable[[], Reply]) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    handler.close_connection = True
    handler.connection.close()
    handler.rfile.close()
    raise ConnectionResetError


def _mislabels(handler: Handler, real: Callable[[], Reply]) -> None:
    reply = real()
    handler.begin(200, "text/html; charset=utf-8", len(reply.body))
    handler.wfile.write(reply.body)


def _signs_in(handler: Handler, _real: Callable[[], Reply]) -> None:
    body = b"<html><body>Welcome to the hotel. Please sign in.</body></html>"
    handler.begin(200, "text/html", len(body))
    handler.wfile.write(body)


def _pads(handler: Handler, real: Callable[[], Reply]) -> None:
    reply = real()
    handler.begin(200, reply.kind, len(reply.body) + 50_000_000)
    for _ in range(50):
        handler.wfile.write(b" " * 1_000_000)
    handler.wfile.write(reply.body)


def _streams(handler: Handler, real: Callable[[], Reply]) -> None:
    handler.begin(200, real().kind, None)
    while True:
        handler.wfile.write(b" " * 65536)


def _empties(handler: Handler, real: Callable[[], Reply]) -> None:
    handler.begin(200, real().kind, 0)


FAULTS: dict[str, Fault] = {
    "429 with Retry-After": _fails(429, Retry_After="1"),
    "500": _fails(500),
    "503": _fails(503),
    "no answer": _hangs,
    "a slow trickle": _trickles,
    "truncated JSON under status 200": _truncates,
    "a body that breaks off": _breaks_off,
    "an empty body": _empties,
    "a connection reset": _resets,
    "a wrong content type": _mislabels,
    "a page to sign in under status 200": _signs_in,
    "50 MB of answer": _pads,
    "a stream for ever": _streams,
}
