"""How many visitors the server takes: each holds file descriptors, of which a process has a limited number.

A visitor holds four: the connection of the page, and an event loop of Streamlit (three). The server keeps a reserve for
the work of those who are in: connections of the database, tools and worker processes. A new visitor is refused while
less than the reserve is free; whoever was served a page before may use half of the reserve, to reload or reconnect.

A connection that is not used is closed: one whose request stays unfinished, and a WebSocket without a message.

`python -m showhow.app.capacity run FILE ...` is `streamlit run FILE ...` with these limits of connections.
"""

import asyncio
import errno
import logging
import resource
import time
from typing import Any, ClassVar

import h11
import psutil
import uvicorn.config
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from showhow.app.redacted_output import redact_output
from showhow.app.visitors import MEGABYTE, Visitor, Visitors

MAX_RESERVE = 256
"""Descriptors that are kept for the work of those who are in; a quarter of the limit if that is less."""
REQUEST_SECONDS = 10.0
"""The time that a client has for the head of a request, for each further part of its body, and for a first message."""
MAX_FRAME_BYTES = 16 * MEGABYTE
"""The longest message of a WebSocket; the connection of a longer one is closed."""
PARSED_BYTES = 4_096
"""How much of a WebSocket is parsed at once."""
FREE_FRAMES = 16
FRAMES_PER_SECOND = 500
"""How fast frames are handled if more than FREE_FRAMES come at once."""
MAX_FRAGMENTS = 10_000
"""Frames of one message."""
MAX_HELD_BYTES = MEGABYTE // 16
"""What a connection may hold in any case, however much its visitor holds on others."""
CONFIG_PATH = "/_stcore/host-config"
CONNECTION = "showhow.connection"
"""The extension of a WebSocket's scope with its PacedWebSocketProtocol."""
MAX_LAST_MESSAGES = 16
"""Messages that are still handled when their connection is lost."""
MAX_LOGGED = 20
"""How many equal warnings of the server are logged in LOG_PERIOD_SECONDS; clients can cause any number of them."""
LOG_PERIOD_SECONDS = 60.0
SERVER_FULL = "Showhow is full: as many people are at work as this server can take. Try again in a few minutes."
VISITOR_FULL = (
    "You have as many pages of Showhow open as one visitor may while the server is this full. Close one of them, then "
    "reload this page."
)
DESCRIPTORS_OF_A_SEAT = 4
MIN_SEATS = 4
"""Seats that a visitor may take however full the server is."""
ADDRESS_SHARE = 3
"""How many seats the visitors of one address may take for each that is left free."""


_MACOS_MAX_LIMIT = 10_240
"""The highest limit that macOS accepts; it reports an unlimited one."""


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard one, for this process and those it becomes or starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard, max(soft, _MACOS_MAX_LIMIT)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        except (OSError, ValueError):
            continue
        return


def count_free_descriptors() -> int:
    """The number of descriptors that this process can still open."""
    try:
        opened = psutil.Process().num_fds()
    except OSError as error:
        if error.errno == errno.EMFILE:
            return 0
        raise
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] - opened


def reserved_descriptors() -> int:
    """The number of descriptors that new visitors must leave free."""
    return min(MAX_RESERVE, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)


