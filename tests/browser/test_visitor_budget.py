"""What one visitor can do to another: floods, uploads, large fields, seats; on a real server with real connections."""

import http.client
import json
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event

import httpx
import psutil
import pytest
from playwright.sync_api import Page, expect
from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import (
    ChatInputValue,
    DoubleArray,
    FileUploaderState,
    SInt64Array,
    StringArray,
    StringTriggerValue,
)
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from showhow.app.capacity import MAX_FRAME_BYTES, VISITOR_FULL
from showhow.app.visitor_budget import MAX_MESSAGE_BYTES, NO_LENGTH, NO_UPLOADER, UPLOADS_FULL, WIDGETS_TOO_LARGE
from showhow.app.visitors import COOKIE, MEGABYTE, VISITOR_LIMITS
from tests.browser.annotator import Annotator
from tests.browser.server import Showhow
from tests.browser.session import SessionError, encode_rerun, open_session

pytestmark = pytest.mark.long

PROJECT = "Fictional people"
HTML = {"Accept": "text/html"}
FLOOD_SECONDS = 4.0
PATIENCE_SECONDS = 8.0
"""A page that takes a second here takes several on a busy machine; without a budget it took 25 to 45 s."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    showhow = Showhow(tmp_path_factory.mktemp("budgets"))
    showhow.start()
    yield showhow
    showhow.stop()


def cookie_of_new_visitor(home: Showhow) -> str:
    reply = httpx.get(home.url, headers=HTML, timeout=60)
    return f"{COOKIE}={reply.cookies[COOKIE]}"


def connect_raw(home: Showhow, cookie: str) -> ClientConnection:
    return connect(
        f"ws://127.0.0.1:{home.port}/_stcore/stream",
        subprotocols=[Subprotocol("streamlit")],
        additional_headers={"Cookie": cookie} if cookie else {},
        open_timeout=60,
        max_size=None,
    )


def frame(content: bytes, opcode: int = 2) -> bytes:
    """A frame of a client, with a mask of zeros."""
    assert len(content) < 126
    return struct.pack("!BB4x", 0x80 | opcode, 0x80 | len(content)) + content


FLOODS = {
    "runs of a page": frame(encode_rerun("a" * 30)),
    "empty messages": frame(b""),
    "pings": frame(b"", 9),
    "parts of a message": struct.pack("!BB4x", 0x02, 0x80) + struct.pack("!BB4x", 0x00, 0x80) * 500,
}


@contextmanager
def flooding(send: Callable[[Event], None], connections: int) -> Iterator[None]:
    """Have several threads send until the block is left."""
    over = Event()
    with ThreadPoolExecutor(connections) as flooders:
        running = [flooders.submit(send, over) for _ in range(connections)]
        try:
            yield
        finally:
            over.set()
            for one in running:
                one.result()


def visit(home: Showhow) -> float:
    """Seconds of another visitor for a page and a rerun."""
    started = time.perf_counter()
    cookie = cookie_of_new_visitor(home)
    with open_session(home.url, "", {"you": "quiet", "project": PROJECT}, cookie=cookie) as session:
        assert session.rerun().find("_thought")
    return time.perf_counter() - started


@pytest.mark.parametrize(("kind", "has_cookie"), [("runs of a page", False), *((kind, True) for kind in FLOODS)])
def test_a_flood_of_messages_delays_only_its_sender(home: Showhow, kind: str, has_cookie: bool):  # noqa: FBT001
    cookie = cookie_of_new_visitor(home) if has_cookie else ""
    content = FLOODS[kind] * (64_000 // len(FLOODS[kind]))

    def send(over: Event) -> None:
        connection = connect_raw(home, cookie)
        connection.socket.settimeout(0.2)
        ends = time.monotonic() + FLOOD_SECONDS
        with suppress(OSError):
            while not over.is_set() and time.monotonic() < ends:
                with suppress(TimeoutError):
                    connection.socket.send(content)
        connection.socket.close()

    visit(home)
    with flooding(send, 5):
        seconds = [visit(home) for _ in range(2)]
    assert max(seconds) < PATIENCE_SECONDS


def test_endless_runs_of_many_sessions_delay_only_their_visitor(home: Showhow):
    cookie = cookie_of_new_visitor(home)

    def run(over: Event) -> None:
        with open_session(home.url, "library", {"you": "busy", "project": PROJECT}, cookie=cookie) as session:
            while not over.is_set():
                session.rerun()

    visit(home)
    with flooding(run, 10):
        seconds = [visit(home) for _ in range(2)]
    assert max(seconds) < PATIENCE_SECONDS


def test_fields_beyond_the_budget_are_not_taken_and_the_page_says_so(home: Showhow):
    cookie = cookie_of_new_visitor(home)
    person = {"you": "wordy", "project": PROJECT}
    with ExitStack() as sessions:
        shown = []
        for _ in range(8):
            session = sessions.enter_context(open_session(home.url, "", person, cookie=cookie))
            shown.append(WIDGETS_TOO_LARGE in session.rerun({"_thought": "w" * 4 * MEGABYTE}).texts)
        assert shown == [False] * 3 + [True] * 5
        # One message too large, and one that is as long as a message may be.
        for length in (MAX_MESSAGE_BYTES + 1, MAX_FRAME_BYTES - 10_000):
            assert WIDGETS_TOO_LARGE in session.rerun({"_thought": "w" * length}).texts
        assert WIDGETS_TOO_LARGE not in session.rerun({"_thought": "short"}).texts
        # Another visitor's field is taken.
        with open_session(home.url, "", person, cookie=cookie_of_new_visitor(home)) as other:
            assert WIDGETS_TOO_LARGE not in other.rerun({"_thought": "w" * 4 * MEGABYTE}).texts
        with pytest.raises(SessionError, match="closed"):
            session.rerun({"_thought": "w" * (MAX_FRAME_BYTES + 1)})


@pytest.mark.parametrize("is_complete", [False, True], ids=["incomplete messages", "messages that wait"])
def test_what_is_not_handled_on_all_connections_of_a_visitor_is_bounded(home: Showhow, is_complete: bool):  # noqa: FBT001
    cookie = cookie_of_new_visitor(home)
    length = MAX_FRAME_BYTES - MEGABYTE
    head = struct.pack("!BBQ4x", 0x82 if is_complete else 0x02, 0x80 | 127, length)
    with ExitStack() as stack:
        connections = [stack.enter_context(connect_raw(home, cookie)) for _ in range(12)]
        closed = 0
        for connection in connections:
            connection.send(encode_rerun("you=hoarder"))
            connection.socket.settimeout(30)
            try:
                connection.socket.sendall(head + bytes(length))
            except OSError:
                closed += 1
        # Another tab with short messages goes on, and so does another visitor.
        with open_session(home.url, "", {"you": "hoarder", "project": PROJECT}, cookie=cookie) as session:
            session.rerun({"_thought": "short"})
        assert visit(home) < 4 * PATIENCE_SECONDS
        allowed = VISITOR_LIMITS.unhandled_bytes // length
        assert len(connections) - closed <= 2 * allowed + 1
    with open_session(home.url, "", {"you": "hoarder", "project": PROJECT}, cookie=cookie) as session:
        assert session.rerun({"_thought": "w" * 4 * MEGABYTE}).find("_thought")


def test_a_client_that_connects_endlessly_leaves_few_sessions_behind(home: Showhow):
    cookie = cookie_of_new_visitor(home)
    before = count_descriptors(home)
    for number in range(40):
        if number % 2:
            with open_session(home.url, "", {"you": "restless", "project": PROJECT}, cookie=cookie) as session:
                session.rerun({"_thought": "w" * MEGABYTE})
        else:
            with connect_raw(home, cookie):
                pass
    # Each has an event loop of three descriptors.
    assert count_descriptors(home) < before + 3 * 20


def count_descriptors(home: Showhow) -> int:
    """The descriptors that the server has open."""
    listening = (one for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN)
    process_id = next(one.pid for one in listening if one.laddr.port == home.port)
    return psutil.Process(process_id).num_fds()


def upload(home: Showhow, session: str, content: bytes, number: int) -> httpx.Response:
    reply = httpx.get(f"{home.url}/_stcore/health")
    token = reply.cookies.get("_streamlit_xsrf", "")
    boundary = {"Content-Type": "multipart/form-data; boundary=b", "X-Xsrftoken": token}
    return httpx.put(
        f"{home.url}/_stcore/upload_file/{session}/file{number}",
        content=content,
        headers=boundary,
        cookies={"_streamlit_xsrf": token},
        timeout=60,
    )


def file_of(size: int) -> bytes:
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n'
    return head + b"x" * size + b"\r\n--b--\r\n"


def trigger_id(component_id: str) -> str:
    """The id under which Streamlit's browser sends the triggers of a component."""
    return _make_trigger_id(component_id, "events")


