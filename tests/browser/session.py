"""Sessions of the Streamlit server over its WebSocket, as a browser opens them, without drawing anything."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Self
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from showhow.app.widgets.person import confirmation_cookie, sign_name

MESSAGE_LIMIT_BYTES = 200_000_000


class SessionError(Exception):
    """The server refused or closed the session, showed an exception, or did not finish the page in time."""


def encode_rerun(query: str) -> bytes:
    """A message that runs the first page."""
    message = BackMsg()
    message.rerun_script.query_string = query
    return message.SerializeToString()


@dataclass(frozen=True, slots=True)
class Widget:
    """A widget of the page: its id, the id of the fragment that draws it or "", and its kind as Streamlit names it."""

    id: str
    fragment: str
    kind: str = ""


class BrowserSession:
    """One open page: its `id`, its `widgets`, and the `texts` and the bytes that the last run of its script sent."""

    def __init__(self, connection: ClientConnection, page: str, parameters: Mapping[str, str], seconds: float) -> None:
        self._connection = connection
        self._page = page
        self._query = urlencode(parameters)
        self._seconds = seconds
        self._page_hash = ""
        self._states: dict[str, WidgetState] = {}
        self.widgets: dict[str, Widget] = {}
        self.texts: list[str] = []
        self.received = b""
        self.id = ""

    def rerun(
        self,
        typed: Mapping[str, str] | None = None,
        click: str | None = None,
        *,
        whole_page: bool = False,
        states: Iterable[WidgetState] = (),
    ) -> Self:
        """Send typed texts and a click, by the ends of widget keys, and read until the script has finished.

        A click runs the fragment of its button, or the `whole_page`, as where the server joins it with another request.
        `states` are sent once, as they are.
        """
        message = BackMsg()
        state = message.rerun_script
        state.query_string = self._query
        state.page_name = "" if self._page_hash else self._page
        state.page_script_hash = self._page_hash
        for key, text in (typed or {}).items():
            widget = self.find(key)
            self._states[widget.id] = WidgetState(id=widget.id, string_value=text)
        present = {widget.id for widget in self.widgets.values()}
        state.widget_states.widgets.extend(kept for id_, kept in self._states.items() if id_ in present)
        state.widget_states.widgets.extend(states)
        if click is not None:
            button = self.find(click)
            state.widget_states.widgets.append(WidgetState(id=button.id, trigger_value=True))
            state.fragment_id = "" if whole_page else button.fragment
        self._send(message)
        self._read_run()
        return self

    def find(self, key: str) -> Widget:
        """Return the widget whose key ends so; raises SessionError if there is none."""
        for known, widget in self.widgets.items():
            if known.endswith(key):
                return widget
        raise SessionError(f"the page {self._page!r} shows no {key}: {' | '.join(self.texts)[:300]}")

    def _send(self, message: BackMsg) -> None:
        try:
            self._connection.send(message.SerializeToString())
        except ConnectionClosed as error:
            raise SessionError(f"the session is closed: {error}") from error

    def _read_run(self) -> None:
        started, self.received = False, b""
        while True:
            message = self._receive()
            kind = message.WhichOneof("type")
            if kind == "new_session":
                started = True
                self.id = message.new_session.initialize.session_id
                fragments = set(message.metadata.run.fragment_ids)
                self.widgets = {
                    key: widget
                    for key, widget in self.widgets.items()
                    if fragments and widget.fragment not in fragments
                }
                self.texts = []
            elif kind == "navigation":
                self._page_hash = message.navigation.page_script_hash
            elif kind == "page_info_changed":
                self._query = message.page_info_changed.query_string
            elif kind == "delta":
                self._read_delta(message)
            elif kind == "script_finished" and started:
                if message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    return
                started = False

    def _receive(self) -> ForwardMsg:
        try:
            data = self._connection.recv(timeout=self._seconds)
        except TimeoutError as error:
            raise SessionError(f"the page {self._page!r} was not finished within {self._seconds:g} s") from error
        except ConnectionClosed as error:
            raise SessionError(f"the session is closed: {error}") from error
        content = data if isinstance(data, bytes) else data.encode()
        self.received += content
        message = ForwardMsg()
        message.ParseFromString(content)
        return message

    def _read_delta(self, message: ForwardMsg) -> None:
        if message.delta.WhichOneof("type") != "new_element":
            return
        element = message.delta.new_element
        kind = element.WhichOneof("type")
        if kind is None:
            return
        drawn = getattr(element, kind)
        if kind == "exception":
            raise SessionError(f"the page {self._page!r} shows {drawn.type}: {drawn.message}")
        if kind in ("markdown", "alert", "heading"):
            self.texts.append(drawn.body)
        id_ = getattr(drawn, "id", "")
        if id_.startswith("$$ID-"):
            # $$ID-<hash>-<key>
            key = id_.split("-", 2)[2]
            self.widgets[key] = Widget(id_, message.delta.fragment_id, kind)


@contextmanager
def open_session(
    url: str,
    page: str,
    parameters: Mapping[str, str],
    *,
    cookie: str = "",
    headers: Mapping[str, str] = MappingProxyType({}),
    seconds: float = 60,
    states: Iterable[WidgetState] = (),
) -> Iterator[BrowserSession]:
    """Open a page ("" is the first one) and yield it once drawn, with these states; raises SessionError."""
    try:
        connection = connect(
            url.replace("http://", "ws://", 1) + "/_stcore/stream",
            open_timeout=seconds,
            max_size=MESSAGE_LIMIT_BYTES,
            subprotocols=[Subprotocol("streamlit")],
            additional_headers={**headers, **({"Cookie": cookie} if cookie else {})},
        )
    except (OSError, TimeoutError, InvalidHandshake, ConnectionClosed) as error:
        raise SessionError(f"no session: {type(error).__name__}: {error}") from error
    with connection:
        yield BrowserSession(connection, page, parameters, seconds).rerun(states=states)


def confirm_name(home: Path, name: str) -> str:
    """The cookie of a browser from elsewhere whose user has confirmed to be this person."""
    return f"{confirmation_cookie(name)}={sign_name(home, name)}"