def refuse_seat(visitor: Visitor, *, is_page: bool) -> str | None:
    """The sentence with which a page or its connection is refused; None if the visitor may have a seat.

    A visitor may take as many seats as it leaves free, the visitors of an address together three times as many, so that
    on any machine some are left for others.
    """
    free, reserve = count_free_descriptors(), reserved_descriptors()
    if free < (reserve // 2 if visitor.has_cookie else reserve):
        return SERVER_FULL
    free_seats = max(0, free - reserve) // DESCRIPTORS_OF_A_SEAT
    # The page may be one that is loaded again: its seat is free as soon as it comes.
    own_seats = visitor.own.seats - 1 if is_page else visitor.own.seats
    gets_cookie = is_page and visitor.may_get_cookie
    if not gets_cookie and own_seats >= max(MIN_SEATS, free_seats + 1):
        return VISITOR_FULL
    # Who was served a page is in; its connection is refused only if others took the seat meanwhile.
    share = ADDRESS_SHARE * free_seats if is_page else (ADDRESS_SHARE + 1) * free_seats
    if not (is_page and visitor.has_cookie) and visitor.address.seats > max(MIN_SEATS, share):
        return SERVER_FULL
    return None


class CapacityMiddleware:
    """Answers a new visitor with one sentence while the server is full, or while the visitor holds its share of it."""

    def __init__(self, app: ASGIApp, visitors: Visitors) -> None:
        self._app = app
        self._visitors = visitors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, unless it is a new visitor's and the server is full."""
        if scope["type"] == "lifespan":
            for name in ("showhow.app.server", "showhow.app.widgets.component_values", "asyncio", "uvicorn.error"):
                logging.getLogger(name).addFilter(LogLimit())
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            receive = _close_unused(receive)
        connection = HTTPConnection(scope)
        is_page = scope["type"] == "http" and "text/html" in connection.headers.get("accept", "")
        # Streamlit's page asks for it until it gets it, and only then connects; it shows the text of a refusal.
        is_announced = scope["type"] == "http" and scope["path"] == CONFIG_PATH
        if not is_page and not is_announced and scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        visitor = self._visitors.identify(connection)
        refusal = refuse_seat(visitor, is_page=is_page)
        if refusal is not None:
            await self._refuse(refusal, scope, receive, send)
        else:
            await self._app(scope, receive, self._set_cookie(visitor, send) if is_page else send)

    async def _refuse(self, sentence: str, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1013, "reason": "the server is full"})
            return
        headers = {"Retry-After": "60", "Connection": "close"}
        if scope["path"] == CONFIG_PATH:
            # The page reads a refusal as JSON.
            await JSONResponse(sentence, status_code=503, headers=headers)(scope, receive, send)
            return
        page = (
            f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Showhow is full</title><p>{sentence}</p></html>"
        )
        await HTMLResponse(page, status_code=503, headers=headers)(scope, receive, send)

    def _set_cookie(self, visitor: Visitor, send: Send) -> Send:
        cookie = self._visitors.issue_cookie(visitor)

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start" and cookie is not None:
                message["headers"] = [*message["headers"], (b"set-cookie", cookie.encode())]
            await send(message)

        return send_with_cookie


def _close_unused(receive: Receive) -> Receive:
    """End a WebSocket whose client sends no first message: a browser sends one at once."""
    is_used = False

    async def receive_in_time() -> Message:
        nonlocal is_used
        if is_used:
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), REQUEST_SECONDS)
        except TimeoutError:
            return {"type": "websocket.disconnect", "code": 1001}
        is_used = message["type"] == "websocket.receive"
        return message

    return receive_in_time


