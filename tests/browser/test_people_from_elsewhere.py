"""People who come through a proxy: they look, and change nothing until they are invited."""

import getpass
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from showhow.app.home_secret import SECRET_FILE
from showhow.app.widgets.person import confirmation_cookie
from showhow.db.database import Database
from showhow.db.people import users
from tests.browser.server import Showhow
from tests.browser.session import open_session
from tests.browser.settled import PATIENCE, settle
from tests.servers.reverse_proxy import reverse_proxy

pytestmark = pytest.mark.long

PROJECT = "Fictional people"
FORWARDED = ("X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: http")
INVITATION = "ask an administrator for an invitation"
PAGES = ("", "ask", "project", "library", "verify", "compare", "worlds", "tools", "settings")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    showhow = Showhow(tmp_path_factory.mktemp("elsewhere") / "home")
    showhow.appoint(getpass.getuser(), "grace")
    showhow.run("users", "add", "cleo")
    showhow.start()
    yield showhow
    showhow.stop()


@pytest.fixture(params=["forwarding headers", "another host", "the own host"])
def proxied(request: pytest.FixtureRequest, home: Showhow) -> Iterator[str]:
    """The URL of a proxy on this machine: one that says so, one that keeps the Host, one that hides the Host."""
    headers, host = {
        "forwarding headers": (FORWARDED, None),
        "another host": ((), None),
        "the own host": (("Via: 1.1 proxy",), f"127.0.0.1:{home.port}"),
    }[request.param]
    with reverse_proxy(home.port, headers, host) as url:
        yield url


def stored_people(home: Showhow) -> dict[str, list[str]]:
    database = Database(f"sqlite:///{home.home / 'showhow.db'}")
    with database.read() as session:
        people = {person.name: person.roles for person in users.list_users(session)}
    database.close()
    return people


def test_who_comes_through_a_proxy_without_a_name_has_no_rights_on_any_page(home: Showhow, proxied: str):
    before = stored_people(home)
    for page in PAGES:
        with open_session(proxied, page, {"project": PROJECT}) as session:
            said = " ".join(session.texts)
            assert INVITATION in said, page
            for key in ("run", "ask", "profile_add", "profile_test", "backup_now", "new_project", "generate", "import"):
                assert not any(name.endswith(f"-{key}") or name == key for name in session.widgets), (page, key)
    assert stored_people(home) == before


def test_a_name_that_nobody_invited_gives_no_right_and_is_not_stored(home: Showhow, proxied: str):
    before = stored_people(home)
    with open_session(proxied, "", {"you": "mallory", "project": PROJECT}) as session:
        assert "'mallory' has no role here" in " ".join(session.texts)
    assert stored_people(home) == before


def test_the_same_server_serves_this_machine_as_before(home: Showhow):
    with open_session(home.url, "settings", {}) as session:
        assert INVITATION not in " ".join(session.texts)
        assert session.find("profile_add")
    with open_session(home.url.replace("127.0.0.1", "localhost"), "", {"project": PROJECT}) as session:
        assert INVITATION not in " ".join(session.texts)


@pytest.mark.parametrize("cookie", ["1", "yes", "0" * 64])
def test_a_forged_cookie_does_not_skip_the_question_for_a_person(home: Showhow, cookie: str):
    with reverse_proxy(home.port, FORWARDED) as url:
        for name in ("grace", "cleo"):
            forged = f"{confirmation_cookie(name)}={cookie}"
            with open_session(url, "", {"you": name}, cookie=forged) as session:
                assert f"### Are you {name}?" in session.texts
    with open_session(home.url, "", {"you": "grace"}, cookie=f"{confirmation_cookie('grace')}={cookie}") as session:
        assert "### Are you grace?" in session.texts


def test_who_has_confirmed_is_not_asked_again_and_the_secret_is_the_owners(home: Showhow, browser: Browser):
    with reverse_proxy(home.port, FORWARDED) as url:
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"{url}/?you=cleo&project={PROJECT.replace(' ', '+')}")
        page.get_by_role("button", name="Yes, continue as cleo").click()
        page.wait_for_selector(".st-key-masthead")
        settle(page)
        expect(page.locator(".st-key-run button")).to_be_visible()
        page.reload()
        page.wait_for_selector(".st-key-masthead")
        settle(page)
        expect(page.get_by_role("button", name="Yes, continue as cleo")).to_have_count(0)
        (cookie,) = (kept for kept in context.cookies() if kept["name"] == confirmation_cookie("cleo"))
        context.close()
        # What cleo has confirmed makes nobody grace.
        stolen = f"{confirmation_cookie('grace')}={cookie['value']}"
        with open_session(url, "", {"you": "grace"}, cookie=stolen) as session:
            assert "### Are you grace?" in session.texts
    secret = home.home / SECRET_FILE
    assert (secret.stat().st_mode & 0o777, secret.stat().st_size) == (0o600, 32)


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1:1", "https://evil.example", "null"])
def test_the_page_of_another_server_opens_no_websocket_and_posts_no_draft(home: Showhow, origin: str):
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{home.port}/_stcore/stream", origin=origin, subprotocols=["streamlit"])  # type: ignore[arg-type,list-item]
    assert refused.value.response.status_code == 403
    draft = f"{home.url}/drafts/00000000-0000-4000-8000-000000000000?page=1"
    answer = httpx.post(draft, json={}, headers={"Origin": origin})
    assert (answer.status_code, "its own pages only" in answer.text) == (403, True)


def test_a_visitor_from_elsewhere_looks_around(home: Showhow, page: Page, tmp_path: Path):
    folder = Path(os.environ.get("SHOWHOW_SCREENSHOTS", tmp_path))
    page.set_default_timeout(PATIENCE)
    with reverse_proxy(home.port, FORWARDED) as url:
        for path in ("", "library", "verify", "ask"):
            page.goto(f"{url}/{path}?project={PROJECT.replace(' ', '+')}")
            expect(page.get_by_text(INVITATION)).to_be_visible(timeout=PATIENCE)
            settle(page)
            page.screenshot(path=folder / f"visitor_{path or 'annotate'}.png")
        expect(page.locator(".st-key-run")).to_have_count(0)
        expect(page.get_by_text("You: a visitor")).to_be_visible()
