"""A visitor's budget: messages, requests, runs of pages, widgets, uploads. Beyond it that visitor waits, nobody else.

Messages and requests are taken from the network no faster than the visitor's allowance (app/visitors.py), and a message
that runs a page waits for its turn (app/run_queue.py); meanwhile nothing more is read from that connection. What cannot
be waited for is refused in one sentence: more bytes in widgets or uploads than a visitor may hold.
"""

import asyncio
import json
import math
from collections.abc import Iterable

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnected
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates

from showhow.app.capacity import CONNECTION
from showhow.app.run_queue import RunQueue, Seat, current_seat
from showhow.app.streamlit_sessions import (
    end_session,
    has_uploader,
    remove_uploads,
    show_at_next_run,
    uploaded_sizes,
    watch_sessions,
)
from showhow.app.visitors import MEGABYTE, Account, Visitor, Visitors

UPLOAD_PATH = "/_stcore/upload_file/"
HEALTH_PATHS = ("/healthz", "/readyz")
MAX_MESSAGE_BYTES = 6 * MEGABYTE
"""The widgets of one page; a step may have 4 MiB of text."""
MAX_VALUE_CHARACTERS = 500_000
"""Of a component's value: a text that was chosen in a notebook is the longest."""
MAX_WIDGETS = 2_000
MAX_KNOWN_HASHES = 20_000
MAX_FILE_NAMES = 20
"""Files that one message asks to upload."""
SERVER_UPLOAD_BYTES = 1_000 * MEGABYTE
"""Bytes of uploads that all visitors together may hold."""
MAX_PARKED = 4
"""Sessions of a visitor that wait for their browsers to come back."""
PARKED_SECONDS = 60.0
ACCEPTED_KINDS = {"app_heartbeat", "backend_operation_request", "file_urls_request", "rerun_script", "stop_script"}
"""The messages that our pages send. Others would clear the caches of all visitors."""
ACCEPTED_OPERATIONS = {"deferred_file", "dataframe_chunk"}
WIDGETS_TOO_LARGE = (
    f"What you entered was not taken: the fields of a page may hold {MAX_MESSAGE_BYTES // MEGABYTE} MB, and those of "
    "all your pages 16 MB. Shorten the text, or close other pages."
)
NO_UPLOADER = "The page that this session shows takes no files; reload it."
NO_LENGTH = "A file must come with its length (the header Content-Length)."
UPLOADS_FULL = "You have uploaded as much as one visitor may hold here; remove a file, or reload the page."
SERVER_UPLOADS_FULL = "The server holds as many uploads as it may; try again in a few minutes."


