"""A team behind a login, on a real server: the way of an invited person in a browser, and attacks by HTTP."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from showhow.app.login import COOKIE
from showhow.db.database import Database
from showhow.db.people import logins, users
from showhow.db.questions import projects
from showhow.db.review.queue import begin_question
from showhow.db.traces import recording
from tests.browser.server import Showhow
from tests.browser.session import SessionError, encode_rerun, open_session
from tests.browser.settled import PATIENCE, settle
from tests.servers.reverse_proxy import reverse_proxy

pytestmark = pytest.mark.long

PROJECT = "Fictional people"
PASSWORD = "correct horse battery"  # noqa: S105 - of this test
STREAM = "/_stcore/stream"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with a password login, an administrator and two who annotate."""
    showhow = Showhow(tmp_path_factory.mktemp("team") / "home")
    showhow.environment["SHOWHOW_LOGIN"] = "password"
    showhow.run("users", "add", "ada", "--role", "admin", "--role", "reviewer")
    for name in ("ben", "cleo"):
        showhow.run("users", "add", name)
    showhow.start()
    yield showhow
    showhow.stop()


def database_of(team: Showhow) -> Database:
    return Database(f"sqlite:///{team.home / 'showhow.db'}")


def cookie_of(team: Showhow, name: str) -> str:
    """The cookie of a new login of that person."""
    database = database_of(team)
    with database.begin() as session:
        token = logins.begin_login(session, users.find_named(session, name).id)
    database.close()
    return f"{COOKIE}={token}"


def link_of(team: Showhow, name: str) -> str:
    printed = team.run("users", "invite", name)
    link = re.search(r"https?://\S+(/invite/\S+)", printed)
    assert link is not None, printed
    return f"{team.url}{link[1]}"


def open_home(page: Page, team: Showhow, path: str = "/") -> None:
    page.set_default_timeout(PATIENCE)
    page.goto(f"{team.url}{path}")


def see_page(page: Page) -> None:
    page.wait_for_selector(".st-key-masthead", timeout=PATIENCE)
    settle(page)


def test_an_invited_person_chooses_a_password_works_and_logs_out(team: Showhow, page: Page):
    open_home(page, team, f"/library?you=ada&project={PROJECT.replace(' ', '+')}")
    page.wait_for_url("**/login?next=**")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.goto(link_of(team, "ben"))
    expect(page.get_by_label("Name")).to_have_value("ben")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password again").fill("something else")
    page.get_by_role("button", name="Save and log in").click()
    expect(page.get_by_role("alert")).to_contain_text("differ")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password again").fill(PASSWORD)
    page.get_by_role("button", name="Save and log in").click()
    see_page(page)
    expect(page.get_by_text("You: ben")).to_be_visible()
    # A name in the link has no effect, and does not stay there.
    page.goto(f"{team.url}/?you=ada&project={PROJECT.replace(' ', '+')}")
    see_page(page)
    expect(page.get_by_text("You: ben")).to_be_visible()
    expect(page).not_to_have_url(re.compile("you="))
    page.get_by_text("You: ben").click()
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login**")
    page.goto(f"{team.url}/library")
    page.wait_for_url("**/login?next=%2Flibrary")
    page.get_by_label("Name").fill("ben")
    page.get_by_label("Password").fill("wrong password")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("wrong")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**/library**")
    see_page(page)


def test_an_open_page_of_who_is_switched_off_leads_to_the_login(team: Showhow, browser: Browser):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    name, _, value = cookie_of(team, "cleo").partition("=")
    context.add_cookies([{"name": name, "value": value, "url": team.url}])
    page = context.new_page()
    open_home(page, team)
    see_page(page)
    team.run("users", "disable", "cleo")
    page.get_by_role("link", name="Library").click()
    page.wait_for_url("**/login**")
    context.close()
    team.run("users", "enable", "cleo")


def test_two_tabs_of_two_people_in_one_browser_do_not_mix(team: Showhow, browser: Browser):
    context = browser.new_context()
    for name in ("ada", "ben"):
        page = context.new_page()
        open_home(page, team, link_of(team, name).removeprefix(team.url))
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_label("Password again").fill(PASSWORD)
        page.get_by_role("button", name="Save and log in").click()
        see_page(page)
        expect(page.get_by_text(f"You: {name}")).to_be_visible()
    first = context.pages[0]
    first.get_by_role("link", name="Library").click()
    # The login of ada ended when ben logged in: her tab is loaded again, as ben's.
    expect(first.get_by_text("You: ben")).to_be_visible(timeout=PATIENCE)
    context.close()


def test_no_websocket_opens_without_a_login_and_one_ends_with_its_login(team: Showhow):
    socket = team.url.replace("http", "ws", 1) + STREAM
    for cookie in ("", f"{COOKIE}=x", f"{COOKIE}={'x' * 43}", "showhow_you_616461=1"):
        with pytest.raises(InvalidStatus) as refused:
            connect(socket, additional_headers={"Cookie": cookie}, subprotocols=["streamlit"])  # type: ignore[list-item]
        assert refused.value.response.status_code == 403
    with open_session(team.url, "", {"you": "ada", "project": PROJECT}, cookie=cookie_of(team, "ben")) as session:
        session.rerun()
        team.run("users", "logins", "ben", "--end", "all")
        with pytest.raises(SessionError, match="closed"):
            session.rerun()