def test_a_file_is_taken_only_where_an_uploader_is_and_up_to_the_visitor_s_total(home: Showhow):
    account = {"project": PROJECT}
    cookie = cookie_of_new_visitor(home)
    with open_session(home.url, "project", account, cookie=cookie) as session:
        large = VISITOR_LIMITS.upload_bytes // 3

        def endless() -> Iterator[bytes]:
            while True:
                yield b"x" * 65_536

        # Refused before the body is read: this one never ends.
        assert refusal_of(home, session.id, endless(), **{"Content-Length": str(large)}) == (403, NO_UPLOADER)
        assert refusal_of(home, "another", endless(), **{"Content-Length": str(large)}) == (403, NO_UPLOADER)
        session.rerun(click="import_questions")
        assert session.find("questions_file")
        assert refusal_of(home, session.id, endless()) == (411, NO_LENGTH)
        statuses = [upload(home, session.id, file_of(large), number).status_code for number in range(3)]
        assert statuses == [204, 204, 413]
        assert upload(home, session.id, file_of(10), 9).status_code == 204
        refused = upload(home, session.id, file_of(large), 10)
        assert refused.text == UPLOADS_FULL
        # The files of a page that was left make room.
        session.rerun(whole_page=True)
        with open_session(home.url, "project", account, cookie=cookie) as later:
            later.rerun(click="import_questions")
            assert upload(home, later.id, file_of(large), 11).status_code == 204


