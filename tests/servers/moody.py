"""A server that answers, or misbehaves, as each test says: real sockets on loopback, nothing in between.

with moody() as server:
    server.will(status(503), json_answer({"a": 1}))     # in turn; the last one again and again
"""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Mood = Callable[["Handler"], None]


class Asked(NamedTuple):
    """One request as the server saw it."""

    moment: float
    """Of time.monotonic."""
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    connection: int
    """The client's port."""


class Moody:
    """What the server does next, and what it was asked."""

    def __init__(self, port: int) -> None:
        self.host = f"127.0.0.1:{port}"
        self.url = f"http://{self.host}"
        self.asked: list[Asked] = []
        self.most_at_once = 0
        self._inside = 0
        self._moods: list[Mood] = []
        self._lock = threading.Lock()

    def will(self, *moods: Mood) -> None:
        """Answer so, in turn; the last mood stays."""
        with self._lock:
            self._moods = list(moods)
            self.asked = []
            self.most_at_once = 0

    def answer(self, handler: "Handler") -> None:
        with self._lock:
            headers = {name.lower(): value for name, value in handler.headers.items()}
            self.asked.append(Asked(time.monotonic(), handler.path, headers, handler.client_address[1]))
            self._inside += 1
            self.most_at_once = max(self.most_at_once, self._inside)
            mood = self._moods.pop(0) if len(self._moods) > 1 else self._moods[0]
        try:
            mood(handler)
        finally:
            with self._lock:
                self._inside -= 1


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    moody: Moody

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        # A client that hangs up in the middle is what many tests are about.
        with suppress(ConnectionError):
            self.moody.answer(self)
            self.wfile.flush()

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def begin(self, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()


@contextmanager
def moody() -> Iterator[Moody]:
    """A server of its own on a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Handler,), {}))
    server.daemon_threads = True
    server.block_on_close = False
    mind = Moody(server.server_port)
    server.RequestHandlerClass.moody = mind  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield mind
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def says(value: Any, seconds: float = 0, **headers: str) -> Mood:
    """Answer with that JSON, after some seconds."""

    def mood(handler: Handler) -> None:
        time.sleep(seconds)
        body = json.dumps(value).encode()
        handler.begin(200, **{"Content_Type": "application/json", "Content_Length": str(len(body)), **headers})
        handler.wfile.write(body)

    return mood


def status(code: int, body: bytes = b"{}", **headers: str) -> Mood:
    """Answer with that status."""

    def mood(handler: Handler) -> None:
        handler.begin(code, Content_Type="application/json", Content_Length=str(len(body)), **headers)
        handler.wfile.write(body)

    return mood


def sends(body: bytes, kind: str = "application/json", content_length: int | None = None, **headers: str) -> Mood:
    """Send these bytes under status 200, with `content_length` as the header's length where it is set."""

    def mood(handler: Handler) -> None:
        length = str(len(body) if content_length is None else content_length)
        handler.begin(200, Content_Type=kind, Content_Length=length, **headers)
        handler.wfile.write(body)
        handler.close_connection = True

    return mood


def resets(handler: Handler) -> None:
    """Drop the connection hard."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    handler.close_connection = True
    handler.connection.close()
    handler.rfile.close()
    raise ConnectionResetError


def trickles(handler: Handler) -> None:
    """Send a byte now and then, within the limits of any single read."""
    handler.begin(200, Content_Type="application/json", Content_Length="1000000")
    for _ in range(600):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


def trickles_headers(handler: Handler) -> None:
    """Never come to the end of the headers."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(600):
        handler.wfile.write(b"y")
        handler.wfile.flush()
        time.sleep(0.05)


def hangs(handler: Handler) -> None:
    """Take the question and say nothing."""
    time.sleep(30)


def streams_for_ever(handler: Handler) -> None:
    """Send white space, which JSON may begin with, as fast as it is taken."""
    handler.begin(200, Content_Type="application/json")
    handler.wfile.flush()
    while True:
        handler.wfile.write(b" " * 65536)