class BudgetMiddleware:
    """Keeps each visitor within its budget."""

    def __init__(self, app: ASGIApp, visitors: Visitors) -> None:
        self._app = app
        self._visitors = visitors
        self._queue = RunQueue()
        self._seats: dict[str, Seat] = {}
        """The seat that each session had last; sessions without a connection included."""
        self._parked: dict[str, asyncio.TimerHandle] = {}
        """The sessions without a connection, the oldest first, with the timers that end them."""
        self._uploading: dict[Seat, list[int]] = {}
        """The bytes that are announced by uploads in progress."""
        self._received_bytes = 0
        """The bytes of uploads in progress."""
        watch_sessions(self._queue)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle what the visitor's budget allows, when it allows it."""
        if scope["type"] not in ("http", "websocket") or scope["path"] in HEALTH_PATHS:
            await self._app(scope, receive, send)
            return
        visitor = self._visitors.identify(HTTPConnection(scope))
        if wait := visitor.take_request():
            await asyncio.sleep(wait)
        if scope["type"] == "websocket":
            await self._serve_seat(visitor, scope, receive, send)
        elif scope["method"] == "PUT" and scope["path"].startswith(UPLOAD_PATH):
            await self._take_upload(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _serve_seat(self, visitor: Visitor, scope: Scope, receive: Receive, send: Send) -> None:
        seat = Seat(visitor)
        current_seat.set(seat)
        visitor.take_seat()
        # Other servers than ours, such as a test's, have other connections.
        if connection := scope.get("extensions", {}).get(CONNECTION):
            connection.count_for(visitor)

        async def receive_in_turn() -> Message:
            # Streamlit asks for the next message once it has handled the last one.
            self._queue.release(seat)
            self._note_session(seat)
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                content = message.get("bytes")
                if content is None:
                    return {"type": "websocket.disconnect", "code": 1003}
                # Without a wait, one visitor's messages would be handled until there are no more.
                await asyncio.sleep(visitor.take_message(len(content)))
                try:
                    accepted = self._accept_message(seat, content)
                except DecodeError:
                    return {"type": "websocket.disconnect", "code": 1002}
                if accepted is None:
                    continue
                if accepted.WhichOneof("type") == "rerun_script":
                    await self._queue.admit(seat)
                return {**message, "bytes": accepted.SerializeToString()}

        try:
            await self._app(scope, receive_in_turn, send)
        except WebSocketDisconnected:
            # The client went while one of its messages waited.
            pass
        finally:
            self._queue.release(seat)
            visitor.leave_seat()
            self._park(seat)

    def _accept_message(self, seat: Seat, content: bytes) -> BackMsg | None:
        """The message as the page may handle it; None for one that no page sends. Raises DecodeError."""
        message = BackMsg()
        message.ParseFromString(content)
        kind = message.WhichOneof("type")
        if kind not in ACCEPTED_KINDS:
            return None
        if kind == "file_urls_request" and len(message.file_urls_request.file_names) > MAX_FILE_NAMES:
            return None
        if kind == "backend_operation_request":
            operation = message.backend_operation_request.WhichOneof("payload")
            return message if operation in ACCEPTED_OPERATIONS else None
        if kind != "rerun_script":
            return message
        state = message.rerun_script
        is_too_large = len(content) > MAX_MESSAGE_BYTES or len(state.widget_states.widgets) > MAX_WIDGETS
        if not is_too_large and len(state.cached_message_hashes) <= MAX_KNOWN_HASHES:
            seat.visitor.hold_widgets(len(content) - seat.widget_bytes)
            seat.widget_bytes = len(content)
            if not seat.visitor.holds_too_many_widgets:
                _remove_broken_values(state.widget_states)
                return message
            self._drop_widgets(seat)
        show_at_next_run(seat, WIDGETS_TOO_LARGE)
        shown = BackMsg()
        shown.rerun_script.page_script_hash = state.page_script_hash[:100]
        shown.rerun_script.query_string = state.query_string if len(state.query_string) < MAX_KNOWN_HASHES else ""
        return shown

    def _drop_widgets(self, seat: Seat) -> None:
        seat.visitor.hold_widgets(-seat.widget_bytes)
        seat.widget_bytes = 0

    def _note_session(self, seat: Seat) -> None:
        """Note the session of the seat, which may have been another seat's."""
        id_ = seat.session_id
        if id_ is None or self._seats.get(id_) is seat:
            return
        if timer := self._parked.pop(id_, None):
            timer.cancel()
        if former := self._seats.get(id_):
            self._drop_widgets(former)
        self._seats[id_] = seat

    def _park(self, seat: Seat) -> None:
        """End the session of a seat soon, and at once those of its visitor that wait longest, if they are too many."""
        self._note_session(seat)
        id_ = seat.session_id
        if id_ is None or self._seats.get(id_) is not seat:
            return
        self._parked[id_] = asyncio.get_running_loop().call_later(PARKED_SECONDS, self._end, id_)
        own = [other for other in self._parked if self._seats[other].visitor.key == seat.visitor.key]
        for other in own[:-MAX_PARKED]:
            self._end(other)

    def _end(self, session_id: str) -> None:
        if timer := self._parked.pop(session_id, None):
            timer.cancel()
        if end_session(session_id) and (seat := self._seats.pop(session_id, None)):
            self._drop_widgets(seat)

    async def _take_upload(self, scope: Scope, receive: Receive, send: Send) -> None:
        seat = self._seats.get(scope["path"].removeprefix(UPLOAD_PATH).partition("/")[0])
        length = HTTPConnection(scope).headers.get("content-length", "")
        refusal = self._refuse_upload(seat, length)
        if seat is None or refusal is not None:
            status, sentence = refusal or (403, NO_UPLOADER)
            # The body is not read, so the connection cannot be used again.
            await PlainTextResponse(sentence, status, {"Connection": "close"})(scope, receive, send)
            return
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            self._received_bytes += len(message.get("body", b""))
            return message

        self._uploading.setdefault(seat, []).append(int(length))
        try:
            await self._app(scope, receive_counted, send)
        finally:
            self._uploading[seat].remove(int(length))
            if not self._uploading[seat]:
                del self._uploading[seat]
            self._received_bytes -= received

    def _refuse_upload(self, seat: Seat | None, length: str) -> tuple[int, str] | None:
        """The status and the sentence with which an upload is refused; None if it may come."""
        if seat is None or seat.session_id is None or not has_uploader(seat.session_id):
            return 403, NO_UPLOADER
        if not (length.isascii() and length.isdigit() and len(length) < 20):
            return 411, NO_LENGTH
        for account in seat.visitor.accounts:
            if not self._has_room(account, int(length)):
                self._free_unused_uploads(account)
            if not self._has_room(account, int(length)):
                return 413, UPLOADS_FULL
        if sum(uploaded_sizes()) + self._received_bytes + int(length) > SERVER_UPLOAD_BYTES:
            return 503, SERVER_UPLOADS_FULL
        return None

    def _has_room(self, account: Account, length: int) -> bool:
        held = uploaded_sizes(self._sessions_of(account))
        announced = [
            size for seat, sizes in self._uploading.items() if account in seat.visitor.accounts for size in sizes
        ]
        return (
            sum(held) + sum(announced) + length <= account.limits.upload_bytes
            and len(held) + len(announced) < account.limits.uploads
        )

    def _free_unused_uploads(self, account: Account) -> None:
        """Free the files of pages that were left for one without an uploader."""
        for id_ in self._sessions_of(account):
            if not has_uploader(id_):
                remove_uploads(id_)

    def _sessions_of(self, account: Account) -> Iterable[str]:
        return [id_ for id_, seat in self._seats.items() if account in seat.visitor.accounts]


def _remove_broken_values(states: WidgetStates) -> None:
    """Remove numbers that are none, and values of components that are not JSON, or too deep or too long to be ours."""
    accepted = [state for state in states.widgets if _is_sound(state)]
    if len(accepted) < len(states.widgets):
        accepted = [WidgetState.FromString(state.SerializeToString()) for state in accepted]
        states.ClearField("widgets")
        states.widgets.extend(accepted)


def _is_sound(state: WidgetState) -> bool:
    kind = state.WhichOneof("value")
    if not all(map(math.isfinite, (state.double_value, *state.double_array_value.data))):
        return False
    if kind not in ("json_value", "json_trigger_value"):
        return True
    text = getattr(state, kind)
    if len(text) > MAX_VALUE_CHARACTERS:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        # A component that sends nothing sends the empty text.
        return not text
    return True
