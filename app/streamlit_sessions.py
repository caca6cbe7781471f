"""The only place that reaches into Streamlit's server: seats of sessions and runs, values of widgets, uploads, ends.

It was written for Streamlit 1.67; tests/browser/test_visitor_budget.py uses all of it on a real server.
"""

import asyncio
import math
import time
from collections.abc import Iterable
from typing import Any, ClassVar
from uuid import UUID

from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime import Runtime, app_session
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import ScriptRunner, get_script_run_ctx
from streamlit.runtime.state import SessionState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import Serialized, WStates

from showhow.app.run_queue import PageRun, RunQueue, Seat, current_seat

_UPLOADER_VALUE = "file_uploader_state_value"
_people: dict[str, UUID | None] = {}
"""Who is logged in in each session."""
_notices: dict[str, str] = {}
"""What the next run of a session shows."""


class CountedScriptRunner(ScriptRunner):
    """Streamlit's thread of the runs of a page, noted in the queue from its start to its end."""

    queue: ClassVar[RunQueue]
    _noted: PageRun | None = None
    _loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        """Start the thread, in the task that handles a message of the seat."""
        seat = current_seat.get()
        if seat is not None:
            self._noted, self._loop = self.queue.begin(seat), asyncio.get_running_loop()
        try:
            super().start()
        except BaseException:
            if self._noted is not None:
                self.queue.end(self._noted, 0.0)
            raise

    def _run_script_thread(self) -> None:
        if self._noted is not None:
            self._noted.enter_thread()
        try:
            super()._run_script_thread()
        finally:
            if self._noted is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self.queue.end, self._noted, time.thread_time())


_NUMBERS = {"int_value", "double_value"}
_take_value = WStates.set_widget_from_proto
_register = SessionState._set_widget_metadata


def _take_fitting_value(states: WStates, sent: WidgetState) -> None:
    if _is_fitting(sent, states.widget_metadata.get(sent.id)):
        _take_value(states, sent)


def _register_with_fitting_value(state: SessionState, metadata: WidgetMetadata[Any]) -> None:
    # A value may come before the page draws its widget.
    states = state._new_widget_state.states
    waiting = states.get(metadata.id)
    if isinstance(waiting, Serialized) and not _is_fitting(waiting.value, metadata):
        del states[metadata.id]
    _register(state, metadata)


def _is_fitting(sent: WidgetState, metadata: WidgetMetadata[Any] | None) -> bool:
    """Whether the value is of the kind that the widget's browser sends; a field that was emptied has none."""
    kind = sent.WhichOneof("value")
    if metadata is None or kind is None:
        return True
    # A field of numbers sends integers as such.
    is_number = kind in _NUMBERS and metadata.value_type in _NUMBERS
    return (is_number or kind == metadata.value_type) and math.isfinite(sent.double_value)


def _keep_kind(_states: WStates, _metadata: WidgetMetadata[Any]) -> None:
    """Streamlit would take the kind of the value for that of the widget."""


_connect_session = Runtime.connect_session


def _connect_seat(runtime: Runtime, *arguments: Any, **named: Any) -> str:
    seat = current_seat.get()
    person = None if seat is None else seat.person
    if _people.get(named.get("existing_session_id") or "", person) != person:
        # Somebody else has logged in, in the browser that comes back: what was typed there is not theirs.
        named["existing_session_id"] = None
    session_id = _connect_session(runtime, *arguments, **named)
    if seat is not None:
        seat.session_id = session_id
        _people[session_id] = person
    return session_id


def watch_sessions(queue: RunQueue) -> None:
    """Have seats know their sessions, the queue the runs, and widgets take values of their own kind only.

    Raises RuntimeError if Streamlit works in another way.
    """
    if not hasattr(app_session, "ScriptRunner") or not hasattr(ScriptRunner, "_run_script_thread"):
        raise RuntimeError("This version of Streamlit starts runs in another way; adapt app/streamlit_sessions.py.")
    CountedScriptRunner.queue = queue
    app_session.ScriptRunner = CountedScriptRunner
    Runtime.connect_session = _connect_seat  # type: ignore[method-assign, assignment]
    WStates.set_widget_from_proto = _take_fitting_value  # type: ignore[method-assign, assignment]
    WStates.set_widget_metadata = _keep_kind  # type: ignore[method-assign, assignment]
    SessionState._set_widget_metadata = _register_with_fitting_value  # type: ignore[method-assign, assignment]


def end_session(session_id: str) -> bool:
    """End a session that no client is connected to; False if one is."""
    runtime = Runtime.instance()
    if runtime.is_active_session(session_id):
        return False
    _notices.pop(session_id, None)
    _people.pop(session_id, None)
    runtime.close_session(session_id)
    return True


def has_uploader(session_id: str) -> bool:
    """Whether the page of the session has an uploader."""
    session = Runtime.instance().get_app_session(session_id)
    if session is None:
        return False
    state = session.session_state
    widgets = state._new_widget_state
    return any(
        metadata.value_type == _UPLOADER_VALUE and (id_ in state._old_state or id_ in widgets.states)
        for id_, metadata in list(widgets.widget_metadata.items())
    )


def _files() -> MemoryUploadedFileManager:
    files = Runtime.instance().uploaded_file_mgr
    if not isinstance(files, MemoryUploadedFileManager):
        raise TypeError("This version of Streamlit stores uploads in another way; adapt app/streamlit_sessions.py.")
    return files


def uploaded_sizes(session_ids: Iterable[str] | None = None) -> list[int]:
    """The bytes of each file that these sessions hold, or that all do."""
    stored = _files().file_storage
    sessions = list(stored) if session_ids is None else session_ids
    return [len(file.data) for id_ in sessions if id_ in stored for file in list(stored[id_].values())]


def remove_uploads(session_id: str) -> None:
    """Free the files of a session."""
    _files().remove_session_files(session_id)


def show_at_next_run(seat: Seat, notice: str) -> None:
    """Have the next run of the seat's page show a notice."""
    if seat.session_id is not None:
        _notices[seat.session_id] = notice


def pop_notice() -> str | None:
    """The notice for this run of a page, if there is one."""
    context = get_script_run_ctx()
    return None if context is None else _notices.pop(context.session_id, None)