def test_who_logs_in_next_does_not_come_back_to_the_page_of_who_was_there(team: Showhow):
    ada = cookie_of(team, "ada")
    with open_session(team.url, "", {"project": PROJECT}, cookie=ada) as session:
        left = session.id
    socket = team.url.replace("http", "ws", 1) + STREAM
    ids = {}
    for name, cookie in (("ben", cookie_of(team, "ben")), ("ada", ada)):
        protocols = ["streamlit", "PLACEHOLDER_AUTH_TOKEN", left]
        with connect(socket, additional_headers={"Cookie": cookie}, subprotocols=protocols, max_size=None) as back:  # type: ignore[arg-type]
            back.send(encode_rerun(""))
            message = ForwardMsg()
            while message.WhichOneof("type") != "new_session":
                message.ParseFromString(bytes(back.recv(timeout=60)))  # type: ignore[arg-type]
            ids[name] = message.new_session.initialize.session_id
    assert ids["ada"] == left
    assert ids["ben"] != left


def test_a_draft_is_taken_from_the_person_whose_page_signed_it_only(team: Showhow):
    own = cookie_of(team, "ben")
    with open_session(team.url, "", {"project": PROJECT}, cookie=own) as session:
        address = re.search(rb"/drafts/[^\"\\]+token=[0-9a-f]{64}", session.received)
        assert address is not None
        url = f"{team.url}{address[0].decode()}"
    draft = {"step": 1, "fields": {"thought": "Mine."}, "active": 1}
    for cookie, status in (("", 401), (f"{COOKIE}={'x' * 43}", 401), (cookie_of(team, "ada"), 403), (own, 200)):
        reply = httpx.post(url, json=draft, headers={"Cookie": cookie})
        assert reply.status_code == status, reply.text
    for change in (("token=", "token=0"), ("person=ben", "person=ada")):
        assert httpx.post(url.replace(*change), json=draft, headers={"Cookie": own}).status_code == 403


def test_anothers_draft_is_not_shown_by_its_address(team: Showhow):
    database = database_of(team)
    with database.begin() as session:
        cleo = users.find_named(session, "cleo")
        question = projects.list_questions(session, projects.get_project(session, PROJECT).id)[-1]
        trace = begin_question(session, question.id, cleo.id)
        content = {"step": 1, "fields": {"thought": "Nobody else reads this."}}
        recording.save_draft(session, trace.id, content, by=cleo.id, page_number=1)
    database.close()
    with open_session(team.url, "", {"trace": str(trace.id), "you": "cleo"}, cookie=cookie_of(team, "ben")) as session:
        assert b"Nobody else reads this." not in session.received
    assert isinstance(trace.id, UUID)


def test_everything_but_the_login_is_closed_to_strangers(team: Showhow):
    index = httpx.get(f"{team.url}/login").text
    assert "<script" not in index
    for path in (
        "/",
        "/annotate",
        "/help/tutorial.md",
        "/_stcore/health",
        "/_stcore/host-config",
        "/static/index.html",
    ):
        for accept in ("text/html", "*/*"):
            reply = httpx.get(f"{team.url}{path}", headers={"Accept": accept})
            assert reply.status_code in (303, 401), path
            assert reply.headers["Content-Security-Policy"]
    for method in ("POST", "PUT", "DELETE"):
        assert httpx.request(method, f"{team.url}/_stcore/upload_file/a/b").status_code in (401, 403)
    assert httpx.get(f"{team.url}/healthz").text == "ok"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 1024])
def test_the_pages_of_the_login_are_readable(team: Showhow, browser: Browser, scheme: str, width: int, tmp_path: Path):
    folder = Path(os.environ.get("SHOWHOW_SCREENSHOTS", tmp_path))
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if "Security" in message.text else None)
    for name, address in (
        ("login", "/login"),
        ("invite", link_of(team, "ben").removeprefix(team.url)),
        ("used", "/invite/x"),
    ):
        page.goto(f"{team.url}{address}")
        expect(page.get_by_role("heading")).to_have_count(1)
        page.screenshot(path=folder / f"{name}_{width}_{scheme}.png")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
    assert problems == []


def test_whom_a_proxy_names_with_its_secret_uses_the_pages(tmp_path: Path):
    showhow = Showhow(tmp_path / "home")
    secret = "0123456789abcdef-of-the-proxy"  # noqa: S105 - of this test
    showhow.environment |= {"SHOWHOW_LOGIN": "proxy", "SHOWHOW_LOGIN_SECRET": secret}
    showhow.run("users", "add", "lea@example.org")
    showhow.start()
    try:
        named = ("X-Forwarded-User: lea@example.org", "X-Forwarded-For: 192.0.2.7")
        with reverse_proxy(showhow.port, (*named, f"X-Showhow-Secret: {secret}")) as url:
            with open_session(url, "", {"you": "ada", "project": PROJECT}) as session:
                assert session.find("run")
                assert secret.encode() not in session.received
            assert httpx.get(f"{url}/library").status_code == 200
            # What comes from outside is there twice, and nobody is believed.
            assert httpx.get(f"{url}/library", headers={"X-Forwarded-User": "ada"}).status_code == 401
        with reverse_proxy(showhow.port, named) as url, pytest.raises(SessionError, match="no session"):
            open_session(url, "", {}).__enter__()
    finally:
        showhow.stop()