class LogLimit(logging.Filter):
    """Lets at most MAX_LOGGED records with an equal message through in a period, so that a log stays small."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, int] = {}
        self._period = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        period = int(time.monotonic() / LOG_PERIOD_SECONDS)
        if period != self._period:
            self._period, self._counts = period, {}
        # asyncio formats its messages itself: they differ in the lines after the first one.
        message = str(record.msg).partition("\n")[0]
        self._counts[message] = count = self._counts.get(message, 0) + 1
        if count == MAX_LOGGED:
            record.msg = f"{record.msg}\n(Further messages like this one are not logged for a minute.)"
        return count <= MAX_LOGGED


class TimedHttpProtocol(H11Protocol):
    """An HTTP connection that is closed when a request on it stays unfinished.

    When descriptors run out, it is closed before that if it is the one that has waited longest.
    """

    _unfinished: ClassVar[dict["TimedHttpProtocol", None]] = {}
    """The connections without a finished request, the oldest first."""
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time of the first request."""
        super().connection_made(transport)
        self._start_timer()
        if count_free_descriptors() < reserved_descriptors() // 2:
            next(iter(self._unfinished)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Stop the time once the request is complete; the head of a request has one time, each part of a body too."""
        super().data_received(data)
        state = self.conn.their_state
        if state is not h11.IDLE:
            self._stop_timer()
        is_unfinished = state in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing()
        # A request that opens a WebSocket is complete: another protocol has taken over the connection.
        if is_unfinished and self._timer is None and self.transport.get_protocol() is self:
            self._start_timer()

    def _start_timer(self) -> None:
        self._unfinished[self] = None
        self._timer = self.loop.call_later(REQUEST_SECONDS, self._close)

    def _stop_timer(self) -> None:
        self._unfinished.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._stop_timer()
        if self.flow.read_paused:
            # The client waits for the server.
            self._start_timer()
        else:
            self.transport.abort()


class PacedWebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket from which no more is read than is handled: a client that sends faster waits.

    uvicorn parses whatever has arrived in one go, and answers pings without a bound. What is not handled yet is counted
    for the visitor, and the connection that brings more than a visitor may hold is closed.
    """

    _paused_until = 0.0
    _frames = 0
    _incomplete_bytes = 0
    _queued_bytes = 0
    _taken_bytes = 0
    """Of the message that the application handles."""
    _counted_bytes = 0
    _visitor: Visitor | None = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.conn.max_message_size = MAX_FRAME_BYTES
        self._unread = bytearray()

    def data_received(self, data: bytes) -> None:
        """Keep what has arrived, and parse as much of it as may be handled now."""
        self._unread += data
        self._parse()

    def handle_events(self) -> None:
        """Count the frames."""
        self._frames += len(self.conn.events)
        super().handle_events()
        if len(self.frames) > MAX_FRAGMENTS:
            self.transport.abort()

    def resume_writing(self) -> None:
        """Go on once the client has read its answers."""
        super().resume_writing()
        self._parse()

    async def send(self, message: Any) -> None:
        """Send; once the connection is accepted, go on with what has come since."""
        await super().send(message)
        self._parse()

    async def run_asgi(self) -> None:
        """Run the application, which knows the connection."""
        self.scope["extensions"] = {**(self.scope["extensions"] or {}), CONNECTION: self}  # type: ignore[dict-item]
        try:
            await super().run_asgi()
        finally:
            self._incomplete_bytes = self._queued_bytes = self._taken_bytes = 0
            self.conn.reader.buffer.clear()
            self._count_held()

    def count_for(self, visitor: Visitor) -> None:
        """Count what is not handled for this visitor."""
        self._visitor = visitor

    def handle_text(self, event: Any) -> None:
        """Count the bytes of a first frame."""
        super().handle_text(event)
        self._count_frame(event)

    def handle_bytes(self, event: Any) -> None:
        """Count the bytes of a first frame."""
        super().handle_bytes(event)
        self._count_frame(event)

    def handle_cont(self, event: Any) -> None:
        """Count the bytes of a further frame."""
        super().handle_cont(event)
        self._count_frame(event)

    def _count_frame(self, event: Any) -> None:
        self._incomplete_bytes += len(event.data)
        if event.fin:
            self._queued_bytes += self._incomplete_bytes
            self._incomplete_bytes = 0

    def _count_held(self) -> None:
        """Count what the connection holds; close it if that is too much."""
        held = self._incomplete_bytes + self._queued_bytes + self._taken_bytes + len(self.conn.reader.buffer)
        more, self._counted_bytes = held - self._counted_bytes, held
        if self._visitor is not None and self._visitor.hold_unhandled(more) and more > 0 and held > MAX_HELD_BYTES:
            self.transport.abort()

    async def receive(self) -> Any:
        """Return the next message, and read on once there is no other."""
        self._taken_bytes = 0
        self._count_held()
        message = await super().receive()
        if message["type"] == "websocket.receive":
            self._taken_bytes = len(message.get("bytes") or (message.get("text") or "").encode())
            self._queued_bytes -= self._taken_bytes
        self._parse()
        return message

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what nobody waits for any more; a last click is handled."""
        self._unread.clear()
        self.frames.clear()
        self._incomplete_bytes = 0
        self.conn.reader.buffer.clear()
        if self.queue.qsize() > MAX_LAST_MESSAGES:
            self.queue = asyncio.Queue()
            self._queued_bytes = 0
        self._count_held()
        super().connection_lost(exc)

    def _parse(self) -> None:
        while self._may_parse():
            part = bytes(self._unread[:PARSED_BYTES])
            del self._unread[:PARSED_BYTES]
            self._frames = 0
            super().data_received(part)
            if self._frames > FREE_FRAMES:
                seconds = self._frames / FRAMES_PER_SECOND
                self._paused_until = self.loop.time() + seconds
                self.loop.call_later(seconds, self._parse)
        self._count_held()
        if self.transport.is_closing():
            self._unread.clear()
        elif self._unread:
            self.transport.pause_reading()
        elif not self.read_paused:
            self.transport.resume_reading()

    def _may_parse(self) -> bool:
        return (
            bool(self._unread)
            and not self.transport.is_closing()
            and not self.read_paused
            and (self.handshake_complete or not self.handshake_initiated)
            and self.writable.is_set()
            and self.loop.time() >= self._paused_until
        )


if __name__ == "__main__":
    from showhow.guard.environment import take_environment

    take_environment()
    # Before Streamlit's loggers take standard error.
    redact_output()
    # Here, since the command line imports this module too, and Streamlit takes long to load.
    from streamlit.web import cli as streamlit_cli

    # This module is imported again under its name, since Streamlit takes no other protocol than uvicorn's usual one.
    uvicorn.config.HTTP_PROTOCOLS["auto"] = f"showhow.app.capacity:{TimedHttpProtocol.__name__}"
    uvicorn.config.WS_PROTOCOLS["websockets-sansio"] = f"showhow.app.capacity:{PacedWebSocketProtocol.__name__}"
    streamlit_cli.main()
