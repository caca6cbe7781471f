"""A server that responds or fails as each test specifies, over real sockets on loopback.

with run_faulty_server() as server:
    server.respond_with(status(503), says({"a": 1}))     # in turn; the last one is repeated
"""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from tests.servers.loopback import QuietServer

Responder = Callable[["Handler"], None]


class ReceivedRequest(NamedTuple):
    """One received request."""

    moment: float
    """The time of time.monotonic()."""
    path: str
    headers: dict[str, str]
    """Header names are in lower case."""
    connection: int
    """The client's port."""


class FaultyServer:
    """The server's next responses, and the requests that it received."""

    def __init__(self, port: int) -> None:
        self.host = f"127.0.0.1:{port}"
        self.url = f"http://{self.host}"
        self.asked: list[ReceivedRequest] = []
        self.max_concurrent_requests = 0
        self._active = 0
        self.routes: dict[str, Responder] = {}
        """Responses by path, without the query; other paths get the responses in turn."""
        self._responders: list[Responder] = []
        self._lock = threading.Lock()

    def respond_with(self, *responders: Responder) -> None:
        """Set the next responses; the last one is repeated."""
        with self._lock:
            self._responders = list(responders)
            self.asked = []
            self.max_concurrent_requests = 0

    def answer(self, handler: "Handler") -> None:
        with self._lock:
            headers = {name.lower(): value for name, value in handler.headers.items()}
            self.asked.append(ReceivedRequest(time.monotonic(), handler.path, headers, handler.client_address[1]))
            self._active += 1
            self.max_concurrent_requests = max(self.max_concurrent_requests, self._active)
            responder = self.routes.get(handler.path.partition("?")[0]) or self._next_responder()
        try:
            responder(handler)
        finally:
            with self._lock:
                self._active -= 1

    def _next_responder(self) -> Responder:
        return self._responders.pop(0) if len(self._responders) > 1 else self._responders[0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    state: FaultyServer
    content: bytes = b""
    """The body of the request."""

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.content = self.rfile.read(length)
        # Many tests close the connection in the middle of a response.
        with suppress(ConnectionError):
            self.state.answer(self)
            self.wfile.flush()

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""

    def begin(self, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()


@contextmanager
def run_faulty_server(address: str = "127.0.0.1") -> Iterator[FaultyServer]:
    """Run a server on a free port of this IPv4 address, 0.0.0.0 for all of the machine."""
    server = QuietServer((address, 0), type("Own", (Handler,), {}))
    state = FaultyServer(server.server_port)
    server.RequestHandlerClass.state = state  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def says(value: Any, seconds: float = 0, **headers: str) -> Responder:
    """Respond with this JSON, after `seconds`."""

    def responder(handler: Handler) -> None:
        time.sleep(seconds)
        body = json.dumps(value).encode()
        handler.begin(200, **{"Content_Type": "application/json", "Content_Length": str(len(body)), **headers})
        handler.wfile.write(body)

    return responder


def status(code: int, body: bytes = b"{}", **headers: str) -> Responder:
    """Respond with this status."""

    def responder(handler: Handler) -> None:
        handler.begin(code, Content_Type="application/json", Content_Length=str(len(body)), **headers)
        handler.wfile.write(body)

    return responder


def sends(body: bytes, kind: str = "application/json", content_length: int | None = None, **headers: str) -> Responder:
    """Respond with these bytes and status 200; `content_length` overrides the header."""

    def responder(handler: Handler) -> None:
        length = str(len(body) if content_length is None else content_length)
        handler.begin(200, Content_Type=kind, Content_Length=length, **headers)
        handler.wfile.write(body)
        handler.close_connection = True

    return responder


def resets(handler: Handler) -> None:
    """Reset the connection."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    handler.close_connection = True
    handler.connection.close()
    handler.rfile.close()
    raise ConnectionResetError


def trickles(handler: Handler) -> None:
    """Send single bytes, each within the timeout of a read."""
    handler.begin(200, Content_Type="application/json", Content_Length="1000000")
    for _ in range(600):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


def trickles_headers(handler: Handler) -> None:
    """Send headers without end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(600):
        handler.wfile.write(b"y")
        handler.wfile.flush()
        time.sleep(0.05)


def hangs(handler: Handler) -> None:
    """Accept the request and send nothing."""
    time.sleep(30)


def streams_for_ever(handler: Handler) -> None:
    """Send white space, with which JSON may begin, without end."""
    handler.begin(200, Content_Type="application/json")
    handler.wfile.flush()
    while True:
        handler.wfile.write(b" " * 65536)