def refusal_of(home: Showhow, session: str, content: Iterator[bytes], **headers: str) -> tuple[int, str]:
    """The status and the sentence of a refused upload whose body was not read."""
    connection = http.client.HTTPConnection("127.0.0.1", home.port, timeout=60)
    connection.putrequest("PUT", f"/_stcore/upload_file/{session}/file")
    for name, value in (headers or {"Transfer-Encoding": "chunked"}).items():
        connection.putheader(name, value)
    connection.endheaders()
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, text


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Showhow]:
    """A server that may open few files."""
    showhow = Showhow(tmp_path, descriptors=320)
    showhow.start()
    yield showhow
    showhow.stop()


def take_seats(small: Showhow, sessions: ExitStack, headers_of: Callable[[int], dict[str, str]]) -> int:
    """Open sessions until one is refused; returns how many were opened."""
    for number in range(100):
        person = {"you": f"seat {number}", "project": PROJECT}
        try:
            sessions.enter_context(open_session(small.url, "", person, headers=headers_of(number)))
        except SessionError:
            return number
    raise AssertionError("no session was refused")


@pytest.mark.parametrize("has_cookie", [True, False], ids=["cookie", "address"])
def test_a_visitor_leaves_seats_for_others(small: Showhow, has_cookie: bool):  # noqa: FBT001
    cookie = cookie_of_new_visitor(small) if has_cookie else ""
    with ExitStack() as sessions:
        count = take_seats(small, sessions, lambda _number: {"Cookie": cookie})
        assert count > 8
        for number in range(count // 4):
            person = {"you": f"other {number}", "project": PROJECT}
            other = open_session(small.url, "", person, cookie=cookie_of_new_visitor(small))
            assert sessions.enter_context(other).find("_thought")
        if has_cookie:
            # The last page might be one that is loaded again; with others there, the visitor holds more than its share.
            refused = httpx.get(small.url, headers=HTML | {"Cookie": cookie})
            assert (refused.status_code, VISITOR_FULL in refused.text) == (503, True)


def test_a_visitor_whose_page_came_but_not_its_connection_reads_why(page: Page, small: Showhow):
    cookie = cookie_of_new_visitor(small)
    name, _, value = cookie.partition("=")
    page.context.add_cookies([{"name": name, "value": value, "url": small.url}])
    page.set_default_timeout(60_000)
    with ExitStack() as sessions:
        take_seats(small, sessions, lambda _number: {"Cookie": cookie})
        page.goto(small.url)
        expect(page.get_by_text(VISITOR_FULL)).to_be_visible(timeout=60_000)
    page.wait_for_selector(".st-key-acts")


def test_a_forged_cookie_or_forwarded_address_makes_no_new_visitor(small: Showhow):
    def forge(number: int) -> dict[str, str]:
        return {"Cookie": f"{COOKIE}={number}.{number:064}", "X-Forwarded-For": f"10.0.0.{number}:80"}

    with ExitStack() as sessions:
        assert take_seats(small, sessions, forge) < 40
        with open_session(small.url, "", {"you": "honest"}, cookie=cookie_of_new_visitor(small)) as other:
            assert other.find("_thought")


ODD_VALUES = (
    "[" * 5_000,
    "nonsense",
    "1" * 10_000,
    *(
        json.dumps([{"event": "act", "value": value}])
        for value in (
            1,
            "x",
            [],
            {},
            {"kind": []},
            {"kind": "rate"},
            {"kind": "nothing", "trace": "TRACE", "step": 1},
            {"kind": "rate", "trace": "TRACE", "step": "1", "rating": 2},
            {"kind": "rate", "trace": "TRACE", "step": 1, "rating": 99},
            {"kind": "page", "trace": "TRACE", "page": -3},
            {"kind": "page", "trace": "TRACE", "page": None},
            {"kind": "copy", "trace": "TRACE", "format": "exe", "nonce": 0.5},
            {"kind": "pick", "trace": "TRACE", "step": 1, "value": {}, "value_kind": "title"},
            {"kind": "pick", "trace": "TRACE", "step": 1, "value": "x", "value_kind": "title", "tool": "no tool"},
        )
    ),
)


def test_odd_values_of_a_component_are_ignored_without_a_traceback(home: Showhow):
    with open_session(home.url, "", {"you": "odd", "project": PROJECT}) as session:
        session.rerun({"_thought": "Who?", "_arg_wikisearch_query": "person"}, click="run")
        key = next(key for key in session.widgets if key.startswith("notebook_"))
        trace, widget = key.removeprefix("notebook_"), session.widgets[key]
        for value in ODD_VALUES:
            for field in ("json_trigger_value", "json_value"):
                id_ = trigger_id(widget.id) if field == "json_trigger_value" else widget.id
                session.rerun(states=[WidgetState(id=id_, **{field: value.replace("TRACE", trace)})])
        assert session.rerun().find("_thought")
    log = (home.home / "server.log").read_text(encoding="utf-8")
    assert "Traceback" not in log
    assert "a page failed" not in log
    assert log.count("was ignored") <= len(ODD_VALUES)


VALUES_OF_EACH_KIND = (
    {"trigger_value": True},
    {"bool_value": True},
    {"int_value": 7},
    {"double_value": float("nan")},
    {"string_value": "nonsense"},
    {"string_trigger_value": StringTriggerValue(data="nonsense")},
    {"int_array_value": SInt64Array(data=[2**62])},
    {"double_array_value": DoubleArray(data=[float("inf")])},
    {"string_array_value": StringArray(data=["nonsense"])},
    {"bytes_value": b"nonsense"},
    {"json_value": "[]"},
    {"json_trigger_value": "[]"},
    {"chat_input_value": ChatInputValue(data="nonsense")},
    {"file_uploader_state_value": FileUploaderState()},
)


@pytest.mark.parametrize("path", ["", "ask"])
def test_a_widget_takes_no_value_of_another_kind(home: Showhow, path: str):
    with open_session(home.url, path, {"you": f"forger of {path}", "project": PROJECT}) as session:
        widgets = list(session.widgets.values())
        for value in VALUES_OF_EACH_KIND:
            forged = [widget.id for widget in widgets if not (widget.kind == "button" and "trigger_value" in value)]
            session.rerun(states=[WidgetState(id=id_, **value) for id_ in forged], whole_page=True)
    # Also where they come before the widgets are drawn.
    clicks = [WidgetState(id=widget.id, trigger_value=True) for widget in widgets if widget.kind != "button"]
    with open_session(home.url, path, {"you": f"forger of {path}", "project": PROJECT}, states=clicks) as session:
        assert {widget.id for widget in widgets} >= {widget.id for widget in session.widgets.values()}
    assert "Traceback" not in (home.home / "server.log").read_text(encoding="utf-8")


def test_messages_that_no_page_sends_are_dropped_without_a_traceback(home: Showhow):
    cookie = cookie_of_new_visitor(home)
    names = BackMsg()
    names.file_urls_request.file_names.extend(["x"] * 100_000)
    widgets = BackMsg()
    widgets.rerun_script.widget_states.widgets.extend([WidgetState()] * 100_000)
    for message in (
        BackMsg(clear_cache=True),
        BackMsg(set_run_on_save=True),
        BackMsg(load_git_info=True),
        names,
        widgets,
    ):
        with connect_raw(home, cookie) as connection:
            connection.send(message.SerializeToString())
            connection.send(encode_rerun(f"you=tidy&project={PROJECT}"))
            assert connection.recv(timeout=60)
    for content in (b"\xff\xff\xff", "a text"):
        with connect_raw(home, cookie) as connection:
            connection.send(content)
            with pytest.raises(ConnectionClosed):
                connection.recv(timeout=60)
    log = (home.home / "server.log").read_text(encoding="utf-8")
    assert "Traceback" not in log


def test_a_person_sees_one_sentence_where_a_field_is_too_large(page: Page, home: Showhow):
    person = Annotator(page, home.url, "pasting", PROJECT)
    person.thought.click()
    person.thought.evaluate(
        """(field, text) => {
            Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, text);
            field.dispatchEvent(new Event("input", { bubbles: true }));
        }""",
        "w" * (MAX_MESSAGE_BYTES + 1),
    )
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text(WIDGETS_TOO_LARGE)).to_be_visible()
