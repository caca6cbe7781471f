"""What a link, a stranger and a crowd can do to pages."""

import re
import socket
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Barrier
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from showhow.app.capacity import REQUEST_SECONDS, SERVER_FULL
from tests.browser.annotator import Annotator
from tests.browser.server import Showhow
from tests.browser.session import BrowserSession, open_session
from tests.browser.settled import PATIENCE, settle

pytestmark = pytest.mark.long

FOREIGN = "http://foreign.invalid/beacon.png"
PROJECT = "Fictional people"
HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server whose guidelines load an image from another host."""
    showhow = Showhow(tmp_path_factory.mktemp("edges"))
    with sqlite3.connect(showhow.home / "showhow.db") as database:
        database.execute(
            "UPDATE project SET guidelines = ?", (f"See ![the map]({FOREIGN}) and <img src='{FOREIGN}'>.",)
        )
    database.close()
    showhow.start()
    yield showhow
    showhow.stop()


def rows(home: Showhow) -> dict[str, int]:
    """The number of rows of the tables in which looking could leave something."""
    with closing(sqlite3.connect(home.home / "showhow.db")) as database:
        return {
            table: database.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
            for table in ("user", "assignment", "trace", "draft")
        }


def last_page(home: Showhow) -> int:
    """The number of the last page that stored a draft; a page with one may store it again when it is left."""
    with closing(sqlite3.connect(home.home / "showhow.db")) as database:
        return int(database.execute("SELECT value FROM page_counter").fetchone()[0])


def test_many_visits_to_a_link_store_no_person_no_reservation_and_no_trace(home: Showhow):
    before, page_before = rows(home), last_page(home)
    for number in range(100):
        with open_session(home.url, "", {"you": f"visitor {number}", "project": PROJECT}) as visit:
            assert visit.find("_thought")
    assert (rows(home), last_page(home)) == (before, page_before)


def test_typing_stores_the_person_the_reservation_and_the_trace(page: Page, home: Showhow):
    before, page_before = rows(home), last_page(home)
    tia = Annotator(page, home.url, "tia", PROJECT)
    question = page.locator("h1").text_content()
    page.mouse.move(300, 300)
    page.get_by_role("button", name="My work").click()
    page.keyboard.press("Escape")
    page.reload()
    page.wait_for_selector(".st-key-acts")
    tia.settle()
    expect(page.locator("h1")).to_have_text(question or "")
    assert rows(home) == before
    tia.wait_for_save(lambda: tia.thought.fill("Who might that be?"))
    after = rows(home)
    assert last_page(home) > page_before
    assert {name: count - before[name] for name, count in after.items()} == {
        "user": 1,
        "assignment": 1,
        "trace": 1,
        "draft": 1,
    }
    # The question is not offered to others any more, and the draft is where it was.
    Annotator(page, home.url, "tom", PROJECT)
    expect(page.locator("h1")).not_to_have_text(question or "")
    tia = Annotator(page, home.url, "tia", PROJECT)
    expect(page.locator("h1")).to_have_text(question or "")
    expect(tia.thought).to_have_value("Who might that be?")


def position(session: BrowserSession) -> str:
    """Which question the page shows, such as "Question 3 of 500"."""
    return next(text.split(" · ")[0] for text in session.texts if text.startswith("Question "))


def test_people_who_come_at_once_are_shown_different_questions_and_keep_them_on_a_reload(home: Showhow):
    before = rows(home)
    together = Barrier(20)

    def visit(number: int) -> list[str]:
        person = {"you": f"early bird {number}", "project": PROJECT}
        together.wait()
        with open_session(home.url, "", person) as session:
            shown = [position(session), position(session.rerun())]
        with open_session(home.url, "", person) as session:
            return [*shown, position(session)]

    with ThreadPoolExecutor(20) as visitors:
        visits = list(visitors.map(visit, range(20)))
    assert all(len(set(shown)) == 1 for shown in visits), visits
    assert len({shown[0] for shown in visits}) == 20
    assert rows(home) == before


def test_of_two_people_who_look_at_the_last_open_question_the_first_to_type_gets_it(
    page: Page, browser: Browser, home: Showhow
):
    questions = home.home / "one.jsonl"
    questions.write_text('{"question": "Who is the last one?", "answer": "nobody"}', encoding="utf-8")
    home.run("questions", "import", str(questions), "--project", "One question", "--world", "default")
    first = Annotator(page, home.url, "uma", "One question")
    with browser.new_context() as other:
        second = Annotator(other.new_page(), home.url, "udo", "One question")
        expect(page.locator("h1")).to_have_text("Who is the last one?")
        expect(second.page.locator("h1")).to_have_text("Who is the last one?")
        first.wait_for_save(lambda: first.thought.fill("Mine."))
        second.thought.fill("Mine too.")
        expect(second.page.locator(".status")).to_contain_text("somebody else has begun it")
        second.fill("Search for", "anything")
        second.page.keyboard.press("Control+Enter")
        expect(
            second.page.get_by_text("Somebody else has begun it").or_(second.page.get_by_text("not open any more"))
        ).not_to_have_count(0)
        expect(second.thought).to_have_value("Mine too.")
        second.page.reload()
        expect(second.page.get_by_text("Your queue is empty")).to_be_visible()


def test_a_link_that_names_another_person_asks_once(browser: Browser, home: Showhow):
    home.appoint("vic")
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{home.url}/?you=vic&project={quote(PROJECT)}")
        expect(page.get_by_text("Are you vic?")).to_be_visible(timeout=PATIENCE)
        settle(page)
        expect(page.locator(".st-key-masthead")).to_have_count(0)
        page.get_by_role("button", name="Yes, continue as vic").click()
        page.wait_for_selector(".st-key-acts")
        settle(page)
        page.reload()
        page.wait_for_selector(".st-key-acts")
        second = context.new_page()
        second.goto(f"{home.url}/library?you=vic")
        second.wait_for_selector(".st-key-masthead")
        expect(second.get_by_text("Are you vic?")).to_have_count(0)


def test_a_new_name_is_not_asked_before_and_after_its_first_act(browser: Browser, home: Showhow):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{home.url}/?you=wim&project={quote(PROJECT)}")
        page.wait_for_selector(".st-key-acts")
        settle(page)
        page.get_by_label("Thought", exact=True).fill("A first act.")
        expect(page.locator(".status")).to_have_text(re.compile(r"^Saved"))
        page.reload()
        page.wait_for_selector(".st-key-acts")


def test_names_and_guidelines_load_nothing_from_other_hosts(page: Page, home: Showhow):
    foreign: list[str] = []
    page.on(
        "request",
        lambda request: (
            foreign.append(request.url) if not request.url.startswith((home.url, "blob:", "data:", "ws:")) else None
        ),
    )
    violations: list[str] = []
    page.on(
        "console",
        lambda message: violations.append(message.text) if "Content Security Policy" in message.text else None,
    )
    name = f"![b]({FOREIGN})"
    Annotator(page, home.url, name, PROJECT)
    expect(page.get_by_text(f"You: {name}")).to_be_visible()
    page.keyboard.press("Alt+G")
    expect(page.get_by_role("dialog")).to_contain_text("See the map")
    for path in ("ask", "library", "worlds", "tools", "verify"):
        page.goto(f"{home.url}/{path}?you={quote(name)}")
        page.wait_for_selector(".st-key-masthead, h1")
        settle(page)
    assert foreign == []
    assert violations == []
    # An image that found its way onto a page would be refused by the browser.
    page.evaluate("url => { const image = new Image(); image.src = url; document.body.append(image); }", FOREIGN)
    page.wait_for_function("() => [...document.images].every((image) => image.complete)")
    assert any("Content Security Policy" in text for text in violations)


def test_every_response_has_the_headers_of_security(home: Showhow):
    with httpx.Client(base_url=home.url) as client:
        script = re.search(r"\./(static/js/index[^\"]+)", client.get("/", headers=HTML).text)
        assert script
        for method, path, status in (
            ("GET", "/", 200),
            ("GET", "/review", 200),
            ("GET", f"/{script[1]}", 200),
            ("GET", "/healthz", 200),
            ("GET", "/_stcore/health", 200),
            ("GET", "/media/missing.png", 404),
            ("GET", "/component/missing/main.js", 404),
            ("GET", "/drafts/1", 200),
            ("POST", "/drafts/0193a000-0000-7000-8000-000000000000?token=%C3%A9", 403),
        ):
            reply = client.request(method, path)
            assert reply.status_code == status, path
            assert reply.headers["X-Frame-Options"] == "DENY", path
            assert reply.headers["X-Content-Type-Options"] == "nosniff", path
            assert reply.headers["Referrer-Policy"] == "same-origin", path
            policy = reply.headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in policy, path
            assert "unsafe-eval" not in policy
            assert "script-src 'self' blob: 'sha256-" in policy


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[Showhow]:
    """A server that may open few files."""
    showhow = Showhow(tmp_path, descriptors=256)
    showhow.start()
    yield showhow
    showhow.stop()


def test_a_full_server_says_so_to_new_visitors_and_those_who_are_in_go_on(crowded: Showhow):
    with (
        httpx.Client(base_url=crowded.url, timeout=60) as early,
        httpx.Client(base_url=crowded.url, timeout=60) as late,
        ExitStack() as sessions,
    ):
        assert early.get("/", headers=HTML).status_code == 200
        session = sessions.enter_context(open_session(crowded.url, "", {"you": "early", "project": PROJECT}))
        count = 1
        while (reply := late.get("/", headers=HTML)).status_code == 200:
            cookie = "; ".join(f"{name}={value}" for name, value in late.cookies.items())
            late.cookies.clear()
            visitor = {"you": f"late {count}", "project": PROJECT}
            sessions.enter_context(open_session(crowded.url, "", visitor, cookie=cookie))
            count += 1
            assert count < 256
        assert count > 20
        assert (reply.status_code, SERVER_FULL in reply.text) == (503, True)
        assert reply.headers["Retry-After"] == "60"
        assert reply.headers["X-Frame-Options"] == "DENY"
        # Who is in can act, and reload the page.
        session.rerun({"_thought": "still here", "_arg_wikisearch_query": "person"}, click="run")
        assert rows(crowded)["trace"] > 0
        assert early.get("/", headers=HTML).status_code == 200


def open_connections(home: Showhow, count: int, request: bytes) -> list[socket.socket]:
    """Open connections that send these bytes and nothing more."""
    connections = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", home.port), timeout=REQUEST_SECONDS * 6)
        connections.append(connection)
        # The server may have closed it already.
        with suppress(ConnectionError):
            connection.sendall(request)
    return connections


def is_closed_by_server(connection: socket.socket) -> bool:
    """Wait until the server closes the connection, and close it here; False if the server does not."""
    try:
        while connection.recv(65_536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    finally:
        connection.close()
    return True


HOST = b"Host: 127.0.0.1\r\n"
UNUSED = {
    "no byte": b"",
    "half a head": b"GET / HTTP/1.1\r\n" + HOST + b"X-Slow: 1",
    "half a head after a request": b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\nGET /heal",
    "a WebSocket without a message": b"GET /_stcore/stream HTTP/1.1\r\n"
    + HOST
    + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    + b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: streamlit\r\n\r\n",
}


def test_connections_that_are_not_used_are_closed_and_a_page_that_is_looked_at_stays(home: Showhow):
    with open_session(home.url, "", {"you": "reader", "project": PROJECT}) as session:
        draft = re.search(rb"/drafts/[^\"]+token=[0-9a-f]+", session.received)
        assert draft
        half_a_body = b"POST " + draft[0] + b" HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\n\r\n{"
        requests = UNUSED | {"half a body": half_a_body}
        unused = {kind: open_connections(home, 2, request) for kind, request in requests.items()}
        closed = {kind: [is_closed_by_server(one) for one in several] for kind, several in unused.items()}
        assert closed == {kind: [True, True] for kind in requests}
        assert session.rerun().find("_thought")
    assert "Traceback" not in (home.home / "server.log").read_text(encoding="utf-8")


def test_more_connections_than_descriptors_lock_nobody_out_and_do_not_fill_the_log(crowded: Showhow):
    with (
        httpx.Client(base_url=crowded.url, timeout=60) as visitor,
        open_session(crowded.url, "", {"you": "early", "project": PROJECT}) as session,
        ExitStack() as connections,
    ):
        for connection in open_connections(crowded, 600, UNUSED["half a head"]):
            connections.enter_context(connection)
        # Long before the time of an unfinished request is over.
        assert visitor.get("/healthz").text == "ok"
        session.rerun({"_thought": "still here", "_arg_wikisearch_query": "person"}, click="run")
        assert rows(crowded)["trace"] > 0
    assert (crowded.home / "server.log").stat().st_size < 200_000


def test_a_click_that_the_server_joins_with_a_run_of_the_page_runs_its_step(home: Showhow):
    with open_session(home.url, "", {"you": "vera", "project": PROJECT}) as session:
        typed = {"_thought": "Who might that be?", "_arg_wikisearch_query": "person"}
        session.rerun(typed, click="run", whole_page=True)
        assert "**Step 2**" in session.texts
        session.rerun(typed, click="run")
        assert "**Step 3**" in session.texts


@pytest.mark.parametrize("whole_page", [True, False], ids=["joined", "alone"])
def test_a_skip_that_the_server_joins_with_a_run_of_the_page_is_stored(home: Showhow, whole_page: bool):  # noqa: FBT001
    name = f"wanda {whole_page}"
    with open_session(home.url, "", {"you": name, "project": PROJECT}) as session:
        for reason in ("another one first", "and another"):
            session.rerun(click="skip")
            session.rerun({"skip_reason": reason}, click="skip_now", whole_page=whole_page)
    query = "SELECT reason FROM assignment JOIN user ON user.id = user_id WHERE user.name = ? AND state = 'skipped'"
    with closing(sqlite3.connect(home.home / "showhow.db")) as stored:
        assert sorted(stored.execute(query, (name,))) == [("and another",), ("another one first",)]
